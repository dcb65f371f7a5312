"""The intact batches and records of a segment, in order, and the spoiled stretches between them.

    walk     batch after batch: one look at the header, one CRC over the body. The usual case, and all that is fast
    salvage  where that fails: everything up to the next batch that is intact as a whole (salvage.py)

Beyond a spoiled stretch only an intact batch is trusted: its base offset is the ceiling for whatever is salvaged before
it, so that a stray piece of later data cannot hide what follows.
"""

from collections.abc import Iterator

from headwater.streams.log_format import (
    BATCH_HEADER_SIZE,
    FLAG_COMPRESSED,
    BatchHeader,
    batch_marker,
    body_is_intact,
    decode_batch_header,
)
from headwater.streams.packing import unpack
from headwater.streams.window import SCAN_WINDOW, Fetch, FoundBatch, SpoiledBytes, Window


def walk(
    fetch: Fetch, position: int, end: int, identity: bytes, expected: int, limit: int, window_size: int = SCAN_WINDOW
) -> Iterator[FoundBatch | SpoiledBytes]:
    """What bytes `[position, end)` of a segment hold, in order.

    A batch counts when its marker is this log's, both CRCs hold, its offsets begin at or above `expected` (then: above
    its predecessor's) and end at or below `limit`; a record of a damaged one when its own CRC holds, likewise. A compressed
    one is yielded as it was before, with a header to match. Raises CorruptLog for intact batches of an unknown version,
    OSError from `fetch`.
    """
    window = Window(fetch, end, window_size)
    while position < end:
        batch = _batch_at(window, position, identity, expected, limit)
        if batch is None:
            batch = _mended(window, position, identity, expected, limit)
            if batch is not None:
                yield SpoiledBytes(position, position + BATCH_HEADER_SIZE, expected, batch.header.base_offset)
        if batch is None:
            following = _next_intact(window, position, identity, expected, limit)
            region_end, ceiling = (
                (end, limit) if following is None else (following.position, following.header.base_offset)
            )
            from headwater.streams.salvage import Region, salvage  # here: a start on an empty store does not need it

            for piece in salvage(window, Region(position, region_end, identity, expected, ceiling)):
                if piece.first_byte > position:
                    yield SpoiledBytes(position, piece.first_byte, expected, piece.header.base_offset)
                yield piece
                position, expected = piece.end_position, piece.header.end_offset
            if position < region_end:
                yield SpoiledBytes(position, region_end, expected, None if following is None else ceiling)
            if following is None:
                return
            batch = following
        yield batch
        position, expected = batch.end_position, batch.header.end_offset


def _batch_at(window: Window, position: int, identity: bytes, expected: int, limit: int) -> FoundBatch | None:
    data, index = window.at(position, BATCH_HEADER_SIZE)
    return _with_body(window, position, decode_batch_header(data, index, identity), expected, limit)


def _mended(window: Window, position: int, identity: bytes, expected: int, limit: int) -> FoundBatch | None:
    """The batch, if its header has one flipped bit and its body none."""
    from headwater.streams.salvage import corrected_header

    header = corrected_header(window.slice(position, position + BATCH_HEADER_SIZE), identity)
    return _with_body(window, position, header, expected, limit)


def _with_body(
    window: Window, position: int, header: BatchHeader | None, expected: int, limit: int
) -> FoundBatch | None:
    if header is None or header.base_offset < expected or header.end_offset > limit:
        return None
    body_at = position + BATCH_HEADER_SIZE
    data, index = window.at(body_at, header.body_size)
    body = data[index : index + header.body_size]
    if not body_is_intact(header, body):
        return None
    end = body_at + header.body_size
    if header.flags & FLAG_COMPRESSED:
        unpacked = unpack(header, body)
        if unpacked is None:
            return None
        header, body = unpacked
    return FoundBatch(position, header, body, position, end)


def _next_intact(window: Window, position: int, identity: bytes, expected: int, limit: int) -> FoundBatch | None:
    marker = batch_marker(identity)
    while (position := window.find(marker, position + 1)) >= 0:
        batch = _batch_at(window, position, identity, expected, limit)
        if batch is not None:
            return batch
    return None
