"""Events for operators are kept, counted and logged, and a flood of them hides no other event."""

import logging

import pytest

from headwater.net.journal import KINDS, LINES_PER_SECOND, LONGEST_TEXT, MOST_EVENTS, Journal


class Clock:
    def __init__(self) -> None:
        self.now = 10.0

    def journal(self) -> Journal:
        return Journal(lambda: int(self.now * 1e9), lambda: self.now)


def test_an_event_is_kept_counted_and_logged_at_the_level_of_its_kind(caplog: pytest.LogCaptureFixture) -> None:
    journal = Clock().journal()
    journal.note("publish_refused", account="A", user="ann", subject=b"secret.\xff")
    journal.note("slow_consumer", user="bob", log=False)
    assert journal.counts == dict.fromkeys(KINDS, 0) | {"publish_refused": 1, "slow_consumer": 1}
    assert [event["kind"] for event in journal.events] == ["publish_refused", "slow_consumer"]
    assert journal.events[0] | {"time_ns": 0} == {
        "kind": "publish_refused", "time_ns": 0, "account": "A", "user": "ann", "subject": "secret.\ufffd",
    }  # fmt: skip
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.ERROR, "publish_refused account='A' user='ann' subject='secret.\ufffd'")
    ]


def test_the_same_again_is_counted_where_it_is_and_leaves_the_others_in_the_ring() -> None:
    clock = Clock()
    journal = clock.journal()
    journal.note("reload", changes="")
    for _ in range(10 * MOST_EVENTS):
        clock.now += 0.001
        journal.note("login_failed", user="root", address="192.0.2.1")
    assert [(event["kind"], event.get("times")) for event in journal.events] == [
        ("reload", None),
        ("login_failed", 10 * MOST_EVENTS),
    ]
    for number in range(2 * MOST_EVENTS):
        journal.note("login_failed", user=str(number))
    assert len(journal.events) == MOST_EVENTS


def test_a_flood_of_one_kind_logs_limited_lines_a_second_and_the_next_has_the_number_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    journal = clock.journal()
    for number in range(1000):
        journal.note("login_failed", user=str(number))
    journal.note("publish_refused", subject="s")
    assert len(caplog.records) == LINES_PER_SECOND + 1
    clock.now += 1
    journal.note("login_failed", user="last")
    assert caplog.records[-1].getMessage() == f"login_failed user='last' left_out={1000 - LINES_PER_SECOND}"


def test_a_long_subject_is_cut() -> None:
    journal = Clock().journal()
    journal.note("publish_refused", subject=b"s" * 10_000)
    assert len(str(journal.events[0]["subject"])) == LONGEST_TEXT
