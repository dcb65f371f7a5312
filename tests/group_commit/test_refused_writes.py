"""Refused writes are logged, and do not fill a disk that is full already."""

import logging

import pytest

from headwater.errors import DiskFull
from headwater.group_commit.refused_writes import BETWEEN, RefusedWrites


def test_refused_writes_have_one_line_a_second_with_the_messages_of_all(caplog: pytest.LogCaptureFixture) -> None:
    now = 5
    refused = RefusedWrites("ORDERS", lambda: now)
    with caplog.at_level(logging.ERROR):
        for _ in range(1000):
            refused.note(3, DiskFull("no room"))
        now += BETWEEN
        refused.note(1, DiskFull("still no room"))
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "stream_write_refused stream=ORDERS messages=3 reason=no room",
        "stream_write_refused stream=ORDERS messages=2998 reason=still no room",
    ]
