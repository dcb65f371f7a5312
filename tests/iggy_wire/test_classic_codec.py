"""Messages behind headers of fixed size: what is written is read, and what does not fit is refused with its number."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.header_strategies import typed_headers

from headwater import HeaderValue, TypedHeaders
from headwater.errors import HeaderError, IggyError
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import Part, build, build_stored, xxh3_64
from headwater.iggy_wire.classic_codec import (
    INDEX,
    PAYLOAD_LIMIT,
    PREFIX,
    head_of,
    read_address,
    read_messages,
    write_address,
    write_poll,
)
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Identifier, Partitioning
from headwater.iggy_wire.layout import Reader
from headwater.iggy_wire.seed_codec import string_keys
from headwater.model.typed_headers import HeaderForm

ERAS = [Era.C1, Era.C2, Era.C3]
HEADERS = TypedHeaders([("key 1", "value1"), ("n", HeaderValue.from_uint8(5))])
IDS = st.binary(min_size=16, max_size=16)


def block_of(headers: TypedHeaders | None, era: Era) -> bytes:
    if not headers:
        return b""
    return headers.encode(HeaderForm.TYPED) if era.typed_keys else string_keys(headers).encode()


def sent(parts: list[tuple[bytes, bytes, bytes, int]], era: Era) -> bytes:
    """A send's index and messages: (id, payload, header block of the era, created)."""
    head, reserved = head_of(era), (0,) if era is Era.C3 else ()
    frames = [
        head.pack(0, message_id, 0, 0, created, len(block), len(payload), *reserved) + payload + block
        for message_id, payload, block, created in parts
    ]
    ends = accumulate(map(len, frames))
    return b"".join(INDEX.pack(0, end, 0) for end in ends) + b"".join(frames)


def refused(data: bytes, count: int, era: Era = Era.C3) -> str:
    with pytest.raises(IggyError) as caught:
        read_messages(Reader(data), count, era)
    return caught.value.name


@given(
    st.sampled_from(ERAS),
    st.lists(
        st.tuples(IDS, st.binary(min_size=1, max_size=50), st.none() | typed_headers(), st.integers(0, 1 << 60)),
        min_size=1,
        max_size=4,
    ),
)
def test_every_message_that_fits_is_read_as_it_was_sent(
    era: Era, messages: list[tuple[bytes, bytes, TypedHeaders | None, int]]
) -> None:
    data = sent([(i, payload, block_of(headers, era), at) for i, payload, headers, at in messages], era)
    found = read_messages(Reader(data), len(messages), era)
    assert [(part.id, part.payload, part.origin) for part in found] == [
        (i, payload, at) for i, payload, _, at in messages
    ]
    for part, (_, _, headers, _) in zip(found, messages, strict=True):
        kept = TypedHeaders.decode(part.headers, HeaderForm.TYPED) if part.headers else None
        wanted = headers if era.typed_keys or not headers else string_keys(headers)
        assert (kept or None) == (wanted or None), "stored with typed keys, whatever came"


@pytest.mark.parametrize("era", ERAS)
def test_a_poll_shows_what_is_stored_in_the_layout_of_the_era(era: Era) -> None:
    block = HEADERS.encode(HeaderForm.TYPED)
    parts = [Part((7).to_bytes(16, "little"), b"one", block, 100), Part(bytes(16), b"two", b"", 103)]
    stored = [build_stored(parts, [5, 8], 0, 900), build_stored(parts[1:], [9], 0, 901)]
    reader = Reader(write_poll(stored, era, 3, 44))
    assert PREFIX.unpack(reader.take(PREFIX.size)) == (3, 44, 3)
    head, shown = head_of(era), []
    while reader.left:
        start = reader.at
        checksum, message_id, offset, stamped, created, headers_size, size, *reserved = head.unpack(
            reader.take(head.size)
        )
        payload, headers = reader.take(size), reader.take(headers_size)
        assert checksum == xxh3_64(reader.data[start + 8 : reader.at]) and not any(reserved)
        shown.append((int.from_bytes(message_id, "little"), offset, stamped, created, payload, headers))
    own = block_of(HEADERS, era)
    assert shown == [(7, 5, 900, 100, b"one", own), (0, 8, 900, 103, b"two", b""), (0, 9, 901, 103, b"two", b"")]
    assert PREFIX.unpack(write_poll([], era, 1, 0)) == (1, 0, 0)


