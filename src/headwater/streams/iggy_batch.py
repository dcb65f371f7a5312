# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""A batch of messages as apache-iggy 0.9 sends it, stores it and polls it: the body of a log batch of the Iggy dialect.

    batch header, 256 bytes
      | partition u64 | base offset u64 | base timestamp u64 | origin timestamp u64 | batch length u64, these 256 included
      | batch checksum u64 | message count u32 | zeros ...
    frame, one a message
      | checksum u64 | id u128 | offset delta u32 | timestamp delta u32 | headers size u32 | payload size u32 | zero u64
      | payload | headers

All integers little-endian, timestamps in microseconds. A producer leaves partition, base offset and base timestamp
zero; the server writes these 24 bytes and nothing else. Headers are typed headers with typed keys. The frame checksum
is XXH3-64 of the frame behind it, the batch checksum that of the header fields and all frame checksums.

`check_frames` validates what a peer sent: a batch that passes can be walked without another check. It is a single pass
that costs some nanoseconds a message when compiled; nothing else is done per message when a batch is stored.
"""

import struct
from typing import NamedTuple

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

BATCH_HEADER = struct.Struct("<QQQQQQI")
BATCH_HEADER_SIZE: int = 256
STAMP = struct.Struct("<QQQ")
CHECKSUM_AT: int = struct.calcsize("<QQQQQ")
FRAME = struct.Struct("<Q16sIIIIQ")
FRAME_SIZE: int = FRAME.size
_FRAME_SIZE: cython.Py_ssize_t = FRAME.size
CHECKSUM_SIZE: int = 8

STRING: cython.int = 2  # the kind of a string key
MAX_HEADERS: int = 100_000  # bytes of one message's header block
_MAX_HEADERS: cython.Py_ssize_t = MAX_HEADERS
_LONGEST: cython.Py_ssize_t = 255

# What `check_frames` finds; 0 is a batch in order
BAD_TILING: int = 1
BAD_COUNT: int = 2
BAD_OFFSET: int = 3
BAD_RESERVED: int = 4
BIG_HEADERS: int = 5
BAD_KEY: int = 6
BAD_KIND: int = 7
BAD_VALUE: int = 8
NO_PAYLOAD: int = 9


class Frame(NamedTuple):
    """The position of one message in a batch: payload `[payload_at, headers_at)`, headers `[headers_at, end)`."""

    start: int
    id: bytes
    offset_delta: int
    timestamp_delta: int
    payload_at: int
    headers_at: int
    end: int


class BatchFields(NamedTuple):
    """A batch header."""

    partition: int
    base_offset: int
    base_timestamp: int
    origin_timestamp: int
    length: int
    checksum: int
    message_count: int


def batch_fields(body: bytes | bytearray, at: int = 0) -> BatchFields:
    """The header at `at`, which must have its 256 bytes there."""
    return BatchFields._make(BATCH_HEADER.unpack_from(body, at))


def check_frames(
    buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t, count: cython.Py_ssize_t, checksums: bytearray
) -> cython.int:
    """Whether `buffer[start:end]` is exactly `count` frames, in order from offset delta 0, with header blocks that
    decode. Returns 0, or what is wrong. The checksums of the frames are written to `checksums`, 8 bytes each.

    Needs 0 <= start <= end <= len(buffer) and len(checksums) >= 8 * count.
    """
    # A pointer when compiled, at a quarter of the cost of a subscript; nothing resizes the buffer meanwhile.
    data: cython.p_uchar = buffer
    out: cython.p_uchar = checksums
    at: cython.Py_ssize_t = start
    index: cython.Py_ssize_t = 0
    payload: cython.Py_ssize_t = 0
    while at < end:
        if end - at < _FRAME_SIZE:
            return BAD_TILING
        if index == count:
            return BAD_COUNT
        if _u32(data, at + 24) != index:
            return BAD_OFFSET
        headers_size: cython.Py_ssize_t = _u32(data, at + 32)
        payload_size: cython.Py_ssize_t = _u32(data, at + 36)
        if _u32(data, at + 40) or _u32(data, at + 44):
            return BAD_RESERVED
        following: cython.Py_ssize_t = at + _FRAME_SIZE + payload_size + headers_size
        if following > end:
            return BAD_TILING
        if headers_size:
            wrong: cython.int = _check_headers(buffer, following - headers_size, following)
            if wrong:
                return wrong
        if cython.compiled:
            memcpy(out + 8 * index, data + at, 8)
        else:
            checksums[8 * index : 8 * index + 8] = buffer[at : at + 8]
        payload += payload_size
        index += 1
        at = following
    if index != count:
        return BAD_COUNT
    return 0 if payload else NO_PAYLOAD


def _check_headers(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """Whether the block is headers with typed keys, back to back, each of a known kind and of 1..255 bytes, and string
    keys UTF-8: readers refuse any other key, so one such message would fail every poll that contains it."""
    if end - start > _MAX_HEADERS:
        return BIG_HEADERS
    data: cython.p_uchar = buffer
    at: cython.Py_ssize_t = start
    is_key: cython.bint = True
    while at < end:
        if not 1 <= data[at] <= 15:
            return BAD_KIND
        if end - at < 5:
            return BAD_KEY if is_key else BAD_VALUE
        size: cython.Py_ssize_t = _u32(data, at + 1)
        if not 1 <= size <= _LONGEST or size > end - at - 5:
            return BAD_KEY if is_key else BAD_VALUE
        if is_key and data[at] == STRING and not _is_text(buffer, at + 5, at + 5 + size):
            return BAD_KEY
        at += 5 + size
        is_key = not is_key
    return 0 if is_key else BAD_VALUE


def _is_text(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether the bytes are UTF-8; nearly all are ASCII, which is checked without making an object."""
    start: cython.Py_ssize_t = at
    while at < end and buffer[at] < 0x80:
        at += 1
    if at == end:
        return True
    try:
        buffer[start:end].decode()
    except UnicodeDecodeError:
        return False
    return True


