# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The bytes of the log, version 2: what a segment file holds, drawn once. `docs/log-format.md` is the specification.

A segment file is one head page and then batches, back to back, to the end of the file. All integers little-endian.

    head page                                   head_page.py
    batch = header + body
      | magic "HWB1" | identity 8 bytes         the marker: what a scan looks for after damage
      | header crc u32                          CRC32C of the header from here to its end
      | version u8 | dialect u8 | flags u16
      | record count u32 | offset span u32      offsets [base, base + span); count < span once records were removed
      | body size u32 | base offset u64
      | first timestamp i64 | last timestamp i64 | body crc u32 | reserved u32
      body = records, back to back; of dialect "iggy" one of Iggy's batches (iggy_batch.py); of dialect "tombstones"
             (span 0) ranges of deleted offsets (tombstones.py). With flag 1 it is compressed (packing.py)

    record of the NATS dialect
      | record crc u32 | timestamp ns i64 | low half of the offset u32 | subject size u16 | tag u16
      | header block size u32 | payload size u32 | subject | header block | payload

`identity` is 64 random bits of one log: a scan cannot mistake published bytes for a batch, and a file of another log is
recognized. The CRCs of header and body are for the usual case, one call for many records. That of a record is for the
other one (salvage.py): it starts from the identity, and with the tag, which is made of the identity too, and the offset
a record can be found and verified when nothing around it can be read.

Version 1 has no record CRC: its records start with the time stamp, have the distance from the batch's base offset in
place of the low half of the offset, and 0 for the tag. It is read, and copied unchanged; version 2 is written.

