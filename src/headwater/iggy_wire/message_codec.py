# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Messages of a client, to a batch and out of polled ones: what costs something per message.

    write_messages: messages ─▶ one batch of generation V, sealed        one hash a message, no objects but the hash's
    read_messages: the batches of an answer, where they were received ─▶ ReceivedMessage, the payload copied

The layout is `streams/iggy_batch.py`'s. What the frames say of sizes is checked against the bytes that are there; checksums
of what was polled are not computed, TCP has done that and `ReceivedMessage.checksum` is there for programs that want to.
Headers stay bytes until they are read.
"""

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import cython
import xxhash

if cython.compiled:
    from cython.cimports.headwater.wire.memory import OutputBuffer, slice_bytes
else:
    from headwater.wire.memory import OutputBuffer, slice_bytes

from headwater.iggy_wire.error_numbers import refusal
from headwater.model.typed_headers import HeaderForm, TypedHeaders

if TYPE_CHECKING:
    from headwater.iggy_wire.commands import Message

BATCH_HEADER: cython.Py_ssize_t = 256
FRAME_HEADER: cython.Py_ssize_t = 48
MAX_PAYLOAD: int = 64_000_000  # bytes of one message
MAX_HEADERS: int = 100_000  # bytes of one message's header block
MAX_TIMESTAMP_DELTA: int = (1 << 32) - 1  # microseconds that one batch may span
_HEAD = struct.Struct("<QQQQQQI")
_CHECKED = struct.Struct("<QQQQQI")
_U64 = struct.Struct("<Q")
_U32 = struct.Struct("<I")
_HALF: int = (1 << 64) - 1
_TYPED = HeaderForm.TYPED
xxh3_64 = xxhash.xxh3_64_intdigest


class ReceivedMessage:
    """A message from a poll. `offset` in `partition`; `timestamp` is the server's and `origin_timestamp` the producer's,
    in µs since 1970; `checksum` is XXH3-64 of its frame behind the checksum."""

    payload: bytes
    block: bytes
    offset: int
    timestamp: int
    origin_timestamp: int
    checksum: int
    partition: int
    id_low: int
    id_high: int

    @property
    def id(self) -> int:
        """128 bits; 0 where the producer gave none."""
        high: int = self.id_high
        low: int = self.id_low
        return high << 64 | low

    @property
    def headers(self) -> TypedHeaders | None:
        """The typed headers, read anew at each access. Raises HeaderError for a block that is none."""
        return TypedHeaders.decode(self.block, _TYPED) if self.block else None

    def __repr__(self) -> str:
        return f"<ReceivedMessage {self.partition}/{self.offset}, {len(self.payload)} bytes>"


def read_messages(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> list[ReceivedMessage]:
    """The messages of the batches in `buffer[start:end]`. Raises IggyError for what is no batch. Needs it within the
    buffer."""
    found: list[ReceivedMessage] = []
    while start < end:
        if end - start < BATCH_HEADER:
            raise refusal("invalid_messages_size", "a batch header is cut off")
        length: cython.ulonglong = u64(buffer, start + 32)
        if length < 256 or length > cython.cast(cython.ulonglong, end - start):
            raise refusal("invalid_messages_size", f"a batch of {length} bytes cannot follow")
        stop: cython.Py_ssize_t = start + cython.cast(cython.Py_ssize_t, length)
        partition: cython.uint = u32(buffer, start)
        base: cython.ulonglong = u64(buffer, start + 8)
        stored: cython.ulonglong = u64(buffer, start + 16)
        origin: cython.ulonglong = u64(buffer, start + 24)
        count: cython.Py_ssize_t = u32(buffer, start + 48)
        at: cython.Py_ssize_t = start + BATCH_HEADER
        while at < stop:
            if stop - at < FRAME_HEADER:
                raise refusal("too_small_message", "a frame is cut off")
            headers: cython.Py_ssize_t = at + FRAME_HEADER + u32(buffer, at + 36)
            following: cython.Py_ssize_t = headers + u32(buffer, at + 32)
            if following > stop:
                raise refusal("invalid_messages_size", "a message reaches beyond its batch")
            message: ReceivedMessage = ReceivedMessage.__new__(ReceivedMessage)
            message.payload = slice_bytes(buffer, at + FRAME_HEADER, headers)
            message.block = b"" if headers == following else slice_bytes(buffer, headers, following)
            message.offset = base + u32(buffer, at + 24)
            message.timestamp = stored
            message.origin_timestamp = origin + u32(buffer, at + 28)
            message.checksum = u64(buffer, at)
            message.partition = partition
            message.id_low = u64(buffer, at + 8)
            message.id_high = u64(buffer, at + 16)
            found.append(message)
            count -= 1
            at = following
        if count:
            raise refusal("invalid_messages_count", "a batch has another number of frames than it says")
        start = stop
    return found


def write_messages(messages: "Sequence[Message]", now_us: int) -> tuple[bytearray, int]:
    """(batch, count) of a program's messages. Raises HeaderError, IggyError."""
    given: list[Message] = list(messages)
    origin, latest = now_us, now_us
    for message in given:
        if message.origin_timestamp:
            origin = min(origin, message.origin_timestamp)
            latest = max(latest, message.origin_timestamp)
    if latest - origin > MAX_TIMESTAMP_DELTA:
        raise refusal("error", "the messages of one batch span at most 71 minutes", latest - origin)
    number: cython.uint = 0
    payload: bytes
    block: bytes
    total: cython.Py_ssize_t = 0
    checksums: bytearray = bytearray(8 * len(given))
    out: OutputBuffer = OutputBuffer()
    out.append(bytes(BATCH_HEADER))
    for message in given:
        payload = message.payload
        if len(payload) > MAX_PAYLOAD:
            raise refusal("too_big_message_payload", f"a payload has at most {MAX_PAYLOAD} bytes", len(payload))
        headers = message.headers
        block = b"" if headers is None else headers.encode(_TYPED)
        if len(block) > MAX_HEADERS:
            raise refusal("too_big_user_headers", f"headers have at most {MAX_HEADERS} bytes", len(block))
        delta: cython.uint = 0
        if latest != origin or origin != now_us:
            delta = (message.origin_timestamp or now_us) - origin
        write_frame(out, payload, block, message.id, number, delta, checksums)
        total += len(payload)
        number += 1
    if not total:
        raise refusal("empty_message_payload", "there is nothing to send")
    batch: bytearray = out.data
    size: cython.Py_ssize_t = out.size
    del batch[size:]
    _HEAD.pack_into(batch, 0, 0, 0, 0, origin, size, 0, number)
    _U64.pack_into(batch, 40, xxh3_64(_CHECKED.pack(0, 0, 0, origin, size, number) + bytes(checksums)))
    return batch, number


