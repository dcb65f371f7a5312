"""Batches of generation V: built, sealed, cut and read. Sends, stored batches and polls share one format.

The layout is `streams/iggy_batch.py`'s. Here are the parts that need a hash (XXH3-64, of the extra `iggy`) or turn
messages into objects: the client, the codecs of older eras, and the edge to NATS use them. The server's own path of a
send is `admit`, `stamp`, and one write; a poll needs only `cut`, for the first and the last batch.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.hashes import xxh3_64 as xxh3_64
from headwater.iggy_wire.message_codec import MAX_TIMESTAMP_DELTA as MAX_TIMESTAMP_DELTA
from headwater.iggy_wire.message_codec import write_messages
from headwater.model.typed_headers import HeaderForm, TypedHeaders
from headwater.streams import iggy_batch
from headwater.streams.iggy_batch import (
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CHECKSUM_AT,
    CHECKSUM_SIZE,
    FRAME,
    FRAME_SIZE,
    BatchFields,
    batch_fields,
    check_frames,
    checksums_of,
    frames,
    skip_frames,
)

_U64 = struct.Struct("<Q")
_CHECKED = struct.Struct("<QQQQQI")

PRODUCER_AT, PRODUCER_END = 52, 72  # u8 1 where there is one, 3 zeros | id u64 | epoch u16, 2 zeros | sequence u32
_PRODUCER = struct.Struct("<B3xQH2xI")
_PRODUCER_CHECKED = struct.Struct("<BQHI")

_WRONG: Final = {
    iggy_batch.BAD_TILING: ("invalid_messages_size", "the frames do not fill the batch"),
    iggy_batch.BAD_COUNT: ("invalid_messages_count", "the batch has another number of frames than it says"),
    iggy_batch.BAD_OFFSET: ("invalid_offset", "the offset deltas do not count from 0"),
    iggy_batch.BAD_RESERVED: ("invalid_reserved_field", "the reserved bytes of a frame are not zero"),
    iggy_batch.BIG_HEADERS: ("too_big_user_headers", f"a header block has more than {iggy_batch.MAX_HEADERS} bytes"),
    iggy_batch.BAD_KEY: ("invalid_header_key", "a header key has 1 to 255 bytes"),
    iggy_batch.BAD_KIND: ("invalid_header_kind", "a header kind is from 1 to 15"),
    iggy_batch.BAD_VALUE: ("invalid_header_value", "a header value has 1 to 255 bytes"),
    iggy_batch.NO_PAYLOAD: ("empty_message_payload", "there is no payload in the batch"),
}


class Part(NamedTuple):
    """One message to be added to a batch. `headers`: a block with typed keys. `origin`: µs since 1970."""

    id: bytes
    payload: bytes
    headers: bytes
    origin: int


def admit(buffer: bytearray, at: int, end: int, count: int, verify: bool = False) -> bytes:
    """Check the batch `buffer[at:end]` of a peer; returns the checksums of its frames. Raises IggyError.

    `verify` also recomputes every frame's checksum: one call a message.
    """
    if end - at < BATCH_HEADER_SIZE:
        raise refusal("invalid_messages_size", f"a batch has at least {BATCH_HEADER_SIZE} bytes, not {end - at}")
    *_, length, _, found = BATCH_HEADER.unpack_from(buffer, at)
    if length != end - at:
        raise refusal("invalid_messages_size", f"the batch says {length} bytes and has {end - at}")
    if count == 0 or found != count:
        raise refusal("invalid_messages_count", f"the request says {count} messages, the batch {found}")
    if count > (end - at) // FRAME_SIZE:
        raise refusal("invalid_messages_count", f"{count} messages cannot be in {end - at} bytes", count)
    checksums = bytearray(CHECKSUM_SIZE * count)
    wrong = check_frames(buffer, at + BATCH_HEADER_SIZE, end, count, checksums)
    if wrong:
        raise refusal(*_WRONG[wrong])
    if verify:
        _verify(bytes(memoryview(buffer)[at:end]))
    return bytes(checksums)


def _verify(body: bytes) -> None:
    view = memoryview(body)
    for frame in frames(body):
        if xxh3_64(view[frame.start + CHECKSUM_SIZE : frame.end]) != _U64.unpack_from(body, frame.start)[0]:
            raise refusal("invalid_message_checksum", f"message {frame.offset_delta} does not have its checksum")
    fields = batch_fields(body)
    producer = _PRODUCER.unpack_from(body, PRODUCER_AT) if body[PRODUCER_AT] else None
    if batch_checksum(fields, checksums_of(body, BATCH_HEADER_SIZE, len(body)), producer) != fields.checksum:
        raise refusal("invalid_batch_checksum", "the batch does not have its checksum")


def batch_checksum(fields: BatchFields, checksums: bytes, producer: tuple[int, ...] | None = None) -> int:
    """The header's checksum over these fields and frame checksums. `producer`: its four fields, where there is one."""
    section = _PRODUCER_CHECKED.pack(*producer) if producer is not None else b""
    return xxh3_64(_CHECKED.pack(*fields[:5], fields.message_count) + section + checksums)


def seal(buffer: bytearray, at: int, checksums: bytes) -> None:
    """Write the batch checksum, after the stamp."""
    _U64.pack_into(buffer, at + CHECKSUM_AT, batch_checksum(batch_fields(buffer, at), checksums))


