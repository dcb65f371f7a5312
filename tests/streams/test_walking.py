"""What a walk over a segment finds between damage and strangers."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.streams.log_format import BATCH_HEADER_SIZE, BatchBuilder
from headwater.streams.walking import walk
from headwater.streams.window import FoundBatch, SpoiledBytes

IDENTITY = b"identity"


def encoded(base: int, records: int = 2, identity: bytes = IDENTITY) -> bytes:
    builder = BatchBuilder(base)
    for number in range(records):
        builder.append(b"s", b"", b"%d" % (base + number), 1)
    _, head, body = builder.encode(identity)
    return head + body


def fetch_from(content: bytes):  # type: ignore[no-untyped-def]
    return lambda size, position: content[position : position + size]


def walked(content: bytes, expected: int = 0, limit: int = 1000, window: int = 100) -> list[FoundBatch | SpoiledBytes]:
    return list(walk(fetch_from(content), 0, len(content), IDENTITY, expected, limit, window))


JUNK = st.binary(max_size=150) | st.just(b"HWB1" + IDENTITY) | st.just(encoded(500)[:-40]) | st.just(encoded(0))


@given(st.lists(st.tuples(JUNK, st.integers(1, 3)), min_size=1, max_size=6), st.integers(1, 400))
@settings(deadline=None)
def test_all_intact_batches_are_found_whatever_lies_between_them(parts: list[tuple[bytes, int]], window: int) -> None:
    content, base, placed, spoiled = b"", 10, [], 0
    for junk, records in parts:
        content += junk
        spoiled += len(junk)
        placed.append((len(content), base, base + records))
        content += encoded(base, records)
        base += records
    pieces = walked(content, 10, 1000, window)
    batches = [piece for piece in pieces if isinstance(piece, FoundBatch)]
    assert [(piece.position, piece.header.base_offset, piece.header.end_offset) for piece in batches] == placed
    gaps = [piece for piece in pieces if isinstance(piece, SpoiledBytes)]
    assert sum(gap.end_position - gap.position for gap in gaps) == spoiled
    assert all(gap.start_offset == gap.end_offset for gap in gaps)


def test_batches_out_of_range_or_of_another_log_are_spoiled_bytes() -> None:
    content = encoded(5) + encoded(3) + encoded(7, identity=b"stranger") + encoded(999) + encoded(7)
    first, spoiled, last = walked(content)
    assert isinstance(first, FoundBatch)
    assert isinstance(last, FoundBatch)
    assert (first.header.base_offset, last.header.base_offset) == (5, 7)
    assert isinstance(spoiled, SpoiledBytes)
    assert (spoiled.start_offset, spoiled.end_offset) == (7, 7)


def test_a_cut_tail_keeps_the_records_before_the_cut_and_the_rest_has_no_end() -> None:
    torn = encoded(7)[:-1]
    first = len(encoded(5))
    _, kept, tail = walked(encoded(5) + torn)
    assert isinstance(kept, FoundBatch)
    assert not kept.is_whole
    assert (kept.header.base_offset, kept.header.end_offset, kept.first_byte) == (7, 8, first)
    assert kept.end_position == first + BATCH_HEADER_SIZE + len(kept.body)
    assert tail == SpoiledBytes(kept.end_position, first + len(torn), 8, None)


def test_a_walk_may_begin_at_any_piece_it_yielded() -> None:
    content = bytearray(encoded(5) + encoded(7, 6) + encoded(13))
    content[len(encoded(5)) + BATCH_HEADER_SIZE + 2 * 30 + 20] ^= 1
    whole = walked(bytes(content))
    for number, piece in enumerate(whole):
        if isinstance(piece, FoundBatch):
            start = piece.header.base_offset
            again = list(walk(fetch_from(bytes(content)), piece.position, len(content), IDENTITY, start, 1000, 100))
            assert again == whole[number:]


def test_a_header_with_a_flipped_bit_is_mended_and_reported_and_costs_no_record() -> None:
    content = encoded(5) + encoded(7) + encoded(9)
    start = len(encoded(5))
    for bit in range(BATCH_HEADER_SIZE * 8):
        damaged = bytearray(content)
        damaged[start + bit // 8] ^= 1 << bit % 8
        first, spoiled, second, third = walked(bytes(damaged))
        assert spoiled == SpoiledBytes(start, start + BATCH_HEADER_SIZE, 7, 7)
        assert [first, second, third] == walked(content)
