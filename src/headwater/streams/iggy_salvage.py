"""Recovers the messages of a damaged Iggy batch: every frame whose own checksum matches, as a batch of its neighbours.

    frames       the intact ones; behind a damaged one the next is looked for by its offset delta, which ascends by one
    Iggy's head  as it was if its checksum holds, with a flipped bit mended if that makes it hold; else what the log's own
                 header says of it
    batches      one for each run of frames without a spoiled byte between them, with a head and a checksum made for it

The producer's checksums (XXH3-64) are the only witnesses: the log's CRC covers the batch as a whole. Pure; runs only for
damaged batches. Needs the `xxhash` package, which is imported here and nowhere else in this layer.
"""

import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from xxhash import xxh3_64_intdigest as xxh3_64

from headwater.streams.iggy_batch import BATCH_HEADER, BATCH_HEADER_SIZE, CHECKSUM_SIZE, FRAME, FRAME_SIZE, BatchFields
from headwater.streams.log_format import BATCH_HEADER_SIZE as LOG_HEADER_SIZE
from headwater.streams.log_format import DIALECT_IGGY, BatchHeader, header_of
from headwater.streams.packing import flipped
from headwater.streams.window import FoundBatch, Window

MICROSECOND = 1000  # ns
_U64 = struct.Struct("<Q")
_BATCH_CHECKED = struct.Struct("<QQQQQI")  # what the batch's checksum covers, before the checksums of the frames
_DELTA_AT = FRAME.size - struct.calcsize("<IIIIQ")


class _Frame(NamedTuple):
    """An intact frame, `body[start:end]`."""

    start: int
    end: int
    delta: int


def salvage_frames(window: Window, position: int, end: int, header: BatchHeader) -> Iterator[FoundBatch]:
    """The runs of intact frames of the batch at `position`, whose bytes end at `end`, each as a batch of its own."""
    body = window.slice(position + LOG_HEADER_SIZE, end)
    intact = list(_intact_frames(body, header.record_count))
    if not intact:
        return
    head = _batch_head(body, header, intact)
    run = [intact[0]]
    for before, frame in pairwise(intact):
        if frame.start != before.end:
            yield _batch_of(run, body, head, position, header)
            run = []
        run.append(frame)
    yield _batch_of(run, body, head, position, header)


def _intact_frames(body: bytes, count: int) -> Iterator[_Frame]:
    at, delta = BATCH_HEADER_SIZE, 0
    while delta < count:
        end = _intact_end(body, at, delta)
        if end:
            yield _Frame(at, end, delta)
            at, delta = end, delta + 1
        else:
            at, delta = _next_intact(body, at, delta, count)


def _intact_end(body: bytes, at: int, delta: int) -> int:
    """Behind the intact frame with this offset delta at `at`; 0 if there is none."""
    if at + FRAME_SIZE > len(body):
        return 0
    checksum, _, found, _, headers_size, payload_size, reserved = FRAME.unpack_from(body, at)
    end = at + FRAME_SIZE + int(headers_size) + int(payload_size)
    if found != delta or reserved or end > len(body):
        return 0
    return end if xxh3_64(body[at + CHECKSUM_SIZE : end]) == checksum else 0


def _next_intact(body: bytes, at: int, delta: int, count: int) -> tuple[int, int]:
    """(position, delta) of the next intact frame after the damaged one; a delta of `count` when there is none."""
    for wanted in range(delta + 1, count):
        needle = struct.pack("<I", wanted)
        found = body.find(needle, at + _DELTA_AT)
        while found >= 0:
            if _intact_end(body, found - _DELTA_AT, wanted):
                return found - _DELTA_AT, wanted
            found = body.find(needle, found + 1)
    return len(body), count


def _batch_of(run: list[_Frame], body: bytes, head: BatchFields, position: int, header: BatchHeader) -> FoundBatch:
    """A batch of these frames, which lie side by side in the body of the one at `position`."""
    first, last = run[0], run[-1]
    checksums = b"".join(body[frame.start : frame.start + CHECKSUM_SIZE] for frame in run)
    length = BATCH_HEADER_SIZE + last.end - first.start
    checksum = xxh3_64(_BATCH_CHECKED.pack(*head[:4], length, len(run)) + checksums)
    fields = head._replace(length=length, message_count=len(run), checksum=checksum)
    made = BATCH_HEADER.pack(*fields).ljust(BATCH_HEADER_SIZE, b"\0") + body[first.start : last.end]
    base, times = header.base_offset + first.delta, (header.first_timestamp_ns, header.last_timestamp_ns)
    new = header_of(made, DIALECT_IGGY, len(run), base, base + len(run), times)
    # The header of the batch is counted with the first frame.
    begins = first.delta == 0 and first.start == BATCH_HEADER_SIZE
    body_at = position + LOG_HEADER_SIZE
    first_byte = position if begins else body_at + first.start
    return FoundBatch(position, new, made, first_byte, body_at + last.end, is_whole=False)


def _batch_head(body: bytes, header: BatchHeader, intact: list[_Frame]) -> BatchFields:
    """Iggy's own header of the batch: as it was if it has its checksum, with a flipped bit mended if that gives it; else
    what the log's header records of it, with the server's time in place of the producer's."""
    known = BatchFields(0, header.base_offset, header.first_timestamp_ns // MICROSECOND, 0, header.body_size, 0, 0)
    known = known._replace(origin_timestamp=known.base_timestamp, message_count=header.record_count)
    page = body[: BATCH_HEADER.size]
    for checksums in _possible_checksums(body, intact, header.record_count):
        bits = range(-1, len(page) * 8) if len(intact) == header.record_count else (-1,)
        for bit in bits:
            fields = BatchFields._make(BATCH_HEADER.unpack(page if bit < 0 else flipped(page, bit)))
            if xxh3_64(_BATCH_CHECKED.pack(*fields[:5], fields.message_count) + checksums) == fields.checksum:
                return fields
    return known


def _possible_checksums(body: bytes, intact: list[_Frame], count: int) -> Iterator[bytes]:
    """What the frame checksums of the whole batch may have been: as stored, and with the damaged frames' own. Nothing
    when two frames in a row are damaged, because the start of the second is then unknown."""
    places = {frame.delta: frame for frame in intact}
    stored, computed = [], []
    at = BATCH_HEADER_SIZE
    for delta in range(count):
        end = places[delta + 1].start if delta + 1 in places else len(body) if delta + 1 == count else 0
        if delta in places:
            at, end, _ = places[delta]
        if end < at + FRAME_SIZE:
            return
        checksum = body[at : at + CHECKSUM_SIZE]
        stored.append(checksum)
        computed.append(checksum if delta in places else _U64.pack(xxh3_64(body[at + CHECKSUM_SIZE : end])))
        at = end
    yield b"".join(stored)
    if computed != stored:
        yield b"".join(computed)
