"""The archive inside the frames, on that of a real nats-server 2.15.1."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.archive.entries import END, MAGIC, Entry, Order, Reader, encode
from headwater.errors import RemoteProtocolError

CONTENT = (Path(__file__).parents[1] / "vectors" / "archives" / "stream.natsarc").read_bytes()
ENTRIES = st.builds(
    Entry,
    st.binary(min_size=1, max_size=9), st.integers(-(1 << 62), 1 << 62), st.integers(0, 1 << 62),
    st.binary(max_size=9), st.binary(max_size=300),
)  # fmt: skip


def read(data: bytes, step: int) -> list[Entry]:
    reader = Reader()
    found = [entry for at in range(0, len(data), step) for entry in reader.feed(data[at : at + step])]
    reader.finish()
    return found


def test_the_archive_of_a_real_server_is_read_and_written_again_byte_for_byte() -> None:
    found = read(CONTENT, 100)
    assert [entry.name for entry in found] == [
        b"state.json", b"consumers/dur", b"consumers/eph", b"s.0", b"s.2", b"s.3",
    ]  # fmt: skip
    assert found[-1] == Entry(b"s.3", 1795320024196010761, 4, b"NATS/1.0\r\nNats-Msg-Id: i3\r\n\r\n", b"body3")
    assert MAGIC + b"".join(map(encode, [*found, END])) == CONTENT


@given(st.lists(ENTRIES, max_size=5), st.integers(1, 50))
def test_any_entries_come_back_however_they_are_cut(entries: list[Entry], step: int) -> None:
    assert read(MAGIC + b"".join(map(encode, [*entries, END])), step) == entries


@given(st.binary(max_size=80))
def test_any_bytes_are_entries_or_an_error(data: bytes) -> None:
    try:
        read(MAGIC + data, 7)
    except RemoteProtocolError:
        return


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "EOF"),
        (b"NATSARC", "EOF"),
        (CONTENT[:-1], "EOF"),
        (b"something else", "unknown archive format"),
        (MAGIC + b"\xff" * 11, "archive entry is malformed"),
        (MAGIC + b"\xff\xff\xff\xff\x7f\x00\x00\x00\x00", "archive entry is malformed"),
    ],
)
def test_what_is_no_whole_archive_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(RemoteProtocolError) as refused:
        read(data, 4)
    assert refused.value.message == why


def test_an_older_servers_tar_is_named_as_such() -> None:
    with pytest.raises(RemoteProtocolError, match="older server"):
        read(b"meta.inf" + bytes(100), 50)


def order(*names: tuple[bytes, int], consumers: int = 0) -> str:
    """What is wrong with entries in this order after the state; "" for nothing."""
    rules = Order()
    try:
        for name, sequence in names:
            if rules.kind(Entry(name, 0, sequence, b"", b"")) == "state":
                rules.begin(consumers)
    except RemoteProtocolError as error:
        return error.message
    return ""


def test_the_order_of_entries_is_kept() -> None:
    state = (b"state.json", 0)
    assert order(state, (b"consumers/a", 0), (b"s", 1), (b"s", 3), consumers=1) == ""
    assert order((b"s", 1)) == "expected state.json first"
    assert order(state, (b"s.0", 1), consumers=1) == 'expected consumer, found "s.0"'
    assert order(state, (b"s", 3), (b"s", 3)) == "message sequence 3 out of order"
    assert order(state, (b"s", 0)) == "message sequence 0 out of order"
