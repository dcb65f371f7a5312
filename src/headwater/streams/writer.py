# cython: boundscheck=True, wraparound=True
"""The writing half of the log: one worker thread at a time, one staged batch after the other.

`LogWriter.write` appends a staged batch to the active segment: the mark into the head page, the encoded batches to the
end of the file, then one fdatasync for both. It opens a new segment when the active one is full. It owns the write
handle, the write position, the marks and the log's state; it tells the loop thread what it did only through the
`StagedBatch`, whose `placed` is read after `write` has returned.

Failure is sorted into two kinds. *No room* (ENOSPC, EDQUOT) in a write is undone: the file is cut back, the cut is
made durable, `DiskFull` is raised, and the next write starts from a known state. *Anything else* (a write that fails,
any fsync that fails, an undo that fails) leaves the file in a state that only recovery can judge: `failure` is set, and
from then on every write raises it again without touching the disk. A failed fsync is never tried again.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.head_page import mark_sector
    from cython.cimports.headwater.streams.log_format import BatchHeader
else:
    from headwater.streams.head_page import mark_sector
    from headwater.streams.log_format import BatchHeader

from headwater.errors import DiskFull, StorageError, WriteFailed
from headwater.streams import meta
from headwater.streams.compaction import rewrite
from headwater.streams.end_file import END_FILE, encode_end
from headwater.streams.files import File, Files, storage_error
from headwater.streams.head_page import HEAD_PAGE_SIZE, Mark, SegmentHead, encode_head_page, mark_position
from headwater.streams.iggy_records import ReadyBatch
from headwater.streams.log_format import BatchBuilder
from headwater.streams.log_state import RESERVATION, LogState
from headwater.streams.options import LogOptions
from headwater.streams.ownership import STATE_DOCUMENT
from headwater.streams.segment import NEW_SUFFIX, SUFFIX, Segment
from headwater.streams.tombstones import Range, encode_tombstones
from headwater.streams.upkeep import Upkeep

CHECKPOINT_FILE = "log.checkpoint"
NEW_ENDING = ".new"

logger = logging.getLogger(__name__)


class PlacedBatch:
    """A written batch: in which segment, at which byte of it, and its contents for the readers' cache."""

    segment: Segment
    position: int
    header: BatchHeader
    body: bytes

    def __init__(self, segment: Segment, position: cython.longlong, header: BatchHeader, body: bytes) -> None:
        self.segment = segment
        self.position = position
        self.header = header
        self.body = body


class StagedBatch:
    """Records that were staged together and will be acknowledged together: offsets `[base_offset, end_offset)`, and the
    deletions that were asked for meanwhile (perhaps only those).

    More than one batch on disk when the records are many, still one write and one fdatasync.
    """

    def __init__(
        self,
        builders: list[BatchBuilder | ReadyBatch],
        base_offset: cython.longlong,
        end_offset: cython.longlong,
        deletions: list[Range],
    ) -> None:
        self.builders = builders
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.deletions = deletions
        self.placed: list[PlacedBatch] = []

    @property
    def record_count(self) -> int:
        return self.end_offset - self.base_offset

    @property
    def size(self) -> int:
        """Bytes of records and tombstones, about."""
        return sum([builder.size for builder in self.builders]) + 16 * len(self.deletions)

    @property
    def last_timestamp_ns(self) -> int:
        """0 when there are only deletions."""
        return self.builders[-1].last_timestamp_ns if self.builders else 0


