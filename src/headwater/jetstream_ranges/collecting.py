"""Selects the bytes of a log that answer a request for a range: whole stored batches if possible, otherwise single
records.

    a batch of the NATS dialect, all of it readable     its body as it lies there; a large one unread, as a range of its file
    one with deleted or expired records, one of another
    dialect, one larger than an answer                  the readable records, encoded again

A range of a file is sent unread only for batches that were verified or written by this process; all other bytes are
checked when they are read. Damaged batches are skipped, reported and counted as absent, as for every reader of the log.
"""

from typing import NamedTuple, Protocol

from headwater.columns.range_answer import BATCH_HEAD, encode_records
from headwater.durable_files.files import FileRange
from headwater.streams.log import Log, StoredRecord
from headwater.streams.log_format import DIALECT_NATS, BatchHeader
from headwater.streams.log_format import VERSION as NEWEST_VERSION
from headwater.streams.segment import LARGE_BATCH

MOST_RECORDS = 1 << 16  # records encoded singly in one answer, some 2 us each


class Readable(Protocol):
    """A log as a stream reads it: for a stream that another face writes, the records under its subject."""

    def read(self, offset: int, max_records: int, max_bytes: int) -> list[StoredRecord]: ...


class Collected(NamedTuple):
    """An answer: `pieces` are sent one after the other and hold all records of `[requested, next)` that still exist."""

    pieces: list[bytes | FileRange]
    batches: int
    next: int


class Collecting:
    """One answer: records of `log` from offset `start` to `end`, about `most` bytes; one batch at least, if it has no more
    than `largest` bytes. `shown`: the log as its stream reads it. `ranges`: the transport can send parts of files."""

    def __init__(self, log: Log, shown: Readable, end: int, most: int, largest: int, *, ranges: bool) -> None:
        self._log = log
        self._shown = shown
        self._end = min(end, log.end_offset)
        self._most = most
        self._largest = largest
        self._ranges = ranges
        self._as_stored = shown is log
        self._pieces: list[bytes | FileRange] = []
        self._batches = 0
        self._size = 0
        self._full = False

    def collect(self, start: int) -> Collected:
        """Collect from offset `start`. Raises StorageError when the disk cannot be read."""
        offset = start
        while offset < self._end and not self._full:
            offset = self._next_range(offset) if self._ranges else offset
            if offset < self._end and not self._full:
                offset = self._read_batches(offset)
        return Collected(self._pieces, self._batches, max(start, min(offset, self._end)))

    def _next_range(self, offset: int) -> int:
        """Add the large batches from `offset` on, unread, as many as there are; returns where they end."""
        while offset < self._end and not self._full:
            whole = self._log.range_at(offset)
            if whole is None or not self._may_be_sent(whole.header, len(whole.body)):
                break
            if not self._has_room(len(whole.body)):
                break
            self._add(whole.header.base_offset, whole.header.record_count, whole.header.version, whole.body)
            offset = whole.header.end_offset
        return offset

    def _read_batches(self, offset: int) -> int:
        """Read and add the batches from `offset` on; returns the end. It stops after a large batch, because the next
        may be sent as a range."""
        for batch in self._log.batches(offset, self._most - self._size):
            header = batch.header
            if not header.holds_records:
                continue
            if header.base_offset >= self._end:
                return self._end
            if not self._has_room(len(batch.body)):
                return offset
            if self._may_be_sent(header, len(batch.body)):
                self._add(header.base_offset, header.record_count, header.version, batch.body)
                offset = header.end_offset
            else:
                offset = self._add_records(max(offset, header.base_offset), header.end_offset)
            if self._full or offset < header.end_offset or (self._ranges and len(batch.body) >= LARGE_BATCH):
                return offset
        return self._end

    def _has_room(self, size: int) -> bool:
        """Whether a batch of this size fits; the first one does."""
        if self._batches and self._size + min(size, self._largest) > self._most:
            self._full = True
        return not self._full

    def _may_be_sent(self, header: BatchHeader, size: int) -> bool:
        """Whether this batch can be sent as it is stored."""
        if not self._as_stored or header.dialect != DIALECT_NATS or size > self._largest:
            return False
        return self._log.count(header.base_offset, header.end_offset) == header.record_count

    def _add(self, base_offset: int, count: int, version: int, body: bytes | FileRange) -> None:
        self._pieces += (BATCH_HEAD.pack(base_offset, len(body), count, version), body)
        self._batches += 1
        self._size += len(body)
        self._full = self._size >= self._most

    def _add_records(self, offset: int, end: int) -> int:
        """Add the readable records of `[offset, end)`, as many as one answer takes; returns the end."""
        read = self._shown.read(offset, min(end - offset, MOST_RECORDS), max(self._most - self._size, 1))
        records = [record for record in read if record.offset < end]
        if not records:
            return end
        self._add(records[0].offset, len(records), NEWEST_VERSION, encode_records(records))
        reached = records[-1].offset + 1
        if self._log.count(reached, end):  # stopped by a limit
            self._full = True
            return reached
        return end