This module turns values into these bytes and back. It refuses to guess: where a CRC does not match, `decode_*` return
None; a checked batch of a version or dialect it does not know raises CorruptLog (and is never cut). Hot and compiled:
`BatchBuilder.append` runs per record stored, `RecordCursor.advance` per record read.
"""

import struct
from collections.abc import Callable

import cython
from google_crc32c import value as crc32c

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.headwater.compression.checksum import _SHORT, extend_crc, extend_short
else:
    from headwater.compression.checksum import SHORT as _SHORT
    from headwater.compression.checksum import extend_crc, extend_short

from headwater.errors import CorruptLog, StorageError

VERSION: int = 2
OLDEST_VERSION: int = 1  # that is read
DIALECT_NATS: int = 0
DIALECT_IGGY: int = 1  # bodies as Iggy sends them (iggy_batch.py)
DIALECT_TOMBSTONES: int = 2  # no records: which earlier offsets were deleted (tombstones.py)
_TOMBSTONES: cython.int = DIALECT_TOMBSTONES
FLAG_COMPRESSED: int = 1  # of a batch: its body is stored compressed (packing.py)

BATCH_MAGIC = b"HWB1"
IDENTITY_SIZE: int = 8

MARKER = struct.Struct("<4s8s")
MARKER_SIZE: int = MARKER.size
HEADER_CRC = struct.Struct("<I")
HEADER_REST = struct.Struct("<BBHIIIQqqII")
HEADER_REST_AT: int = MARKER.size + HEADER_CRC.size
BATCH_HEADER_SIZE: int = HEADER_REST_AT + HEADER_REST.size
_BATCH_HEADER_SIZE: cython.Py_ssize_t = BATCH_HEADER_SIZE
_CRC_SIZE: cython.Py_ssize_t = HEADER_CRC.size
_ZEROS: bytes = bytes(64)

RECORD_HEAD = struct.Struct("<IqIHHII")
RECORD_HEAD_SIZE: int = RECORD_HEAD.size
_RECORD_HEAD_SIZE: cython.Py_ssize_t = RECORD_HEAD.size
RECORD_CRC_SIZE: int = 4
_RECORD_CRC_SIZE: cython.Py_ssize_t = RECORD_CRC_SIZE
RECORD_TAG_AT: int = struct.calcsize("<IqIH")
_RECORD_TAG_AT: cython.Py_ssize_t = RECORD_TAG_AT
_RECORD_SIZES_AT: cython.Py_ssize_t = struct.calcsize("<IqIHH")
LOW_HALF: int = 0xFFFFFFFF  # of an offset
_LOW_HALF: cython.longlong = LOW_HALF  # a literal of this size would be a Python object
_RECORD_REST_V1 = struct.Struct("<qIHHII")

MAX_SUBJECT: int = (1 << 16) - 1  # subject size is a u16; NATS control lines end at 4096 anyway
MAX_BODY: int = (1 << 32) - 1  # body size is a u32
_MAX_SUBJECT: cython.Py_ssize_t = MAX_SUBJECT
_MAX_BODY: cython.Py_ssize_t = MAX_BODY
# Bytes of a record, on average: from here on to join a batch costs more than to write it in pieces.
APART: int = 1 << 14
_APART: cython.Py_ssize_t = APART
MAX_OFFSET: int = (1 << 63) - 1  # so that offsets fit a signed 64-bit column everywhere


class BatchHeader:
    """A batch header whose CRC matched. Offsets half-open `[base_offset, end_offset)`, timestamps in ns, sizes in
    bytes."""

    dialect: int
    flags: int
    record_count: int
    offset_span: int
    body_size: int
    base_offset: int
    first_timestamp_ns: int
    last_timestamp_ns: int
    body_crc: int
    version: int

    def __init__(
        self,
        dialect: cython.int,
        flags: cython.int,
        record_count: cython.longlong,
        offset_span: cython.longlong,
        body_size: cython.longlong,
        base_offset: cython.longlong,
        first_timestamp_ns: cython.longlong,
        last_timestamp_ns: cython.longlong,
        body_crc: cython.longlong,
        version: cython.int = 2,
    ) -> None:
        self.dialect = dialect
        self.flags = flags
        self.record_count = record_count
        self.offset_span = offset_span
        self.body_size = body_size
        self.base_offset = base_offset
        self.first_timestamp_ns = first_timestamp_ns
        self.last_timestamp_ns = last_timestamp_ns
        self.body_crc = body_crc
        self.version = version

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.offset_span

    @property
    def holds_records(self) -> bool:
        """False for tombstones: their count is one of ranges, and their base offset is only their position."""
        return self.dialect != _TOMBSTONES

    @property
    def size(self) -> int:
        return _BATCH_HEADER_SIZE + self.body_size

    def fields(self) -> tuple[int, int, int, int, int, int, int, int, int]:
        """All of them, in the order in which they are written."""
        return (
            self.dialect,
            self.flags,
            self.record_count,
            self.offset_span,
            self.body_size,
            self.base_offset,
            self.first_timestamp_ns,
            self.last_timestamp_ns,
            self.body_crc,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BatchHeader):
            return False
        return self.fields() == other.fields() and self.version == other.version

    def __hash__(self) -> int:
        return hash(self.fields())

    def __repr__(self) -> str:
        return f"BatchHeader{self.fields()}, version {self.version}"


class StoredRecord:
    """One record as it was stored. `header_block` is the NATS/1.0 block as it arrived, b"" when there was none."""

    offset: int
    timestamp_ns: int
    subject: bytes
    header_block: bytes
    payload: bytes

    def __init__(
        self,
        offset: cython.longlong,
        timestamp_ns: cython.longlong,
        subject: bytes,
        header_block: bytes,
        payload: bytes,
    ) -> None:
        self.offset = offset
        self.timestamp_ns = timestamp_ns
        self.subject = subject
        self.header_block = header_block
        self.payload = payload

    def _fields(self) -> tuple[int, int, bytes, bytes, bytes]:
        return (self.offset, self.timestamp_ns, self.subject, self.header_block, self.payload)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredRecord) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"<StoredRecord {self.offset} {self.subject!r} header_block={len(self.header_block)}B "
            f"payload={len(self.payload)}B at={self.timestamp_ns}>"
        )


def header_of(
    body: bytes,
    dialect: int,
    count: int,
    base_offset: int,
    end_offset: int,
    times: tuple[int, int],
    version: int = VERSION,
) -> BatchHeader:
    """The header of a body as it is, not compressed. `count`: of its records, or ranges; `times`: the first and the last."""
    span, crc = end_offset - base_offset, crc32c(body)
    return BatchHeader(dialect, 0, count, span, len(body), base_offset, times[0], times[1], crc, version)


def _crc_of(crc: cython.uint, pieces: list[bytes]) -> cython.uint:
    """The CRC32C of what came before, extended by these pieces."""
    for piece in pieces:
        crc = extend_crc(crc, piece)
    return crc


class BatchBuilder:
    """Builds one batch of the NATS dialect from records.

    Keeps references to the caller's bytes, and copies each byte once, to join those of small records. `size` is the size
    of the body so far, `end_offset` the offset of the next record.
    """

    base_offset: int
    record_count: int
    size: int
    first_timestamp_ns: int
    last_timestamp_ns: int
    _pieces: list[bytes]

    def __init__(self, base_offset: cython.longlong) -> None:
        self.base_offset = base_offset
        self.record_count = 0
        self.size = 0
        self.first_timestamp_ns = 0
        self.last_timestamp_ns = 0
        self._pieces = []

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.record_count

    def append(
        self, subject: bytes, header_block: bytes, payload: bytes, timestamp_ns: cython.longlong
    ) -> cython.Py_ssize_t:
        """Add a record; returns its offset. Raises StorageError when a field does not fit the format; the batch is
        then as it was."""
        subject_size: cython.Py_ssize_t = len(subject)
        block_size: cython.Py_ssize_t = len(header_block)
        payload_size: cython.Py_ssize_t = len(payload)
        size: cython.Py_ssize_t = self.size + _RECORD_HEAD_SIZE + subject_size + block_size + payload_size
        if subject_size > _MAX_SUBJECT:
            raise StorageError("subject too long to store", value=subject_size, limit=MAX_SUBJECT)
        if size > _MAX_BODY:
            raise StorageError("batch too large to store", value=size, limit=MAX_BODY)
        delta: cython.longlong = self.record_count
        offset: cython.longlong = self.base_offset + delta
        self._pieces.append(_record_head(timestamp_ns, offset, subject_size, block_size, payload_size))
        self._pieces.append(subject)
        if block_size:
            self._pieces.append(header_block)
        if payload_size:
            self._pieces.append(payload)
        if delta == 0:
            self.first_timestamp_ns = timestamp_ns
        self.last_timestamp_ns = timestamp_ns
        self.record_count = delta + 1
        self.size = size
        return offset

    def _sealed_body(self, identity: bytes) -> bytes:
        """The records back to back, each with its tag and its CRC, which need the identity."""
        pieces: list[bytes] = self._pieces
        if cython.compiled:
            body: bytes = b"".join(pieces)  # new, so nothing else refers to it
            data: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(body))
            offset: cython.longlong = self.base_offset
            seed: cython.uint = record_seed(identity, offset >> 32)
            tag: cython.uint = record_tag(identity)
            crc: cython.uint
            at: cython.Py_ssize_t = 0
            piece: cython.Py_ssize_t = 0
            while at < self.size:
                data[at + _RECORD_TAG_AT] = tag & 0xFF
                data[at + _RECORD_TAG_AT + 1] = tag >> 8
                subject_size: cython.Py_ssize_t = data[at + _RECORD_TAG_AT - 2] | (data[at + _RECORD_TAG_AT - 1] << 8)
                block_size: cython.Py_ssize_t = _number_at(data, at + _RECORD_SIZES_AT)
                payload_size: cython.Py_ssize_t = _number_at(data, at + _RECORD_SIZES_AT + 4)
                size: cython.Py_ssize_t = _RECORD_HEAD_SIZE + subject_size + block_size + payload_size
                piece += 3 if block_size else 2
                if payload_size > _SHORT:
                    before: cython.Py_ssize_t = size - payload_size - _RECORD_CRC_SIZE
                    crc = extend_crc(extend_short(seed, data + at + _RECORD_CRC_SIZE, before), pieces[piece])
                else:
                    crc = extend_short(seed, data + at + _RECORD_CRC_SIZE, size - _RECORD_CRC_SIZE)
                piece += 1 if payload_size else 0
                data[at] = crc & 0xFF
                data[at + 1] = (crc >> 8) & 0xFF
                data[at + 2] = (crc >> 16) & 0xFF
                data[at + 3] = crc >> 24
                at += size
                offset += 1
                if offset & _LOW_HALF == 0:
                    seed = record_seed(identity, offset >> 32)
            return body
        return b"".join(self._sealed_pieces(identity))

    def _sealed_pieces(self, identity: bytes) -> list[bytes]:
        """As `_sealed_body`, not joined: interpreted, and for large records."""
        tag, offset, at = record_tag(identity), self.base_offset, 0
        sealed: list[bytes] = []
        while at < len(self._pieces):
            _, timestamp, low, subject_size, _, block_size, payload_size = RECORD_HEAD.unpack(self._pieces[at])
            head = RECORD_HEAD.pack(0, timestamp, low, subject_size, tag, block_size, payload_size)[RECORD_CRC_SIZE:]
            following = at + 2 + (block_size > 0) + (payload_size > 0)
            parts = [head, *self._pieces[at + 1 : following]]
            sealed += (HEADER_CRC.pack(_crc_of(record_seed(identity, offset >> 32), parts)), *parts)
            at, offset = following, offset + 1
        return sealed

    def encode(self, identity: bytes) -> tuple[BatchHeader, bytes, bytes]:
        """The batch as (header, header bytes, body bytes); the two pieces are written one after the other."""
        header, head, pieces = self.encode_apart(identity)
        return header, head, b"".join(pieces)

    def encode_apart(self, identity: bytes) -> tuple[BatchHeader, bytes, list[bytes]]:
        """As `encode`, with the body in pieces where its records are large."""
        if self.size >= _APART * self.record_count:
            pieces = self._sealed_pieces(identity)
        else:
            pieces = [self._sealed_body(identity)]
        header = BatchHeader(  # by position: by name it takes twice as long, once for every publish that is alone
            DIALECT_NATS,
            0,
            self.record_count,
            self.record_count,
            self.size,
            self.base_offset,
            self.first_timestamp_ns,
            self.last_timestamp_ns,
            _crc_of(0, pieces),
        )
        return header, encode_batch_header(header, identity), pieces


class RecordCursor:
    """Walks the records of a checked NATS-dialect body where they lie; copies only the fields that are read.

        cursor = RecordCursor(body, 0, len(body), header.base_offset, header.version)
        while cursor.advance():
            if wanted(cursor.subject()):
                use(cursor.offset, cursor.payload())

    `base_offset` and `version` are those of the batch. The indices (`start` .. `end`) point into `buffer`.
    """

    buffer: bytes
    base_offset: int
    offset: int
    timestamp_ns: int
    start: int
    subject_at: int
    header_block_at: int
    payload_at: int
    end: int
    limit: int
    _head_size: int
    _low_base: int

    def __init__(
        self,
        buffer: bytes,
        start: cython.Py_ssize_t,
        limit: cython.Py_ssize_t,
        base_offset: cython.longlong,
        version: cython.int = 2,
    ) -> None:
        if start < 0 or limit > len(buffer):
            raise ValueError(f"no records [{start}, {limit}) in a buffer of {len(buffer)}")
        self.buffer = buffer
        self.base_offset = base_offset
        self.offset = base_offset - 1
        self.timestamp_ns = 0
        self.start = self.subject_at = self.header_block_at = self.payload_at = start
        self.end = start
        self.limit = limit
        self._head_size = _RECORD_HEAD_SIZE if version > 1 else _RECORD_HEAD_SIZE - _RECORD_CRC_SIZE
        self._low_base = base_offset & _LOW_HALF if version > 1 else 0

    def advance(self) -> cython.bint:
        """Step to the next record; False at the end. Raises CorruptLog when the sizes do not add up (a body that passed
        its CRC was written so: a fault of the writer, not of the disk)."""
        at: cython.Py_ssize_t = self.end
        if at == self.limit:
            return False
        start: cython.Py_ssize_t = at + self._head_size
        timestamp: cython.longlong
        delta: cython.longlong
        subject_size: cython.Py_ssize_t
        block_size: cython.Py_ssize_t
        payload_size: cython.Py_ssize_t
        if start > self.limit:
            raise self._broken("a record head")
        if cython.compiled:
            data: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(self.buffer))
            high: cython.ulonglong = _number_at(data, start - 20)
            timestamp = cython.cast(cython.longlong, _number_at(data, start - 24) | (high << 32))
            delta = _number_at(data, start - 16)
            subject_size = data[start - 12] | (data[start - 11] << 8)
            block_size = _number_at(data, start - 8)
            payload_size = _number_at(data, start - 4)
        else:
            timestamp, delta, subject_size, _, block_size, payload_size = _RECORD_REST_V1.unpack_from(
                self.buffer, start - _RECORD_REST_V1.size
            )
        self.start = at
        self.timestamp_ns = timestamp
        self.offset = self.base_offset + ((delta - self._low_base) & _LOW_HALF)
        self.subject_at = start
        self.header_block_at = start + subject_size
        self.payload_at = self.header_block_at + block_size
        self.end = self.payload_at + payload_size
        if self.end > self.limit:
            raise self._broken("a record")
        return True

    def advance_to(self, subject: bytes) -> cython.bint:
        """As `advance`, past the records with other subjects, of which only the sizes and the subject are looked at."""
        if cython.compiled:
            data: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(self.buffer))
            wanted: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(subject))
            wanted_size: cython.Py_ssize_t = len(subject)
            at: cython.Py_ssize_t = self.end
            start: cython.Py_ssize_t = at + self._head_size
            size: cython.Py_ssize_t
            while start <= self.limit:
                size = data[start - 12] | (data[start - 11] << 8)
                if size == wanted_size and start + size <= self.limit:
                    while size > 0 and data[start + size - 1] == wanted[size - 1]:  # subjects differ at their ends
                        size -= 1
                    if size == 0:
                        break
                    size = wanted_size
                at = start + size + _number_at(data, start - 8) + _number_at(data, start - 4)
                start = at + self._head_size
            self.end = at
            return self.advance()
        while self.advance():
            if self.subject() == subject:
                return True
        return False

    def subject(self) -> bytes:
        return _slice(self.buffer, self.subject_at, self.header_block_at)

    def header_block(self) -> bytes:
        return _slice(self.buffer, self.header_block_at, self.payload_at)

    def payload(self) -> bytes:
        return _slice(self.buffer, self.payload_at, self.end)

    def record(self) -> StoredRecord:
        """The record under the cursor, copied out."""
        if cython.compiled:  # no arguments: making them as Python objects would cost more than the copies
            made: StoredRecord = StoredRecord.__new__(StoredRecord)
            made.offset = self.offset
            made.timestamp_ns = self.timestamp_ns
            made.subject = self.subject()
            made.header_block = self.header_block()
            made.payload = self.payload()
            return made
        return StoredRecord(self.offset, self.timestamp_ns, self.subject(), self.header_block(), self.payload())

    def _broken(self, what: str) -> CorruptLog:
        return CorruptLog(
            f"{what} after offset {self.offset} reaches past the end of its batch",
            value=(self.base_offset, self.offset + 1),
            limit=self.limit,
        )


def read_records(
    body: bytes,
    base_offset: cython.longlong,
    from_offset: cython.longlong,
    max_records: cython.Py_ssize_t,
    max_bytes: cython.Py_ssize_t,
    into: list[StoredRecord],
    wanted: Callable[[bytes], bool] | None = None,
    version: cython.int = 2,
) -> cython.Py_ssize_t:
    """Append the records of a checked body from `from_offset` on to `into`, of those subjects that are `wanted` (None:
    all), until `max_records` or `max_bytes` (subject, header block and payload together) would be passed; the first record
    of an empty `into` is always taken. Returns the bytes taken, or -1 - bytes when a limit stopped it."""
    cursor = RecordCursor(body, 0, len(body), base_offset, version)
    taken: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = len(into)
    while cursor.advance():
        if cursor.offset < from_offset or (wanted is not None and not wanted(cursor.subject())):
            continue
        size: cython.Py_ssize_t = cursor.end - cursor.subject_at
        if count >= max_records or (count and taken + size > max_bytes):
            return -1 - taken
        into.append(cursor.record())
        count += 1
        taken += size
    return taken


def take_run(cursor: RecordCursor, until: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Step from the record under the cursor over those behind it, to the first that ends at byte `until` of the buffer or
    beyond; returns how many records that are, the first and the last among them."""
    count: cython.Py_ssize_t = 1
    while cursor.end < until and cursor.advance():
        count += 1
    return count


