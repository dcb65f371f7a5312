"""Makes the states of a stream's consumers durable: a confirmed acknowledgement is answered once it would survive a crash.

    delivery, ack ─▶ Consumer.events ─┬─ confirmed (has a reply) ─▶ a frame, one fdatasync for all that wait ─▶ answers
                                      └─ else, within WRITE_DELAY ─▶ a frame, no sync of its own

    survives power loss   all that was confirmed; of the rest, what happened more than SYNC_DELAY before
    survives kill -9      the same, and all that happened more than WRITE_DELAY before

So an unconfirmed acknowledgement reaches the operating system within 10 ms and costs no sync: the sync of the next
confirmed one covers it, or the one that follows after SYNC_DELAY. Under the sync policies `interval` and `never` a
confirmation waits for the write only, as the acknowledgement of a publish does.

When the journal exceeds CHECKPOINT_BYTES the states of its consumers are saved whole (`store`) while frames go to a new
file, and the old file is removed. A work queue's deletions are made durable first: an acknowledged message whose frame is
gone must not reappear. After a failed write, saving the whole states is retried until it succeeds; acks that wait for a
confirmation are answered with status 503 and the disk's error.

At most one write is in progress. It runs in the loop while the disk is fast, in a writing thread while it is slow, as in
`group_commit/committer.py`.
"""

import asyncio
import errno
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Protocol

from headwater.durable_files.files import storage_error
from headwater.errors import StorageError
from headwater.exchange.router import Router
from headwater.group_commit.writers import Writers
from headwater.jetstream.journal_writer import Confirmations, JournalWriter, PendingFrames
from headwater.jetstream_state.consumer import Consumer
from headwater.jetstream_state.consumer_journal import Entry, Journal, JournalFiles, identity_of
from headwater.jetstream_state.store import StreamDirectory
from headwater.model.line_limit import LineLimit

logger = logging.getLogger(__name__)

WRITE_DELAY = 0.008  # seconds; with the write itself and a turn of the loop, less than 10 ms
SYNC_DELAY = 0.5
CHECKPOINT_BYTES = 1 << 20
RETRY_DELAY = 1.0  # seconds after a write failed
BETWEEN_LINES = 60.0  # seconds between two lines that say that states cannot be saved


class KeptConsumer(Protocol):
    """A consumer of the stream. `state.events` is a list that the keeper takes."""

    name: str
    state: Consumer

    @property
    def durable(self) -> bool: ...


