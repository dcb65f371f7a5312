# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Group commit: while one batch is being made durable, whatever arrives joins the next.

    publishes ─▶ staged in the log, acks wait in `items`
                     │ seal, once all links are read that were ready together with the one of the first ▼
              write + one fdatasync in a writing thread      meanwhile the next batch fills
                     │
                     ▼ back in the loop: visible, then all acks of the batch, in the order of the publishes

A small batch is written in the loop itself while the disk is quick (`pace.py`), and every batch that is not synced with
its write: that is a copy into the page cache (1.1 MB in 0.3 ms). So is that of a lone publisher who waits for each ack, and
a batch of one item that is not small, such as a send of Iggy's: with one of those in flight nothing else would be staged
meanwhile. While 1 MB is on disk within a millisecond, that is 1.06 times the rate and 0.83 of the CPU.

At most one write of a log is in progress, so `Log`'s rule of one writing thread holds however many threads there are.
With one publish in flight a batch is one message; with 512, a batch is whatever arrives during one fdatasync. No batch
waits in order to become larger. Upkeep of the log runs between two writes (`log_upkeep.py`).

An item may come without a record (the answer to a duplicate whose original is not durable yet): it keeps its place.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.headwater.group_commit.pace import Pace
    from cython.cimports.headwater.group_commit.write_stats import WriteStats
else:
    from headwater.group_commit.pace import Pace
    from headwater.group_commit.write_stats import WriteStats

from headwater.errors import DiskFull, StorageError
from headwater.group_commit.log_upkeep import LogUpkeep, as_storage_error
from headwater.group_commit.writers import Writers
from headwater.streams.log import Log, seal_deletions
from headwater.streams.writer import StagedBatch

logger = logging.getLogger(__name__)

INLINE_BYTES = 256 << 10  # a larger batch is better written while the next one fills
LONE_BYTES = 2 << 20  # a batch of one item up to this size may be written in the loop
# Staged and unwritten; nats-server's limit for messages that a stream has captured but not stored.
MAX_STAGED_BYTES: int = 128 << 20
# Items without a record that wait for those before them, some 400 bytes each; further ones overtake these.
MOST_BEHIND: int = 1 << 14
_MAX_STAGED_BYTES: cython.Py_ssize_t = MAX_STAGED_BYTES
_INLINE_BYTES: cython.Py_ssize_t = INLINE_BYTES
_LONE_BYTES: cython.Py_ssize_t = LONE_BYTES


OnWritten = Callable[[StorageError | None], None]


class Group:
    """Items that are written together. `since`: when the oldest was added, seconds. `barriers`: called with the outcome of
    the write."""

    items: list[Any]
    size: int
    since: float
    barriers: list[OnWritten]

    def __init__(self) -> None:
        self.items = []
        self.size = 0
        self.since = 0.0
        self.barriers = []


_WRITTEN: Group = Group()  # stands for a group that was written, until the next write may begin


