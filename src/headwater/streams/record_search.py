# cython: boundscheck=True, wraparound=True
"""One record of a large batch, or a few that lie together, read without the rest of it.

    batch header │ record │ record │ … │ record │ … │ record        offsets ascend, and sizes are mostly alike
                 low ─────────── guess ┘ wanted                high

A publisher that is fast fills batches of 100 KiB and more. To check such a batch as a whole for one message costs several
times what the message does, so where the record begins is guessed from the offsets and positions known at both ends. Where
it is not there, the first record near the guess is found by its tag and an offset between those of both ends, and from there
the sizes lead on. A guess that was off narrows the ends, and a few of them always do.

Nothing is returned but records whose own CRCs hold, the first with the given offset and each where the one before ends: what
leads astray on the way, such as a copy of the log in a payload, ends in None, and the caller reads the batch. Pure, but for
what it reads.
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
    low: cython.longlong = position + BATCH_HEADER_SIZE
    limit: cython.longlong = low + header.body_size
    record: StoredRecord | None = _guessed(file, low, limit, header, identity, offset)
    if record is not None:
        return record
    found = _searched(file, low, limit, header, identity, offset)
    return found[0] if found is not None else None


def find_records(
    file: Readable,
    position: cython.longlong,
    header: BatchHeader,
    identity: bytes,
    offset: cython.longlong,
    max_records: cython.Py_ssize_t,
    max_bytes: cython.Py_ssize_t,
    at_least_one: cython.bint,
) -> list[StoredRecord]:
    """The record with this offset and those behind it in the same batch, with at most `max_bytes` of subject, header block
    and payload; `at_least_one`: the first whatever its size. [] also where this way does not find that. Raises OSError."""
    records: list[StoredRecord] = []
    low: cython.longlong = position + BATCH_HEADER_SIZE
    limit: cython.longlong = low + header.body_size
    mean: cython.double = cython.cast(cython.double, header.body_size) / header.offset_span
    start: cython.longlong = likely_place(low, header, offset)
    max_records = min(max_records, header.offset_span)
    size: cython.longlong = min(cython.cast(cython.longlong, max_records * mean), max_bytes) + _READ
    data: bytes = _fetch(file, size if size < limit - start else limit - start, start) if start < limit else b""
    at: cython.Py_ssize_t = 0
    seed: cython.uint = record_seed(identity, offset >> 32)
    record: StoredRecord | None = None
    if len(data) >= _HEAD_SIZE and _offset(data, 0, header.base_offset) == offset:
        record = _record(file, data, 0, start, limit, seed, offset)
    if record is None:
        found = _searched(file, low, limit, header, identity, offset)
        if found is None:
            return records
        _, data, at, start = found
    last: cython.longlong = offset - 1
    taken: cython.Py_ssize_t = 0
    while len(records) < max_records and start + at + _HEAD_SIZE <= limit:
        if at + _HEAD_SIZE > len(data) or _end(data, at) > len(data):
            size = cython.cast(cython.longlong, (max_records - len(records)) * mean)
            size = max(0, min(size, max_bytes - taken)) + _READ
            start += at
            data, at = _fetch(file, size if size < limit - start else limit - start, start), 0
            if len(data) < _HEAD_SIZE:
                break
        offset = _offset(data, at, header.base_offset)
        if not last < offset < header.end_offset:
            break
        if offset >> 32 != last >> 32:
            seed = record_seed(identity, offset >> 32)
        record = _record(file, data, at, start, limit, seed, offset)
        if record is None:
            break
        end: cython.Py_ssize_t = _end(data, at)
        taken += end - at - _HEAD_SIZE
        if taken > max_bytes and (records or not at_least_one):
            break
        records.append(record)
        at, last = end, offset
    return records


def _searched(
    file: Readable,
    low: cython.longlong,
    limit: cython.longlong,
    header: BatchHeader,
    identity: bytes,
    offset: cython.longlong,
) -> tuple[StoredRecord, bytes, int, int] | None:
    """The record with this offset in the body at `low` of a file, up to `limit`; bytes in which it begins, where it does so,
    and where they begin in the file."""
    high: cython.longlong = limit
    low_offset: cython.longlong = header.base_offset  # at most that of the record at `low`, unless something led astray
    high_offset: cython.longlong = header.end_offset
    start: cython.longlong
    at: cython.Py_ssize_t
    first: cython.Py_ssize_t
    found: cython.longlong
    seed: cython.uint = record_seed(identity, offset >> 32)
    _read: cython.int
    for _read in range(MOST_READS):
        if low + _HEAD_SIZE > high or not low_offset <= offset < high_offset:
            return None
        mean: cython.double = cython.cast(cython.double, high - low) / (high_offset - low_offset)
        guess: cython.longlong = low + cython.cast(cython.longlong, (offset - low_offset) * mean + 0.5)
        before: cython.longlong = cython.cast(cython.longlong, _RECORDS_BEFORE * mean)
        start = guess - (before if before > _BYTES_BEFORE else _BYTES_BEFORE)
        start = start if start > low else low
        size: cython.longlong = max(cython.cast(cython.longlong, _RECORDS * mean), _READ)
        data: bytes = _fetch(file, size if size < high - start else high - start, start)
        at = guess - start
        if at + _HEAD_SIZE <= len(data) and _offset(data, at, header.base_offset) == offset:
            record: StoredRecord | None = _record(file, data, at, start, limit, seed, offset)
            if record is not None:
                return record, data, at, start
        first = 0 if start == low else _first_between(data, identity, header.base_offset, low_offset, high_offset)
        if first < 0:
            return None
        at = first
        while at + _HEAD_SIZE <= len(data):
            found = _offset(data, at, header.base_offset)
            end: cython.Py_ssize_t = _end(data, at)
            if start + end > limit:
                return None  # a damaged size, of up to 8 GiB
            if found == offset:
                record = _record(file, data, at, start, limit, seed, offset)
                return (record, data, at, start) if record is not None else None
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


def likely_place(low: cython.longlong, header: BatchHeader, offset: cython.longlong) -> cython.longlong:
    """Where the record with this offset would begin in the body at `low` of a file if all of a batch had one size."""
    mean: cython.double = cython.cast(cython.double, header.body_size) / header.offset_span
    before: cython.longlong = cython.cast(cython.longlong, (offset - header.base_offset) * mean + 0.5)
    return low + before


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
            guess: cython.longlong = likely_place(low, header, offset)
            size: cython.longlong = cython.cast(cython.longlong, mean) + _HEAD_SIZE
            data: bytes = usual.look(size if size < limit - guess else limit - guess, guess)
            if len(data) >= _HEAD_SIZE and _offset(data, 0, header.base_offset) == offset:
                return _record(file, data, 0, guess, limit, record_seed(identity, offset >> 32), offset)
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
    seed: cython.uint,
    offset: cython.longlong,
) -> StoredRecord | None:
    """The record that begins at `data[at]`, `start + at` in the file, and ends before `limit`, if it is intact."""
    end: cython.Py_ssize_t = _end(data, at)
    if start + end > limit:
        return None
    if end > len(data):
        data = _fetch(file, end - at, start + at)
        at, end = 0, end - at
    if end > len(data) or not _is_intact(data, at, end, seed):
        return None
    return _decoded(data, at, offset)


def _is_intact(data: bytes, at: cython.Py_ssize_t, end: cython.Py_ssize_t, seed: cython.uint) -> cython.bint:
    """Whether the CRC of the record, which ends at `end`, is that of its offset, of which `seed` is made."""
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
