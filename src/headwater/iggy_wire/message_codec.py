# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Encodes a client's messages to a batch and decodes polled ones: the code that runs per message.

    write_messages: messages ─▶ one batch of generation V, sealed        one hash a message, no objects but the hash's
    read_messages: the batches of an answer, where they were received ─▶ ReceivedMessage, a place in it

The layout is `streams/iggy_batch.py`'s. Sizes in frames are checked against the buffer. Checksums of polled messages
are not verified, because TCP does that; programs can verify `ReceivedMessage.checksum`. Headers stay bytes until they
are read.
"""

import struct
from collections.abc import Iterable
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE
    from cython.cimports.headwater.wire.memory import slice_bytes
    from cython.cimports.libc.string import memcpy
else:
    from headwater.wire.memory import slice_bytes

from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.hashes import xxh3_64
from headwater.model.typed_headers import HeaderForm, TypedHeaders

BATCH_HEADER: cython.Py_ssize_t = 256
FRAME_HEADER: cython.Py_ssize_t = 48
MAX_PAYLOAD: cython.Py_ssize_t = 64_000_000  # bytes of one message
MAX_HEADERS: cython.Py_ssize_t = 100_000  # bytes of one message's header block
MAX_TIMESTAMP_DELTA: int = (1 << 32) - 1  # microseconds that one batch may span
_HEAD = struct.Struct("<QQQQQQI")
_CHECKED = struct.Struct("<QQQQQI")
_U64 = struct.Struct("<Q")
_U32 = struct.Struct("<I")
_HALF: int = (1 << 64) - 1
_TYPED = HeaderForm.TYPED


class Message:
    """One message, to be sent or from a poll. Times in microseconds since 1970. It never changes."""

    payload: bytes
    headers: TypedHeaders | None
    id: int
    offset: int
    timestamp: int
    origin_timestamp: int

    def __init__(
        self,
        payload: bytes,
        headers: TypedHeaders | None = None,
        id: int = 0,
        offset: int = 0,
        timestamp: int = 0,
        origin_timestamp: int = 0,
    ) -> None:
        if isinstance(headers, dict):
            raise TypeError("headers of an Iggy message have kinds: TypedHeaders({...}), not a dict")
        self.payload = payload
        self.headers = headers
        self.id = id
        self.offset = offset
        self.timestamp = timestamp
        self.origin_timestamp = origin_timestamp

    def _values(self) -> tuple[Any, ...]:
        return self.payload, self.headers, self.id, self.offset, self.timestamp, self.origin_timestamp

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, Message) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # headers can change

    def __repr__(self) -> str:
        shown = ("payload", "headers", "id", "offset", "timestamp", "origin_timestamp")
        return f"Message({', '.join(f'{name}={value!r}' for name, value in zip(shown, self._values(), strict=True))})"

    def __reduce__(self) -> Any:
        return Message, self._values()


class ReceivedMessage:
    """A message from a poll. `offset` in `partition`; `timestamp` is the server's and `origin_timestamp` the producer's,
    in µs since 1970; `checksum` is XXH3-64 of its frame behind the checksum.

    It is a place in the answer it came with, which stays in memory as long as one of its messages does. What is read is
    read anew at each access: keep `payload` rather than one message of a thousand.
    """

    source: bytearray
    head: cython.Py_ssize_t  # where its batch begins
    at: cython.Py_ssize_t  # where its frame begins

    @property
    def payload(self) -> bytes:
        start: cython.Py_ssize_t = self.at + FRAME_HEADER
        return slice_bytes(self.source, start, start + u32(self.source, self.at + 36))

    @property
    def block(self) -> bytes:
        """The typed headers as bytes."""
        start: cython.Py_ssize_t = self.at + FRAME_HEADER + u32(self.source, self.at + 36)
        return slice_bytes(self.source, start, start + u32(self.source, self.at + 32))

    @property
    def partition(self) -> int:
        return u32(self.source, self.head)

    @property
    def offset(self) -> int:
        return u64(self.source, self.head + 8) + u32(self.source, self.at + 24)

    @property
    def timestamp(self) -> int:
        return u64(self.source, self.head + 16)

    @property
    def origin_timestamp(self) -> int:
        return u64(self.source, self.head + 24) + u32(self.source, self.at + 28)

    @property
    def checksum(self) -> int:
        return u64(self.source, self.at)

    @property
    def id(self) -> int:
        """128 bits; 0 where the producer gave none."""
        low: Any = u64(self.source, self.at + 8)
        high: Any = u64(self.source, self.at + 16)
        number: int = high << 64 | low
        return number

    @property
    def headers(self) -> TypedHeaders | None:
        """The typed headers. Raises HeaderError for a block that is none."""
        return TypedHeaders.decode(self.block, _TYPED) if u32(self.source, self.at + 32) else None

    def __repr__(self) -> str:
        return f"<ReceivedMessage {self.partition}/{self.offset}, {len(self.payload)} bytes>"

    def __reduce__(self) -> Any:
        times = self.timestamp, self.origin_timestamp
        return received, (self.payload, self.block, self.offset, times, self.checksum, self.partition, self.id)


def received(
    payload: bytes,
    block: bytes,
    offset: cython.ulonglong,
    times: tuple[int, int],
    checksum: cython.ulonglong,
    partition: cython.uint,
    identity: object,
) -> ReceivedMessage:
    """A message from another source than a frame: a frame is made for it. `times`: the server's and the producer's.
    Raises IggyError for an id that has no room."""
    start: cython.Py_ssize_t = BATCH_HEADER + FRAME_HEADER
    frame: bytearray = bytearray(start + len(payload) + len(block))
    put_u32(frame, 0, partition)
    put_u64(frame, 8, offset)
    put_u64(frame, 16, times[0])
    put_u64(frame, 24, times[1])
    put_u64(frame, BATCH_HEADER, checksum)
    put_id(frame, BATCH_HEADER + 8, identity)
    put_u32(frame, BATCH_HEADER + 32, cython.cast(cython.uint, len(block)))
    put_u32(frame, BATCH_HEADER + 36, cython.cast(cython.uint, len(payload)))
    put_bytes(frame, put_bytes(frame, start, payload), block)
    message: ReceivedMessage = ReceivedMessage.__new__(ReceivedMessage)
    message.source = frame
    message.head = 0
    message.at = BATCH_HEADER
    return message


def read_messages(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> list[ReceivedMessage]:
    """The messages of the batches in `buffer[start:end]`, which they keep: it must not be written to again. Raises IggyError
    for what is no batch. Needs it within the buffer."""
    found: list[ReceivedMessage] = []
    while start < end:
        if end - start < BATCH_HEADER:
            raise refusal("invalid_messages_size", "a batch header is cut off")
        length: cython.ulonglong = u64(buffer, start + 32)
        if length < 256 or length > cython.cast(cython.ulonglong, end - start):
            raise refusal("invalid_messages_size", f"a batch of {length} bytes cannot follow")
        stop: cython.Py_ssize_t = start + cython.cast(cython.Py_ssize_t, length)
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
            message.source = buffer
            message.head = start
            message.at = at
            found.append(message)
            count -= 1
            at = following
        if count:
            raise refusal("invalid_messages_count", "a batch has another number of frames than it says")
        start = stop
    return found


def check_messages(messages: "Iterable[Message]") -> list[Message]:
    """The messages of a send, if they have payloads and no more than a server takes. Raises HeaderError, IggyError."""
    given = list(messages)
    size = 0
    for message in given:
        block = b"" if message.headers is None else message.headers.encode(_TYPED)
        check_sizes(len(message.payload), len(block))
        size += len(message.payload)
    if not size:
        raise refusal("empty_message_payload", "there is nothing to send")
    return given


def check_sizes(payload: cython.Py_ssize_t, block: cython.Py_ssize_t) -> cython.int:
    """Raises IggyError for a payload or a block of headers that no server takes."""
    if payload > MAX_PAYLOAD:
        raise refusal("too_big_message_payload", f"a payload has at most {MAX_PAYLOAD} bytes", payload)
    if block > MAX_HEADERS:
        raise refusal("too_big_user_headers", f"headers have at most {MAX_HEADERS} bytes", block)
    return 0


def write_messages(messages: "Iterable[Message]", now_us: int) -> tuple[bytearray, int]:
    """(batch, count) of a program's messages. Raises HeaderError, IggyError."""
    given: list[Message] = list(messages)
    message: Message
    payload: bytes
    block: bytes
    blocks: list[bytes] = []
    origin, latest = now_us, now_us
    size: cython.Py_ssize_t = BATCH_HEADER
    total: cython.Py_ssize_t = 0
    for message in given:
        payload = message.payload
        block = b"" if message.headers is None else message.headers.encode(_TYPED)
        blocks.append(block)
        check_sizes(len(payload), len(block))
        total += len(payload)
        size += FRAME_HEADER + len(payload) + len(block)
        if message.origin_timestamp:
            origin = min(origin, message.origin_timestamp)
            latest = max(latest, message.origin_timestamp)
    if latest - origin > MAX_TIMESTAMP_DELTA:
        raise refusal("error", "the messages of one batch span at most 71 minutes", latest - origin)
    if origin < 0 or latest >> 64:
        raise refusal(
            "invalid_number_encoding", "an origin timestamp is in microseconds since 1970, in 64 bits", origin
        )
    if not total:
        raise refusal("empty_message_payload", "there is nothing to send")
    return write_frames(given, blocks, size, (now_us, origin, latest)), len(given)


