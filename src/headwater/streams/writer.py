# cython: boundscheck=True, wraparound=True
"""The writing half of the log: one worker thread at a time, one staged batch after the other.

`LogWriter.write` appends a staged batch to the active segment: the encoded batches to the end of the file, then one
fdatasync. Where the batch reaches beyond the last mark, one that reserves `RESERVED` offsets more is written into the head
page before it, and made durable by the same fdatasync. It opens a new segment when the active one is full. Its parts belong
to the worker thread: the file that is written to (active_segment.py), the saved state (saved_state.py) and the note of the
durable end (end_note.py). The loop thread learns the outcome only from the `StagedBatch`, whose `placed` is read after
`write` has returned.

Failure is sorted into two kinds. *No room* (ENOSPC, EDQUOT) in a write is undone: the file is cut back, the cut is
made durable, `DiskFull` is raised, and the next write starts from a known state. *Anything else* (a write that fails,
any fsync that fails, an undo that fails) leaves the file in a state that only recovery can judge: `failure` is set, and
from then on every write raises it again without touching the disk. A failed fsync is never tried again.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.active_segment import ActiveSegment
    from cython.cimports.headwater.streams.end_note import EndNote
    from cython.cimports.headwater.streams.log_format import BatchHeader
else:
    from headwater.streams.active_segment import ActiveSegment
    from headwater.streams.end_note import EndNote
    from headwater.streams.log_format import BatchHeader

from headwater.durable_files.files import Files, storage_error
from headwater.errors import DiskFull, StorageError, WriteFailed
from headwater.streams.active_segment import create_segment
from headwater.streams.compaction import rewrite
from headwater.streams.head_page import HEAD_PAGE_SIZE, MARK_SLOTS, Mark, SegmentHead
from headwater.streams.iggy_records import ReadyBatch
from headwater.streams.log_format import BatchBuilder
from headwater.streams.log_state import LogState
from headwater.streams.options import LogOptions
from headwater.streams.saved_state import SavedState
from headwater.streams.segment import NEW_SUFFIX, SUFFIX, Segment
from headwater.streams.tombstones import encode_tombstones
from headwater.streams.upkeep import Upkeep

CHECKPOINT_FILE = "log.checkpoint"
NEW_ENDING = ".new"
# Offsets that a mark gives away ahead, and that a power loss may skip. A mark costs 11 us of an fdatasync of 117, for it
# lies in another page than the batch, and 7,100 instructions: one in 256 appends costs nothing.
RESERVED: int = 256
_HEAD_PAGE_SIZE: cython.longlong = HEAD_PAGE_SIZE


class PlacedBatch:
    """A written batch: in which segment, at which byte of it, and its contents for the readers' cache."""

    segment: Segment
    position: int
    header: BatchHeader
    body: list[bytes]  # one behind another

    def __init__(self, segment: Segment, position: cython.longlong, header: BatchHeader, body: list[bytes]) -> None:
        self.segment = segment
        self.position = position
        self.header = header
        self.body = body


class StagedBatch:
    """Records that were staged together and will be acknowledged together: offsets `[base_offset, end_offset)`, and the
    deletions requested meanwhile (perhaps only those): where these start and end, in turn. `size`: bytes of records and
    tombstones, about; `last_timestamp_ns` is 0 when there are only deletions.

    More than one batch on disk when the records are many, still one write and one fdatasync.
    """

    def __init__(
        self,
        builders: list[BatchBuilder | ReadyBatch],
        base_offset: cython.longlong,
        end_offset: cython.longlong,
        deletions: list[int],
    ) -> None:
        self.builders = builders
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.deletions = deletions
        self.placed: list[PlacedBatch] = []
        size: cython.longlong = 8 * len(deletions)
        for builder in builders:
            size += builder.size
        self.size = size
        self.last_timestamp_ns = builders[-1].last_timestamp_ns if builders else 0

    @property
    def record_count(self) -> int:
        return self.end_offset - self.base_offset