_BLANK = bytes(FRAME_HEADER)


def write_frame(
    out: OutputBuffer,
    payload: bytes,
    block: bytes,
    identity: object,
    number: cython.uint,
    delta: cython.uint,
    checksums: bytearray,
) -> cython.int:
    """Append one frame, and put its checksum at its place in `checksums`."""
    start: cython.Py_ssize_t = out.size
    out.append(_BLANK)
    out.append(payload)
    if block:
        out.append(block)
    data: bytearray = out.data
    if identity:
        put_id(data, start + 8, identity)
    put_u32(data, start + 24, number)
    put_u32(data, start + 28, delta)
    put_u32(data, start + 32, len(block))
    put_u32(data, start + 36, len(payload))
    checksum: cython.ulonglong = xxh3_64(slice_bytes(data, start + 8, out.size))
    put_u64(data, start, checksum)
    put_u64(checksums, 8 * cython.cast(cython.Py_ssize_t, number), checksum)
    return 0


def put_id(buffer: bytearray, at: cython.Py_ssize_t, identity: object) -> cython.int:
    """Write the 128 bits of a message's id at `at`. Raises IggyError for another number."""
    number: Any = identity
    if number < 0 or number >> 128:
        raise refusal("error", f"a message id has 128 bits, not {number}", number)
    put_u64(buffer, at, number & _HALF)
    put_u64(buffer, at + 8, number >> 64)
    return 0


def u64(buffer: bytearray, at: cython.Py_ssize_t) -> cython.ulonglong:
    """Little-endian u64 at `at`; bounds are the caller's duty."""
    if cython.compiled:
        low: cython.ulonglong = u32(buffer, at)
        high: cython.ulonglong = u32(buffer, at + 4)
        return low | (high << 32)
    value: int = _U64.unpack_from(buffer, at)[0]
    return value


def u32(buffer: bytearray, at: cython.Py_ssize_t) -> cython.uint:
    """Little-endian u32 at `at`; bounds are the caller's duty."""
    if cython.compiled:
        data: cython.p_uchar = buffer
        low: cython.uint = data[at]
        second: cython.uint = data[at + 1]
        third: cython.uint = data[at + 2]
        high: cython.uint = data[at + 3]
        return low | (second << 8) | (third << 16) | (high << 24)
    value: int = _U32.unpack_from(buffer, at)[0]
    return value


def put_u64(buffer: bytearray, at: cython.Py_ssize_t, value: cython.ulonglong) -> cython.int:
    """Write a little-endian u64 at `at`; bounds are the caller's duty."""
    if cython.compiled:
        put_u32(buffer, at, cython.cast(cython.uint, value & 0xFFFFFFFF))
        put_u32(buffer, at + 4, cython.cast(cython.uint, value >> 32))
    else:
        _U64.pack_into(buffer, at, value)
    return 0


def put_u32(buffer: bytearray, at: cython.Py_ssize_t, value: cython.uint) -> cython.int:
    """Write a little-endian u32 at `at`; bounds are the caller's duty."""
    if cython.compiled:
        data: cython.p_uchar = buffer
        data[at] = value & 255
        data[at + 1] = (value >> 8) & 255
        data[at + 2] = (value >> 16) & 255
        data[at + 3] = value >> 24
    else:
        _U32.pack_into(buffer, at, value)
    return 0