def _slice(buffer: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bytes:
    """`buffer[start:end]`, compiled without a slice object. Bounds are the caller's duty."""
    if cython.compiled:
        made: bytes = PyBytes_FromStringAndSize(PyBytes_AS_STRING(buffer) + start, end - start)
        return made
    return buffer[start:end]


def _number_at(data: cython.p_uchar, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """As `_u32`, by a pointer."""
    low: cython.Py_ssize_t = data[at] | (data[at + 1] << 8) | (data[at + 2] << 16)
    high: cython.Py_ssize_t = data[at + 3]
    return low | (high << 24)


def _u32(buffer: bytes, at: cython.Py_ssize_t) -> cython.ulonglong:
    """Little-endian u32 at `at`; bounds are the caller's duty. Only compiled code calls it."""
    low: cython.ulonglong = buffer[at]
    second: cython.ulonglong = buffer[at + 1]
    third: cython.ulonglong = buffer[at + 2]
    high: cython.ulonglong = buffer[at + 3]
    return low | (second << 8) | (third << 16) | (high << 24)


def _put(buffer: bytes, at: cython.Py_ssize_t, piece: bytes) -> cython.Py_ssize_t:
    """Copy `piece` into a new buffer that nothing else refers to; returns where it ends. The caller checks the bounds.
    Only compiled code calls it."""
    if cython.compiled:
        into: cython.p_char = PyBytes_AS_STRING(buffer)
        source: cython.p_char = PyBytes_AS_STRING(piece)
        place: cython.Py_ssize_t
        for place in range(len(piece)):
            into[at + place] = source[place]
    return at + len(piece)


def _put_number(
    buffer: bytes, at: cython.Py_ssize_t, size: cython.Py_ssize_t, number: cython.longlong
) -> cython.Py_ssize_t:
    """As `_put`, for the little-endian number of `size` bytes."""
    if cython.compiled:
        into: cython.p_char = PyBytes_AS_STRING(buffer)
        place: cython.Py_ssize_t
        for place in range(size):
            into[at + place] = cython.cast(cython.char, number & 0xFF)
            number >>= 8
    return at + size


def _record_head(
    timestamp_ns: cython.longlong,
    offset: cython.longlong,
    subject_size: cython.Py_ssize_t,
    block_size: cython.Py_ssize_t,
    payload_size: cython.Py_ssize_t,
) -> bytes:
    """The head of a record, without its tag and CRC."""
    if cython.compiled:  # once for every record
        made: bytes = PyBytes_FromStringAndSize(PyBytes_AS_STRING(_ZEROS), _RECORD_HEAD_SIZE)
        at: cython.Py_ssize_t = _put_number(made, _RECORD_CRC_SIZE, 8, timestamp_ns)
        at = _put_number(made, at, 4, offset)
        _put_number(made, at, 2, subject_size)
        at = _put_number(made, _RECORD_SIZES_AT, 4, block_size)
        _put_number(made, at, 4, payload_size)
        return made
    return RECORD_HEAD.pack(0, timestamp_ns, offset & LOW_HALF, subject_size, 0, block_size, payload_size)


def record_seed(identity: bytes, high_half: cython.longlong) -> cython.uint:
    """What the CRC of a record starts from, with the upper 32 bits of its offset: so the CRC does not match for bytes of
    another log, of another offset, or in a published payload."""
    if cython.compiled:
        number: bytes = PyBytes_FromStringAndSize(PyBytes_AS_STRING(_ZEROS), 4)
        _put_number(number, 0, 4, high_half)
        return extend_crc(extend_crc(0, identity), number)
    return extend_crc(0, identity + HEADER_CRC.pack(high_half))


def record_tag(identity: bytes) -> cython.uint:
    """The tag of a log's records: what a scan looks for. Neither of its bytes is zero, of which files have many."""
    return (extend_crc(0, identity) >> 16) | 0x0101


def encode_batch_header(header: BatchHeader, identity: bytes) -> bytes:
    """The 64 bytes before a body."""
    if cython.compiled:  # once for every publish that is alone
        made: bytes = PyBytes_FromStringAndSize(PyBytes_AS_STRING(_ZEROS), _BATCH_HEADER_SIZE)
        crc_at: cython.Py_ssize_t = _put(made, _put(made, 0, BATCH_MAGIC), identity)
        rest_at: cython.Py_ssize_t = crc_at + _CRC_SIZE
        at: cython.Py_ssize_t = _put_number(made, rest_at, 1, header.version)
        at = _put_number(made, at, 1, header.dialect)
        at = _put_number(made, at, 2, header.flags)
        at = _put_number(made, at, 4, header.record_count)
        at = _put_number(made, at, 4, header.offset_span)
        at = _put_number(made, at, 4, header.body_size)
        at = _put_number(made, at, 8, header.base_offset)
        at = _put_number(made, at, 8, header.first_timestamp_ns)
        at = _put_number(made, at, 8, header.last_timestamp_ns)
        _put_number(made, at, 4, header.body_crc)
        _put_number(made, crc_at, _CRC_SIZE, extend_crc(0, _slice(made, rest_at, _BATCH_HEADER_SIZE)))
        return made
    rest: bytes = HEADER_REST.pack(header.version, *header.fields(), 0)
    return BATCH_MAGIC + identity + HEADER_CRC.pack(crc32c(rest)) + rest


def batch_marker(identity: bytes) -> bytes:
    """The bytes that every batch of this log starts with."""
    return MARKER.pack(BATCH_MAGIC, identity)


def decode_batch_header(buffer: bytes, at: int, identity: bytes) -> BatchHeader | None:
    """The batch header at `buffer[at:]`; None when there is no header, one of another log, or a damaged one. Raises
    CorruptLog when the header is intact but has a version or dialect that this program does not know: recovery must not
    cut such data.
    """
    rest_at = at + HEADER_REST_AT
    if at + BATCH_HEADER_SIZE > len(buffer) or not buffer.startswith(MARKER.pack(BATCH_MAGIC, identity), at):
        return None
    (crc,) = HEADER_CRC.unpack_from(buffer, at + MARKER_SIZE)
    if crc32c(buffer[rest_at : at + BATCH_HEADER_SIZE]) != crc:
        return None
    version, dialect, flags, count, span, size, base, first, last, body_crc, _ = HEADER_REST.unpack_from(
        buffer, rest_at
    )
    known = OLDEST_VERSION <= version <= VERSION and dialect in (DIALECT_NATS, DIALECT_IGGY, DIALECT_TOMBSTONES)
    if (
        not known
        or flags & ~FLAG_COMPRESSED
        or (flags and (version == OLDEST_VERSION or dialect == DIALECT_TOMBSTONES))
    ):
        raise CorruptLog(
            f"batch at offset {base} has format version {version}, dialect {dialect}, flags {flags:#x}",
            value=(base, base + span),
            limit=(VERSION, DIALECT_NATS, 0),
            hint="it was written by a newer Headwater; open the log with that, or upgrade",
        )
    in_order = span == 0 if dialect == DIALECT_TOMBSTONES else 0 < count <= span
    if not in_order or base + span > MAX_OFFSET:
        return None
    return BatchHeader(dialect, flags, count, span, size, base, first, last, body_crc, version)


def body_is_intact(header: BatchHeader, body: bytes) -> bool:
    """Whether the CRC in the header is that of this body."""
    return len(body) == header.body_size and crc32c(body) == header.body_crc
