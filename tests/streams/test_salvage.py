"""What can be proven intact by itself, whatever became of the bytes around it."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.iggy_wire.batches import Part, admit, build_stored, messages
from headwater.streams.iggy_records import ReadyBatch
from headwater.streams.iggy_records import records as iggy_records
from headwater.streams.log_format import BATCH_HEADER_SIZE, RECORD_HEAD_SIZE, BatchBuilder, record_tag
from headwater.streams.salvage import corrected_header
from headwater.streams.tombstones import decode_tombstones, encode_tombstones
from headwater.streams.walking import walk
from headwater.streams.window import FoundBatch, SpoiledBytes

IDENTITY = b"identity"
Piece = FoundBatch | SpoiledBytes


def pieces_of(content: bytes, expected: int = 0, limit: int = 1 << 40, window: int = 1 << 20) -> list[Piece]:
    def fetch(size: int, position: int) -> bytes:
        return content[position : position + size]

    return list(walk(fetch, 0, len(content), IDENTITY, expected, limit, window))


def payloads(pieces: list[Piece]) -> dict[int, bytes]:
    found = {}
    for piece in pieces:
        if isinstance(piece, FoundBatch):
            cursor = piece.cursor()
            while cursor.advance():
                found[cursor.offset] = cursor.payload()
    return found


def batch(base: int, *contents: bytes) -> bytes:
    builder = BatchBuilder(base)
    for content in contents:
        builder.append(b"orders", b"", content, 1)
    _, head, body = builder.encode(IDENTITY)
    return head + body


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=12), st.integers(20, 300), st.randoms())
@settings(deadline=None)
def test_one_flipped_bit_costs_one_record_and_its_range_is_told(
    contents: list[bytes], window: int, random: Random
) -> None:
    content = bytearray(batch(7, *contents))
    bit = random.randrange(len(content) * 8)
    content[bit // 8] ^= 1 << bit % 8
    pieces = pieces_of(bytes(content), 7, window=window)
    before = {7 + number: payload for number, payload in enumerate(contents)}
    found = payloads(pieces)
    assert found.items() <= before.items()
    lost = before.keys() - found.keys()
    assert len(lost) == (bit // 8 >= BATCH_HEADER_SIZE)
    (spoiled,) = [piece for piece in pieces if isinstance(piece, SpoiledBytes)]
    for offset in lost:
        assert spoiled.start_offset == offset
        assert spoiled.end_offset == (offset + 1 if found.keys() - set(range(offset)) else None)


@given(st.data(), st.integers(0, 3), st.randoms())
@settings(deadline=None)
def test_dropped_and_torn_sectors_cost_the_records_they_held_and_nothing_is_made_up(
    data: st.DataObject, dropped: int, random: Random
) -> None:
    sizes = data.draw(st.lists(st.lists(st.integers(0, 900), min_size=1, max_size=9), min_size=1, max_size=4))
    content, places, offset = b"", {}, 0
    for group in sizes:
        contents = [random.randbytes(size) for size in group]
        at = len(content) + BATCH_HEADER_SIZE
        for payload in contents:
            end = at + RECORD_HEAD_SIZE + len(b"orders") + len(payload)
            places[offset] = (at, end, payload)
            at, offset = end, offset + 1
        content += batch(offset - len(contents), *contents)
    damaged = bytearray(content)
    gone = random.sample(range(-(-len(content) // 512)), min(dropped, -(-len(content) // 512)))
    for sector in gone:
        size = len(damaged[sector * 512 : (sector + 1) * 512])
        damaged[sector * 512 : sector * 512 + size] = random.choice((bytes(size), random.randbytes(size)))
    touched = [range(sector * 512, (sector + 1) * 512) for sector in gone]
    whole = {
        offset: payload
        for offset, (start, end, payload) in places.items()
        if not any(start < sector.stop and sector.start < end for sector in touched)
    }
    found = payloads(pieces_of(bytes(damaged)))
    assert whole.items() <= found.items()
    assert found.items() <= {offset: payload for offset, (_, _, payload) in places.items()}.items()


def test_records_that_somebody_published_are_not_salvaged() -> None:
    inner = batch(0, b"old")[BATCH_HEADER_SIZE:]
    tag = record_tag(IDENTITY).to_bytes(2, "little")
    content = bytearray(batch(5, b"first", inner + tag * 50, b"third"))
    content[BATCH_HEADER_SIZE + RECORD_HEAD_SIZE + len(b"ordersfirst") + 24] ^= 0xFF  # the second's payload size
    assert payloads(pieces_of(bytes(content), 5)) == {5: b"first", 7: b"third"}


def test_a_batch_of_version_1_is_spoiled_as_a_whole() -> None:
    from google_crc32c import value as crc32c

    from headwater.streams.log_format import BatchHeader, encode_batch_header

    body = bytes.fromhex("010000000000000000000000030000000000000002000000612e626869") * 2
    header = BatchHeader(0, 0, 2, 2, len(body), 0, 1, 1, crc32c(body), 1)
    content = encode_batch_header(header, IDENTITY) + body[:-1] + b"?" + batch(2, b"new")
    spoiled, after = pieces_of(content)
    assert spoiled == SpoiledBytes(0, BATCH_HEADER_SIZE + len(body), 0, 2)
    assert isinstance(after, FoundBatch)


def iggy(base: int, count: int) -> bytes:
    parts = [Part(bytes([n]) * 16, b"payload %d" % n, b"", 1000 + n) for n in range(count)]
    stored = build_stored(parts, list(range(base, base + count)), 3, 5000)
    _, head, (body,) = ReadyBatch(base, count, stored, 5_000_000).encode_apart(IDENTITY)
    return head + body


def test_one_flipped_bit_in_a_batch_of_iggys_costs_one_message() -> None:
    whole = iggy(10, 4)
    first = {message.offset: message for message in messages(whole[BATCH_HEADER_SIZE:])}
    for at in range(len(whole)):
        content = bytearray(whole + iggy(14, 1))
        content[at] ^= 1 << at % 8
        found = {}
        for piece in pieces_of(bytes(content), 10):
            if isinstance(piece, FoundBatch):
                admitted = bytearray(piece.body)
                for message in messages(piece.body):
                    found[message.offset] = message
                    if message.offset < 14:
                        assert message == first[message.offset], f"byte {at}"
                offsets = [record.offset for record in iggy_records(piece.body, piece.header.base_offset)]
                assert offsets == list(range(piece.header.base_offset, piece.header.end_offset))
                if piece.header.base_offset in (10, 14):
                    assert admit(admitted, 0, len(admitted), piece.header.record_count, verify=True)
        assert len(found) >= 4, f"byte {at}: {sorted(found)}"
        assert len(found) == 5 or at >= BATCH_HEADER_SIZE + 256
        assert any(isinstance(piece, SpoiledBytes) for piece in pieces_of(bytes(content), 10)) or len(found) == 5


def test_what_is_left_of_a_cut_batch_of_iggys_is_served() -> None:
    whole = iggy(10, 4)
    for size in range(BATCH_HEADER_SIZE + 256, len(whole)):
        found = [piece for piece in pieces_of(whole[:size], 10) if isinstance(piece, FoundBatch)]
        frames = (len(whole) - BATCH_HEADER_SIZE - 256) // 4
        count = (size - BATCH_HEADER_SIZE - 256) // frames
        assert sum(piece.header.record_count for piece in found) == count
        assert [m.payload for piece in found for m in messages(piece.body)] == [b"payload %d" % n for n in range(count)]


@pytest.mark.parametrize("at", range(BATCH_HEADER_SIZE + 32))
def test_a_deletion_survives_one_flipped_bit(at: int) -> None:
    ((_, head, body),) = encode_tombstones([1, 2, 4, 9], 10, 1, IDENTITY)
    content = bytearray(head + body + batch(10, b"after"))
    content[at] ^= 1 << at % 8
    pieces = pieces_of(bytes(content), 10)
    (tombstones,) = [p for p in pieces if isinstance(p, FoundBatch) and not p.header.holds_records]
    assert decode_tombstones(tombstones.header, tombstones.body) == [(1, 2), (4, 9)]
    assert any(isinstance(piece, SpoiledBytes) for piece in pieces), "the flip must be told"
    assert payloads([p for p in pieces if p is not tombstones]) == {10: b"after"}


def test_two_flipped_bits_in_a_header_are_not_corrected() -> None:
    head = bytearray(batch(0, b"x")[:BATCH_HEADER_SIZE])
    head[30] ^= 3
    assert corrected_header(bytes(head), IDENTITY) is None
    assert corrected_header(bytes(head[:50]), IDENTITY) is None