def write_frames(
    messages: "list[Message]", blocks: list[bytes], size: cython.Py_ssize_t, times: tuple[int, int, int]
) -> bytearray:
    """The batch of checked messages, `size` bytes. `times`: now, and those of the first and the last message."""
    now_us, origin, latest = times
    spread: cython.bint = latest != origin or origin != now_us
    message: Message
    payload: bytes
    block: bytes
    count: cython.Py_ssize_t = len(messages)
    checksums: bytearray = bytearray(8 * count)
    batch: bytearray = bytearray(size)
    at: cython.Py_ssize_t = BATCH_HEADER
    number: cython.Py_ssize_t
    for number in range(count):
        message = messages[number]
        payload = message.payload
        block = blocks[number]
        if message.id:
            put_id(batch, at + 8, message.id)
        put_u32(batch, at + 24, cython.cast(cython.uint, number))
        if spread:
            put_u32(batch, at + 28, (message.origin_timestamp or now_us) - origin)
        put_u32(batch, at + 32, cython.cast(cython.uint, len(block)))
        put_u32(batch, at + 36, cython.cast(cython.uint, len(payload)))
        end: cython.Py_ssize_t = put_bytes(batch, put_bytes(batch, at + FRAME_HEADER, payload), block)
        checksum: cython.ulonglong = xxh3_64(slice_bytes(batch, at + 8, end))
        put_u64(batch, at, checksum)
        put_u64(checksums, 8 * number, checksum)
        at = end
    _HEAD.pack_into(batch, 0, 0, 0, 0, origin, size, 0, count)
    _U64.pack_into(batch, 40, xxh3_64(_CHECKED.pack(0, 0, 0, origin, size, count) + bytes(checksums)))
    return batch


