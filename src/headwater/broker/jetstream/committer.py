# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Group commit: while one batch is being made durable, whatever arrives joins the next.

    publishes ─▶ staged in the log, acks wait in `items`
                     │ seal, once all links are read that were ready together with the one of the first
                     ▼
              write + one fdatasync in a writing thread      meanwhile the next batch fills
                     │
                     ▼ back in the loop: visible, then all acks of the batch, in the order of the publishes

A small batch is written in the loop itself while the disk is quick: handing it to a thread and hearing back costs more
than an fdatasync of 60 us. As soon as one took long, or many in a row were not quick, writes go to the thread until they are
quick again; so a slow disk holds up the broker's other clients once, not always.

At most one write of a log is in progress, so `Log`'s rule of one writing thread holds however many threads there are.
With one publish in flight a batch is one message; with 512, the batches are as large as what arrives during one
fdatasync. Nothing waits to make a batch larger.

Deletions wait for the next write, which carries their tombstones: when none comes, one of their own follows after
DELETION_DELAY. Upkeep of the log (dropping and compacting segments) takes its turn between two writes.

An item may come without a record (the answer to a duplicate whose original is not durable yet): it keeps its place.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from time import perf_counter

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.jetstream.items import Item
else:
    from headwater.broker.jetstream.items import Item

from headwater.broker.jetstream.writers import Writers
from headwater.errors import StorageError, WriteFailed
from headwater.streams.log import Log, Upkeep
from headwater.streams.writer import StagedBatch

logger = logging.getLogger(__name__)

DELETION_DELAY = 0.2  # seconds; a limit that removes one message per publish costs no write of its own
INLINE_BYTES = 256 << 10  # a larger batch gains from being written while the next one fills
QUICK = 0.001  # seconds; what the quicker writes of late may take for the loop to wait for them
SLOW = 0.01  # seconds; one write that took longer sends the next ones to the thread
FORGIVING = 1.2  # by so much a slower write raises the pace: 13 in a row of 1 ms and more after one of 0.1 ms
QUICKEST = 0.00002  # seconds; no disk is quicker
MAX_STAGED_BYTES: int = (
    128 << 20
)  # staged and unwritten; nats-server's bound for what a stream has taken in but not stored
_MAX_STAGED_BYTES: cython.Py_ssize_t = MAX_STAGED_BYTES


