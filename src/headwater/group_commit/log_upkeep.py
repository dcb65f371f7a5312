"""The upkeep of a log between its writes: makes deletions durable, frees disk space, writes checkpoints.

Deletions wait for the next write, which carries their tombstones: when none comes within DELETION_DELAY, they get a write
of their own. Dropping, compacting and compressing segments takes its turn between two writes, and so does a checkpoint, so
that a start after a crash need not read everything.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from headwater.errors import StorageError, WriteFailed
from headwater.group_commit.reserve import SIZE
from headwater.group_commit.writers import Writers
from headwater.streams.log import Log, Upkeep
from headwater.streams.upkeep import live_bytes

logger = logging.getLogger(__name__)

DELETION_DELAY = 0.2  # seconds; a limit that removes one message per publish costs no write of its own
RETRY_DELAY = 30.0  # seconds until deletions and upkeep that a full disk refused are tried again


class LogUpkeep:
    """The upkeep of one log. `write()` begins a write if none is in progress, `is_due()` returns whether a write is
    waiting, `resume()` is called when upkeep that `start` began has ended. `document()`: the data that a checkpoint
    stores beside the log's own index; None: no checkpoints. `before_loss()`: called before deleted records leave the
    disk; the writing thread first runs the function that it returns (`Upkeep.first`). Without writers everything runs
    in the loop.

    What the disk refused is tried again after RETRY_DELAY: nothing but upkeep gives room back, and on a full disk there
    may be no other reason to write."""

    def __init__(
        self,
        log: Log,
        writers: Writers | None,
        write: Callable[[], None],
        is_due: Callable[[], bool],
        resume: Callable[[], object],
    ) -> None:
        self.document: Callable[[], bytes] | None = None
        self.before_loss: Callable[[], Callable[[], None] | None] | None = None
        self._log = log
        self._writers = writers
        self._write = write
        self._is_due = is_due
        self._resume = resume
        self._loop = asyncio.get_running_loop()
        self._delayed: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._erase: deque[int] = deque()
        self._wanted = False
        self._noted = False  # deletions, since the last piece of upkeep was planned

    def note_deletions(self) -> None:
        """There may be deletions to write, and disk space to free."""
        self._wanted = self._noted = True
        if self._delayed is None:
            self._delayed = self._loop.call_later(DELETION_DELAY, self._on_delay)

    def erase(self, offset: int) -> None:
        """Have a deleted record overwritten on disk soon."""
        self._erase.append(offset)
        self.note_deletions()

    def try_again(self) -> None:
        """The disk has refused something: try again later, unless the log is read-only now."""
        if self._retry is None and self._log.failure is None:
            self._retry = self._loop.call_later(RETRY_DELAY, self._on_retry)

    def _on_retry(self) -> None:
        self._retry = None
        self._wanted = True
        self._write()

    def stop_waiting(self) -> None:
        """Begin no more writes for deletions alone."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._delayed is not None:
            self._delayed.cancel()
            self._delayed = None

    def start(self) -> bool:
        """Begin one piece of upkeep, if one is worth doing. It does not wait until no deletions are left: a stream at
        its limit and under load deletes with every batch."""
        return (
            (self._wanted and self._start_upkeep())
            or (self._log.compression.compress is not None and self._start_compression())
            or (self._log.checkpoint_due and self._start_checkpoint())
        )

    def _on_delay(self) -> None:
        self._delayed = None
        self._write()

    def _start_upkeep(self) -> bool:
        if not self._wanted:
            return False
        erase = self._erase[0] if self._erase else None
        self._noted = False
        upkeep = self._log.plan_upkeep(erase)
        if upkeep is None:
            if self._erase:
                self._erase.popleft()
            self._wanted = bool(self._erase)
            return self._start_upkeep() if self._erase else False
        if self.before_loss is not None and not upkeep.roll:
            upkeep.first = self.before_loss()
        return self._maintain(upkeep)

    def _start_compression(self) -> bool:
        upkeep = self._log.compression.plan()
        return upkeep is not None and self._maintain(upkeep)

    def _start_checkpoint(self) -> bool:
        if self.document is None:
            return False
        try:
            upkeep = self._log.plan_checkpoint(self.document())
        except StorageError as error:
            logger.error("log_checkpoint_failed reason=%s", error)
            return False
        return upkeep is not None and self._maintain(upkeep)

    def _maintain(self, upkeep: Upkeep) -> bool:
        reserve = self._writers.reserve if self._writers is not None else None
        maintain = self._log.maintain
        if reserve is not None and needs_little_room(upkeep):
            maintain = partial(reserve.run, maintain)
        elif upkeep.compact is not None and reserve is not None and not reserve.keep():
            # The disk is full: a copy would use up in vain what deletions of other logs need.
            self._wanted = False
            self.try_again()
            return False
        if self._writers is None:
            error: BaseException | None = None
            try:
                self._log.maintain(upkeep)
            except StorageError as failure:
                error = failure
            self._finish(upkeep, error)
            return True
        self._writers.submit(maintain, upkeep, lambda _, error: self._finish(upkeep, error))
        return True

    def _finish(self, upkeep: Upkeep, error: BaseException | None) -> None:
        try:
            if error is None:
                self._log.settle(upkeep)
        except StorageError as failure:
            error = failure
        if error is not None:
            logger.error("log_upkeep_failed reason=%s", as_storage_error(error))
            if upkeep.checkpoint is None:
                # What was deleted meanwhile may have made of it what needs no room: a segment to remove.
                self._wanted = self._noted
                self._erase.clear()
                self.try_again()
        if self._is_due() or not (self._start_upkeep() or self._start_compression()):
            self._resume()


def needs_little_room(upkeep: Upkeep) -> bool:
    """Whether the reserve is enough for it until it gives room back. Compacting needs room for all that stays; a checkpoint
    gives nothing back."""
    return upkeep.checkpoint is None and (upkeep.compact is None or live_bytes(upkeep.compact) <= SIZE // 2)


def as_storage_error(error: BaseException) -> StorageError:
    """Convert an exception of a writing thread to the error that callers expect."""
    if isinstance(error, StorageError):
        return error
    logger.error("stream_write_failed", exc_info=error)
    return WriteFailed(f"the write failed: {error}")
