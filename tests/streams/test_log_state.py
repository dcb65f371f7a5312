"""The log's state document: round trip, and nothing half understood."""

import json

import pytest

from headwater.streams.log_state import LogState

STATE = LogState(b"identity", 1, 2, 3, marks_are_synced=True)


def test_it_comes_back_as_it_was() -> None:
    assert LogState.decode(STATE.encode()) == STATE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format_version", 3),
        ("format_version", 0),
        ("format_version", True),
        ("identity", "zz"),
        ("identity", "00"),
        ("start_offset", -1),
        ("reserved_end", 1.5),
        ("active_base", None),
        ("active_base", True),
    ],
)
def test_what_this_version_did_not_write_is_not_understood(name: str, value: object) -> None:
    fields = json.loads(STATE.encode())
    fields[name] = value
    assert LogState.decode(json.dumps(fields).encode()) is None
    del fields[name]
    assert LogState.decode(json.dumps(fields).encode()) is None


@pytest.mark.parametrize("document", [b"", b"[]", b"{", b"\xff", b"7"])
def test_garbage_is_not_understood(document: bytes) -> None:
    assert LogState.decode(document) is None
