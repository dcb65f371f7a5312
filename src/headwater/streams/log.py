# cython: boundscheck=True, wraparound=True
"""The durable log of one partition: appended in batches, read by offset, recovered after crashes.

Appending has two phases, so that one fdatasync serves all waiting publishes (group commit):

    loop thread     offset = log.stage(...)          many times; joins the open batch; not readable yet
                    batch = log.seal()               when the worker is free
    worker thread   log.write(batch)                 blocking: one append, one fdatasync
    loop thread     log.publish(batch)               readable from now on; now acknowledge
                    log.abandon(batch)               instead, when write raised; now refuse

Batches are written and published in the order in which they were sealed, each exactly once.

Threads: `write` and `sync` may run in one worker thread at a time (they use `LogWriter` and nothing else); everything
else belongs to the loop thread (the open batch, the readable segments, the recent batches, the offsets). The hand-over
of a `StagedBatch` between the two must go through a queue or a future, which orders their memory. `close` and `delete`
are called when no `write` runs.

Offsets count from 0 and are half-open. `start_offset <= end_offset <= next_offset`: records below `end_offset` are
readable, and under sync policy `always` durable; `next_offset` is the offset that `stage` assigns next. While the log
is open, no offset is assigned twice, even if its record was refused, and an offset that was ever readable never refers
to another record, through crashes, cuts and lost files (recovery.py has the means). So offsets have gaps: where a batch
was refused or was lost. Count records with `record_count`, not by subtraction.

Deleting has two phases too. `discard` and `discard_range` hide records from every reader at once; the deletion itself
is written with the next sealed batch, as a tombstone, and is durable with it. Upkeep frees disk space between two
writes: `plan_upkeep` (loop) chooses the work, `maintain` (worker) does it, `settle` (loop) applies the result.

The log is composed of parts that depend on each other only as drawn here:

    Staging       the open batch: records that wait for the next write (staging.py)
    LogWriter     the write handle, the marks, the state; the worker thread's (writer.py)
    LogReader     the published segments and the newest batches, read and checked (log_reader.py)
    LiveOffsets   which offsets hold a record (live_offsets.py)
    Upkeep        a piece of work that gives room back or makes a checkpoint (upkeep.py)
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Self

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.live_offsets import LiveOffsets
    from cython.cimports.headwater.streams.log_format import BatchHeader
    from cython.cimports.headwater.streams.log_reader import LogReader
    from cython.cimports.headwater.streams.staging import Staging
    from cython.cimports.headwater.streams.writer import LogWriter, PlacedBatch, StagedBatch
else:
    from headwater.streams.live_offsets import LiveOffsets
    from headwater.streams.log_format import BatchHeader
    from headwater.streams.log_reader import LogReader
    from headwater.streams.staging import Staging
    from headwater.streams.writer import LogWriter, PlacedBatch, StagedBatch

from headwater.compression.snappy import Compress
from headwater.durable_files.documents import NO_IDENTITY
from headwater.durable_files.files import Files, storage_error
from headwater.errors import StorageError, WriteFailed
from headwater.streams.clean_index import encode_checkpoint, encode_index
from headwater.streams.log_format import StoredRecord
from headwater.streams.log_reader import StoredBatch, Wanted
from headwater.streams.log_state import LogState
from headwater.streams.opening import CopyKind, OpenedLog, delete_directory, open_directory, opened_new_log, write_index
from headwater.streams.options import SMALLEST_SEGMENT, LogOptions
from headwater.streams.recovery import Damage, RecoveryReport
from headwater.streams.segment import RangedBatch, Segment
from headwater.streams.upkeep import Compression, Upkeep, plan_upkeep

__all__ = ["Log", "LogOptions", "Span", "StoredBatch", "StoredRecord", "Upkeep", "begin_log", "seal_deletions"]

CHECKPOINT_BYTES = 32 << 20  # of bodies; the most that a start after a crash reads, at some 0.5 GB/s
CHECKPOINT_SHARE = 16  # a checkpoint is at most a sixteenth of what is written between two of them
MOST_INDEXED = 2 << 20  # entries of the sparse index, some 8 GiB of log: a larger checkpoint would delay publishers
PLANNED_PART = 64  # of the records


class Span(NamedTuple):
    """The facts about a segment that limits need: offsets `[start, end)`, bytes, the time stamp of its last record
    (None: empty)."""

    start: int
    end: int
    size: int
    last_timestamp_ns: int | None


def begin_log(files: Files, directory: str, options: LogOptions, state: LogState) -> "Log":
    """As `Log.open`, where `write_new_log` has just written a log with this state: nothing is read."""
    opened = opened_new_log(files, directory, state)
    try:
        return Log(files, directory, options, opened)
    except OSError as error:
        opened.lock.close()
        raise storage_error(f"open the log {directory}", error) from error


class Log:
    """See the head of this module. Made by `Log.open` and `begin_log`."""

    def __init__(self, files: Files, directory: str, options: LogOptions, opened: OpenedLog) -> None:
        report = opened.report
        self.directory = directory
        self.options = options
        self._files = files
        self._opened = opened
        self._live = LiveOffsets(opened.state.start_offset, report.next_offset, report.records, opened.absent)
        self.reader = LogReader(opened.segments, self._live, list(report.damage), options.cache_bytes)
        self.compression = Compression(self.reader.segments, self._live)
        # Where ranges start and end, in turn. With a tuple for each, which the collector of garbage follows, a purge of
        # every second message took a fourth more.
        self._deletions: list[int] = []
        # Deleted since upkeep last had nothing to do.
        self._unplanned = 1 + sum(segment.dead for segment in opened.segments)
        self._until_checkpoint = CHECKPOINT_BYTES
        self._closed = False
        newest = opened.segments[len(opened.segments) - 1]
        self._writer = LogWriter(files, directory, options, opened.state, newest, report.next_offset, opened.turn)
        self.staging = Staging(report.next_offset, options.batch_bytes, self._writer)

    @classmethod
    def open(
        cls,
        files: Files,
        directory: str,
        options: LogOptions,
        now_ns: int,
        first_offset: int = 0,
        identity: bytes = NO_IDENTITY,
        known_end: int = 0,
        copy: CopyKind = "none",
    ) -> Self:
        """Recover the log in `directory`, or create one that starts at `first_offset`; `recovery` has the findings.
        Takes a lock on it. `identity`: that of the log, 8 bytes, where the caller knows it; files of other logs are put
        aside. `known_end`: the log reached at least this far, according to the caller's other files; an earlier end is
        reported as a loss. `copy`: see `CopyKind`.

        After a clean stop the index is read, about a hundredth of the data, and `document` is what `close` was given;
        else every batch is read and checked, about 0.5 GB/s but up to 40 us a batch where batches are tiny, and
        `document` is None. Raises StorageError when another process has the log open or the disk fails, CorruptLog when
        it was written by a newer version.
        """
        opened = open_directory(files, directory, now_ns, first_offset, identity, known_end, copy)
        try:
            return cls(files, directory, options, opened)
        except OSError as error:
            opened.lock.close()
            raise storage_error(f"open the log {directory}", error) from error

    @property
    def recovery(self) -> RecoveryReport:
        """The report about opening the log."""
        return self._opened.report

    @property
    def document(self) -> bytes | None:
        """What the last clean close, or a checkpoint, was given; it holds for the records below `known_end`. None when all
        records have to be read."""
        return self._opened.document

    @property
    def known_end(self) -> int:
        """See `document`."""
        return self._opened.known_end

    @property
    def damage(self) -> list[Damage]:
        """The damage that opening and reading found."""
        return self.reader.damage

    @property
    def on_damage(self) -> Callable[[Damage], None] | None:
        """Called for each damage that reading finds; None: no callback."""
        return self.reader.on_damage

    @on_damage.setter
    def on_damage(self, called: Callable[[Damage], None] | None) -> None:
        self.reader.on_damage = called

    @property
    def identity(self) -> bytes:
        """64 random bits that every file of the log carries."""
        return self._writer.identity

    @property
    def start_offset(self) -> int:
        """The first offset of the log; a read below it starts here."""
        return self._live.start

    @property
    def end_offset(self) -> int:
        """The high watermark: the offset after the last readable record (or the gap after it)."""
        return self._live.end

    @property
    def next_offset(self) -> int:
        """The log end offset: that of the next staged record."""
        return self.staging.end_offset

    @property
    def record_count(self) -> int:
        """Readable records; less than `end_offset - start_offset` where there are gaps."""
        return self._live.count

    def is_absent(self, offset: int) -> bool:
        """Whether no readable record has this offset: it is below `start_offset`, deleted, refused, or lost."""
        return offset < self._live.start or (offset < self._live.end and self._live.absent.has(offset))

    def count(self, start: int, end: int) -> int:
        """Readable records in `[start, end)`."""
        return self._live.count_in(start, end)

    @property
    def size_bytes(self) -> int:
        """Published bytes in all segments, head pages included."""
        return sum(segment.end_position for segment in self.reader.segments)

    @property
    def spans(self) -> list[Span]:
        """The segments, oldest first; the last one is still written to."""
        return [
            Span(segment.base_offset, segment.end_offset, segment.end_position, segment.last_timestamp_ns)
            for segment in self.reader.segments
        ]

    @property
    def first_timestamp_ns(self) -> int | None:
        """Of the oldest readable record; None in an empty log. Raises StorageError when the disk cannot be read."""
        return self.reader.first_timestamp_ns()

    @property
    def last_timestamp_ns(self) -> int | None:
        """Of the record that was stored last, deleted or not, as long as its segment is there; None when there is none."""
        segments = reversed(self.reader.segments)
        return next((found for segment in segments if (found := segment.last_timestamp_ns) is not None), None)

    @property
    def failure(self) -> WriteFailed | None:
        """Why the log is read-only; None while it is not."""
        return self._writer.failure

    def stage(self, subject: bytes, header_block: bytes, payload: bytes, timestamp_ns: int) -> int:
        """Add a record to the open batch; returns its offset. Raises WriteFailed when the log is read-only,
        StorageError when the record does not fit the format."""
        return self.staging.stage(subject, header_block, payload, timestamp_ns)

    def stage_iggy(self, body: bytes, count: int, timestamp_ns: int) -> int:
        """As `stage`, for a batch of Iggy's with `count` messages, stamped with `next_offset`; returns that offset."""
        return self.staging.stage_iggy(body, count, timestamp_ns)

    def discard_range(self, start: int, end: int) -> int:
        """As `discard`, for all readable records in `[start, end)`, but returns how many there were."""
        if self._writer.failure is not None:
            raise self._writer.failure
        start, end = max(start, self._live.start), min(end, self._live.end)
        if not self._live.count_in(start, end):
            return 0
        gone = 0
        at = max(0, bisect_right(self.reader.segments, start, key=lambda segment: segment.base_offset) - 1)
        for segment in self.reader.segments[at:]:
            if segment.base_offset >= end:
                break
            low, high = max(start, segment.base_offset), min(end, segment.end_offset)
            if low < high:
                new = self._live.remove(low, high)
                segment.dead += new
                gone += new
        self._unplanned += gone
        if self._deletions and self._deletions[-1] == start:
            self._deletions[-1] = end
        else:
            self._deletions += [start, end]
        if start <= self._live.start:
            self._live.advance()
        return gone

    def discard(self, *offsets: int) -> list[int]:
        """Take the readable records at these offsets away, at once and for all readers; durable with the next batch that is
        written. Returns the offsets of those that were there. Raises WriteFailed when the log is read-only."""
        if self._writer.failure is not None:
            raise self._writer.failure
        deletions = self._deletions
        gone = self._live.remove_each(offsets)
        offset: cython.longlong
        begun: cython.longlong = -1  # deletions of [begun, end) are not noted yet
        end: cython.longlong = -1
        low: cython.longlong = 0  # of the segment that the last one was in, with `dead` removed from it so far
        high: cython.longlong = 0
        dead: cython.longlong = 0
        segment = None
        if deletions:
            end = deletions.pop()
            begun = deletions.pop()
        for offset in gone:
            if offset != end:
                if begun >= 0:
                    deletions.append(begun)
                    deletions.append(end)
                begun = offset
            end = offset + 1
            if not low <= offset < high:
                if segment is not None:
                    segment.dead += dead
                segment, dead = self._segment_of(offset), 0
                low, high = segment.base_offset, segment.end_offset
            dead += 1
        if segment is not None:
            segment.dead += dead
            self._live.advance()
        if begun >= 0:
            deletions += [begun, end]
        self._unplanned += len(gone)
        return gone

    def _segment_of(self, offset: int) -> Segment:
        """The segment of a readable record."""
        segments = self.reader.segments
        return segments[bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1]

    @property
    def has_deletions(self) -> bool:
        """Whether there are deletions that `seal` has not taken yet."""
        return bool(self._deletions)

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
        """Blocking, for the worker thread. When it returns, the batch is on disk, and durable as the sync policy has it.

        Raises DiskFull: nothing of the batch is in the log, and the log stays usable. Raises WriteFailed: the log is
        read-only until it is opened again; whether the batch will be found then is unknown, as after a crash.
        """
        self._writer.write(batch)

    def sync(self) -> None:
        """Blocking, for the worker thread. Make durable what the policies `interval` and `never` have not synced yet."""
        self._writer.sync()

    def publish(self, batch: StagedBatch) -> None:
        """Make a written batch readable. Batches are published in the order they were written."""
        if not batch.placed or batch.base_offset < self._live.end:
            raise StorageError(
                "only a written batch can be published, once, after those before it",
                value=(batch.base_offset, batch.end_offset),
                limit=self._live.end,
            )
        placed: PlacedBatch
        live, reader = self._live, self.reader
        for placed in batch.placed:
            header: BatchHeader = placed.header
            if placed.segment is not reader.segments[len(reader.segments) - 1]:
                reader.segments.append(placed.segment)
            placed.segment.publish(placed.position, header)
            self._until_checkpoint -= header.body_size
            if header.holds_records:
                reader.recent.add(header, placed.body)
                live.extend(header.base_offset, header.end_offset)  # a copy of another log has its gaps
                live.count += header.record_count
        live.extend(max(live.end, batch.base_offset), batch.end_offset)
        batch.placed.clear()

    def abandon(self, batch: StagedBatch) -> None:
        """Drop a batch that `write` refused. Its offsets stay unused; the records were never readable."""
        if batch.placed:
            raise StorageError("a written batch is in the log: publish it", value=(batch.base_offset, batch.end_offset))
        batch.builders.clear()
        self._deletions = batch.deletions + self._deletions

    def limit_to(self, max_bytes: int, compress: Compress | None = None, least: int = SMALLEST_SEGMENT) -> None:
        """At most `max_bytes` are to be live (0 or less: no limit); from now on the sizes of segments, never below `least`,
        and of the room reserved ahead follow it. `compress`: what compresses the sealed segments, by upkeep, those that are
        there included; None: they stay as they are."""
        self._writer.use(self.options.for_limit(max_bytes, compressed=compress is not None, least=least))
        self.compression.use(compress)

    def plan_upkeep(self, erase: int | None = None) -> Upkeep | None:
        """The upkeep that frees the most space; None when none is worth doing. `erase`: the offset of a deleted record
        to be removed from the disk even if that frees little. Between a plan and its `settle` no batch may be written.
        Unwritten deletions do no harm: they apply to readers already.

        Looks at every segment only when a 64th of the records was deleted since it last found nothing to do.
        """
        if self._writer.failure is not None:
            return None
        dropping = len(self.reader.segments) > 1 and self.reader.segments[0].end_offset <= self._live.start
        if erase is None and not dropping and self._unplanned <= self._live.count // PLANNED_PART:
            return None
        size = self._writer.segment_bytes
        upkeep = plan_upkeep(self.reader.segments, self._live.start, self._live.end, self._live.absent, erase, size)
        if upkeep is None:
            self._unplanned = 0
        else:
            upkeep.compress = self.compression.compress
        return upkeep

    @property
    def checkpoint_due(self) -> bool:
        """Whether enough was published since the last checkpoint that the next start after a crash should not read it all:
        CHECKPOINT_BYTES, and more where a checkpoint is large. Never where nothing is synced."""
        return self._until_checkpoint <= 0 and self._writer.failure is None

    def plan_checkpoint(self, document: bytes = b"") -> Upkeep | None:
        """A checkpoint of the published log and the `document` of the layer above, for a start after a crash; None if
        it would be wrong (reading found damage that opening did not; nothing is synced) or too large. Passed to
        `maintain` and `settle` like all upkeep."""
        self._until_checkpoint = CHECKPOINT_BYTES
        if self.options.sync == "never" or len(self.damage) > len(self.recovery.damage):
            return None
        start, end = self._live.start, self._live.end
        facts = [segment.facts for segment in self.reader.segments]
        if sum([len(segment.index) for segment in facts]) > MOST_INDEXED:
            return None
        absent, identity = self._live.absent.part(start, end), self._writer.identity

        # In the worker: nothing is published meanwhile, and `absent` is a copy without later deletions.
        def contents() -> bytes:
            return encode_checkpoint(encode_index(facts, absent, start, end, document), identity, start, end)

        return Upkeep(start, checkpoint=contents)

    def maintain(self, upkeep: Upkeep) -> None:
        """Blocking; the worker thread's, as `write`. Raises DiskFull or WriteFailed; the log is then as it was, or
        read-only."""
        self._writer.maintain(upkeep)

    def settle(self, upkeep: Upkeep) -> None:
        """For the loop thread, after `maintain`: readers use its result from now on. Raises StorageError."""
        if upkeep.checkpoint is not None:
            self._until_checkpoint = max(CHECKPOINT_BYTES, CHECKPOINT_SHARE * upkeep.checkpoint_size)
            return
        if upkeep.opened is not None and upkeep.opened is not self.reader.segments[-1]:
            self.reader.segments.append(upkeep.opened)
        self.reader.remove(upkeep.dropped)
        try:
            upkeep.put_in_place(self._files)
        except OSError as error:
            raise storage_error("put a compacted segment in place", error) from error
        self.reader.forget_unfinished()

    def read(self, offset: int, max_records: int, max_bytes: int) -> list[StoredRecord]:
        """See `LogReader.read`."""
        return self.reader.read(offset, max_records, max_bytes)

    def read_matching(
        self, offset: int, wanted: Wanted | None, max_records: int, max_bytes: int, max_passed: int
    ) -> tuple[list[StoredRecord], int]:
        """See `LogReader.read_matching`."""
        return self.reader.read_matching(offset, wanted, max_records, max_bytes, max_passed)

    def offset_at(self, time_ns: int) -> int:
        """See `LogReader.offset_at`."""
        return self.reader.offset_at(time_ns)

    def batches(self, offset: int, expected_bytes: int = 1 << 20) -> Iterator[StoredBatch]:
        """See `LogReader.batches`."""
        return self.reader.batches(offset, expected_bytes)

    def range_at(self, offset: int) -> RangedBatch | None:
        """See `LogReader.range_at`."""
        return self.reader.range_at(offset)

    def close(self, document: bytes = b"", *, removing: bool = False) -> None:
        """Make everything written durable, record a clean end, and close the files. Staged records that were not written
        are dropped. `document` is kept for the next opening, if the log needs no recovery then. Raises WriteFailed when
        that fails; the files are given back all the same. Once is enough. `removing`: the log is about to be removed, so
        nothing is written."""
        if self._closed:
            return
        self._closed = True
        if removing:
            self._writer.abandon()
            self._release()
            return
        try:
            self._flush_deletions()
            indexable = len(self.damage) == len(self.recovery.damage)  # else damage was met that no opening knows of
            self._writer.close(self._live.start, partial(self._write_index, document) if indexable else None)
        finally:
            self._release()

    def _flush_deletions(self) -> None:
        if self._deletions and self._writer.failure is None:
            self.staging.restart(self._live.end)
            batch = seal_deletions(self)
            self._writer.write(batch)
            self.publish(batch)

    def _write_index(self, document: bytes) -> int:
        facts = [segment.facts for segment in self.reader.segments]
        return write_index(self._files, self.directory, facts, self._live.absent, self._live.start, document)

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
        self.reader.release()
        self._opened.lock.close()


def begin_at(log: Log, offset: int) -> None:
    """Number the records of a log that has none, nor staged ones, from `offset` on, not below `next_offset`. Durable
    with the first record."""
    log.staging.skip_to(offset)
    log._live.extend(offset, offset)
    log._live.advance()


def newest_path(log: Log) -> str:
    """The file that is written to; right after a roll perhaps the one before it."""
    return log.reader.segments[-1].path


def refuse_writes(log: Log, reason: str) -> WriteFailed:
    """The log is read-only from now on, until `take_writes` is called with the result; a failure of the disk stays."""
    return log._writer.refuse(reason)


def take_writes(log: Log, failure: WriteFailed) -> None:
    """The reason for which `refuse_writes` was called is gone."""
    log._writer.resume(failure)


def seal_deletions(log: Log) -> StagedBatch:
    """The deletions that `seal` has not taken, as a batch of their own, to be written before what is staged."""
    at, deletions = log._writer.next_offset, log._deletions
    log._deletions = []
    return StagedBatch([], at, at, deletions)
