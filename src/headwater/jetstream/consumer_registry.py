"""Creates, stores, restores and deletes the consumers of a server's streams; each change is durable on return.

Durable consumers survive a restart with their configuration, every confirmed acknowledgement, and the rest of their state
as of 10 ms before a kill (state_keeper.py; a clean stop loses nothing): messages may be redelivered, none is skipped.
An ephemeral consumer survives a clean stop, so that its client goes on after a restart, but no kill: its state is stored
then only, because a sync for each was slow (24 of 235 in five seconds on a busy machine). Waiting requests do not survive.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from functools import partial
from itertools import chain

from headwater.errors import StorageError
from headwater.exchange.router import Router
from headwater.group_commit.writers import Writers
from headwater.jetstream.delivering import DeliveringConsumer
from headwater.jetstream.pull import PullConsumer
from headwater.jetstream.push import PushConsumer
from headwater.jetstream.state_keeper import KeptConsumer, StateKeeper
from headwater.jetstream.stream import Stream
from headwater.jetstream_advisories.advisories import Advisories
from headwater.jetstream_documents.pull_requests import CONSUMER_DELETED
from headwater.jetstream_state.consumer import ACKED, Consumer
from headwater.jetstream_state.consumer_journal import Event, Journal
from headwater.jetstream_state.store import ConsumerRecord
from headwater.jetstream_state.subject_table import SubjectFilter
from headwater.jetstream_timing.looking import count_matching
from headwater.model.timestamps import ZERO

logger = logging.getLogger(__name__)


class ConsumerRegistry:
    """`clerk`: the one thread that writes documents, so that they are written in the order of the calls. `spawn(work)` runs
    a coroutine in the background. `durable`: a confirmed acknowledgement waits for a sync."""

    def __init__(
        self,
        router: Router,
        clock_ns: Callable[[], int],
        clerk: Executor,
        spawn: Callable[[Coroutine[object, object, None]], None],
        *,
        durable: bool,
    ) -> None:
        self._router = router
        self._clock_ns = clock_ns
        self._clerk = clerk
        self._spawn = spawn
        self._durable = durable

    async def add(self, stream: Stream, name: str, state: Consumer) -> DeliveringConsumer:
        """Create and start a consumer; a durable one is on disk when this returns."""
        consumer = self._make(stream, name, self._clock_ns(), state)
        await self.save(stream, consumer)
        self.advise(stream, consumer, "create")
        if consumer.pause_remaining:
            self.advise_pause(stream, consumer)
        return consumer

    def advise(self, stream: Stream, consumer: DeliveringConsumer, action: str) -> None:
        """Send the advisory about a consumer, unless it belongs to the server."""
        if not consumer.config.direct:
            Advisories(self._router, self._clock_ns, stream.domain).consumer(stream.name, consumer.name, action)

    def advise_pause(self, stream: Stream, consumer: DeliveringConsumer) -> None:
        """Send the advisory about a consumer that was paused or goes on."""
        until = consumer.config.pause_until or ZERO
        advisories = Advisories(self._router, self._clock_ns, stream.domain)
        advisories.paused(stream.name, consumer.name, consumer.pause_remaining > 0, until)

    async def save(self, stream: Stream, consumer: DeliveringConsumer) -> None:
        """Store configuration and state of a durable consumer; nothing for an ephemeral one."""
        directory, keeper = stream.directory, stream.keeper
        if not consumer.durable or directory is None or keeper is None:
            return
        record = consumer.record(keeper.cover(consumer))
        try:
            await self._in_thread(lambda: directory.save_consumer(record))
        except BaseException:
            keeper.note_unsaved(consumer)
            raise

    async def save_all(self, stream: Stream, threads: Executor) -> bool:
        """Save all consumers of a stream when it ends; whether the journal is needed no more and may be removed. A state
        that cannot be saved stays in it."""
        directory, keeper = stream.directory, stream.keeper
        if directory is None or keeper is None:
            return False
        await keeper.close()
        in_thread = partial(asyncio.get_running_loop().run_in_executor, threads)
        stored = [consumer for consumer in stream.consumers.values() if consumer.config.outlives_restart]
        saving = [in_thread(directory.save_consumer, consumer.record(keeper.cover(consumer))) for consumer in stored]
        whole = True
        for consumer, outcome in zip(stored, await asyncio.gather(*saving, return_exceptions=True), strict=True):
            if isinstance(outcome, OSError):
                whole = False
                logger.error("consumer_not_saved consumer=%s reason=%s", consumer.name, outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
        try:
            await stream.settle_deletions()
        except StorageError as error:
            logger.error("journal_not_removed stream=%s reason=%s", stream.name, error)
            return False
        return whole

    async def delete(self, stream: Stream, consumer: DeliveringConsumer) -> None:
        """Delete a consumer, durably on return; waiting requests get a status."""
        stream.consumers.pop(consumer.name, None)
        if stream.keeper is not None:
            stream.keeper.forget(consumer)
        consumer.close(CONSUMER_DELETED)
        directory = stream.directory
        if consumer.durable and directory is not None:
            await self._in_thread(lambda: directory.remove_consumer(consumer.name))
        self.advise(stream, consumer, "delete")
        stream.drop_unneeded()

    def _make(self, stream: Stream, name: str, created_ns: int, state: Consumer) -> DeliveringConsumer:
        kind = PushConsumer if state.config.deliver_subject else PullConsumer
        consumer = kind(
            stream,
            self._router,
            name,
            created_ns,
            state,
            self._clock_ns,
            on_idle=lambda idle: self._spawn(self.delete(stream, idle)),
            on_change=stream.keeper.note if stream.keeper is not None else _nothing,
        )
        stream.consumers[name] = consumer
        return consumer

    async def restore(self, stream: Stream, records: list[ConsumerRecord], journal: Journal) -> None:
        """Restore the consumers from their stored states and from the journal."""
        happened: dict[str, list[tuple[int, list[Event]]]] = {}
        for frame in journal.frames:
            for name, events in frame.entries:
                happened.setdefault(name, []).append((frame.number, events))
        settled: list[int] = []
        replayed = []
        for record in records:
            later = [events for number, events in happened.pop(record.name, []) if number > record.frame]
            state = Consumer(record.config, record.snapshot.position)
            consumer = self._make(stream, record.name, record.created_ns, state)
            settled += consumer.restore(record.snapshot, chain.from_iterable(later))
            if later:
                replayed.append(consumer)
        gone = [event for frames in happened.values() for _, events in frames for event in events]  # of ephemeral ones
        settled += [sequence for kind, first, last in gone if kind == ACKED for sequence in range(first, last + 1)]
        stream.drop_settled(settled)
        for consumer in stream.consumers.values():
            state = consumer.state
            pending = await count_pending(stream, state.position, consumer.filter)
            state.num_pending = len(state.selected) + pending
            consumer.start()
        if stream.keeper is not None:
            stream.keeper.begin(journal, max((record.frame for record in records), default=0), replayed)

    async def bring(self, stream: Stream, records: list[ConsumerRecord]) -> None:
        """Continue the consumers of a backup; those that are durable are on disk already. They are there before this first
        waits, so no message that comes in meanwhile passes them by."""
        made = []
        for record in records:
            consumer = self._make(
                stream, record.name, record.created_ns, Consumer(record.config, record.snapshot.position)
            )
            consumer.restore(record.snapshot, ())
            made.append(consumer)
        for consumer in made:
            pending = await count_pending(stream, consumer.state.position, consumer.filter)
            consumer.state.num_pending = len(consumer.state.selected) + pending
            consumer.start()

    def keep(self, stream: Stream, writers: Writers | None) -> None:
        """Keep the states of the stream's consumers durable from now on. Writes use a thread of `writers` while the disk
        is slow."""
        assert stream.directory is not None

        async def save(kept: KeptConsumer) -> None:
            consumer = stream.consumers.get(kept.name)
            if consumer is kept:
                await self.save(stream, consumer)

        stream.keeper = StateKeeper(
            stream.directory,
            stream.name,
            stream.created_ns,
            self._router,
            writers,
            durable=self._durable,
            save=save,
            settle=stream.settle_deletions,
        )

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._clerk, work)


async def count_pending(stream: Stream, position: int, wanted: SubjectFilter | None) -> int:
    """Messages from `position` on that match, as of the moment this returns (jetstream_timing/looking.py)."""
    return await count_matching(stream.contents, position, wanted)


def _nothing(_consumer: DeliveringConsumer) -> None:
    """The consumers of a stream in memory are not stored."""
