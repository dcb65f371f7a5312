"""Group commit of one partition: while one write is being made durable, whatever arrives joins the next.

    sends ─▶ staged in the log ─▶ `add(done)`
                                     │ seal, at the end of the loop iteration in which the first arrived
                                     ▼
                      write + one fdatasync in a worker thread          meanwhile the next batch fills
                                     │
                                     ▼ back in the loop: visible, then every `done(None)`, or `done(error)`, in order

A log with sync policy `never` is written in the loop, in place of a thread: such a write is a copy into the page cache, and
handing it over costs more than it takes (1.1 MB in 0.3 ms; the way to a thread and back 0.2 to 1.2 ms where both cores
have work). The kernel may still hold it up when the disk is far behind: whoever wants no such pause chooses `interval`.

At most one write of a log is in progress, so `Log`'s rule of one writing thread holds whatever the executor's size.
Work that must not meet a write (upkeep, a deletion) goes through `exclusive`.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from headwater.errors import StorageError, WriteFailed
from headwater.streams.log import Log
from headwater.streams.writer import StagedBatch

logger = logging.getLogger(__name__)

MAX_STAGED_BYTES = 128 << 20  # staged and unwritten, for one partition

Done = Callable[[StorageError | None], None]


class Committer:
    """The group commit of one log. The callbacks run in the loop."""

    def __init__(self, log: Log, executor: Executor) -> None:
        self._log = log
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Done] = []
        self._scheduled = False
        self._busy = False  # a write is in progress, or somebody holds `exclusive`
        self._idle = asyncio.Event()
        self._idle.set()
        self.on_stored: Callable[[], None] | None = None  # told when there is more to read, or less

    @property
    def full(self) -> bool:
        """Whether more would only pile up in memory: the disk is far behind."""
        return self._log.staged_bytes > MAX_STAGED_BYTES

    def add(self, done: Done) -> None:
        """What was staged, or discarded, just now is to be written; `done` hears what became of it."""
        self._waiting.append(done)
        self._idle.clear()
        self._schedule()

    async def flush(self) -> None:
        """Wait until everything staged so far is durable, or has failed."""
        await self._idle.wait()

    @contextmanager
    def exclusive(self) -> Iterator[bool]:
        """Keep writes away; yields False, and does not, when one is in progress."""
        if self._busy:
            yield False
            return
        self._busy = True
        self._idle.clear()
        try:
            yield True
        finally:
            self._busy = False
            self._schedule()
            if not self._waiting:
                self._idle.set()

    def _schedule(self) -> None:
        if self._waiting and not self._scheduled and not self._busy:
            self._scheduled = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._scheduled = False
        if self._busy:
            return
        waiting, self._waiting = self._waiting, []
        batch = self._log.seal()
        self._busy = True
        if batch is None:
            self._finish(None, waiting, None)
            return
        if self._log.options.sync == "never":
            self._finish(batch, waiting, _outcome(self._log, batch))
            return
        future = self._loop.run_in_executor(self._executor, self._log.write, batch)
        future.add_done_callback(lambda done: self._finish(batch, waiting, done.exception()))

    def _finish(self, batch: StagedBatch | None, waiting: list[Done], error: BaseException | None) -> None:
        failure = None if error is None else _storage_error(error)
        if batch is not None:
            if failure is None:
                self._log.publish(batch)
            else:
                self._log.abandon(batch)
        self._busy = False
        for done in waiting:
            done(failure)
        if self.on_stored is not None and failure is None:
            self.on_stored()
        if self._waiting:
            self._schedule()
        elif not self._busy:
            self._idle.set()


def _outcome(log: Log, batch: StagedBatch) -> StorageError | None:
    """Write it here and now."""
    try:
        log.write(batch)
    except StorageError as error:
        return error
    return None


def _storage_error(error: BaseException) -> StorageError:
    if isinstance(error, StorageError):
        return error
    logger.error("iggy_write_failed", exc_info=error)
    return WriteFailed(f"the write failed: {error}")