def skip_frames(
    body: bytes, at: cython.Py_ssize_t, end: cython.Py_ssize_t, count: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where the frame `count` frames after the one at `at` begins, at most `end`. For batches that were checked."""
    data: cython.p_uchar = body
    while count > 0 and at < end:
        at += _FRAME_SIZE + _u32(data, at + 32) + _u32(data, at + 36)
        count -= 1
    return at


def checksums_of(body: bytes, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bytes:
    """The checksums of the frames in `[at, end)` of a checked batch, in the form that the batch checksum is computed
    over."""
    pieces = []
    while at < end:
        pieces.append(body[at : at + 8])
        at = skip_frames(body, at, end, 1)
    return b"".join(pieces)


_U32 = struct.Struct("<I")


def frames(body: bytes) -> list[Frame]:
    """All frames of a checked batch."""
    found = []
    at, end = BATCH_HEADER_SIZE, len(body)
    while at < end:
        _, message_id, offset_delta, time_delta, headers_size, payload_size, _ = FRAME.unpack_from(body, at)
        payload_at = at + FRAME_SIZE
        headers_at = payload_at + payload_size
        following = headers_at + headers_size
        found.append(Frame(at, message_id, offset_delta, time_delta, payload_at, headers_at, following))
        at = following
    return found


def stamp(buffer: bytearray, at: int, partition: int, base_offset: int, base_timestamp: int) -> None:
    """Write the server's 24 bytes into a batch header."""
    STAMP.pack_into(buffer, at, partition, base_offset, base_timestamp)


# Four times for every message: inlined, and the C compiler makes one move of the bytes. Bounds are the caller's duty.
if cython.compiled:

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _u32(data: cython.p_uchar, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
        low: cython.uint = data[at]
        second: cython.uint = data[at + 1]
        third: cython.uint = data[at + 2]
        high: cython.uint = data[at + 3]
        return low | (second << 8) | (third << 16) | (high << 24)

else:

    def _u32(data: bytes | bytearray, at: int) -> int:
        """Little-endian u32 at `at`."""
        value: int = _U32.unpack_from(data, at)[0]
        return value