class Committer:
    """The group commit of one log. `on_durable(items)` and `on_failed(items, error)` are called in the loop. Without
    writers it writes in the loop: for logs in memory."""

    def __init__(
        self,
        log: Log,
        writers: Writers | None,
        on_durable: Callable[[list[Item]], None],
        on_failed: Callable[[list[Item], StorageError], None],
    ) -> None:
        self._log = log
        self._writers = writers
        self._on_durable = on_durable
        self._on_failed = on_failed
        self._loop = asyncio.get_running_loop()
        self._soon: Callable[[Callable[[], None]], object] = getattr(self._loop, "after_reads", self._loop.call_soon)
        self._scheduled = False  # `_begin` will run; never true while a write is in progress
        self._idle = asyncio.Event()
        self._idle.set()
        self.waiting: list[Item] = []
        self.writing: list[Item] = []
        self._writing = False
        self._waiting_bytes = 0
        self._writing_bytes = 0
        self.full = False  # more would only pile up in memory: the disk is far behind
        self._barriers: list[asyncio.Future[None]] = []  # of whoever waits for the next write
        self._reached: list[asyncio.Future[None]] = []  # of whoever waits for the present one
        self._delayed: asyncio.TimerHandle | None = None
        self._erase: deque[int] = deque()
        self._upkeep_wanted = False
        self._pace = 0.0  # what the quicker writes of small batches took lately: the others waited for a core, as a
        # writing thread would

    @property
    def unwritten_bytes(self) -> int:
        """What is staged or being written weighs."""
        return self._waiting_bytes + self._writing_bytes

    @property
    def busy(self) -> bool:
        """Whether anything is staged or being written."""
        return self._writing or bool(self.waiting)

    def add(self, item: Item) -> cython.int:
        """Whatever was staged for `item` is in the log's open batch."""
        self.waiting.append(item)
        self._waiting_bytes += item.size
        if self._waiting_bytes > _MAX_STAGED_BYTES:
            self.full = True
        if not self._scheduled and not self._writing:
            self._schedule()
        return 0

    async def flush(self) -> None:
        """Wait until everything staged so far is durable, or has failed."""
        if self._delayed is not None:
            self._delayed.cancel()
            self._delayed = None
        await self._idle.wait()

    async def barrier(self) -> None:
        """Wait until everything staged and deleted so far is durable. Raises StorageError when it could not be made so."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._barriers.append(future)
        if not self._scheduled and not self._writing:
            self._schedule()
        await future

    def note_deletions(self) -> None:
        """There may be deletions to write, and room to give back."""
        self._upkeep_wanted = True
        if self._delayed is None:
            self._delayed = self._loop.call_later(DELETION_DELAY, self._write_deletions)

    def erase(self, offset: int) -> None:
        """A deleted record is to leave the disk soon."""
        self._erase.append(offset)
        self.note_deletions()

    def close(self) -> None:
        """Nothing is written of its own accord any more."""
        if self._delayed is not None:
            self._delayed.cancel()
            self._delayed = None

    def _write_deletions(self) -> None:
        self._delayed = None
        if not self._scheduled and not self._writing:
            self._schedule()

    def _schedule(self) -> cython.int:
        self._scheduled = True
        self._idle.clear()
        self._soon(self._begin)
        return 0

    def _begin(self) -> None:
        self._scheduled = False
        self._writing = True
        batch = self._log.seal()
        self.writing, self.waiting = self.waiting, []
        self._reached, self._barriers = self._barriers, []
        self._writing_bytes, self._waiting_bytes = self._waiting_bytes, 0
        self.full = False
        if batch is None:
            self._finish(None, None)
            return
        small = batch.size <= INLINE_BYTES
        if self._writers is None or (small and self._pace <= QUICK):
            self._write_here(batch, small)
            return
        self._writers.submit(
            self._timed_write, batch, lambda seconds, error: self._written(batch, small, seconds, error)
        )

    def _timed_write(self, batch: StagedBatch) -> float:
        """Blocking; returns the seconds that it took."""
        begun = perf_counter()
        self._log.write(batch)
        return perf_counter() - begun

    def _write_here(self, batch: StagedBatch, small: cython.bint) -> cython.int:
        begun: cython.double = perf_counter()
        try:
            self._log.write(batch)
        except StorageError as error:
            self._finish(batch, error)
            return 0
        self._note_time(perf_counter() - begun, small)
        self._finish(batch, None)
        return 0

    def _written(self, batch: StagedBatch, small: bool, seconds: float | None, error: BaseException | None) -> None:
        if seconds is not None:
            self._note_time(seconds, small)
        self._finish(batch, error)

    def _note_time(self, seconds: cython.double, small: cython.bint) -> cython.int:
        if small:
            slower: cython.double = FORGIVING * max(self._pace, QUICKEST)
            self._pace = seconds if seconds > SLOW else min(seconds, slower)
        return 0

    def _finish(self, batch: StagedBatch | None, error: BaseException | None) -> cython.int:
        items, self.writing = self.writing, []
        self._writing_bytes = 0
        reached, self._reached = self._reached, []
        try:
            if error is not None:
                assert batch is not None
                self._log.abandon(batch)
                self._on_failed(items, _storage_error(error))
            else:
                if batch is not None:
                    self._log.publish(batch)
                self._on_durable(items)
        finally:
            for future in reached:
                if not future.done():
                    future.set_exception(_storage_error(error)) if error is not None else future.set_result(None)
            if not self._upkeep_wanted or not self._start_upkeep():
                self._go_on()
        return 0

    def _go_on(self) -> cython.int:
        # Only now: an ack may be published to a subject of this very stream, which calls `add` from here.
        self._writing = False
        if self.waiting or self._barriers:
            self._schedule()
        else:
            self._idle.set()
        return 0

    # ── upkeep ──

    def _start_upkeep(self) -> bool:
        """Give room back before the next write, if that is worth doing; at most one piece of it."""
        if not self._upkeep_wanted or self._log.has_deletions:
            return False
        erase = self._erase[0] if self._erase else None
        upkeep = self._log.plan_upkeep(erase)
        if upkeep is None:
            if self._erase:
                self._erase.popleft()
            self._upkeep_wanted = bool(self._erase)
            return self._start_upkeep() if self._erase else False
        if self._writers is None:
            error: BaseException | None = None
            try:
                self._log.maintain(upkeep)
            except StorageError as failure:
                error = failure
            self._finish_upkeep(upkeep, error)
            return True
        self._writers.submit(self._log.maintain, upkeep, lambda _, error: self._finish_upkeep(upkeep, error))
        return True

    def _finish_upkeep(self, upkeep: Upkeep, error: BaseException | None) -> None:
        try:
            if error is None:
                self._log.settle(upkeep)
        except StorageError as failure:
            error = failure
        if error is not None:
            logger.error("log_upkeep_failed reason=%s", _storage_error(error))
            self._upkeep_wanted = False
            self._erase.clear()
        if self.waiting or self._barriers or not self._start_upkeep():
            self._go_on()


def _storage_error(error: BaseException) -> StorageError:
    if isinstance(error, StorageError):
        return error
    logger.error("stream_write_failed", exc_info=error)
    return WriteFailed(f"the write failed: {error}")
