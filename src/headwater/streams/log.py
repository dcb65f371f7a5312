# cython: boundscheck=True, wraparound=True
"""The durable log of one partition: append in batches, read by offset, survive anything that a disk survives.

Appending has two phases, so that one fdatasync serves everybody who waits (group commit):

    loop thread     offset = log.stage(...)          many times; joins the open batch; nobody can read it yet
                    batch = log.seal()               when the worker is free
    worker thread   log.write(batch)                 blocking: one append, one fdatasync
    loop thread     log.publish(batch)               readable from now on; now acknowledge
                    log.abandon(batch)               instead, when write raised; now refuse

Batches are written and published in the order in which they were sealed, each exactly once.

Threads: `write` and `sync` may run in one worker thread at a time (they use `LogWriter` and nothing else); everything
else belongs to the loop thread (the open batch, the readable segments, the recent batches, the offsets). The hand-over
of a `StagedBatch` between the two must go through a queue or a future, which orders their memory. `close` and `delete`
are called when no `write` runs.

Offsets count from 0 and are half-open. `start_offset <= end_offset <= next_offset`: below `end_offset` is readable, and
under sync policy `always` durable; `next_offset` is what `stage` gives out next. An offset that `stage` gave out is not
given out again while the log is open, whatever becomes of it, and an offset that was ever readable never means another
record, through crashes, cuts and lost files (`recovery` says by which means). So offsets have gaps: where a batch was
refused or was lost. Count records with `record_count`, not by subtraction.

Deleting has two phases too. `discard` and `discard_range` take records out of every reader's sight at once; the deletion
itself travels with the next sealed batch, as a tombstone, and is durable when that is. Room on the disk is given back by
upkeep, between two writes: `plan_upkeep` (loop) says what is worth doing, `maintain` (worker) does it, `settle` (loop)
puts it into effect.

What reading finds damaged it skips and adds to `damage`; it never returns a byte whose CRC32C failed. `range_at` reads
nothing: it hands out what was found intact once since the opening, or was written since.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.log_format import BatchHeader
    from cython.cimports.headwater.streams.recent import RecentBatches
    from cython.cimports.headwater.streams.staging import Staging
    from cython.cimports.headwater.streams.writer import LogWriter, PlacedBatch, StagedBatch
else:
    from headwater.streams.log_format import BatchHeader
    from headwater.streams.recent import RecentBatches
    from headwater.streams.staging import Staging
    from headwater.streams.writer import LogWriter, PlacedBatch, StagedBatch

from headwater.errors import StorageError, WriteFailed
from headwater.streams import iggy_records
from headwater.streams.files import Files, storage_error
from headwater.streams.log_format import (
    DIALECT_IGGY,
    MAX_OFFSET,
    RecordCursor,
    StoredRecord,
    read_records,
)
from headwater.streams.offset_set import OffsetSet
from headwater.streams.opening import OpenedLog, delete_directory, open_directory, save_index
from headwater.streams.options import LogOptions
from headwater.streams.recovery import Damage, RecoveryReport, SpoiledBytes
from headwater.streams.segment import RangedBatch, Segment
from headwater.streams.tombstones import Range
from headwater.streams.upkeep import Upkeep, plan_upkeep

__all__ = ["Log", "LogOptions", "Span", "StoredBatch", "StoredRecord", "Upkeep"]

Wanted = Callable[[bytes], bool]  # of a subject

USUAL_RECORD = 1 << 10  # bytes; only sizes reads, so that a reader of few records does not fetch a megabyte
UNFINISHED_BATCHES = 8  # about as many readers may go through old batches in small steps before they cost each other
OPEN_SEGMENTS = 16  # read handles kept per log; a replay touches them one after the other


class StoredBatch(NamedTuple):
    """A checked batch as it was stored: for readers that do not want every record copied out."""

    header: BatchHeader
    body: bytes

    def cursor(self) -> RecordCursor:
        return RecordCursor(self.body, 0, len(self.body), self.header.base_offset)


class Span(NamedTuple):
    """One segment as limits see it: offsets `[start, end)`, bytes, the time stamp of its last record (None: empty)."""

    start: int
    end: int
    size: int
    last_timestamp_ns: int | None


class Log:
    """See the head of this module. Made by `Log.open`."""

    def __init__(self, files: Files, directory: str, options: LogOptions, opened: OpenedLog) -> None:
        self.directory = directory
        self.options = options
        self.recovery: RecoveryReport = opened.report
        self.damage: list[Damage] = list(opened.report.damage)
        self._files = files
        self._lock = opened.lock
        self._segments: list[Segment] = opened.segments
        self._with_handle: list[Segment] = []
        self._end_offset = opened.report.next_offset
        self._absent: OffsetSet = opened.absent
        self._start_offset = min(self._absent.next_outside(opened.state.start_offset), self._end_offset)
        self._records = opened.report.records
        self._deletions: list[Range] = []
        self._first_timestamp: tuple[int, int] | None = None  # (offset, time stamp)
        self.document = opened.document
        self._recent = RecentBatches(options.cache_bytes)
        self.staging = Staging(self._end_offset, options.batch_bytes)
        self._unfinished: list[StoredBatch] = []
        self._closed = False
        self._writer = LogWriter(
            files, directory, options, opened.state, self._segments[-1], self._end_offset, opened.turn
        )

    @classmethod
    def open(cls, files: Files, directory: str, options: LogOptions, now_ns: int, first_offset: int = 0) -> Self:
        """Recover the log in `directory`, or make a new one that starts at `first_offset`; `recovery` says what was
        found. Takes a lock on it.

        After a clean stop the index is read, about a hundredth of the data, and `document` is what `close` was given;
        else every batch is read and checked, about 0.5 GB/s but up to 40 us a batch where batches are tiny, and
        `document` is None. Raises StorageError when somebody else has the log open or the disk fails, CorruptLog when
        it was written by a newer version.
        """
        opened = open_directory(files, directory, now_ns, first_offset)
        try:
            return cls(files, directory, options, opened)
        except OSError as error:
            opened.lock.close()
            raise storage_error(f"open the log {directory}", error) from error

    @property
    def start_offset(self) -> int:
        """Where the log begins; a read below it starts here."""
        return self._start_offset

    @property
    def end_offset(self) -> int:
        """The high watermark: behind the last readable record (or the gap after it)."""
        return self._end_offset

    @property
    def next_offset(self) -> int:
        """The log end offset: what the next staged record gets."""
        return self.staging.end_offset

    @property
    def record_count(self) -> int:
        """Readable records; less than `end_offset - start_offset` where there are gaps."""
        return self._records

    @property
    def absent_count(self) -> int:
        """Offsets from `start_offset` to `end_offset` that hold no record: deleted, refused, or lost."""
        return self._end_offset - self._start_offset - self._records

    def is_absent(self, offset: int) -> bool:
        """Whether no readable record has this offset: it is below `start_offset`, deleted, refused, or lost."""
        return offset < self._start_offset or offset in self._absent

    def count(self, start: int, end: int) -> int:
        """Readable records in `[start, end)`."""
        start, end = max(start, self._start_offset), min(end, self._end_offset)
        return end - start - self._absent.count(start, end) if start < end else 0

    @property
    def size_bytes(self) -> int:
        """Published bytes in all segments, head pages included."""
        return sum(segment.end_position for segment in self._segments)

    @property
    def spans(self) -> list[Span]:
        """The segments, oldest first; the last one is still written to."""
        return [
            Span(segment.base_offset, segment.end_offset, segment.end_position, segment.last_timestamp_ns)
            for segment in self._segments
        ]

    @property
    def first_timestamp_ns(self) -> int | None:
        """Of the oldest readable record; None in an empty log. Raises StorageError when the disk cannot be read."""
        if not self._records:
            return None
        if self._first_timestamp is None or self._first_timestamp[0] != self._start_offset:
            records = self.read(self._start_offset, 1, 1)
            if not records:
                return None
            self._first_timestamp = (self._start_offset, records[0].timestamp_ns)
        return self._first_timestamp[1]

    @property
    def last_timestamp_ns(self) -> int | None:
        """Of the record that was stored last, deleted or not, as long as its segment is there; None when there is none."""
        segments = reversed(self._segments)
        return next((found for segment in segments if (found := segment.last_timestamp_ns) is not None), None)

    @property
    def failure(self) -> WriteFailed | None:
        """Why the log is read-only; None while it is not."""
        return self._writer.failure

    def stage(self, subject: bytes, header_block: bytes, payload: bytes, timestamp_ns: int) -> int:
        """Add a record to the open batch; returns its offset. Raises WriteFailed when the log is read-only,
        StorageError when the record does not fit the format."""
        if self._writer.failure is not None:
            raise self._writer.failure
        return self.staging.stage(subject, header_block, payload, timestamp_ns)

    def stage_iggy(self, body: bytes, count: int, timestamp_ns: int) -> int:
        """As `stage`, for a batch of Iggy's with `count` messages, stamped with `next_offset`; returns that offset."""
        if self._writer.failure is not None:
            raise self._writer.failure
        return self.staging.stage_iggy(body, count, timestamp_ns)

    def discard(self, offset: int) -> bool:
        """Take one readable record away, at once and for all readers; durable with the next batch that is written.
        False when there is none at this offset. Raises WriteFailed when the log is read-only."""
        return self.discard_range(offset, offset + 1) == 1

    def discard_range(self, start: int, end: int) -> int:
        """As `discard`, for all readable records in `[start, end)`; returns how many there were."""
        if self._writer.failure is not None:
            raise self._writer.failure
        start, end = max(start, self._start_offset), min(end, self._end_offset)
        if start >= end or not self._absent_from_now(start, end):
            return 0
        gone = 0
        at = max(0, bisect_right(self._segments, start, key=lambda segment: segment.base_offset) - 1)
        for segment in self._segments[at:]:
            if segment.base_offset >= end:
                break
            low, high = max(start, segment.base_offset), min(end, segment.end_offset)
            if low < high:
                new = self._absent.add(low, high)
                segment.dead += new
                gone += new
        self._records -= gone
        if self._deletions and self._deletions[-1][1] == start:
            self._deletions[-1] = (self._deletions[-1][0], end)
        else:
            self._deletions.append((start, end))
        if start <= self._start_offset:
            self._start_offset = min(self._absent.next_outside(self._start_offset), self._end_offset)
            self._absent.discard_below(self._start_offset)
        return gone

    def _absent_from_now(self, start: int, end: int) -> bool:
        """Whether anything is there to delete."""
        return self._absent.count(start, end) < end - start

    @property
    def has_deletions(self) -> bool:
        """Whether there are deletions that `seal` has not taken yet."""
        return bool(self._deletions)

    @property
    def staged_bytes(self) -> int:
        """Bytes that wait for `seal`: what a caller bounds when the disk is slower than the publishers."""
        return self.staging.size

    def seal(self) -> StagedBatch | None:
        """Everything staged and deleted since the last seal, as one unit of writing and acknowledging; None when nothing
        was."""
        builders, deletions = self.staging.seal(), self._deletions
        if not builders and not deletions:
            return None
        end = self.staging.end_offset
        self._deletions = []
        return StagedBatch(builders, builders[0].base_offset if builders else end, end, deletions)

    def write(self, batch: StagedBatch) -> None:
        """Blocking; the worker thread's. When it returns, the batch is on disk, and durable as the sync policy has it.

        Raises DiskFull: nothing of the batch is in the log, and the log stays usable. Raises WriteFailed: the log is
        read-only until it is opened again; whether the batch will be found then is unknown, as after a crash.
        """
        self._writer.write(batch)

    def sync(self) -> None:
        """Blocking; the worker thread's. Make durable what the policies `interval` and `never` left to later."""
        self._writer.sync()

    def publish(self, batch: StagedBatch) -> None:
        """Make a written batch readable. Batches are published in the order they were written."""
        if not batch.placed or batch.base_offset < self._end_offset:
            raise StorageError(
                "only a written batch can be published, once, after those before it",
                value=(batch.base_offset, batch.end_offset),
                limit=self._end_offset,
            )
        placed: PlacedBatch
        for placed in batch.placed:
            header: BatchHeader = placed.header
            if placed.segment is not self._segments[-1]:
                self._segments.append(placed.segment)
            placed.segment.publish(placed.position, header)
            if header.holds_records:
                self._recent.add(header, placed.body)
                self._records += header.record_count
        if batch.base_offset > self._end_offset:
            self._absent.add(self._end_offset, batch.base_offset)
            if self._start_offset == self._end_offset:
                self._start_offset = batch.base_offset
        self._end_offset = batch.end_offset
        batch.placed.clear()

    def abandon(self, batch: StagedBatch) -> None:
        """Give up a batch that `write` refused. Its offsets stay unused; the records were never readable."""
        if batch.placed:
            raise StorageError("a written batch is in the log: publish it", value=(batch.base_offset, batch.end_offset))
        batch.builders.clear()
        self.staging.failure = self._writer.failure
        self._deletions = batch.deletions + self._deletions

    def plan_upkeep(self, erase: int | None = None) -> Upkeep | None:
        """What would give room back now; None when nothing is worth doing. `erase`: an offset whose deleted record is to
        leave the disk, worth it or not. Between a plan and its `settle` no batch may be written."""
        if self._writer.failure is not None:
            return None
        return plan_upkeep(self._segments, self._start_offset, self._end_offset, self._absent, erase)

    def maintain(self, upkeep: Upkeep) -> None:
        """Blocking; the worker thread's, as `write`. Raises DiskFull or WriteFailed; the log is then as it was, or
        read-only."""
        self._writer.maintain(upkeep)

    def settle(self, upkeep: Upkeep) -> None:
        """The loop thread, after `maintain`: from now on readers use what it made. Raises StorageError."""
        if upkeep.opened is not None and upkeep.opened is not self._segments[-1]:
            self._segments.append(upkeep.opened)
        for segment in upkeep.dropped:
            self._segments.remove(segment)
            if segment in self._with_handle:
                self._with_handle.remove(segment)
            segment.release()
        try:
            upkeep.put_in_place(self._files)
        except OSError as error:
            raise storage_error("put a compacted segment in place", error) from error
        self._unfinished = []

    def read(self, offset: int, max_records: int, max_bytes: int) -> list[StoredRecord]:
        """The records from `offset` on, in order, at most `max_records` with at most `max_bytes` of subject, header
        block and payload; but at least one when there is one. Raises StorageError when the disk cannot be read."""
        return self.read_matching(offset, None, max_records, max_bytes, MAX_OFFSET)[0]

    def read_matching(
        self, offset: int, wanted: Wanted | None, max_records: int, max_bytes: int, max_passed: int
    ) -> tuple[list[StoredRecord], int]:
        """As `read`, of those records only whose subjects are `wanted` (None: all); and the offset to go on from. It gives
        up at the end of the batch with which it has passed over `max_passed` offsets."""
        records: list[StoredRecord] = []
        offset = max(offset, self._start_offset)
        if max_records <= 0:
            return records, offset
        last = offset + max_passed
        for batch in self.batches(offset, min(max_bytes, max_records * USUAL_RECORD)):
            base_offset, end_offset = batch.header.base_offset, batch.header.end_offset
            if batch.header.dialect == DIALECT_IGGY:
                taken = self._read_iggy(batch, offset, max_records, max_bytes, records, wanted)
            elif self._absent.touches(max(base_offset, offset), end_offset):
                taken = self._read_present(batch, offset, max_records, max_bytes, records, wanted)
            else:
                taken = read_records(batch.body, base_offset, offset, max_records, max_bytes, records, wanted)
            max_bytes -= taken
            if records and (taken < 0 or max_bytes <= 0 or len(records) >= max_records):
                self._remember_unfinished(batch)
                return records, records[len(records) - 1].offset + 1
            if end_offset >= last:
                return records, end_offset
        return records, self._end_offset

    def _read_present(
        self,
        batch: StoredBatch,
        offset: int,
        max_records: int,
        max_bytes: int,
        into: list[StoredRecord],
        wanted: Wanted | None,
    ) -> int:
        """As `read_records`, past what is deleted."""
        taken = 0
        absent, cursor = self._absent, batch.cursor()
        while cursor.advance():
            if cursor.offset < offset or cursor.offset in absent:
                continue
            if wanted is not None and not wanted(cursor.subject()):
                continue
            size = cursor.end - cursor.subject_at
            if len(into) >= max_records or (into and taken + size > max_bytes):
                return -1 - taken
            into.append(cursor.record())
            taken += size
        return taken

    def _read_iggy(
        self,
        batch: StoredBatch,
        offset: int,
        max_records: int,
        max_bytes: int,
        into: list[StoredRecord],
        wanted: Wanted | None,
    ) -> int:
        """As `_read_present`, of a batch in the other dialect."""
        taken = 0
        for record in iggy_records.records(batch.body):
            if record.offset < offset or record.offset in self._absent:
                continue
            if wanted is not None and not wanted(record.subject):
                continue
            size = len(record.header_block) + len(record.payload)
            if len(into) >= max_records or (into and taken + size > max_bytes):
                return -1 - taken
            into.append(record)
            taken += size
        return taken

    def offset_at(self, time_ns: int) -> int:
        """The first offset whose record is not older than `time_ns`; `end_offset` when all are older. Found by the time
        index and a look at some 4 KiB of batches; exact also where the clock stepped back. Raises StorageError."""
        for segment in self._segments:
            if segment.end_offset > self._start_offset and segment.facts.index.latest >= time_ns:
                offset = max(segment.facts.index.offset_before(time_ns), segment.base_offset, self._start_offset)
                while records := self.read(offset, 256, 1 << 18):
                    for record in records:
                        if record.timestamp_ns >= time_ns:
                            return record.offset
                    offset = records[-1].offset + 1
                    if offset >= segment.end_offset:
                        break
        return self._end_offset

    def _remember_unfinished(self, batch: StoredBatch) -> None:
        """A reader stopped inside this batch and will be back for the rest: a stored batch is checked as a whole, so to
        fetch one record at a time would check it once for each."""
        if all(known.body is not batch.body for known in self._unfinished):
            self._unfinished.append(batch)
            if len(self._unfinished) > UNFINISHED_BATCHES:
                del self._unfinished[0]

    def batches(self, offset: int, expected_bytes: int = 1 << 20) -> Iterator[StoredBatch]:
        """The published batches that end above `offset`, in order, with whatever deleted records are still in them (see
        `is_absent`). The caller stops when it has enough; reads are sized
        for `expected_bytes`. What is published meanwhile may or may not be seen.

        Damage is skipped and reported in `damage`. Raises StorageError when the disk cannot be read."""
        offset = max(offset, self._start_offset)
        while offset < self._end_offset:
            recent = self._recent.since(offset, expected_bytes)
            if recent is None:
                yield from self._stored_batches(offset, expected_bytes)
                return
            if not recent:
                return
            for header, body in recent:
                yield StoredBatch(header, body)
            offset = recent[-1][0].end_offset

    def range_at(self, offset: int) -> RangedBatch | None:
        """The published large batch that begins with this offset, as a range of its file; None where only `batches` can
        tell what is there (`Segment.range_at`). Raises StorageError when the disk cannot be read."""
        if not self._start_offset <= offset < self._end_offset:
            return None
        segment = self._segments[max(0, bisect_right(self._segments, offset, key=lambda each: each.base_offset) - 1)]
        try:
            self._keep_handle(segment)
            return segment.range_at(offset)
        except OSError as error:
            raise storage_error(f"read {segment.path}", error) from error

    def _stored_batches(self, offset: int, expected_bytes: int) -> Iterator[StoredBatch]:
        """As `batches`, from the files, to the end of the log."""
        for batch in self._unfinished:
            if batch.header.base_offset <= offset < batch.header.end_offset:
                yield batch
                offset = batch.header.end_offset
                break
        at = max(0, bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1)
        while at < len(self._segments):
            segment = self._segments[at]
            try:
                self._keep_handle(segment)
                for piece in segment.batches(offset, expected_bytes):
                    if isinstance(piece, SpoiledBytes):
                        self._report(segment, piece)
                    else:
                        yield StoredBatch(piece.header, piece.body)
            except OSError as error:
                raise storage_error(f"read {segment.path}", error) from error
            at += 1

    def _keep_handle(self, segment: Segment) -> None:
        """This segment's file is about to be read: give back the handle that was taken longest ago, if too many."""
        if segment not in self._with_handle:
            self._with_handle.append(segment)
            if len(self._with_handle) > OPEN_SEGMENTS:
                self._with_handle.pop(0).release()

    def _report(self, segment: Segment, spoiled: SpoiledBytes) -> None:
        if any(known.file == segment.name and known.position == spoiled.position for known in self.damage):
            return
        end = segment.end_offset if spoiled.end_offset is None else spoiled.end_offset
        size = spoiled.end_position - spoiled.position
        self.damage.append(Damage("corrupt", spoiled.start_offset, end, True, segment.name, spoiled.position, size))

    def close(self, document: bytes = b"") -> None:
        """Make everything written durable, note a clean end, give the files back. Staged records that were not written
        are dropped. `document` is kept for the next opening, if the log needs no recovery then. Raises WriteFailed when
        that fails; the files are given back all the same. Once is enough."""
        if self._closed:
            return
        self._closed = True
        try:
            self._flush_deletions()
            indexable = len(self.damage) == len(self.recovery.damage)  # else damage was met that no opening knows of
            self._writer.close(self._start_offset, (lambda: self._save_index(document)) if indexable else None)
        finally:
            self._release()

    def _flush_deletions(self) -> None:
        if self._deletions and self._writer.failure is None:
            self.staging.restart(self._end_offset)
            batch = StagedBatch([], self._writer.next_offset, self._writer.next_offset, self._deletions)
            self._deletions = []
            self._writer.write(batch)
            self.publish(batch)

    def _save_index(self, document: bytes) -> int:
        facts = [segment.facts for segment in self._segments]
        return save_index(self._files, self.directory, facts, self._absent, self._start_offset, document)

    def delete(self) -> None:
        """Remove the log from the disk. Raises StorageError when the disk refuses; the log is closed either way."""
        if not self._closed:
            self._closed = True
            self._writer.abandon()
        try:
            delete_directory(self._files, self.directory)
        except OSError as error:
            raise storage_error(f"delete the log {self.directory}", error) from error
        finally:
            self._release()

    def _release(self) -> None:
        for segment in self._with_handle:
            segment.release()
        self._with_handle.clear()
        self._lock.close()
