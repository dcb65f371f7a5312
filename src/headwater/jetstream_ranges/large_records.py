# cython: boundscheck=True, wraparound=True
"""Large records of a log, read for delivery one after the other: each by three reads of just its own bytes.

    batch header │ head │ subject │ header block │ payload │ head │ …
                   └1─┘   └────────── 2 ──────┘   └─ 3 ──┘

A walk over batches reads a megabyte, copies the body of each batch out of it, and then the payload out of the body: with
chunks of 128 KiB each copy finds and leaves its bytes outside of the processor's nearest caches. Here the bytes that were
read are the payload.

Nothing is returned but records whose own CRC holds, in the order of their offsets and without a gap, from the given
offset on. The list ends before small, damaged and deleted records, compressed and compacted batches, and batches of
the other dialect: there `LogReader.read_matching` has to tell what follows.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.compression.checksum import extend_crc
    from cython.cimports.headwater.streams.log_format import BatchHeader, StoredRecord
    from cython.cimports.headwater.streams.segment import Segment
else:
    from headwater.compression.checksum import extend_crc
    from headwater.streams.log_format import BatchHeader, StoredRecord
    from headwater.streams.segment import Segment

from headwater.durable_files.files import storage_error
from headwater.streams.log import Log
from headwater.streams.log_format import (
    BATCH_HEADER_SIZE,
    LOW_HALF,
    RECORD_CRC_SIZE,
    RECORD_HEAD,
    RECORD_HEAD_SIZE,
    record_seed,
)
from headwater.streams.log_reader import Wanted
from headwater.streams.record_search import can_search

LEAST = 1 << 15  # bytes of a record: three reads of smaller ones cost more than the copies
_LEAST: cython.longlong = LEAST
_LOW_HALF: cython.longlong = LOW_HALF  # a literal of this size would be a Python object
_HEAD_SIZE: cython.Py_ssize_t = RECORD_HEAD_SIZE
_BATCH_HEADER_SIZE: cython.Py_ssize_t = BATCH_HEADER_SIZE
# Bytes read before they are sent. A client that reads faster than it is sent to sleeps meanwhile, and to wake it costs more
# than the caches of which so many bytes fall out: with 1 << 18 a chunk of an object took 68 us, with 1 << 20 it takes 43.
AT_ONCE = 1 << 20


class LargeRecords:
    """The large records of one log; remembers where the last one ended."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._segment: Segment | None = None
        self._next = -1  # the offset of the record at `_at`
        self._at = 0
        self._limit = 0  # where its batch ends

    def read(self, offset: cython.longlong, wanted: Wanted | None) -> list[StoredRecord]:
        """The records from `offset` on, about AT_ONCE bytes of them, if they are large and of subjects that are `wanted`
        (None: all). Raises StorageError when the disk cannot be read."""
        found: list[StoredRecord] = []
        log, room = self._log, AT_ONCE
        if not isinstance(log, Log):
            return found  # a view, which shows its records under another subject
        chosen = wanted.__eq__ if isinstance(wanted, bytes) else wanted
        try:
            while room > 0 and offset < log.end_offset and not log.is_absent(offset) and self._stands_at(offset):
                record = self._read_one(offset)
                if record is None or (chosen is not None and not chosen(record.subject)):
                    break
                found.append(record)
                room -= len(record.payload)
                offset += 1
        except OSError as error:
            raise storage_error("read a segment", error) from error
        return found

    def _stands_at(self, offset: cython.longlong) -> bool:
        """Go to the record with this offset, if it is in a batch of large ones."""
        if self._next == offset and self._at < self._limit and self._segment is not None and self._segment.is_open:
            return True
        self._next = -1
        segment: Segment = self._log.reader.segment_at(offset)
        place = segment.batch_of(offset)
        if place is None:
            return False
        position: cython.longlong = place[0]
        header: BatchHeader = place[1]
        if header.body_size < _LEAST * header.record_count or header.record_count != header.offset_span:
            return False
        if not can_search(header):
            return False
        self._segment = segment
        self._at = position + _BATCH_HEADER_SIZE
        self._limit = self._at + header.body_size
        self._next = header.base_offset
        while self._next < offset:
            sizes = self._head()
            if sizes is None:
                self._next = -1
                return False
            self._next += 1
            self._at += _HEAD_SIZE + sizes[3] + sizes[5] + sizes[6]
        return True

    def _head(self) -> tuple[int, ...] | None:
        """The fields of the record head here, unchecked but for the offset; None where it cannot be one."""
        head = self._pread(_HEAD_SIZE, self._at) if self._at + _HEAD_SIZE <= self._limit else b""
        if len(head) < _HEAD_SIZE:
            return None
        fields: tuple[int, ...] = RECORD_HEAD.unpack(head)
        return fields if fields[2] == self._next & _LOW_HALF else None

    def _read_one(self, offset: cython.longlong) -> StoredRecord | None:
        """The record here, if it is intact."""
        segment: Segment | None = self._segment
        at: cython.longlong = self._at
        head: bytes = self._pread(_HEAD_SIZE, at) if at + _HEAD_SIZE <= self._limit else b""
        if segment is None or len(head) < _HEAD_SIZE:
            return None
        crc, timestamp, low, subject_size, _, block_size, payload_size = RECORD_HEAD.unpack(head)
        at += _HEAD_SIZE
        end: cython.longlong = at + subject_size + block_size + payload_size
        if end > self._limit or low != offset & _LOW_HALF:
            return None
        names: bytes = self._pread(subject_size + block_size, at)
        payload: bytes = self._pread(payload_size, at + subject_size + block_size)
        seed: cython.uint = record_seed(segment.identity, offset >> 32)
        if extend_crc(extend_crc(seed, head[RECORD_CRC_SIZE:] + names), payload) != crc:
            return None
        self._at = end
        self._next = offset + 1
        return StoredRecord(offset, timestamp, names[:subject_size], names[subject_size:], payload)

    def _pread(self, size: cython.Py_ssize_t, position: cython.longlong) -> bytes:
        segment: Segment | None = self._segment
        return b"" if segment is None else segment.pread(size, position)
