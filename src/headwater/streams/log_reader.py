# cython: boundscheck=True, wraparound=True
"""Reads the published part of a log by offset, by time or by batch: the newest batches from memory, others from checked
files.

Reading skips what is damaged, adds it to `damage`, counts it as absent and passes it to `on_damage`; it never returns a
byte whose CRC32C failed. `range_at` reads nothing: it returns only batches that were found intact, or written, since the
log was opened. Belongs to the loop thread; `Log` adds what is published and removes what is dropped.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.live_offsets import LiveOffsets
    from cython.cimports.headwater.streams.log_format import BatchHeader, RecordCursor, StoredRecord
    from cython.cimports.headwater.streams.offset_set import OffsetSet
    from cython.cimports.headwater.streams.recent import RecentBatches
    from cython.cimports.headwater.streams.record_places import RecordPlaces
    from cython.cimports.headwater.streams.segment import Segment
else:
    from headwater.streams.live_offsets import LiveOffsets
    from headwater.streams.log_format import BatchHeader, RecordCursor, StoredRecord
    from headwater.streams.offset_set import OffsetSet
    from headwater.streams.recent import RecentBatches
    from headwater.streams.record_places import RecordPlaces
    from headwater.streams.segment import Segment

from headwater.durable_files.files import descriptors, storage_error
from headwater.streams import iggy_records
from headwater.streams.log_format import DIALECT_IGGY, DIALECT_NATS, MAX_OFFSET, read_records
from headwater.streams.read_handles import ReadHandles
from headwater.streams.record_places import Wanted as Wanted
from headwater.streams.recovery import Damage
from headwater.streams.segment import RangedBatch
from headwater.streams.window import SpoiledBytes

MOST_PASSED = 4 << 20  # bytes of bodies, some 4 ms where they come from files
USUAL_RECORD = 1 << 10  # bytes; only the size of reads depends on it: a reader of few records need not fetch a megabyte
UNFINISHED_BATCHES = 8  # about as many readers can step through old batches before they evict each other's
OPEN_SEGMENTS = 16  # read handles kept per log; a replay uses one segment after the other
# Those that single records were read from are others: as many, or this share of the process's descriptors, but never more
# than MOST_OPEN. Gets all over a log of 2 GiB opened and closed a file each. Of 65,536 descriptors a log may keep 1,024: 64
# GiB of segments. All logs of a loop together: `read_handles.py`.
SHARE_OF_A_LOG = 64
MOST_OPEN = 1024


class StoredBatch(NamedTuple):
    """A checked batch as it was stored, for readers that need not copy every record."""

    header: BatchHeader
    body: bytes

    def cursor(self) -> RecordCursor:
        return RecordCursor(self.body, 0, len(self.body), self.header.base_offset, self.header.version)


class LogReader:
    """See the head of this module. `segments`: oldest first. `damage`: found by recovery and by reading."""

    def __init__(self, segments: list[Segment], live: LiveOffsets, damage: list[Damage], cache_bytes: int) -> None:
        self.segments = segments
        self.damage = damage
        self.on_damage: Callable[[Damage], None] | None = None
        self.recent = RecentBatches(cache_bytes)
        self._live = live
        self._with_handle: list[Segment] = []
        self._searched: list[Segment] = []  # the same, of single records
        self.most_open = min(max(OPEN_SEGMENTS, descriptors() // SHARE_OF_A_LOG), MOST_OPEN)
        self.handles: ReadHandles | None = None  # the limit that it shares with other logs
        self._unfinished: list[StoredBatch] = []
        self._first_timestamp: tuple[int, int] | None = None  # (offset, time stamp)

    def remove(self, segments: list[Segment]) -> None:
        """Forget these segments, which are dropped."""
        for segment in segments:
            self.segments.remove(segment)
            self.give_up(segment)

    def give_up(self, segment: Segment) -> None:
        """Close the segment's file until it is read again."""
        if segment.kept:
            (self._with_handle if segment in self._with_handle else self._searched).remove(segment)
            segment.kept = False
            if self.handles is not None:
                self.handles.give_back(segment)
        segment.release()

    def forget_unfinished(self) -> None:
        """Forget batches kept for readers: a segment was rewritten, and they may come from its old file."""
        self._unfinished = []

    def release(self) -> None:
        """Close all file handles."""
        for segment in self._with_handle + self._searched:
            self.give_up(segment)

    def first_timestamp_ns(self) -> int | None:
        """As `Log.first_timestamp_ns`."""
        start = self._live.start
        if not self._live.count:
            return None
        if self._first_timestamp is None or self._first_timestamp[0] != start:
            records = self.read(start, 1, 1)
            if not records:
                return None
            self._first_timestamp = (start, records[0].timestamp_ns)
        return self._first_timestamp[1]

    def read(self, offset: int, max_records: int, max_bytes: int) -> list[StoredRecord]:
        """The records from `offset` on, in order, at most `max_records` with at most `max_bytes` of subject, header
        block and payload; but at least one when there is one. Raises StorageError when the disk cannot be read."""
        return self.read_matching(offset, None, max_records, max_bytes, MAX_OFFSET)[0]

    def record(self, offset: cython.longlong) -> StoredRecord | None:
        """The record with this offset; None where no readable one has it. Raises StorageError."""
        if not self._live.has(offset):
            return None
        found: StoredRecord | None = self.recent.record(offset)
        if found is None:
            found = self._record_in_file(offset)
        if found is None:
            records = self.read_matching(offset, None, 1, 1, MAX_OFFSET)[0]
            if records and records[0].offset == offset:
                found = records[0]
        return found

    def _record_in_file(self, offset: cython.longlong) -> StoredRecord | None:
        """As `record`, by way of its segment; None where that cannot tell. Batches between readers' calls go first."""
        if self._is_unfinished(offset):
            return None
        segment: Segment = self._segment_of(offset)
        self._keep_handle(segment, self._searched, self.most_open)
        try:
            return segment.record_at(offset)
        except OSError as error:
            raise storage_error(f"read {segment.path}", error) from error

    def _is_unfinished(self, offset: cython.longlong) -> cython.bint:
        for batch in self._unfinished:
            header: BatchHeader = batch.header
            if header.base_offset <= offset < header.base_offset + header.offset_span:
                return True
        return False

    def _few_in_files(
        self, offset: cython.longlong, max_records: cython.Py_ssize_t, max_bytes: cython.Py_ssize_t
    ) -> tuple[list[StoredRecord], int, int, bool]:
        """The records from `offset` on as far as they are few of large batches (`Segment.records_from`); where to go on, the
        bytes they have, and whether they are all that is wanted, or what follows does not fit or cannot be read so."""
        records: list[StoredRecord] = []
        taken: cython.Py_ssize_t = 0
        record: StoredRecord
        while offset < self._live.end and not self.recent.reaches(offset) and not self._is_unfinished(offset):
            segment = self.segment_at(offset)
            wanted: cython.Py_ssize_t = max_records - len(records)
            try:
                found = segment.records_from(offset, wanted, max_bytes - taken, not records)
            except OSError as error:
                raise storage_error(f"read {segment.path}", error) from error
            if not found:
                return records, offset, taken, len(records) > 0 and segment.knows(offset)
            for record in found:
                if not self._live.absent.has(record.offset):
                    taken += len(record.subject) + len(record.header_block) + len(record.payload)
                    records.append(record)
            offset = found[len(found) - 1].offset + 1
            if len(records) == max_records:
                return records, offset, taken, True
        return records, offset, taken, False

    def read_matching(
        self, offset: int, wanted: Wanted | None, max_records: int, max_bytes: int, max_passed: int
    ) -> tuple[list[StoredRecord], int]:
        """As `read`, of those records only whose subjects are `wanted` (None: all); and the offset to go on from. It gives
        up at the end of the batch with which it has passed over `max_passed` offsets, or over MOST_PASSED bytes."""
        records: list[StoredRecord] = []
        offset = max(offset, self._live.start)
        if max_records <= 0:
            return records, offset
        last = offset + max_passed
        if wanted is None:
            records, offset, taken, enough = self._few_in_files(offset, max_records, max_bytes)
            if enough:
                return records, offset
            max_bytes -= taken
        most_bytes = MOST_PASSED if max_passed < MAX_OFFSET else MAX_OFFSET
        subject = wanted if isinstance(wanted, bytes) else None
        chosen = wanted.__eq__ if isinstance(wanted, bytes) else wanted
        for batch in self.batches(offset, min(max_bytes, max_records * USUAL_RECORD)):
            base_offset, end_offset = batch.header.base_offset, batch.header.end_offset
            if batch.header.dialect == DIALECT_IGGY:
                taken = self._read_iggy(batch, offset, max_records, max_bytes, records, chosen)
            elif subject is not None or self._live.absent.touches(max(base_offset, offset), end_offset):
                taken = self._read_present(batch, offset, max_records, max_bytes, records, subject, chosen)
            else:
                taken = read_records(
                    batch.body, base_offset, offset, max_records, max_bytes, records, chosen, batch.header.version
                )
            max_bytes -= taken
            if records and (taken < 0 or max_bytes <= 0 or len(records) >= max_records):
                self._remember_unfinished(batch)
                return records, records[len(records) - 1].offset + 1
            most_bytes -= batch.header.body_size
            if end_offset >= last or most_bytes <= 0:
                return records, end_offset
        return records, self._live.end

    def find_places(
        self,
        places: RecordPlaces,
        offset: int,
        end: int,
        wanted: Wanted | tuple[bytes, ...] | None,
        most: int,
        max_passed: int,
    ) -> int:
        """Have `places` the records in `[offset, end)` whose subjects are `wanted`, or match one of these patterns (None:
        all), until it has `most`; returns the offset to go on from. It gives up as `read_matching` does. Raises StorageError
        when the disk cannot be read."""
        offset, end = max(offset, self._live.start), min(end, self._live.end)
        last, most_bytes = offset + max_passed, MOST_PASSED
        if offset >= end:
            return end
        for batch in self.batches(offset):
            end_offset = batch.header.end_offset
            if batch.header.dialect == DIALECT_IGGY:
                found: list[StoredRecord] = []
                if wanted is None or callable(wanted):  # these have no subject
                    self._read_iggy(batch, offset, most, MAX_OFFSET, found, wanted)
                for record in found:
                    if record.offset < end and len(places) < most:
                        places.note(record)
                goes_on = len(places) < most
            else:
                goes_on = places.note_matching(batch.cursor(), offset, end, self._live.absent, wanted, most)
            if not goes_on and len(places) >= most:
                self._remember_unfinished(batch)
                return places.offsets[len(places) - 1] + 1
            most_bytes -= batch.header.body_size
            if end_offset >= min(last, end) or most_bytes <= 0:
                return min(end_offset, end)
        return end

    def _read_present(
        self,
        batch: StoredBatch,
        offset: cython.longlong,
        max_records: cython.Py_ssize_t,
        max_bytes: cython.Py_ssize_t,
        into: list[StoredRecord],
        subject: bytes | None,
        wanted: Callable[[bytes], bool] | None,
    ) -> int:
        """As `read_records`, past what is deleted; only those with this `subject`, unless it is None."""
        taken: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t
        absent: OffsetSet = self._live.absent
        cursor: RecordCursor = batch.cursor()
        while cursor.advance() if subject is None else cursor.advance_to(subject):
            if cursor.offset < offset or absent.has(cursor.offset):
                continue
            if subject is None and wanted is not None and not wanted(cursor.subject()):
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
        wanted: Callable[[bytes], bool] | None,
    ) -> int:
        """As `_read_present`, of a batch in the other dialect."""
        taken = 0
        for record in iggy_records.records(batch.body):
            if record.offset < offset or record.offset in self._live.absent:
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
        for segment in self.segments:
            if segment.end_offset > self._live.start and segment.facts.index.latest >= time_ns:
                offset = max(segment.facts.index.offset_before(time_ns), segment.base_offset, self._live.start)
                while records := self.read(offset, 256, 1 << 18):
                    for record in records:
                        if record.timestamp_ns >= time_ns:
                            return record.offset
                    offset = records[-1].offset + 1
                    if offset >= segment.end_offset:
                        break
        return self._live.end

    def _remember_unfinished(self, batch: StoredBatch) -> None:
        """Keep this batch, inside which a reader stopped, for its next call: a stored batch is checked as a whole, so
        fetching one record at a time would check it once per record."""
        if batch.header.record_count > 1 and all(known.body is not batch.body for known in self._unfinished):
            self._unfinished.append(batch)
            if len(self._unfinished) > UNFINISHED_BATCHES:
                del self._unfinished[0]

    def batches(self, offset: int, expected_bytes: int = 1 << 20) -> Iterator[StoredBatch]:
        """The published batches that end above `offset`, in order, with whatever deleted records are still in them (see
        `is_absent`). The caller stops when it has enough; reads are sized
        for `expected_bytes`. What is published meanwhile may or may not be seen.

        Damage is skipped and reported in `damage`. Raises StorageError when the disk cannot be read."""
        offset = max(offset, self._live.start)
        while offset < self._live.end:
            recent = self.recent.since(offset, expected_bytes)
            if recent is None:
                yield from self.batches_in_files(offset, expected_bytes)
                return
            if not recent:
                return
            for header, body in recent:
                yield StoredBatch(header, body)
            offset = recent[-1][0].end_offset

    def newer_than(self, time_ns: int) -> int:
        """The offset where the first segment begins that has a record, deleted or not, newer than `time_ns`; where the last
        segment begins if none has."""
        newer = (segment.base_offset for segment in self.segments if segment.facts.index.latest > time_ns)
        return next(newer, self.segments[-1].base_offset)

    def range_at(self, offset: int) -> RangedBatch | None:
        """The published large batch that begins with this offset, as a range of its file; None where only `batches` can
        tell what is there (`Segment.range_at`). Raises StorageError when the disk cannot be read."""
        if not self._live.start <= offset < self._live.end:
            return None
        segment = self.segment_at(offset)
        try:
            return segment.range_at(offset)
        except OSError as error:
            raise storage_error(f"read {segment.path}", error) from error

    def segment_at(self, offset: cython.longlong) -> Segment:
        """The segment that has this offset, if any has; it is about to be read."""
        segment: Segment = self._segment_of(offset)
        self._keep_handle(segment, self._with_handle, OPEN_SEGMENTS)
        return segment

    def address(self, offset: cython.longlong, size: cython.p_Py_ssize_t) -> cython.ulonglong:
        """Where in a mapped file the record with this offset is likely to be, for a prefetch of so many bytes; 0 where it
        takes more than a look to tell. Compiled only."""
        if cython.compiled and self._live.has(offset) and not self.recent.reaches(offset):
            return self._segment_of(offset).address(offset, size)
        return 0

    def _segment_of(self, offset: cython.longlong) -> Segment:
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = len(self.segments)
        while high - low > 1:
            middle: cython.Py_ssize_t = (low + high) // 2
            segment: Segment = self.segments[middle]
            low, high = (middle, high) if segment.base_offset <= offset else (low, middle)
        return self.segments[low]

    def batches_in_files(self, offset: int, expected_bytes: int) -> Iterator[StoredBatch]:
        """As `batches`, from the files, to the end of the log; also what is below where the log begins."""
        for batch in self._unfinished:
            if batch.header.base_offset <= offset < batch.header.end_offset:
                yield batch
                offset = batch.header.end_offset
                break
        at = self.segments.index(self.segment_at(offset)) if self.segments else 0
        while at < len(self.segments):
            segment = self.segments[at]
            try:
                self._keep_handle(segment, self._with_handle, OPEN_SEGMENTS)
                for piece in segment.batches(offset, expected_bytes):
                    if isinstance(piece, SpoiledBytes):
                        self._report(segment, piece)
                    else:
                        yield StoredBatch(piece.header, piece.body)
            except OSError as error:
                raise storage_error(f"read {segment.path}", error) from error
            at += 1

    def cursors_in_files(self, offset: int) -> Iterator[RecordCursor]:
        """A cursor that stands on one record of the NATS dialect after the other, from `offset` on, also on deleted ones and
        those below where the log begins that no upkeep has taken from the disk yet. Raises StorageError."""
        for batch in self.batches_in_files(offset, 1 << 20):
            if batch.header.dialect == DIALECT_NATS:
                cursor = batch.cursor()
                while cursor.advance():
                    if cursor.offset >= offset:
                        yield cursor

    def _keep_handle(self, segment: Segment, among: list[Segment], most: cython.Py_ssize_t) -> None:
        """This segment's file is about to be read: close the handle that was opened first when more than `most` are open."""
        if not segment.kept:
            segment.kept = True
            among.append(segment)
            if len(among) > most:
                self.give_up(among[0])
            if self.handles is not None:
                self.handles.take(segment, self)

    def _report(self, segment: Segment, spoiled: SpoiledBytes) -> None:
        if any(known.file == segment.name and known.position == spoiled.position for known in self.damage):
            return
        end = segment.end_offset if spoiled.end_offset is None else spoiled.end_offset
        size = spoiled.end_position - spoiled.position
        damage = Damage("corrupt", spoiled.start_offset, end, True, segment.name, spoiled.position, size)
        self.damage.append(damage)
        start, end = max(damage.start, self._live.start), min(end, self._live.end)
        if start < end:  # so that counts include only what can be read
            self._live.remove(start, end)
            self._live.advance()
        if self.on_damage is not None:
            self.on_damage(damage)
