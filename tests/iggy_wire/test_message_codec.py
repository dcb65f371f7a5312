"""What is polled is read where it lies, whole or not at all; what is sent is a batch that a server admits."""

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import TypedHeaders
from headwater.errors import IggyError
from headwater.iggy_wire.batches import admit, messages, xxh3_64
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.message_codec import read_messages, write_messages
from headwater.streams.iggy_batch import stamp

MESSAGE = st.builds(
    Message,
    st.binary(min_size=1, max_size=40),
    st.sampled_from([None, TypedHeaders({"key": "value"}), TypedHeaders([("n", 5), ("k", b"\0")])]),
    st.integers(0, 2**128 - 1),
    origin_timestamp=st.sampled_from([0, 900, 1100]),
)


@given(st.lists(MESSAGE, min_size=1, max_size=5), st.integers(0, 2**63), st.binary(max_size=9))
def test_what_is_written_is_admitted_and_read_again(sent: list[Message], base: int, before: bytes) -> None:
    batch, count = write_messages(sent, 1000)
    assert count == len(sent)
    admit(batch, 0, len(batch), count, verify=True)
    stamp(batch, 0, 3, base, 2000)
    found = read_messages(bytearray(before) + batch + batch, len(before), len(before) + 2 * len(batch))
    assert [(m.payload, m.headers, m.id) for m in found] == [(m.payload, m.headers, m.id) for m in sent] * 2
    assert [m.offset for m in found] == [base + number for number in range(count)] * 2
    assert {(m.partition, m.timestamp) for m in found} == {(3, 2000)}
    assert [m.origin_timestamp for m in found[:count]] == [m.origin_timestamp or 1000 for m in sent]
    assert [(m.payload, m.id, m.offset) for m in messages(bytes(batch))] == [
        (m.payload, m.id, m.offset) for m in found[:count]
    ]


def test_the_checksum_is_that_of_the_frame() -> None:
    batch, _ = write_messages([Message(b"payload", TypedHeaders({"key": "value"}), 7)], 1000)
    (found,) = read_messages(batch, 0, len(batch))
    assert found.checksum == xxh3_64(bytes(batch[264:]))
    assert repr(found) == "<ReceivedMessage 0/0, 7 bytes>"


def test_headers_without_kinds_are_refused_with_what_has_them() -> None:
    plain: Any = {"Trace": "1"}
    with pytest.raises(TypeError, match="have kinds: TypedHeaders"):
        Message(b"", plain)


def test_a_message_that_is_pickled_takes_no_other_along() -> None:
    headers = TypedHeaders({"key": "value"})
    batch, _ = write_messages([Message(b"one", headers, 2**127 + 7), Message(bytes(100_000))], 1000)
    stamp(batch, 0, 3, 2**40, 2000)
    found = read_messages(batch, 0, len(batch))[0]
    raw = pickle.dumps(found)
    again = pickle.loads(raw)
    assert len(raw) < 1000
    names = ("payload", "block", "headers", "id", "offset", "timestamp", "origin_timestamp", "checksum", "partition")
    assert [getattr(again, name) for name in names] == [getattr(found, name) for name in names]


@given(st.data())
def test_any_damage_is_refused_or_gives_messages(data: st.DataObject) -> None:
    batch, _ = write_messages([Message(b"one"), Message(b"two", TypedHeaders({"key": "value"}))], 1000)
    end = data.draw(st.integers(0, len(batch)))
    for _ in range(data.draw(st.integers(0, 3))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read_messages(batch, 0, end)
    except IggyError:
        return
    assert sum(len(message.payload) for message in found) <= end


@pytest.mark.parametrize("identity", [-1, 2**128])
def test_an_id_that_has_no_room_is_refused(identity: int) -> None:
    with pytest.raises(IggyError, match="a message id has 128 bits"):
        write_messages([Message(b"x", id=identity)], 1000)


@pytest.mark.parametrize("moment", [-1, 1 << 64])
def test_an_origin_timestamp_that_has_no_room_is_refused(moment: int) -> None:
    with pytest.raises(IggyError, match="in microseconds since 1970, in 64 bits"):
        write_messages([Message(b"x", origin_timestamp=moment)], moment)