class Committer:
    """The group commit of one log. `on_durable(items)` and `on_failed(items, error)` are called in the loop; an item is
    what `add` was called with. Without writers it writes in the loop: for logs in memory. `full`: the disk is so far
    behind that further items would only pile up in memory. `upkeep.document`: see `LogUpkeep`. `answer_first(item)`: called
    with an item that was written alone, before the log is brought up to date; None: there is no such haste."""

    def __init__(
        self,
        log: Log,
        writers: Writers | None,
        on_durable: Callable[[list[Any]], None],
        on_failed: Callable[[list[Any], StorageError], None],
        stats: WriteStats | None = None,
    ) -> None:
        self._log = log
        self._writers = writers
        self._on_durable = on_durable
        self._on_failed = on_failed
        self._stats = stats if stats is not None else WriteStats()
        self.answer_first: Callable[[Any], object] | None = None
        loop = asyncio.get_running_loop()
        self._soon: Callable[[Callable[[], None]], object] = getattr(loop, "after_reads", loop.call_soon)
        self._scheduled = False  # `_begin` will run; never true while a write is in progress
        self._idle: asyncio.Event | None = None  # made by those who wait until nothing is staged or being written
        self._next = Group()
        self._current: Group | None = None  # the group being written
        self._pace = Pace(getattr(loop, "events_seen", None))
        self._lone_pace = Pace()  # of batches of one item above INLINE_BYTES
        self.full = False
        self.upkeep = LogUpkeep(log, writers, self._write_deletions, self._is_due, self._go_on)

    @property
    def waiting(self) -> list[Any]:
        """Items that wait for the next write."""
        return self._next.items

    @property
    def writing(self) -> list[Any]:
        """Items that are being written."""
        return self._current.items if self._current is not None else []

    @property
    def unwritten_bytes(self) -> int:
        """Bytes that are staged or being written."""
        return self._next.size + (self._current.size if self._current is not None else 0)

    @property
    def busy(self) -> bool:
        """Whether anything is staged or being written."""
        return self._current is not None or bool(self._next.items)

    @property
    def keeps_places(self) -> bool:
        """Whether an item without a record is to be added, and not handled at once: there are items before it, staged or
        being written, and no more than the disk keeps up with. Upkeep is none."""
        return bool(self._next.items or self.writing) and not self.full and len(self._next.items) < MOST_BEHIND

    def add(self, item: object, size: cython.Py_ssize_t) -> cython.int:
        """Add `item` to the group of the log's open batch, in which `size` bytes were staged for it."""
        group: Group = self._next
        if not group.items:
            group.since = perf_counter()
        group.items.append(item)
        group.size += size
        if group.size > _MAX_STAGED_BYTES:
            self.full = True
        if not self._scheduled and self._current is None:
            self._schedule()
        return 0

    async def flush(self) -> None:
        """Wait until everything staged so far is durable, or has failed."""
        self.upkeep.stop_waiting()
        if self._scheduled or self._current is not None:
            if self._idle is None:
                self._idle = asyncio.Event()
            await self._idle.wait()

    async def barrier(self) -> None:
        """Wait until everything staged and deleted so far is durable. Raises StorageError if writing failed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.when_written(partial(_resolve, future))
        await future

    def when_written(self, done: OnWritten) -> None:
        """Call `done` later, once everything staged and deleted so far is durable, or with the error if writing failed; it
        raises nothing."""
        self._next.barriers.append(done)
        self._write_deletions()

    async def settle(self) -> None:
        """Wait until everything staged so far is durable, or has failed; unlike `flush`, not for later items."""
        with suppress(StorageError):
            await self.barrier()

    def note_deletions(self) -> None:
        """There may be deletions to write, and disk space to free."""
        self.upkeep.note_deletions()

    def erase(self, offset: int) -> None:
        """Have the deleted record at `offset` overwritten on disk soon."""
        self.upkeep.erase(offset)

    def give_up_waiting(self) -> list[Any]:
        """Discard everything staged, because it depends on a batch that could not be written; returns its items. Their
        offsets stay unused."""
        group: Group = self._next
        items, group.items, group.size = group.items, [], 0
        self._log.staging.restart(self._log.staging.end_offset)
        self.full = False
        return items

    def close(self) -> None:
        """Begin no more writes for deletions or upkeep alone."""
        self.upkeep.stop_waiting()

    def _write_deletions(self) -> None:
        if not self._scheduled and self._current is None:
            self._schedule()

    def _schedule(self) -> cython.int:
        self._scheduled = True
        self._soon(self._begin)
        return 0

    def _begin(self) -> None:
        writers = self._writers
        lone: cython.bint = _INLINE_BYTES < self._next.size <= _LONE_BYTES and len(self._next.items) == 1
        pace: Pace = self._lone_pace if lone else self._pace
        in_loop: cython.bint = pace.lets_wait()
        if writers is not None and not in_loop and not writers.is_free(self._begin):
            return  # items that arrive until then join the batch
        self._scheduled = False
        batch = self._log.seal()
        self._current, self._next = self._next, Group()
        self.full = False
        if batch is None:
            self._finish(None, None)
            return
        self._pace.begin()
        staging = self._log.staging
        small: cython.bint = lone or batch.size <= _INLINE_BYTES
        paced = pace if small or not staging.is_due(batch.last_timestamp_ns) else None
        if staging.waits_for_segment(batch.size):
            paced = None  # 4 ms on a quick disk, which others need not wait for and no pace is made of
        if self._writers is None or (paced is not None and in_loop):
            self._write_here(batch, paced)
            return
        self._write_there(batch, paced)

    def _write_there(self, batch: StagedBatch, paced: Pace | None) -> None:
        """In a thread. Not in `_begin`, which would make this closure for each batch that is written in the loop, too."""
        assert self._writers is not None
        self._writers.submit(
            self._timed_write, batch, lambda seconds, error: self._written(batch, paced, seconds, error)
        )

    def _timed_write(self, batch: StagedBatch) -> float:
        """Blocking: write the batch; returns the duration in seconds."""
        begun = perf_counter()
        self._write(batch)
        return perf_counter() - begun

    def _write(self, batch: StagedBatch) -> cython.int:
        """Blocking. While the room that deletions need is not there, nothing else is written."""
        reserve = self._writers.reserve if self._writers is not None else None
        if reserve is None or (batch.builders and reserve.whole):
            self._log.write(batch)
        elif not batch.builders:
            reserve.run(self._log.write, batch)
        elif reserve.keep():
            self._log.write(batch)
        else:
            raise DiskFull(
                "no room to store messages: what is left is for deletions", hint="free space, then try again"
            )
        return 0

    def _write_refused_deletions(self, error: BaseException) -> BaseException | None:
        """The disk had no room for records, with which these deletions were to be written: write them alone. Returns the
        error that remains."""
        batch = seal_deletions(self._log)
        try:
            self._write(batch)
        except StorageError as failure:
            self._log.abandon(batch)
            self.upkeep.try_again()
            return failure
        self._log.publish(batch)
        return None

    def _write_here(self, batch: StagedBatch, paced: Pace | None) -> cython.int:
        begun: cython.double = perf_counter()
        try:
            self._write(batch)
        except StorageError as error:
            self._finish(batch, error)
            return 0
        self._note_time(perf_counter() - begun, paced)
        self._finish(batch, None)
        if batch.size > _INLINE_BYTES and self._log.options.prepares and not self.busy:
            asyncio.get_running_loop().call_soon(self._prepare, min(batch.size, _LONE_BYTES))
        return 0

    def _prepare(self, size: int) -> None:
        """After the answers, and after what other links have sent meanwhile. It saves 0.02 ms of a write of 150 KB, less
        than this turn of the loop costs: so only after larger ones."""
        if not self.busy:
            self._log.staging.prepare(size)

    def _written(
        self, batch: StagedBatch, paced: Pace | None, seconds: float | None, error: BaseException | None
    ) -> None:
        if seconds is not None:
            self._note_time(seconds, paced)
        self._finish(batch, error)

    def _note_time(self, seconds: cython.double, paced: Pace | None) -> cython.int:
        self._stats.writes.note(seconds, perf_counter())
        if paced is not None:
            paced.note(seconds)
        return 0

    def _finish(self, batch: StagedBatch | None, error: BaseException | None) -> cython.int:
        group: Group | None = self._current
        assert group is not None
        items = group.items
        self._current = _WRITTEN
        try:
            if error is not None:
                assert batch is not None
                self._log.abandon(batch)
                self._on_failed(items, as_storage_error(error))
                if self._log.has_deletions:
                    if batch.record_count and self._writers is not None and isinstance(error, DiskFull):
                        error = self._write_refused_deletions(error)
                    else:
                        self.upkeep.try_again()
            else:
                if batch is not None:
                    if self.answer_first is not None and len(items) == 1:
                        self._answer(items[0])
                    self._log.publish(batch)
                self._on_durable(items)
                if items:
                    now: cython.double = perf_counter()
                    self._stats.acks.note(now - group.since, now)
        finally:
            failure = as_storage_error(error) if error is not None and group.barriers else None
            for done in group.barriers:
                done(failure)
            if not self.upkeep.start():
                self._go_on()
        return 0

    def _answer(self, item: object) -> cython.int:
        try:
            cython.cast(object, self.answer_first)(item)
        except Exception:  # whatever it is, the log must come to know what is in its files
            logger.exception("answer_failed log=%s", self._log.directory)
        return 0

    def _is_due(self) -> bool:
        """Whether a write is waiting."""
        return bool(self._next.items or self._next.barriers)

    def _go_on(self) -> cython.int:
        # Only now: an ack may be published to a subject of this very stream, which calls `add` from here.
        self._current = None
        if self._next.items or self._next.barriers:
            self._schedule()
        elif self._idle is not None:
            self._idle.set()
            self._idle = None
        return 0


def _resolve(future: asyncio.Future[None], error: StorageError | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(None)