class StateKeeper:
    """The keeper of one stream on disk. `save(consumer)` stores the whole state of a durable consumer; `settle()` makes
    the stream's deletions durable. `durable`: a confirmation waits for a sync. `failure`: why the journal cannot be
    written; None while it can."""

    def __init__(
        self,
        directory: StreamDirectory,
        name: str,
        created_ns: int,
        router: Router,
        writers: Writers | None,
        *,
        durable: bool,
        save: Callable[[KeptConsumer], Awaitable[None]],
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        self.failure: StorageError | None = None
        self._name = name
        self._save = save
        self._settle = settle
        self._frames = PendingFrames(identity_of(name, created_ns))
        self._confirmations = Confirmations(router)
        files = JournalFiles(directory.files, directory.consumers_path, directory.make_consumers)
        self._writing = JournalWriter(files, writers, durable=durable)
        loop = asyncio.get_running_loop()
        self._soon: Callable[[Callable[[], None]], object] = getattr(loop, "after_reads", loop.call_soon)
        self._changed: dict[KeptConsumer, None] = {}  # consumers with events that are in no frame yet
        self._unsaved: dict[KeptConsumer, None] = {}  # consumers with frames that their saved states do not include
        self._scheduled = False
        self._sync_wanted = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._checkpoint: asyncio.Task[None] | None = None
        self._closed = False

    def begin(self, journal: Journal, saved: int, unsaved: Iterable[KeptConsumer]) -> None:
        """Continue after the frames that were found, and after `saved`, the highest in a saved state. `unsaved`: consumers
        whose states were rebuilt from frames."""
        self._frames.number = max(saved, journal.frames[-1].number if journal.frames else 0)
        self._unsaved.update(dict.fromkeys(unsaved))
        if journal.paths:
            self._start_checkpoint()

    # ── events ──

    def note(self, consumer: KeptConsumer) -> None:
        """A consumer has events."""
        self._changed[consumer] = None
        self._set_timer("write", WRITE_DELAY, self._schedule)

    def confirm(self, consumer: KeptConsumer, reply: bytes) -> None:
        """Answer `reply` once everything noted so far is durable."""
        if self._closed:
            self._confirmations.refuse([reply], StorageError("the stream is closed"))
            return
        self._changed[consumer] = None
        self._confirmations.add(reply)
        self._schedule()

    def cover(self, consumer: KeptConsumer) -> int:
        """The number of the last frame that the consumer's present state includes."""
        self._encode()
        if self._frames:
            self._schedule()
        self._unsaved.pop(consumer, None)
        return self._frames.number

    def note_unsaved(self, consumer: KeptConsumer) -> None:
        """The state that `cover` was called for could not be saved."""
        self._unsaved[consumer] = None

    def lose_files(self) -> None:
        """The stream's files were removed: refuse confirmations until its folder is back, and all states saved."""
        self._fail(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._writing.files.directory))

    def forget(self, consumer: KeptConsumer) -> None:
        """The consumer was deleted."""
        self._changed.pop(consumer, None)
        self._unsaved.pop(consumer, None)

    async def close(self) -> None:
        """Write what is pending, answer the waiting acks, and take no more events."""
        await self._end()
        self._encode()
        replies = self._confirmations.take()
        error: BaseException | None = self.failure
        if error is None and (self._frames or (replies and self._writing.unsynced)):
            try:
                self._writing.write_last(*self._frames.take())
            except OSError as failure:
                error = failure
        if error is not None:
            self._confirmations.refuse(replies, error)
        else:
            self._confirmations.answer(replies)
        self._writing.files.close()

    async def abandon(self) -> None:
        """Stop without writing: the stream is being removed."""
        await self._end()
        self._writing.files.close()

    async def _end(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._checkpoint is not None:
            self._checkpoint.cancel()
            await asyncio.wait([self._checkpoint])
        await self._writing.idle.wait()

    def remove_files(self) -> None:
        """Blocking: remove the journal, once all states were saved whole after `close`. Raises OSError."""
        self._writing.files.remove(self._writing.files.paths())

    # ── writing ──

    def _set_timer(self, name: str, delay: float, work: Callable[[], None]) -> None:
        """Run `work` after `delay` seconds, unless a timer of this name is set already."""
        if name not in self._timers and not self._closed:
            self._timers[name] = asyncio.get_running_loop().call_later(delay, self._on_timer, name, work)

    def _on_timer(self, name: str, work: Callable[[], None]) -> None:
        del self._timers[name]
        work()

    def _schedule(self, *, sync: bool = False) -> None:
        self._sync_wanted = self._sync_wanted or sync
        if not self._scheduled and self._writing.idle.is_set() and not self._closed:
            self._scheduled = True
            self._soon(self._begin)

    def _encode(self) -> None:
        """Put all events into a frame."""
        entries: list[Entry] = []
        for consumer in self._changed:
            events, consumer.state.events = consumer.state.events, []
            if events:
                entries.append((consumer.name, events))
                self._unsaved[consumer] = None
        self._changed.clear()
        self._frames.add(entries)

    def _begin(self) -> None:
        self._scheduled = False
        writing = self._writing
        if self._closed or not writing.idle.is_set():
            return
        self._encode()
        replies = self._confirmations.take()
        if self.failure is not None:
            self._confirmations.refuse(replies, self.failure)
            return
        sync = writing.durable and (bool(replies) or self._sync_wanted)
        self._sync_wanted = False
        if not self._frames and not (sync and writing.unsynced):
            self._confirmations.answer(replies)
            return
        writing.write(*self._frames.take(), sync, partial(self._written, replies))

    def _written(self, replies: list[bytes], error: BaseException | None) -> None:
        if error is not None:
            self._fail(error)
            self._confirmations.refuse(replies, error)
            return
        self._confirmations.answer(replies)
        if self._writing.durable and self._writing.unsynced:
            self._set_timer("sync", SYNC_DELAY, partial(self._schedule, sync=True))
        if self._writing.files.size > CHECKPOINT_BYTES:
            self._start_checkpoint()
        if self._confirmations or self._frames or self._sync_wanted:
            self._schedule()

    def _fail(self, error: BaseException) -> None:
        failure = storage_error("write the consumers' journal", error) if isinstance(error, OSError) else None
        self.failure = failure or StorageError(f"the consumers' journal cannot be written: {error}")
        logger.error("consumer_journal_failed stream=%s reason=%s", self._name, self.failure)
        self._frames.drop()
        self._writing.fresh = True
        self._start_checkpoint()

    # ── saving whole states ──

    def _start_checkpoint(self) -> None:
        if self._checkpoint is None and not self._closed:
            self._checkpoint = asyncio.get_running_loop().create_task(self._run_checkpoint())

    async def _run_checkpoint(self) -> None:
        try:
            lines = LineLimit(BETWEEN_LINES)
            while not await self._save_all(lines):
                await _pause(RETRY_DELAY)
        finally:
            self._checkpoint = None

    async def _save_all(self, lines: LineLimit) -> bool:
        """Save the states of all consumers that have frames; the files up to here are then obsolete."""
        self._frames.dropping = False
        self._encode()
        self._writing.fresh = True  # later events are in no saved state
        consumers = list(self._unsaved)
        try:
            self._writing.files.make_directory()
            doomed = self._writing.files.paths()
            await self._settle()
            for consumer in consumers:
                if consumer.durable:
                    await self._save(consumer)
                else:
                    self._unsaved.pop(consumer, None)
        except (OSError, StorageError) as error:
            times = lines.due(asyncio.get_running_loop().time())
            if times:
                logger.error("consumers_not_saved stream=%s times=%d reason=%s", self._name, times, error)
            self._unsaved.update(dict.fromkeys(consumers))
            if self.failure is not None:
                self._frames.drop()
            return False
        if self._frames.dropping:
            # A write has failed meanwhile: what it was to hold may be of a state saved before that.
            return False
        if self.failure is not None:
            self.failure = None
            logger.info("consumer_journal_resumed stream=%s", self._name)
        if self._frames:
            self._schedule()
        try:
            self._writing.files.remove(doomed)
        except OSError as error:
            logger.error("journal_not_removed stream=%s reason=%s", self._name, error)
        return True


async def _pause(seconds: float) -> None:
    await asyncio.sleep(seconds)
