"""Recovers records from damaged batches: every record whose own checksum matches, wherever it is.

    NATS        a record is found by its tag and verified by its CRC, which starts from the log's identity and covers
                its offset. Batch headers are not needed; what is left of one that a crash cut short is found alike
    Iggy        a frame is verified by the checksum that its producer computed (iggy_salvage.py). Needs the header of the
                log's batch, and the `xxhash` package; else all of it is spoiled
    tombstones  small: with one flipped bit they are corrected
    compressed  a flipped bit is corrected; else the records and frames are looked for in what can be decompressed, up to the
                damage and, where it spared what follows, behind it. Needs the batch's header (packing.py)
    version 1   has no record checksums: such a batch is spoiled as a whole

Salvaged records never step back: their offsets ascend from `expected` and stay below `ceiling`. Both are facts about
intact batches around the region, so a published copy of the log, whose offsets are lower than those of the record that
carries it, is not taken for the log.

Correction is for headers, tombstones, and compressed bodies, which have a second CRC. Over n bits, a CRC32C mistakes other
damage for one flipped bit with probability n / 2^32: 1 in 8 million for a header; over a large record it would be 1 in 500,
so records are not corrected.

Pure; runs only for damaged regions.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from headwater.compression.checksum import extend_crc
from headwater.compression.s2_block import decode_block
from headwater.errors import RemoteProtocolError
from headwater.streams.log_format import (
    BATCH_HEADER_SIZE,
    DIALECT_IGGY,
    DIALECT_NATS,
    DIALECT_TOMBSTONES,
    FLAG_COMPRESSED,
    HEADER_CRC,
    LOW_HALF,
    RECORD_CRC_SIZE,
    RECORD_HEAD,
    RECORD_HEAD_SIZE,
    RECORD_TAG_AT,
    BatchHeader,
    batch_marker,
    body_is_intact,
    decode_batch_header,
    header_of,
    record_seed,
    record_tag,
)
from headwater.streams.options import LARGEST_BATCH
from headwater.streams.packing import corrected, flipped
from headwater.streams.window import FoundBatch, Window

LARGEST_CORRECTED = 4096  # bytes of tombstones: 32,768 CRCs of them are 30 ms


class Region(NamedTuple):
    """Bytes `[position, end)` of a segment, and the offsets `[expected, ceiling)` that records in it may have."""

    position: int
    end: int
    identity: bytes
    expected: int
    ceiling: int


class _Record(NamedTuple):
    start: int
    end: int
    offset: int
    timestamp_ns: int


def salvage(window: Window, region: Region) -> Iterator[FoundBatch]:
    """Runs of intact records in a region that holds no batch intact as a whole, in order."""
    at, expected = region.position, region.expected
    headers = list(_headers(window, region))
    for number, (header_at, header) in enumerate(headers):
        if header_at < at or (header.base_offset < expected and header.end_offset <= expected):
            continue
        for found in _records(window, region._replace(position=at, end=header_at, expected=expected)):
            yield found
            expected = found.header.end_offset
        at = header_at
        if header.dialect == DIALECT_NATS and not header.flags:
            continue  # the records themselves say where they are and where they end
        later = (place for place, other in headers[number + 1 :] if other.base_offset >= header.end_offset)
        at = min(header_at + header.size, next(later, region.end), region.end)
        for found in _parts(window, header_at, at, header, region._replace(expected=expected)):
            if found.header.base_offset >= expected:
                yield found
                expected = found.header.end_offset
    yield from _records(window, region._replace(position=at, expected=expected))


def _parts(window: Window, position: int, end: int, header: BatchHeader, region: Region) -> Iterator[FoundBatch]:
    """What is left of the damaged batch at `position`, whose bytes end at `end`."""
    if header.flags & FLAG_COMPRESSED:
        yield from _compressed(window, position, end, header, region)
    elif header.dialect == DIALECT_IGGY:
        yield from _frames(window, position, end, header)
    else:
        yield from _tombstones(window, position, end, header)


def _compressed(window: Window, position: int, end: int, header: BatchHeader, region: Region) -> Iterator[FoundBatch]:
    stored = window.slice(position + BATCH_HEADER_SIZE, end)
    whole = corrected(header, stored)
    if whole is not None:
        yield FoundBatch(position, *whole, end, end, is_whole=False)
        return
    try:
        content = bytes(BATCH_HEADER_SIZE) + decode_block(stored[HEADER_CRC.size :], LARGEST_BATCH, False)
    except RemoteProtocolError:
        return
    inner = Window(lambda size, at: content[at : at + size], len(content), len(content))
    if header.dialect == DIALECT_IGGY:
        runs = _frames(inner, 0, len(content), header)
    else:
        expected = max(region.expected, header.base_offset)
        runs = _records(inner, Region(BATCH_HEADER_SIZE, len(content), region.identity, expected, header.end_offset))
    at, expected = position, max(region.expected, header.base_offset)
    for run in runs:  # none is a stretch of the file; each is given a byte of it, and one for a gap before it
        first = at + (run.header.base_offset > expected)
        at, expected = first + 1, run.header.end_offset
        if at >= end:
            return
        yield run._replace(position=position, first_byte=first, end_position=at)


def corrected_header(data: bytes, identity: bytes) -> BatchHeader | None:
    """The batch header in these bytes, if it has one flipped bit; also if it has none."""
    marker = batch_marker(identity)
    if len(data) < BATCH_HEADER_SIZE:
        return None
    wrong = int.from_bytes(data[: len(marker)], "little") ^ int.from_bytes(marker, "little")
    if wrong.bit_count() > 1:
        return None
    if wrong or decode_batch_header(data, 0, identity) is not None:
        return decode_batch_header(marker + data[len(marker) :], 0, identity)
    for bit in range(len(marker) * 8, BATCH_HEADER_SIZE * 8):
        header = decode_batch_header(flipped(data, bit), 0, identity)
        if header is not None:
            return header
    return None


def _headers(window: Window, region: Region) -> Iterator[tuple[int, BatchHeader]]:
    """The batch headers of the region: those intact, and the first one also when it has a flipped bit."""
    marker = batch_marker(region.identity)
    at = region.position
    first = window.slice(at, min(at + BATCH_HEADER_SIZE, region.end))
    header = corrected_header(first, region.identity)
    while True:
        if header is not None and header.end_offset <= region.ceiling:
            if header.base_offset >= region.expected or header.end_offset > region.expected:
                yield at, header
        at = window.find(marker, at + 1, region.end)
        if at < 0:
            return
        header = decode_batch_header(window.slice(at, at + BATCH_HEADER_SIZE), 0, region.identity)


def _records(window: Window, region: Region) -> Iterator[FoundBatch]:
    """The intact records of the NATS dialect, in runs without a spoiled byte between them."""
    tag = struct.pack("<H", record_tag(region.identity))
    run: list[_Record] = []
    at, expected = region.position, region.expected
    while True:
        record = _record_at(window, at, region.end, region.identity, tag, expected, region.ceiling)
        if record is not None:
            if run and run[-1].end != record.start:
                yield _run_of(window, run, region)
                run = []
            run.append(record)
            at, expected = record.end, record.offset + 1
            continue
        found = window.find(tag, at + 1 + RECORD_TAG_AT, region.end)
        if found < 0:
            break
        at = found - RECORD_TAG_AT
    if run:
        yield _run_of(window, run, region)


def _record_at(
    window: Window, at: int, limit: int, identity: bytes, tag: bytes, expected: int, ceiling: int
) -> _Record | None:
    if at + RECORD_HEAD_SIZE > limit:
        return None
    data, index = window.at(at, RECORD_HEAD_SIZE)
    if len(data) - index < RECORD_HEAD_SIZE or not data.startswith(tag, index + RECORD_TAG_AT):
        return None
    crc, timestamp, low, subject_size, _, block_size, payload_size = RECORD_HEAD.unpack_from(data, index)
    end = at + RECORD_HEAD_SIZE + subject_size + block_size + payload_size
    offset = expected + ((low - expected) & LOW_HALF)
    if end > limit or offset >= ceiling:
        return None
    if extend_crc(record_seed(identity, offset >> 32), window.slice(at + RECORD_CRC_SIZE, end)) != crc:
        return None
    return _Record(at, end, offset, timestamp)


def _run_of(window: Window, run: list[_Record], region: Region) -> FoundBatch:
    start, end = run[0].start, run[-1].end
    body = window.slice(start, end)
    first, last = run[0], run[-1]
    times = first.timestamp_ns, last.timestamp_ns
    header = header_of(body, DIALECT_NATS, len(run), first.offset, last.offset + 1, times)
    before = start - BATCH_HEADER_SIZE  # an intact header before the first record is no damage
    if before >= region.position:
        intact = decode_batch_header(window.slice(before, start), 0, region.identity)
        start = start if intact is None else before
    return FoundBatch(start, header, body, start, end, is_whole=False)


def _tombstones(window: Window, position: int, end: int, header: BatchHeader) -> Iterator[FoundBatch]:
    body_at = position + BATCH_HEADER_SIZE
    body = window.slice(body_at, end)
    if header.dialect != DIALECT_TOMBSTONES or not len(body) == header.body_size <= LARGEST_CORRECTED:
        return
    for bit in range(len(body) * 8):
        mended = flipped(body, bit)
        if body_is_intact(header, mended):
            yield FoundBatch(position, header, mended, end, end, is_whole=False)
            return


def _frames(window: Window, position: int, end: int, header: BatchHeader) -> Iterator[FoundBatch]:
    try:
        from headwater.streams.iggy_salvage import salvage_frames
    except ImportError:  # without xxhash no Iggy batch was ever stored
        return
    yield from salvage_frames(window, position, end, header)