def test_a_header_is_56_bytes_and_64_in_the_last_era() -> None:
    assert [head_of(era).size for era in ERAS] == [56, 56, 64]


@given(
    st.sampled_from([Identifier(7), Identifier("name")]),
    st.sampled_from([Partitioning.balanced(), Partitioning.partition(4), Partitioning.key("k")]),
    st.integers(0, (1 << 32) - 1),
)
def test_an_address_comes_back_and_the_reader_stands_behind_it(name: Identifier, to: Partitioning, count: int) -> None:
    command = c.SendMessages(name, Identifier(1), to, count)
    reader = Reader(write_address(command) + b"rest")
    assert read_address(reader) == command
    assert reader.take(reader.left) == b"rest"


@pytest.mark.parametrize("change", [-1, 1, 1000])
def test_an_address_of_another_size_than_it_says_is_refused(change: int) -> None:
    data = write_address(c.SendMessages(Identifier(7), Identifier(1), Partitioning.balanced(), 1))
    wrong = (int.from_bytes(data[:4], "little") + change).to_bytes(4, "little") + data[4:] + b"\0"
    with pytest.raises(IggyError) as caught:
        read_address(Reader(wrong))
    assert caught.value.name == "invalid_command"


def test_what_does_not_tile_is_refused() -> None:
    good = sent([(bytes(16), b"one", b"", 1), (bytes(16), b"two", b"", 2)], Era.C3)
    assert len(read_messages(Reader(good), 2, Era.C3)) == 2
    assert refused(good, 0) == refused(good, 1 << 31) == "invalid_messages_count"
    assert refused(good + b"\0", 2) == "invalid_command", "something follows"
    assert refused(good[:-1], 2) == "invalid_command"
    wrong = bytearray(good)
    wrong[INDEX.size + 4] ^= 1
    assert refused(bytes(wrong), 2) == "invalid_messages_size", "the second one ends elsewhere"


def test_messages_that_break_a_rule_are_refused_with_its_name() -> None:
    good = sent([(bytes(16), b"one", b"", 1)], Era.C3)
    reserved = bytearray(good)
    reserved[INDEX.size + 63] = 1
    assert refused(bytes(reserved), 1) == "invalid_reserved_field"
    head = head_of(Era.C3).pack(0, bytes(16), 0, 0, 0, 0, PAYLOAD_LIMIT + 1, 0)
    assert refused(INDEX.pack(0, 0, 0) + head, 1) == "too_big_message_payload"
    assert refused(sent([(bytes(16), b"", b"", 1)] * 2, Era.C3), 2) == "empty_message_payload"


@pytest.mark.parametrize("era", ERAS)
def test_headers_that_do_not_decode_are_refused_and_never_stored(era: Era) -> None:
    whole = block_of(HEADERS, era)
    for block in (whole[:-1], b"\xff" * 9, whole + b"\0"):
        with pytest.raises((HeaderError, IggyError)):
            read_messages(Reader(sent([(bytes(16), b"x", block, 1)], era)), 1, era)


@given(st.sampled_from(ERAS), st.binary(max_size=200), st.integers(0, 5))
def test_garbage_is_refused_and_nothing_else_happens(era: Era, data: bytes, count: int) -> None:
    try:
        parts = read_messages(Reader(data), count, era)
    except (IggyError, HeaderError):
        return
    assert len(build(parts)[1]) == 8 * count
