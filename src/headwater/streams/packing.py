"""Compressed batches: a stored body is the CRC of its content and the content as a block of S2 (`docs/log-format.md`).

    unpack     the batch as it was before it was compressed; readers of the log see nothing else
    corrected  the same of a body with one flipped bit: its CRC says which, the CRC of the content is the witness
    Packer     what a segment holds, joined into batches of 64 KiB and compressed where that makes them smaller

Small batches are joined because a batch of one record has nothing in it that repeats; larger ones are divided because the
batch is the unit of reading and of damage, and Snappy looks back no further than 64 KiB anyway. Iggy's batches are neither
joined nor divided, their own checksums cover them whole; tombstones and batches of version 1 pass unchanged.

Pure; in the worker thread when a segment is written anew, in the reader when a segment is read.
"""

from collections.abc import Callable

from google_crc32c import value as crc32c

from headwater.compression.snappy import Compress, decompressor
from headwater.errors import RemoteProtocolError
from headwater.streams.log_format import (
    DIALECT_NATS,
    FLAG_COMPRESSED,
    HEADER_CRC,
    VERSION,
    BatchHeader,
    RecordCursor,
    encode_batch_header,
    header_of,
    take_run,
)
from headwater.streams.options import LARGEST_BATCH

PACKED_BYTES = 64 << 10  # of records: a batch is closed when it has as many
LARGEST_CORRECTED = 16 << 20  # bytes of a stored body; finding the bit takes a quarter of a second for each MiB
LARGEST_SPAN = 1 << 31  # offsets; gaps count, and the span is a u32
SMALLEST_GAIN = 16  # a body is stored compressed when that saves a sixteenth

Add = Callable[[BatchHeader, bytes, bytes], None]  # (header, header bytes, stored body)


def unpack(header: BatchHeader, stored: bytes) -> tuple[BatchHeader, bytes] | None:
    """(header, body) as before compression, of a stored body whose CRC matched; None when it is not what was written."""
    if len(stored) < HEADER_CRC.size:
        return None
    try:
        content = decompressor()(stored[HEADER_CRC.size :], LARGEST_BATCH)
    except RemoteProtocolError:
        return None
    crc = crc32c(content)
    return (_with_body(header, 0, content, crc), content) if HEADER_CRC.unpack_from(stored)[0] == crc else None


def packed(header: BatchHeader, body: bytes, compress: Compress) -> tuple[BatchHeader, bytes]:
    """(header, stored body); as they are where compressing gains too little."""
    stored = HEADER_CRC.pack(crc32c(body)) + compress(body)
    if len(stored) > len(body) - len(body) // SMALLEST_GAIN:
        return header, body
    return _with_body(header, FLAG_COMPRESSED, stored, crc32c(stored)), stored


def corrected(header: BatchHeader, stored: bytes) -> tuple[BatchHeader, bytes] | None:
    """As `unpack`, of a stored body with one flipped bit; None for any other damage."""
    if len(stored) != header.body_size or len(stored) > LARGEST_CORRECTED:
        return None
    bit = _flipped_bit(crc32c(stored) ^ header.body_crc, len(stored))
    if bit is None:
        return None
    at, mask = bit
    mended = bytearray(stored)
    mended[at] ^= mask
    return unpack(header, bytes(mended))


def flipped(data: bytes, bit: int) -> bytes:
    """The bytes with one bit flipped, counted from the lowest of the first byte."""
    return b"%b%c%b" % (data[: bit // 8], data[bit // 8] ^ 1 << bit % 8, data[bit // 8 + 1 :])


def _flipped_bit(difference: int, size: int) -> tuple[int, int] | None:
    """(byte, mask) of the one flipped bit of `size` bytes that makes this difference between two CRCs.

    What a flipped bit in the last byte does to a CRC stands in a table; one in a byte before it does what that becomes
    behind one more byte of zeros. So the difference is taken back byte by byte until it stands in the table. No two bits of
    a body give the same one: CRC32C finds every two flipped bits in far longer ones."""
    last = {crc32c(bytes([1 << bit])) ^ crc32c(b"\0"): 1 << bit for bit in range(8)}
    table = [crc32c(bytes([value])) ^ crc32c(b"\0") for value in range(256)]
    before = {entry >> 24: value for value, entry in enumerate(table)}  # the upper bytes are all different
    for at in range(size - 1, -1, -1):
        if difference in last:
            return at, last[difference]
        value = before[difference >> 24]
        difference = ((difference ^ table[value]) << 8 | value) & 0xFFFFFFFF
    return None


def _with_body(header: BatchHeader, flags: int, body: bytes, crc: int) -> BatchHeader:
    return BatchHeader(
        header.dialect,
        flags,
        header.record_count,
        header.offset_span,
        len(body),
        header.base_offset,
        header.first_timestamp_ns,
        header.last_timestamp_ns,
        crc,
        header.version,
    )


class Packer:
    """Takes the batches of a segment in order and gives what is to be stored to `add`."""

    def __init__(self, add: Add, compress: Compress, identity: bytes) -> None:
        self._add = add
        self._compress = compress
        self._identity = identity
        self._pieces: list[bytes] = []
        self._size = 0
        self._count = 0
        self._base = 0
        self._end = 0
        self._times = (0, 0)

    def add(self, header: BatchHeader, body: bytes) -> None:
        """A batch whose records all stay."""
        if header.dialect != DIALECT_NATS or header.version != VERSION:
            self.finish()
            self._store(header, body)
            return
        cursor = RecordCursor(body, 0, len(body), header.base_offset, header.version)
        base = header.base_offset
        while cursor.advance():
            start, first_ns = cursor.start, cursor.timestamp_ns
            count = take_run(cursor, start + PACKED_BYTES - self._size)
            end = header.end_offset if cursor.end == len(body) else cursor.offset + 1
            self._join(body[start : cursor.end], count, (base, end), (first_ns, cursor.timestamp_ns))
            base = end

    def _join(self, records: bytes, count: int, offsets: tuple[int, int], times: tuple[int, int]) -> None:
        if self._pieces and offsets[1] - self._base > LARGEST_SPAN:
            self.finish()
        if not self._pieces:
            self._base, self._times = offsets[0], times
        self._pieces.append(records)
        self._size += len(records)
        self._count += count
        self._end = offsets[1]
        self._times = self._times[0], times[1]
        if self._size >= PACKED_BYTES:
            self.finish()

    def finish(self) -> None:
        """Store what has been joined so far."""
        if not self._pieces:
            return
        body = b"".join(self._pieces)
        header = header_of(body, DIALECT_NATS, self._count, self._base, self._end, self._times)
        self._pieces, self._size, self._count = [], 0, 0
        self._store(header, body)

    def _store(self, header: BatchHeader, body: bytes) -> None:
        if header.version == VERSION:
            header, body = packed(header, body, self._compress)
        self._add(header, encode_batch_header(header, self._identity), body)