class LogWriter:
    """See the head of this module."""

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
        """`active` and `turn`: see `ActiveSegment`. Raises OSError."""
        self._files = files
        self._directory = directory
        self._options = options  # the sync policy of the first ones stays
        self.segment_bytes = options.segment_bytes
        never = options.sync == "never"
        self._saved = SavedState(files, directory, state, never_synced=never)
        self._active = ActiveSegment(files, active, state.identity, turn, never)
        self._end = EndNote(files, directory, state.identity)
        self._written_end = active.end_offset
        self._durable_end = active.end_offset
        self._next_offset = next_offset
        self._marked_end = -1  # of the last mark in the active segment by this process
        # Where a start of the system has no id, a kill would skip offsets, too.
        self._ahead = RESERVED if files.boot() else 0
        self._unsynced = False
        self._synced_at_ns = 0
        self.failure: WriteFailed | None = None

    @property
    def identity(self) -> bytes:
        return self._active.identity

    @property
    def never_synced(self) -> bool:
        """Whether nothing but the state is synced."""
        return bool(self._options.sync == "never")

    @property
    def next_offset(self) -> int:
        """The offset behind the last one that was written."""
        return self._next_offset

    def rewind(self, offset: int) -> None:
        """The next batch may begin at `offset`, behind the last that was written, also where marks gave away more."""
        self._next_offset = offset

    def refuse(self, reason: str) -> WriteFailed:
        """Refuse every write from the next one on, for this reason; an earlier failure stays. The loop thread may call it at
        any time. Returns the failure."""
        failure = WriteFailed(reason, value=self._directory)
        if self.failure is None:
            self.failure = failure
        return failure

    def resume(self, failure: WriteFailed) -> None:
        """The failure that `refuse` has returned is over; any other one stays."""
        if self.failure is failure:
            self.failure = None

    def use(self, options: LogOptions) -> None:
        """Use other sizes from the next write on; the sync policy stays. The loop thread may call it at any time."""
        self.segment_bytes = options.segment_bytes
        self._options = replace(options, sync=self._options.sync, sync_interval_ns=self._options.sync_interval_ns)

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
        identity: bytes = self._active.identity
        header: BatchHeader
        encoded: list[tuple[BatchHeader, bytes, list[bytes]]]
        encoded = [builder.encode_apart(identity) for builder in batch.builders]
        if batch.deletions:
            at, now = batch.end_offset, batch.last_timestamp_ns
            tombstones = encode_tombstones(batch.deletions, at, now, identity)
            encoded += [(header, head, [body]) for header, head, body in tombstones]
        pieces: list[bytes] = []
        size: cython.longlong = 0
        for header, head, body in encoded:
            pieces.append(head)
            pieces += body
            size += len(head) + header.body_size
        try:
            if self.begins_segment(size):
                self._roll(batch.base_offset, batch.last_timestamp_ns)
            self._saved.reserve(batch.end_offset, self._active.base_offset, self._options.sync == "always")
            self._append(batch.end_offset, pieces, size)
            self._sync_as_chosen(batch)
        except OSError as error:
            raise self._fail(f"store offsets [{batch.base_offset}, {batch.end_offset})", error) from error
        position: cython.longlong = self._active.position
        for header, head, body in encoded:
            batch.placed.append(PlacedBatch(self._active.segment, position, header, body))
            position += len(head) + header.body_size
        self._active.position = position

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
            self._saved.reserve(self._next_offset, self._active.base_offset, self._options.sync == "always")
        except OSError as error:
            raise self._fail("open a new segment", error) from error
        return self._active.segment

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
            upkeep.opened = self.roll(self._active.segment.last_timestamp_ns or 0)
            return
        state = self._saved.state
        sealed = state.sealed
        try:
            if upkeep.first is not None:
                if self._unsynced:  # it may speak of the newest record
                    self.sync()
                upkeep.first()
            if upkeep.start_offset > state.start_offset or state.index_crc:
                start_offset = max(upkeep.start_offset, state.start_offset)
                gone = {segment.base_offset for segment in upkeep.dropped}
                sealed = {base: known for base, known in sealed.items() if base not in gone}
                self._saved.save(replace(state, start_offset=start_offset, index_crc=0, sealed=sealed))
            for segment in upkeep.dropped:
                self._files.unlink(segment.path)
            if upkeep.compact is not None:
                # Earlier compactions are durable before this relies on them.
                self._files.sync_directory(self._directory)
                rewritten = any(number > sealed.get(base, (0, 0))[0] for base, (number, _) in upkeep.sealed.items())
                if rewritten or not self._saved.names_segments:
                    self._saved.save(replace(self._saved.state, sealed=upkeep.sealed))
                old = upkeep.compact
                upkeep.rewritten = rewrite(
                    self._files,
                    old.path,
                    old.facts,
                    self.identity,
                    upkeep.gone,
                    upkeep.needed,
                    compress=upkeep.compress,
                )
        except OSError as error:
            if upkeep.compact is not None:
                self._drop_unfinished(upkeep.compact.path.removesuffix(SUFFIX) + NEW_SUFFIX)
            raise storage_error("give room back", error) from error

    def _save_checkpoint(self, content: bytes) -> None:
        """Nothing depends on a checkpoint: if it cannot be written, the last one stays. The records that it describes
        are made durable first, then the mark that it is checked by."""
        if self._unsynced:
            self.sync()
        try:
            # By this mark an older copy of the segment, from before what the checkpoint knows, is recognized.
            self._mark(max(self._marked_end, self._next_offset))
        except OSError as error:
            raise storage_error("mark the log's end", error) from error
        self._fdatasync()
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
            self._drop_unfinished(path + NEW_ENDING)
            raise storage_error("save a checkpoint", error) from error

    def _drop_unfinished(self, path: str) -> None:
        """On a full disk it would take what room there is."""
        with suppress(OSError):
            self._files.unlink(path)

    @property
    def has_written(self) -> bool:
        """False while the log on disk is as the last close left it, its index included."""
        return self._saved.state.index_crc == 0

    def close(self, start_offset: int, write_index: Callable[[], int] | None = None) -> None:
        """Make all durable, note a clean end, and give the handle back. `write_index` writes the index when everything
        else is as it will stay, and returns its CRC. After a failure the handle is given back and nothing else done.

        It waits for messages that are not durable yet, and for nothing else: where a power loss undoes the index or the
        new state, the other copy has the state from before the close, and the log is read as after a kill. A little
        of the room reserved ahead stays: giving it back waits for the file system's journal, and the next start reads it."""
        try:
            if self.failure is None and self.has_written:
                if self._unsynced:
                    self._fdatasync()
                self._active.trim(self._options.preallocate_bytes)
                self._durable_end = self._written_end
                for _ in range(MARK_SLOTS):  # of two with one durable end, the one that reserves more would count
                    self._mark(self._next_offset)
                state = replace(self._saved.state, start_offset=start_offset, reserved_end=self._next_offset)
                state = replace(state, active_base=self._active.base_offset, marks_are_synced=True, closed=True)
                crc = write_index() if write_index is not None else 0
                self._saved.note(replace(state, index_crc=crc))
        except OSError as error:
            raise self._fail("close the log", error) from error
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the handles and touch nothing else (the log is about to be deleted)."""
        self._active.close()
        self._end.close()

    def _roll(self, base_offset: int, now_ns: int) -> None:
        """Open the next segment; the old one is durable before the new one is created. Where nothing is synced, it takes 0.2
        ms in place of 2 to 4."""
        if base_offset == self._active.base_offset:
            return  # it is empty, or holds tombstones only: its name is taken
        self._active.trim()
        never = self._options.sync == "never"
        if self._unsynced and not never:
            self._fdatasync()
        head = SegmentHead(self.identity, base_offset, self._written_end, now_ns)
        mark = Mark(self._durable_end, base_offset)
        segment = create_segment(self._files, self._directory, head, mark, synced=not never)
        active = ActiveSegment(self._files, segment, self.identity, 0, never)
        self._active.close()
        known = (self._active.segment.facts.generation, self._active.position)
        self._saved.seal(self._active.base_offset, known)
        self._active = active
        self._marked_end = -1

    def _append(self, end_offset: cython.longlong, pieces: list[bytes], size: cython.longlong) -> cython.int:
        """Where the last mark does not cover the batch, a mark first."""
        active: ActiveSegment = self._active
        active.make_room(size, self._options.preallocate_bytes, self.segment_bytes)
        try:
            if end_offset > self._marked_end:
                self._mark(max(end_offset, min(end_offset + self._ahead, self._saved.state.reserved_end)))
            self._next_offset = end_offset  # whatever becomes of the batch
            active.write(pieces, size)
        except OSError as error:
            failure = storage_error("write", error)
            if isinstance(failure, DiskFull):
                self._undo()
            raise
        self._unsynced = True
        self._written_end = end_offset
        return 0

    def _mark(self, assigned_end: cython.longlong) -> cython.int:
        self._active.mark(self._durable_end, assigned_end)
        self._marked_end = assigned_end
        return 0

    def _undo(self) -> None:
        """Cut a half-written batch off again, durably."""
        try:
            self._active.cut()
        except OSError as error:
            raise self._lasting("undo a write for which there was no room", error) from error

    def prepare(self, size: cython.longlong) -> None:
        """Blocking, while nothing is written. A batch of about `size` bytes is likely to be next: do now what need not wait
        for it. A hint; it raises nothing."""
        if self.failure is None and not self.begins_segment(size):
            self._active.make_room(size, self._options.preallocate_bytes, self.segment_bytes)
            self._active.fill_ahead(size)

    def begins_segment(self, size: cython.longlong) -> cython.bint:
        """Whether a batch of this size opens a new segment: a few more waits for the disk, once in many."""
        return _HEAD_PAGE_SIZE < self._active.position and self._active.position > self.segment_bytes - size

    def is_due(self, now_ns: cython.longlong) -> cython.bint:
        """Whether a batch of this time is synced with its write."""
        policy = self._options.sync
        in_time = policy == "interval" and 0 <= now_ns - self._synced_at_ns < self._options.sync_interval_ns
        return policy != "never" and not in_time

    def _sync_as_chosen(self, batch: StagedBatch) -> cython.int:
        if self.is_due(batch.last_timestamp_ns):
            self._fdatasync()
            self._synced_at_ns = batch.last_timestamp_ns
        elif self._options.sync == "interval":
            self._active.hasten()
        return 0

    def _fdatasync(self) -> cython.int:
        try:
            self._active.fdatasync()
        except OSError as error:
            raise self._lasting("make the log durable", error) from error
        return self._note_durable()

    def _note_durable(self) -> cython.int:
        self._unsynced = False
        self._durable_end = self._written_end
        self._end.note(self._durable_end, self._active.base_offset, self._active.written_position)
        return 0

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
