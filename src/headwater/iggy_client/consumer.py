"""A consumer of a topic that goes on without end: alone on one partition, or as a member of a group.

    consumer = client.consumer("orders", "eu", group="billing", options=ConsumerOptions(batch=100))
    async for message in consumer: ...                   or: await consumer.consume(callback, until=event)

The group and the membership are made at first use. Partitions come and go as the group changes; a partition that comes
is read from behind the group's stored offset, and where nothing is stored from `start`. From there on the consumer
keeps its own position, so that messages whose offset is not stored are not returned twice, except after a crash or by
another member. `auto_commit` sets when an offset is stored.

The session restores a lost connection; polls without an answer in time are repeated after `retry_wait`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from headwater.client_connection.timeouts import Timeout, seconds_of
from headwater.errors import IggyError, RequestTimeout
from headwater.iggy_client.auto_commit import AutoCommit, Commits
from headwater.iggy_client.management import Name
from headwater.iggy_client.messages import Messages
from headwater.iggy_wire.commands import NO_PARTITION
from headwater.iggy_wire.identifiers import Consumer, ConsumerKind, PollingStrategy, StrategyKind
from headwater.iggy_wire.message_codec import ReceivedMessage
from headwater.model.record import Record

logger = logging.getLogger(__name__)

SHORTEST_WAIT: Final = 0.002  # seconds after the first poll that found nothing; each further one doubles it
LOOK_SECONDS: Final = 0.1  # how long `consume` waits for messages before it looks at its event
_NOT_A_MEMBER: Final = "consumer_group_member_not_found"


class ConsumerOptions(Record):
    """`batch`: messages of one poll. `poll_interval`: seconds between polls; `idle`: the longest wait when nothing is there.
    `create_group` and `join`: whether both are done at first use, tried `init_attempts` times, `retry_wait` seconds apart.
    `allow_replay`: begin at `start` even where an offset is stored. `sync_interval`: how often a member asks which
    partitions are its own; of one that went to another member it learns at its next poll.

    Times in seconds, or `timedelta`s."""

    start: PollingStrategy = PollingStrategy.next()
    auto_commit: AutoCommit = AutoCommit()
    batch: int = 1000
    poll_interval: Timeout = 0.0
    idle: Timeout = 0.05
    create_group: bool = True
    join: bool = True
    init_attempts: int = 1
    retry_wait: Timeout = 1.0
    allow_replay: bool = False
    sync_interval: Timeout = 1.0


class TopicConsumer:
    """See the head of this module. Made by `Client.consumer`; for one task at a time."""

    def __init__(
        self, client: Messages, stream: Name, topic: Name, reader: Consumer, partition: int, options: ConsumerOptions
    ) -> None:
        self.stream = stream
        self.topic = topic
        self.options = options
        self._client = client
        self._reader = reader
        self._partitions: list[int] = [] if self.in_group else [partition]
        self._positions: dict[int, int] = {}
        self._commits = Commits(options.auto_commit)
        self._prepared = False
        self._turn = 0
        self._stored_at = 0.0
        self._synced_at = 0.0
        self._in_hand: ReceivedMessage | None = None

    @property
    def in_group(self) -> bool:
        """Whether the consumer is a member of a group."""
        return self._reader.kind is ConsumerKind.GROUP

    @property
    def name(self) -> str:
        """The name of the group, or of the consumer."""
        return str(self._reader.id)

    @property
    def partitions(self) -> list[int]:
        """The partitions that it reads."""
        return list(self._partitions)

    @property
    def partition(self) -> int | None:
        """The partition of the last message returned; None before the first."""
        return None if self._in_hand is None else self._in_hand.partition

    def last_consumed_offset(self, partition: int) -> int | None:
        """The offset of the last consumed message; None when there is none."""
        return self._commits.consumed.get(partition)

    def last_stored_offset(self, partition: int) -> int | None:
        """The last offset that this consumer stored; None when there is none."""
        return self._commits.stored.get(partition)

    # ── messages ──

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        """The messages, without end."""
        while True:
            batch = await self.next_batch()
            for place, message in enumerate(batch, 1):
                if self.hand(message, place == len(batch)):
                    await self.settle(message)
                yield message
                if self.finish(message, place == len(batch)):
                    await self.settle(message)

    async def consume(
        self, callback: Callable[[ReceivedMessage], Awaitable[object]], until: asyncio.Event | None = None
    ) -> None:
        """Await `callback` for one message after the other, until the event is set, which is looked at ten times a second;
        then what is due is stored. An exception of the callback ends it, and its message counts as not consumed."""
        while until is None or not until.is_set():
            batch = await self.next_batch(LOOK_SECONDS)
            for place, message in enumerate(batch, 1):
                if self.hand(message, place == len(batch)):
                    await self.settle(message)
                await callback(message)
                if self.finish(message, place == len(batch)):
                    await self.settle(message)
                if until is not None and until.is_set():
                    break
        await self.store_pending()

    async def next_batch(self, patience: Timeout | None = None) -> list[ReceivedMessage]:
        """The messages of one poll of one partition; waits for messages, or returns [] after `patience` seconds. A
        message counts as handed out once `hand` was called for it. Raises IggyError when the server refuses,
        TransportError when the session has ended."""
        await self._prepare()
        wait, began = SHORTEST_WAIT, time.monotonic()
        idle, longest = seconds_of(self.options.idle), None if patience is None else seconds_of(patience)
        while True:
            if self.options.poll_interval:
                await asyncio.sleep(seconds_of(self.options.poll_interval))
            if self.in_group and time.monotonic() - self._synced_at >= seconds_of(self.options.sync_interval):
                await self._sync()
            batch = await self._round()
            if self._is_due():
                await self.store_pending()
            if batch or (longest is not None and time.monotonic() - began >= longest):
                return batch
            await asyncio.sleep(wait)
            wait = min(2 * wait, idle)

    def hand(self, message: ReceivedMessage, is_last: bool) -> bool:
        """Pass a message to the program, `is_last` of its batch; returns whether to `settle` it first."""
        self._in_hand = message
        self._positions[message.partition] = message.offset + 1
        return self._commits.handed(is_last)

    def finish(self, message: ReceivedMessage, is_last: bool) -> bool:
        """The program is done with it; returns whether to `settle` it."""
        return self._commits.done(message.partition, message.offset, is_last) or self._is_due()

    async def settle(self, message: ReceivedMessage) -> None:
        """Store the message's offset, and other offsets that are due."""
        await self._store(message.partition, message.offset)
        if self.options.auto_commit.interval:
            await self.store_pending()

    # ── offsets ──

    async def store_offset(self, offset: int, partition: int | None = None) -> None:
        """Store `offset` as consumed, in the partition of the last message if none is given."""
        where = self._where(partition)
        await self._client.store_offset(self.stream, self.topic, where, offset, self._reader)
        self._commits.stored[where] = offset

    async def delete_offset(self, partition: int | None = None) -> None:
        """Delete the partition's stored offset."""
        where = self._where(partition)
        await self._client.delete_offset(self.stream, self.topic, where, self._reader)
        self._commits.forget(where)
        self._positions.pop(where, None)

    async def store_pending(self) -> None:
        """Store the offsets that an interval would store."""
        self._stored_at = time.monotonic()
        for partition, offset in self._commits.pending():
            await self._store(partition, offset)

    async def close(self) -> None:
        """Store the offsets that are due, and leave the group."""
        if not self._prepared:
            return
        await self.store_pending()
        self._prepared = False
        if self.in_group and self.options.join:
            await self._client.leave_group(self.stream, self.topic, self._reader.id.value)

    def _where(self, partition: int | None) -> int:
        if partition is not None:
            return partition
        return self._in_hand.partition if self._in_hand is not None else next(iter(self._partitions), 0)

    async def _store(self, partition: int, offset: int) -> None:
        try:
            await self.store_offset(offset, partition)
        except IggyError as error:
            if not self.in_group:
                raise
            # The partition may be another member's by now, who reads the message again.
            logger.warning("iggy_offset_not_stored partition=%s offset=%s reason=%s", partition, offset, error)
            await self._sync()

    def _is_due(self) -> bool:
        """Whether an interval is over and leaves something to store."""
        interval = seconds_of(self.options.auto_commit.interval)
        return bool(interval and time.monotonic() - self._stored_at >= interval and self._commits.pending())

    # ── partitions ──

    async def _prepare(self) -> None:
        if self._prepared:
            return
        attempts = self.options.init_attempts
        while True:
            try:
                await self._begin()
                break
            except IggyError:
                attempts -= 1
                if attempts <= 0:
                    raise
                await asyncio.sleep(seconds_of(self.options.retry_wait))
        self._stored_at = time.monotonic()
        self._prepared = True

    async def _begin(self) -> None:
        if not self.in_group:
            return
        client, group = self._client, self._reader.id.value
        if self.options.create_group and await client.group(self.stream, self.topic, group) is None:
            try:
                await client.create_group(self.stream, self.topic, str(group))
            except IggyError as error:
                if error.name != "consumer_group_name_already_exists":  # another member was first
                    raise
        if self.options.join:
            self._take((await client.join_group(self.stream, self.topic, group)).partitions)
        else:
            await self._sync()

    async def _sync(self) -> None:
        """Update the list of assigned partitions."""
        if not self.in_group:
            return
        group = self._reader.id.value
        try:
            self._take((await self._client.sync_group(self.stream, self.topic, group)).partitions)
        except IggyError as error:
            if error.name != _NOT_A_MEMBER or not self.options.join:
                raise
            self._take((await self._client.join_group(self.stream, self.topic, group)).partitions)

    def _take(self, partitions: list[int]) -> None:
        for lost in set(self._positions) - set(partitions):
            self._positions.pop(lost)
            self._commits.forget(lost)
        self._partitions = list(partitions)
        self._synced_at = time.monotonic()

    async def _round(self) -> list[ReceivedMessage]:
        """Poll the partitions in turn until one has messages."""
        for _ in range(len(self._partitions)):
            self._turn += 1
            partition = self._partitions[self._turn % len(self._partitions)]
            try:
                batch = await self._poll(partition)
            except RequestTimeout as error:
                logger.warning("iggy_poll_without_answer partition=%s reason=%s", partition, error)
                await asyncio.sleep(seconds_of(self.options.retry_wait))
                continue
            if batch is None:
                break  # the partitions are others now
            if batch:
                return batch
        return []

    async def _poll(self, partition: int) -> list[ReceivedMessage] | None:
        """None when the group has changed."""
        position = self._positions.get(partition)
        strategy = await self._start_of(partition) if position is None else PollingStrategy.offset(position)
        try:
            polled = await self._client.poll_as(
                self.stream, self.topic, partition, self._reader, strategy, self.options.batch, self._commits.by_server
            )
        except IggyError as error:
            if not self.in_group or error.name != _NOT_A_MEMBER:
                raise
            await self._sync()
            return None
        if polled.partition == NO_PARTITION:
            await self._sync()
            return None
        if not polled.messages and position is not None and polled.current_offset + 1 < position:
            self._positions.pop(partition)  # it was purged: offsets have begun anew
            self._commits.forget(partition)
        elif polled.messages and self._commits.by_server:
            self._commits.stored[partition] = polled.messages[-1].offset
        return polled.messages

    async def _start_of(self, partition: int) -> PollingStrategy:
        start = self.options.start
        if start.kind is StrategyKind.NEXT or self.options.allow_replay:
            return start
        stored = await self._client.offset(self.stream, self.topic, partition, self._reader)
        return start if stored is None else PollingStrategy.next()