def stamp_and_seal(
    buffer: bytearray, at: int, partition: int, base_offset: int, base_timestamp: int, checksums: bytes
) -> None:
    """`stamp` and `seal` of a batch without a producer, in one reading and one writing of its header."""
    *_, origin, length, _, count = BATCH_HEADER.unpack_from(buffer, at)
    stamped = partition, base_offset, base_timestamp, origin, length
    checksum = xxh3_64(_CHECKED.pack(*stamped, count) + checksums)
    BATCH_HEADER.pack_into(buffer, at, *stamped, checksum, count)


def build(parts: Sequence[Part], deltas: Sequence[int] | None = None) -> tuple[bytearray, bytes]:
    """(batch, checksums of its frames) of messages, unstamped; offset deltas from 0, or as given.

    Raises IggyError for messages too far apart in time.
    """
    origin = min((part.origin for part in parts), default=0)
    pieces = [bytes(BATCH_HEADER_SIZE)]
    checksums = []
    for delta, (message_id, payload, headers, when) in zip(deltas or range(len(parts)), parts, strict=True):
        if when - origin > MAX_TIMESTAMP_DELTA:
            raise refusal("error", "the messages of one batch span at most 71 minutes", when - origin)
        head = FRAME.pack(0, message_id, delta, when - origin, len(headers), len(payload), 0)[CHECKSUM_SIZE:]
        rest = b"".join((head, payload, headers))
        checksum = _U64.pack(xxh3_64(rest))
        checksums.append(checksum)
        pieces += (checksum, rest)
    batch = bytearray().join(pieces)
    joined = b"".join(checksums)
    BATCH_HEADER.pack_into(batch, 0, 0, 0, 0, origin, len(batch), 0, len(parts))
    seal(batch, 0, joined)
    return batch, joined


def build_stored(parts: Sequence[Part], offsets: Sequence[int], partition: int, timestamp: int) -> bytes:
    """A batch for an answer: the offsets ascend and may have gaps; `timestamp`, in µs, is that of all messages."""
    batch, checksums = build(parts, [offset - offsets[0] for offset in offsets])
    iggy_batch.stamp(batch, 0, partition, offsets[0], timestamp)
    seal(batch, 0, checksums)
    return bytes(batch)


def of_messages(messages: Iterable[Message], now_us: int) -> tuple[bytearray, int]:
    """(batch, count) of a program's messages. Raises HeaderError, IggyError."""
    return write_messages(messages, now_us)


def cut(body: bytes, first: int, count: int) -> bytes:
    """Messages `[first, first + count)` of a checked, stored batch, by position in it, as a batch of its own."""
    fields = batch_fields(body)
    if first == 0 and count >= fields.message_count:
        return body
    end = len(body)
    start = skip_frames(body, BATCH_HEADER_SIZE, end, first)
    stop = skip_frames(body, start, end, count)
    kept = min(count, fields.message_count - first)
    head = bytearray(body[:BATCH_HEADER_SIZE])
    BATCH_HEADER.pack_into(head, 0, *fields[:4], BATCH_HEADER_SIZE + stop - start, 0, kept)
    seal(head, 0, checksums_of(body, start, stop))
    return bytes(head) + body[start:stop]


def first_messages(body: bytes, most: int) -> tuple[bytes, int, int]:
    """(batch, messages, offset of the last) of as many messages of a checked, stored batch as fit `most` bytes; one at
    least."""
    found = frames(body)
    kept = max(1, sum(frame.end <= most for frame in found))
    return cut(body, 0, kept), kept, batch_fields(body).base_offset + found[kept - 1].offset_delta


def forget_producer(buffer: bytearray, at: int) -> None:
    """Clear the fields of an idempotent producer (protocol 0.12): they are stored as sent, but clients of 0.11 reject a
    batch that has them."""
    if buffer[at + PRODUCER_AT]:
        buffer[at + PRODUCER_AT : at + PRODUCER_END] = bytes(PRODUCER_END - PRODUCER_AT)


def messages(data: bytes) -> Iterator[Message]:
    """The messages in consecutive batches, as in the answer to a poll. Raises IggyError, HeaderError."""
    at = 0
    while at < len(data):
        if len(data) - at < BATCH_HEADER_SIZE:
            raise refusal("invalid_messages_size", "a batch header is cut off")
        fields = batch_fields(data, at)
        if not BATCH_HEADER_SIZE <= fields.length <= len(data) - at:
            raise refusal("invalid_messages_size", f"a batch of {fields.length} bytes cannot follow")
        yield from _of_batch(data[at : at + fields.length], fields)
        at += fields.length


def _of_batch(body: bytes, fields: BatchFields) -> Iterator[Message]:
    try:
        found = frames(body)
    except struct.error:
        raise refusal("too_small_message", "a frame is cut off") from None
    if len(found) != fields.message_count or (found and found[-1].end != len(body)):
        raise refusal("invalid_messages_count", f"{len(found)} frames in a batch of {fields.message_count}")
    for frame in found:
        block = body[frame.headers_at : frame.end]
        yield Message(
            payload=body[frame.payload_at : frame.headers_at],
            headers=TypedHeaders.decode(block, HeaderForm.TYPED) if block else None,
            id=int.from_bytes(frame.id, "little"),
            offset=fields.base_offset + frame.offset_delta,
            timestamp=fields.base_timestamp,
            origin_timestamp=fields.origin_timestamp + frame.timestamp_delta,
        )
