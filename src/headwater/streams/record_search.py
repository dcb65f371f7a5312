# cython: boundscheck=True, wraparound=True
"""One record of a large batch, read without the rest of it.

    batch header │ record │ record │ … │ record │ … │ record        offsets ascend, and sizes are mostly alike
                 low ─────────── guess ┘ wanted                high

A publisher that is fast fills batches of 100 KiB and more. To check such a batch as a whole for one message costs several
times what the message does, so where the record begins is guessed from the offsets and positions known at both ends. Where
it is not there, the first record near the guess is found by its tag and an offset between those of both ends, and from there
the sizes lead on. A guess that was off narrows the ends, and a few of them always do.

Nothing is returned but a record whose own CRC holds, and whose offset is the given one: what leads astray on the way, such
as a copy of the log in a payload, ends in None, and the caller reads the batch. Pure, but for what it
reads.
"""

import struct
from typing import Protocol

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.headwater.compression.checksum import _SHORT, extend_short
    from cython.cimports.headwater.durable_files.files import OsFile
    from cython.cimports.headwater.streams.log_format import BatchHeader, StoredRecord, _slice, _u32
else:
    from headwater.durable_files.files import OsFile
    from headwater.streams.log_format import BatchHeader, StoredRecord

from headwater.compression.checksum import extend_crc
from headwater.streams.log_format import (
    BATCH_HEADER_SIZE,
    DIALECT_NATS,
    LOW_HALF,
    OLDEST_VERSION,
    RECORD_CRC_SIZE,
    RECORD_HEAD,
    RECORD_HEAD_SIZE,
    RECORD_TAG_AT,
    record_seed,
    record_tag,
)

# Bytes at once, or _RECORDS of the usual size of these, if that is more. Of a record that was not read for long no cache has
# a byte: 4,096 took 1.04 us where 1,024 take 0.78.
READ = 1024
_READ: cython.longlong = READ
_RECORDS: cython.double = 4
# Where reading begins, before the guess: as many bytes, or records if that is more. Sizes that are only mostly alike then
# need no second read.
_BYTES_BEFORE: cython.longlong = 256
_RECORDS_BEFORE: cython.double = 1.5
MOST_READS = 8
_TAG = struct.Struct("<H")
_LOW_HALF: cython.longlong = LOW_HALF  # a literal of this size would be a Python object
# In a record's head (log_format.py):
_HEAD_SIZE: cython.Py_ssize_t = RECORD_HEAD_SIZE
_CRC_SIZE: cython.Py_ssize_t = RECORD_CRC_SIZE
_TAG_AT: cython.Py_ssize_t = RECORD_TAG_AT
_OFFSET_AT: cython.Py_ssize_t = struct.calcsize("<Iq")
_SUBJECT_SIZE_AT: cython.Py_ssize_t = struct.calcsize("<IqI")
_BLOCK_SIZE_AT: cython.Py_ssize_t = struct.calcsize("<IqIHH")


class Readable(Protocol):
    def pread(self, size: int, position: int) -> bytes:
        """As `File.pread`."""


def can_search(header: BatchHeader) -> cython.bint:
    """Whether the records of this batch tell by themselves where they are: those of the NATS dialect, not compressed."""
    return header.dialect == DIALECT_NATS and header.version > OLDEST_VERSION and header.flags == 0


def find_record(
    file: Readable, position: cython.longlong, header: BatchHeader, identity: bytes, offset: cython.longlong
) -> StoredRecord | None:
    """The record with this offset in the batch at `position` of a file; None where this way does not find it. Raises
    OSError."""
    low: cython.longlong = position + BATCH_HEADER_SIZE  # where a record begins, unless something led astray
    limit: cython.longlong = low + header.body_size
    high: cython.longlong = limit
    low_offset: cython.longlong = header.base_offset  # at most that of the record there
    high_offset: cython.longlong = header.end_offset
    guess: cython.longlong
    start: cython.longlong
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    first: cython.Py_ssize_t
    found: cython.longlong
    record: StoredRecord | None = _guessed(file, low, limit, header, identity, offset)
    if record is not None:
        return record
    _read: cython.int
    for _read in range(MOST_READS):
        if low + _HEAD_SIZE > high or not low_offset <= offset < high_offset:
            return None
        mean: cython.double = cython.cast(cython.double, high - low) / (high_offset - low_offset)
        guess = low + cython.cast(cython.longlong, (offset - low_offset) * mean + 0.5)
        before: cython.longlong = cython.cast(cython.longlong, _RECORDS_BEFORE * mean)
        start = guess - (before if before > _BYTES_BEFORE else _BYTES_BEFORE)
        start = start if start > low else low
        size: cython.longlong = cython.cast(cython.longlong, _RECORDS * mean)
        size = size if size > _READ else _READ
        data: bytes = _fetch(file, size if size < high - start else high - start, start)
        at = guess - start
        if at + _HEAD_SIZE <= len(data) and _offset(data, at, header.base_offset) == offset:
            record = _record(file, data, at, start, limit, identity, offset)
            if record is not None:
                return record
        first = 0 if start == low else _first_between(data, identity, header.base_offset, low_offset, high_offset)
        if first < 0:
            return None
        at = first
        while at + _HEAD_SIZE <= len(data):
            found = _offset(data, at, header.base_offset)
            end = _end(data, at)
            if start + end > limit:
                return None  # a damaged size, of up to 8 GiB
            if found == offset:
                return _record(file, data, at, start, limit, identity, offset)
            if found > offset:
                break
            low, low_offset = start + end, found + 1
            at = end
        else:
            if at == first:
                return None  # the file is shorter than the batch
            continue
        if at > first or start == low:
            return None  # it is not between its neighbours
        high, high_offset = start + at, found
    return None


