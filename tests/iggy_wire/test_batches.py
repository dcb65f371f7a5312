"""Batches of today: made, checked, cut and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import TypedHeaders
from headwater.errors import IggyError
from headwater.iggy_wire.batches import (
    MAX_TIMESTAMP_DELTA,
    Part,
    admit,
    batch_checksum,
    build,
    build_stored,
    cut,
    messages,
    of_messages,
    seal,
)
from headwater.iggy_wire.commands import Message
from headwater.streams.iggy_batch import BATCH_HEADER_SIZE, batch_fields, checksums_of, stamp

MESSAGES = st.lists(
    st.builds(
        Message,
        st.binary(min_size=1, max_size=30),
        st.none()
        | st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 9), min_size=1).map(TypedHeaders),
        id=st.integers(0, (1 << 128) - 1),
    ),
    min_size=1,
    max_size=8,
)


def stored(sent: list[Message], base: int = 0, timestamp: int = 5) -> bytes:
    batch, _ = of_messages(sent, 3)
    stamp(batch, 0, 0, base, timestamp)
    seal(batch, 0, checksums_of(bytes(batch), BATCH_HEADER_SIZE, len(batch)))
    return bytes(batch)


@given(MESSAGES, st.integers(0, 1000))
def test_what_is_sent_is_what_is_polled(sent: list[Message], base: int) -> None:
    found = list(messages(stored(sent, base) + stored(sent, base + len(sent))))
    assert [(m.payload, m.headers, m.id) for m in found] == [(m.payload, m.headers, m.id) for m in sent * 2]
    assert [m.offset for m in found] == list(range(base, base + 2 * len(sent)))
    assert all((m.timestamp, m.origin_timestamp) == (5, 3) for m in found)


@given(MESSAGES)
def test_what_we_make_is_admitted_with_its_checksums(sent: list[Message]) -> None:
    batch, count = of_messages(sent, 3)
    checksums = admit(batch, 0, len(batch), count, verify=True)
    assert checksums == checksums_of(bytes(batch), BATCH_HEADER_SIZE, len(batch))
    fields = batch_fields(batch)
    assert fields.checksum == batch_checksum(fields, checksums)


@given(MESSAGES, st.data())
def test_a_part_of_a_batch_is_a_batch(sent: list[Message], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(sent) - 1))
    count = data.draw(st.integers(1, len(sent)))
    part = cut(stored(sent, 10), first, count)
    kept = sent[first : first + count]
    assert [(m.payload, m.offset) for m in messages(part)] == [
        (m.payload, 10 + first + place) for place, m in enumerate(kept)
    ]
    fields = batch_fields(part)
    assert fields.message_count == len(kept) and fields.length == len(part)
    assert fields.checksum == batch_checksum(fields, checksums_of(part, BATCH_HEADER_SIZE, len(part)))


@given(MESSAGES, st.data())
def test_a_changed_byte_of_a_message_is_noticed_when_asked(sent: list[Message], data: st.DataObject) -> None:
    batch, count = of_messages(sent, 3)
    at = data.draw(st.integers(BATCH_HEADER_SIZE, len(batch) - 1))
    batch[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(IggyError):
        admit(batch, 0, len(batch), count, verify=True)


def test_offsets_of_a_served_batch_may_have_gaps() -> None:
    parts = [Part(bytes(16), b"%d" % number, b"", 9) for number in range(3)]
    assert [(m.offset, m.timestamp) for m in messages(build_stored(parts, [4, 5, 9], 0, 8))] == [(4, 8), (5, 8), (9, 8)]


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ([], "empty_message_payload"),
        ([Message(b"")], "empty_message_payload"),
        ([Message(b"x", TypedHeaders({f"k{n}": "v" * 255 for n in range(400)}))], "too_big_user_headers"),
        ([Message(bytes(64_000_001))], "too_big_message_payload"),
        (
            [Message(b"x", origin_timestamp=1), Message(b"y", origin_timestamp=2 + MAX_TIMESTAMP_DELTA)],
            "error",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_before_it_is(sent: list[Message], name: str) -> None:
    with pytest.raises(IggyError) as caught:
        of_messages(sent, 3)
    assert caught.value.name == name


@pytest.mark.parametrize("size", [1, 255, 256 + 20, -1])
def test_an_answer_that_is_cut_off_is_refused(size: int) -> None:
    with pytest.raises(IggyError):
        list(messages(stored([Message(b"x")])[:size]))


def test_an_answer_with_another_count_is_refused() -> None:
    batch, _ = build([Part(bytes(16), b"x", b"", 0)])
    batch[48:52] = b"\2\0\0\0"
    with pytest.raises(IggyError):
        list(messages(bytes(batch)))