class LogWriter:
    """See the head of this module. `active` is the segment that is written to."""

    def __init__(
        self,
        files: Files,
        directory: str,
        options: LogOptions,
        state: LogState,
        active: Segment,
        next_offset: int,
        turn: int,
    ) -> None:
        """`active` must exist durably and hold nothing behind its `end_position`; its newest mark is that of `turn`.
        Raises OSError."""
        self._files = files
        self._directory = directory
        self._options = options
        self.segment_bytes = options.segment_bytes
        self._ahead = options.preallocate_bytes
        self._syncs_always = options.sync == "always"
        self._identity = state.identity
        self._reserved_end = 0  # of the state, as long as the state names the active segment and no index; else 0
        self._state = state
        self._active = active
        self._file: File = files.open(active.path)
        self._position = self._written_position = active.end_position
        self._active_base = active.base_offset
        self._allocated = self._file.size()  # recovery has cut what is not zero
        self._written_end = active.end_offset
        self._durable_end = active.end_offset
        self._next_offset = next_offset
        self._turn = turn
        self._unsynced = False
        self._synced_at_ns = 0
        self._end_file: File | None = None
        self._notes_end = True
        self.failure: WriteFailed | None = None

    @property
    def identity(self) -> bytes:
        return self._identity

    @property
    def next_offset(self) -> int:
        """Behind the last that was written."""
        return self._next_offset

    def use(self, options: LogOptions) -> None:
        """Other sizes from the next write on; the sync policy stays. The loop thread's, at any time."""
        self.segment_bytes = options.segment_bytes
        self._ahead = options.preallocate_bytes

    def write(self, batch: StagedBatch) -> None:
        """Blocking. When it returns, the batch is in the log, and durable as the sync policy has it. Raises DiskFull
        (undone, try again later) or WriteFailed (read-only from now on)."""
        if self.failure is not None:
            raise self.failure
        if batch.base_offset < self._next_offset:
            raise StorageError(
                "batches are written once each, in the order they were sealed",
                value=batch.base_offset,
                limit=self._next_offset,
            )
        identity: bytes = self._identity
        encoded: list[tuple[BatchHeader, bytes, bytes]] = [builder.encode(identity) for builder in batch.builders]
        if batch.deletions:
            at, now = batch.end_offset, batch.last_timestamp_ns
            encoded += encode_tombstones(batch.deletions, at, now, identity)
        pieces: list[bytes] = []
        size: cython.longlong = 0
        for _, head, body in encoded:
            pieces.append(head)
            pieces.append(body)
            size += len(head) + len(body)
        try:
            if HEAD_PAGE_SIZE < self._position and self._position > self.segment_bytes - size:
                self._roll(batch.base_offset, batch.last_timestamp_ns)
            self._keep_state(batch.end_offset)
            self._append(batch.end_offset, pieces, size)
            self._sync_as_chosen(batch)
        except OSError as error:
            raise self._fail(f"store offsets [{batch.base_offset}, {batch.end_offset})", error) from error
        position: cython.longlong = self._position
        for header, head, body in encoded:
            batch.placed.append(PlacedBatch(self._active, position, header, body))
            position += len(head) + len(body)
        self._position = position

    def sync(self) -> None:
        """Blocking. Make durable what was written under the policies `interval` and `never`. Raises WriteFailed."""
        if self.failure is not None:
            raise self.failure
        if self._unsynced:
            try:
                self._fdatasync()
            except OSError as error:
                raise self._fail("make the log durable", error) from error

    def roll(self, now_ns: int) -> Segment:
        """Blocking. Go on in a new segment, so that the active one may be dropped or compacted. Raises DiskFull or
        WriteFailed."""
        if self.failure is not None:
            raise self.failure
        try:
            self._roll(self._next_offset, now_ns)
            self._keep_state(self._next_offset)
        except OSError as error:
            raise self._fail("open a new segment", error) from error
        return self._active

    def maintain(self, upkeep: Upkeep) -> None:
        """Blocking. Do what was planned. Raises StorageError when the disk refuses; only a failure to open a new segment
        ends writing."""
        if self.failure is not None:
            raise self.failure
        if upkeep.checkpoint is not None:
            contents = upkeep.checkpoint()
            upkeep.checkpoint_size = len(contents)
            self._save_checkpoint(contents)
            return
        if upkeep.roll:
            upkeep.opened = self.roll(self._active.last_timestamp_ns or 0)
            return
        sealed = self._state.sealed
        try:
            if upkeep.start_offset > self._state.start_offset or self._state.index_crc:
                start_offset = max(upkeep.start_offset, self._state.start_offset)
                gone = {segment.base_offset for segment in upkeep.dropped}
                sealed = {base: known for base, known in sealed.items() if base not in gone}
                self._save(replace(self._state, start_offset=start_offset, index_crc=0, sealed=sealed))
            for segment in upkeep.dropped:
                self._files.unlink(segment.path)
            if upkeep.compact is not None:
                self._files.sync_directory(
                    self._directory
                )  # earlier compactions are durable before this relies on them
                if any(generation > sealed.get(base, (0, 0))[0] for base, (generation, _) in upkeep.sealed.items()):
                    self._save(replace(self._state, sealed=upkeep.sealed))
                old = upkeep.compact
                upkeep.rewritten = rewrite(self._files, old.path, old.facts, self.identity, upkeep.gone, upkeep.needed)
        except OSError as error:
            raise storage_error("give room back", error) from error

    def _save_checkpoint(self, content: bytes) -> None:
        """Nothing depends on it: where it cannot be written, the last one stays. What it knows is made durable first."""
        if self._unsynced:
            self.sync()
        path = f"{self._directory}/{CHECKPOINT_FILE}"
        try:
            file = self._files.create(path + NEW_ENDING)
            try:
                file.pwrite([content], 0)
                file.fdatasync()
            finally:
                file.close()
            self._files.rename(path + NEW_ENDING, path)
        except OSError as error:
            raise storage_error("save a checkpoint", error) from error

    @property
    def has_written(self) -> bool:
        """False while the log on disk is as the last close left it, its index included."""
        return self._state.index_crc == 0

    def close(self, start_offset: int, save_index: Callable[[], int] | None = None) -> None:
        """Make all durable, note a clean end, and give the handle back. `save_index` writes the index when everything
        else is as it will stay, and returns its CRC. After a failure the handle is given back and nothing else done."""
        try:
            if self.failure is None and self.has_written:
                mark = self._next_mark(self._written_end, self._next_offset)
                self._file.pwrite([mark], mark_position(self._turn))
                self._trim()
                self._fdatasync()
                crc = save_index() if save_index is not None else 0
                state = replace(self._state, start_offset=start_offset, reserved_end=self._next_offset)
                self._save(
                    replace(
                        state, active_base=self._active.base_offset, marks_are_synced=True, index_crc=crc, closed=True
                    )
                )
        except OSError as error:
            raise self._fail("close the log", error) from error
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Give the handles back and touch nothing else (the log is about to be deleted)."""
        self._file.close()
        if self._end_file is not None:
            self._end_file.close()

    def _keep_state(self, end_offset: int) -> None:
        """Before a batch goes out: no offset is used unless a durable state says that it may be, and no segment unless
        the state names it (so a newest segment that is gone is noticed)."""
        if end_offset <= self._reserved_end:
            return
        state, active_base = self._state, self._active.base_offset
        if end_offset > state.reserved_end:
            synced = self._options.sync == "always"
            reserved_end = end_offset + RESERVATION
            state = replace(state, active_base=active_base, reserved_end=reserved_end, marks_are_synced=synced)
            self._save(replace(state, index_crc=0, closed=False))
        elif active_base != state.active_base or state.index_crc or state.closed:
            self._save(replace(state, active_base=active_base, index_crc=0, closed=False))
        self._reserved_end = self._state.reserved_end

    def _save(self, state: LogState) -> None:
        self._reserved_end = 0
        meta.save(self._files, f"{self._directory}/{STATE_DOCUMENT}", state.encode(), state.identity)
        self._state = state

    def _roll(self, base_offset: int, now_ns: int) -> None:
        """Open the next segment; the old one is durable before the new one exists."""
        if base_offset == self._active.base_offset:
            return  # it is empty, or holds tombstones only: its name is taken
        self._trim()
        if self._unsynced and self._options.sync != "never":
            self._fdatasync()
        head = SegmentHead(self.identity, base_offset, self._written_end, now_ns)
        mark = Mark(self._durable_end, base_offset)
        segment = create_segment(self._files, self._directory, head, mark)
        file = self._files.open(segment.path)
        self._file.close()
        known = (self._active.facts.generation, self._position)
        self._state = replace(self._state, sealed={**self._state.sealed, self._active.base_offset: known})
        self._file, self._active, self._position, self._turn = file, segment, segment.end_position, 0
        self._active_base, self._written_position = segment.base_offset, segment.end_position
        self._reserved_end = 0
        self._allocated = segment.end_position

    def _trim(self) -> None:
        """Give back the room that was reserved and not used. Not synced here: zeros at an end mean nothing."""
        if self._allocated > self._position:
            self._file.truncate(self._position)
            self._allocated = self._position

    def _append(self, end_offset: cython.longlong, pieces: list[bytes], size: cython.longlong) -> cython.int:
        """Mark first, then the batch: a process killed between the two leaves a gap, never an offset used twice."""
        mark: bytes = self._next_mark(self._durable_end, end_offset)
        if self._position + size > self._allocated:
            self._reserve_room(self._position + size)
        try:
            self._file.pwrite([mark], mark_position(self._turn))
            self._next_offset = end_offset  # whatever becomes of the batch: the mark has given its offsets away
            self._file.pwrite(pieces, self._position)
        except OSError as error:
            failure = storage_error("write", error)
            if isinstance(failure, DiskFull):
                self._undo()
            raise
        self._unsynced = True
        self._written_position = self._position + size
        self._written_end = end_offset
        return 0

    def _reserve_room(self, end: int) -> None:
        """So that the coming fdatasync, and many after it, find the file's size as it is. Failing costs only that."""
        ahead = self._ahead
        if ahead and end - self._position < ahead:
            target = max(end, min(end + ahead, self.segment_bytes))
            with suppress(OSError):
                self._file.allocate(target)
                self._allocated = target
        self._allocated = max(self._allocated, end)

    def _next_mark(self, durable_end: cython.longlong, assigned_end: cython.longlong) -> bytes:
        self._turn += 1
        return mark_sector(durable_end, assigned_end, self._identity)

    def _undo(self) -> None:
        """Cut a half-written batch off again, durably."""
        try:
            self._file.truncate(self._position)
            self._allocated = self._position
            self._file.fdatasync()
        except OSError as error:
            raise self._lasting("undo a write for which there was no room", error) from error

    def _sync_as_chosen(self, batch: StagedBatch) -> cython.int:
        if self._syncs_always:
            self._fdatasync()
            return 0
        policy, now_ns = self._options.sync, batch.last_timestamp_ns
        if policy == "never":
            return 0
        if policy == "interval" and 0 <= now_ns - self._synced_at_ns < self._options.sync_interval_ns:
            return 0
        self._fdatasync()
        self._synced_at_ns = now_ns
        return 0

    def _fdatasync(self) -> cython.int:
        try:
            self._file.fdatasync()
        except OSError as error:
            raise self._lasting("make the log durable", error) from error
        self._unsynced = False
        self._durable_end = self._written_end
        if self._notes_end:
            self._note_end()
        return 0

    def _note_end(self) -> cython.int:
        """Write into another file how far the log is durable now (recorded_end.py): one write into the page cache. A file
        that cannot be written keeps a lower end, which is as true; then no more of it is tried."""
        try:
            if self._end_file is None:
                self._end_file = self._open_end_file()
            end = encode_end(self._identity, self._durable_end, self._active_base, self._written_position)
            self._end_file.pwrite([end], 0)
        except OSError as error:
            self._notes_end = False
            logger.warning("log_end_not_noted directory=%s reason=%s", self._directory, error)
        return 0

    def _open_end_file(self) -> File:
        path = f"{self._directory}/{END_FILE}"
        try:
            return self._files.open(path)
        except FileNotFoundError:
            return self._files.create(path)

    def _fail(self, what: str, error: OSError) -> StorageError:
        """DiskFull as it is; everything else ends writing."""
        failure = storage_error(what, error)
        return failure if isinstance(failure, DiskFull) else self._lasting(what, error)

    def _lasting(self, what: str, error: OSError) -> WriteFailed:
        """Read-only from here on, even when the errno says 'no room': after a failed fsync nothing is known."""
        self.failure = WriteFailed(
            storage_error(what, error).message,
            value=error.filename,
            hint="the log is read-only now; see to the disk and open it again: recovery decides from what is on it",
        )
        return self.failure


def create_segment(files: Files, directory: str, head: SegmentHead, mark: Mark) -> Segment:
    """An empty segment, durable, under its final name; the name never stands for a file without a whole head page."""
    segment = Segment.empty(files, directory, head.identity, head.base_offset)
    temporary = segment.path.removesuffix(SUFFIX) + NEW_SUFFIX
    file = files.create(temporary)
    try:
        file.pwrite([encode_head_page(head, mark)], 0)
        file.fdatasync()
    finally:
        file.close()
    files.rename(temporary, segment.path)
    files.sync_directory(directory)
    return segment