def _guessed(
    file: Readable,
    low: cython.longlong,
    limit: cython.longlong,
    header: BatchHeader,
    identity: bytes,
    offset: cython.longlong,
) -> StoredRecord | None:
    """The record, if it is where it would be if all had one size. Of a mapped file a second read costs little, and what is
    read less of at first is waited for less."""
    if cython.compiled and isinstance(file, OsFile) and header.base_offset <= offset < header.end_offset:
        usual: OsFile = file
        if usual.is_mapped():
            mean: cython.double = cython.cast(cython.double, limit - low) / header.offset_span
            guess: cython.longlong = low + cython.cast(cython.longlong, (offset - header.base_offset) * mean + 0.5)
            size: cython.longlong = cython.cast(cython.longlong, mean) + _HEAD_SIZE
            data: bytes = usual.look(size if size < limit - guess else limit - guess, guess)
            if len(data) >= _HEAD_SIZE and _offset(data, 0, header.base_offset) == offset:
                return _record(file, data, 0, guess, limit, identity, offset)
    return None


def _fetch(file: Readable, size: cython.longlong, position: cython.longlong) -> bytes:
    if cython.compiled and isinstance(file, OsFile):
        usual: OsFile = file
        return usual.look(size, position)
    return file.pread(size, position)


def _first_between(
    data: bytes,
    identity: bytes,
    base_offset: cython.longlong,
    low_offset: cython.longlong,
    high_offset: cython.longlong,
) -> cython.Py_ssize_t:
    """Where the first record seems to begin whose offset is in `[low_offset, high_offset)`, or -1."""
    tag = _TAG.pack(record_tag(identity))
    at: cython.Py_ssize_t = data.find(tag, _TAG_AT)
    while at >= 0 and at - _TAG_AT + _HEAD_SIZE <= len(data):
        if low_offset <= _offset(data, at - _TAG_AT, base_offset) < high_offset:
            return at - _TAG_AT
        at = data.find(tag, at + 1)
    return -1


def _offset(data: bytes, at: cython.Py_ssize_t, base_offset: cython.longlong) -> cython.longlong:
    """That of the record whose head begins here, unchecked."""
    half: cython.longlong = _LOW_HALF
    if cython.compiled:
        return base_offset + ((cython.cast(cython.longlong, _u32(data, at + _OFFSET_AT)) - base_offset) & half)
    low_half: int = RECORD_HEAD.unpack_from(data, at)[2]
    return base_offset + ((low_half - base_offset) & half)


def _end(data: bytes, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where it ends, unchecked."""
    if cython.compiled:
        subject: cython.Py_ssize_t = _u32(data, at + _SUBJECT_SIZE_AT) & 0xFFFF
        block: cython.Py_ssize_t = _u32(data, at + _BLOCK_SIZE_AT)
        payload: cython.Py_ssize_t = _u32(data, at + _BLOCK_SIZE_AT + 4)
        return at + _HEAD_SIZE + subject + block + payload
    sizes: tuple[int, ...] = RECORD_HEAD.unpack_from(data, at)[3:]
    return at + RECORD_HEAD_SIZE + sizes[0] + sizes[2] + sizes[3]


def _record(
    file: Readable,
    data: bytes,
    at: cython.Py_ssize_t,
    start: cython.longlong,
    limit: cython.longlong,
    identity: bytes,
    offset: cython.longlong,
) -> StoredRecord | None:
    """The record that begins at `data[at]`, `start + at` in the file, and ends before `limit`, if it is intact."""
    end: cython.Py_ssize_t = _end(data, at)
    if start + end > limit:
        return None
    if end > len(data):
        data = _fetch(file, end - at, start + at)
        at, end = 0, end - at
    if end > len(data) or not _is_intact(data, at, end, identity, offset):
        return None
    return _decoded(data, at, offset)


def _is_intact(
    data: bytes, at: cython.Py_ssize_t, end: cython.Py_ssize_t, identity: bytes, offset: cython.longlong
) -> cython.bint:
    """Whether the CRC of the record, which ends at `end`, is that of this offset."""
    seed: cython.uint = record_seed(identity, offset >> 32)
    start: cython.Py_ssize_t = at + _CRC_SIZE
    if cython.compiled and end - start <= _SHORT:
        raw: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(data))
        return extend_short(seed, raw + start, end - start) == _u32(data, at)
    return extend_crc(seed, data[start:end]) == int.from_bytes(data[at:start], "little")


def _decoded(data: bytes, at: cython.Py_ssize_t, offset: cython.longlong) -> StoredRecord:
    """The record that begins at `data[at]`, which is intact."""
    timestamp: cython.longlong
    subject_size: cython.Py_ssize_t
    block_size: cython.Py_ssize_t
    if cython.compiled:
        timestamp = cython.cast(cython.longlong, _u32(data, at + _CRC_SIZE) | (_u32(data, at + _CRC_SIZE + 4) << 32))
        subject_size = _u32(data, at + _SUBJECT_SIZE_AT) & 0xFFFF
        block_size = _u32(data, at + _BLOCK_SIZE_AT)
    else:
        _, timestamp, _, subject_size, _, block_size, _ = RECORD_HEAD.unpack_from(data, at)
    block: cython.Py_ssize_t = at + _HEAD_SIZE + subject_size
    payload: cython.Py_ssize_t = block + block_size
    end: cython.Py_ssize_t = _end(data, at)
    if cython.compiled:
        subject: bytes = _slice(data, block - subject_size, block)
        return StoredRecord(offset, timestamp, subject, _slice(data, block, payload), _slice(data, payload, end))
    return StoredRecord(offset, timestamp, data[block - subject_size : block], data[block:payload], data[payload:end])