def put_id(buffer: bytearray, at: cython.Py_ssize_t, identity: object) -> cython.int:
    """Write the 128 bits of a message's id at `at`. Raises IggyError for another number."""
    number: Any = identity
    if number < 0 or number >> 128:
        raise refusal("error", f"a message id has 128 bits, not {number}", number)
    put_u64(buffer, at, number & _HALF)
    put_u64(buffer, at + 8, number >> 64)
    return 0


# What every message costs: inlined, and the C compiler makes one move of the bytes of a number. Bounds are the caller's
# duty.
if cython.compiled:

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def u32(buffer: bytearray, at: cython.Py_ssize_t) -> cython.uint:
        data: cython.p_uchar = buffer
        low: cython.uint = data[at]
        second: cython.uint = data[at + 1]
        third: cython.uint = data[at + 2]
        high: cython.uint = data[at + 3]
        return low | (second << 8) | (third << 16) | (high << 24)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def u64(buffer: bytearray, at: cython.Py_ssize_t) -> cython.ulonglong:
        low: cython.ulonglong = u32(buffer, at)
        high: cython.ulonglong = u32(buffer, at + 4)
        return low | (high << 32)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def put_u32(buffer: bytearray, at: cython.Py_ssize_t, value: cython.uint) -> cython.void:
        data: cython.p_uchar = buffer
        data[at] = value & 255
        data[at + 1] = (value >> 8) & 255
        data[at + 2] = (value >> 16) & 255
        data[at + 3] = value >> 24

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def put_u64(buffer: bytearray, at: cython.Py_ssize_t, value: cython.ulonglong) -> cython.void:
        put_u32(buffer, at, cython.cast(cython.uint, value))  # a mask that long would be a Python object
        put_u32(buffer, at + 4, cython.cast(cython.uint, value >> 32))

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def put_bytes(buffer: bytearray, at: cython.Py_ssize_t, raw: bytes) -> cython.Py_ssize_t:
        size: cython.Py_ssize_t = PyBytes_GET_SIZE(raw)
        memcpy(PyByteArray_AS_STRING(buffer) + at, PyBytes_AS_STRING(raw), size)
        return at + size

else:

    def u64(buffer: bytearray, at: int) -> int:
        """Little-endian u64 at `at`."""
        value: int = _U64.unpack_from(buffer, at)[0]
        return value

    def u32(buffer: bytearray, at: int) -> int:
        """Little-endian u32 at `at`."""
        value: int = _U32.unpack_from(buffer, at)[0]
        return value

    def put_u64(buffer: bytearray, at: int, value: int) -> None:
        """Write a little-endian u64 at `at`."""
        _U64.pack_into(buffer, at, value)

    def put_u32(buffer: bytearray, at: int, value: int) -> None:
        """Write a little-endian u32 at `at`."""
        _U32.pack_into(buffer, at, value)

    def put_bytes(buffer: bytearray, at: int, raw: bytes) -> int:
        """Write `raw` at `at`; returns what is behind it."""
        buffer[at : at + len(raw)] = raw
        return at + len(raw)
