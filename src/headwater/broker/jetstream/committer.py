"""Group commit: while one batch is being made durable, whatever arrives joins the next.

    publishes ─▶ staged in the log, acks wait in `items`
                     │ seal, at the end of the loop iteration in which the first arrived
                     ▼
              write + one fdatasync in a worker thread      meanwhile the next batch fills
                     │
                     ▼ back in the loop: visible, then all acks of the batch, in the order of the publishes

At most one write of a log is in progress, so `Log`'s rule of one writing thread holds whatever the executor's size.
With one publish in flight a batch is one message; with 512, the batches are as large as what arrives during one
fdatasync. Nothing waits to make a batch larger.

An item may come without a record (the answer to a duplicate whose original is not durable yet): it keeps its place.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

from headwater.errors import StorageError, WriteFailed
from headwater.streams.log import Log, StagedBatch

logger = logging.getLogger(__name__)

MAX_STAGED_BYTES = 128 << 20  # staged and unwritten; nats-server's bound for what a stream has taken in but not stored


class Item(NamedTuple):
    """One publish on its way to the disk. `subject` is b"" for the answer to a duplicate; then `sequence` is that of
    the original. `reply` is b"" when nobody wants the ack."""

    reply: bytes
    ack: bytes
    subject: bytes
    sequence: int
    size: int
    message_id: bytes


class Committer:
    """The group commit of one log. `on_durable(items)` and `on_failed(items, error)` are called in the loop."""

    def __init__(
        self,
        log: Log,
        executor: Executor,
        on_durable: Callable[[list[Item]], None],
        on_failed: Callable[[list[Item], StorageError], None],
    ) -> None:
        self._log = log
        self._executor = executor
        self._on_durable = on_durable
        self._on_failed = on_failed
        self._loop = asyncio.get_running_loop()
        self._scheduled = False  # `_begin` will run; never true while a write is in progress
        self._idle = asyncio.Event()
        self._idle.set()
        self.waiting: list[Item] = []
        self.writing: list[Item] = []
        self._writing = False
        self._waiting_bytes = 0

    @property
    def busy(self) -> bool:
        """Whether anything is staged or being written."""
        return self._writing or bool(self.waiting)

    @property
    def full(self) -> bool:
        """Whether more would only pile up in memory: the disk is far behind."""
        return self._waiting_bytes > MAX_STAGED_BYTES

    def add(self, item: Item) -> None:
        """Whatever was staged for `item` is in the log's open batch."""
        self.waiting.append(item)
        self._waiting_bytes += item.size
        if not self._scheduled and not self._writing:
            self._schedule()

    async def flush(self) -> None:
        """Wait until everything staged so far is durable, or has failed."""
        await self._idle.wait()

    def _schedule(self) -> None:
        self._scheduled = True
        self._idle.clear()
        self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._scheduled = False
        self._writing = True
        batch = self._log.seal()
        self.writing, self.waiting = self.waiting, []
        self._waiting_bytes = 0
        if batch is None:
            self._finish(None, None)
            return
        future = self._loop.run_in_executor(self._executor, self._log.write, batch)
        future.add_done_callback(lambda done: self._finish(batch, done.exception()))

    def _finish(self, batch: StagedBatch | None, error: BaseException | None) -> None:
        items, self.writing = self.writing, []
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
            # Only now: an ack may be published to a subject of this very stream, which calls `add` from here.
            self._writing = False
            if self.waiting:
                self._schedule()
            else:
                self._idle.set()


def _storage_error(error: BaseException) -> StorageError:
    if isinstance(error, StorageError):
        return error
    logger.error("stream_write_failed", exc_info=error)
    return WriteFailed(f"the write failed: {error}")
