"""Sending and polling, one request per batch: the base of the client, its consumers and its producers.

A balanced or keyed send is resolved here, as the SDKs do, by the topic's number of partitions, which is fetched once.
"""

import struct
import time
from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from headwater.errors import IggyError
from headwater.iggy_client.connection import Read, as_bytes
from headwater.iggy_client.groups import Groups
from headwater.iggy_client.management import Management, Name
from headwater.iggy_wire import command_codec, reply_codec
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import of_messages
from headwater.iggy_wire.classic_codec import PREFIX, write_address
from headwater.iggy_wire.commands import Code, Message
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import (
    Consumer,
    Identifier,
    Partitioning,
    PartitioningKind,
    PollingStrategy,
    position_of_key,
)
from headwater.iggy_wire.message_codec import ReceivedMessage, read_messages
from headwater.iggy_wire.reply_codec import ONE_SENT, SentView


class Polled(NamedTuple):
    """An answer to a poll; `partition` is `NO_PARTITION` where a group member has to sync first."""

    partition: int
    current_offset: int
    messages: list[ReceivedMessage]


_ANYBODY: Final = Consumer.single()
_NEXT: Final = PollingStrategy.next()
_COUNT_SIZE: Final = 4
_FROM: Final = struct.Struct("<BQIB")


@lru_cache(maxsize=256)
def _send_address(stream: Name, topic: Name, partition: int) -> bytes:
    """What a send begins with, up to the number of messages: the same for every batch to a partition."""
    command = c.SendMessages(Identifier(stream), Identifier(topic), Partitioning.partition(partition))
    return write_address(command)[:-_COUNT_SIZE]


@lru_cache(maxsize=256)
def _poll_address(consumer: Consumer, stream: Name, topic: Name, partition: int) -> bytes:
    """What a poll begins with, up to its strategy."""
    place = Identifier(stream), Identifier(topic)
    command = c.PollMessages(consumer, *place, partition, PollingStrategy.next(), 0, False)
    return command_codec.encode(command, Era.V)[1][: -_FROM.size]


def _poll_body(address: bytes, strategy: PollingStrategy, count: int, auto_commit: bool) -> bytes:
    try:
        return address + _FROM.pack(strategy.kind, strategy.value, count, auto_commit)
    except struct.error as error:
        raise refusal("invalid_number_encoding", f"{strategy} or {count} messages do not fit: {error}") from None


def _read_polled(buffer: bytearray, start: int, end: int, owned: bool) -> Polled:
    if end - start < PREFIX.size:
        raise refusal("invalid_format", f"the answer to a poll has at least {PREFIX.size} bytes, not {end - start}")
    shown, current_offset, _ = PREFIX.unpack_from(buffer, start)
    start += PREFIX.size
    if not owned:
        buffer, start, end = buffer[start:end], 0, end - start
    return Polled(shown, current_offset, read_messages(buffer, start, end))


def _read_sent(buffer: bytearray, start: int, end: int, owned: bool) -> SentView:
    if end - start == ONE_SENT.size:
        return SentView(*ONE_SENT.unpack_from(buffer, start)[1:])
    sent: list[SentView] = reply_codec.decode(Code.SEND_MESSAGES, as_bytes(buffer, start, end), Era.V)
    if not sent:  # upstream answers so where the offset is not known any more
        raise refusal("error", "the batch is stored, but the server does not say where")
    return sent[0]


class Messages(Management, Groups):
    """Every method raises IggyError for what the server refuses, and TransportError."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[Name, Name], int] = {}
        self._turn = 0

    @abstractmethod
    async def request_read(self, code: Code, pieces: tuple[bytes | bytearray, ...], read: Read) -> Any:
        """A command as its bytes, and what `read` makes of the answer, where it was received."""

    async def send(
        self,
        stream: Name,
        topic: Name,
        batch: Sequence[Message],
        partitioning: Partitioning | int | None = None,
    ) -> SentView:
        """Send messages as one batch to one partition; stored once this returns. `partitioning`: an id, or by key, or
        by turns (None). Raises IggyError, HeaderError, ConnectionClosed."""
        body, count = of_messages(batch, time.time_ns() // 1000)
        where = partitioning if type(partitioning) is int else await self._resolve(stream, topic, partitioning)
        address = _send_address(stream, topic, where) + count.to_bytes(_COUNT_SIZE, "little")
        try:
            sent: SentView = await self.request_read(Code.SEND_MESSAGES, (address, body), _read_sent)
        except IggyError as error:
            self._forget_after(error, stream, topic)
            raise
        return sent

    def _forget_after(self, error: IggyError, stream: Name, topic: Name) -> None:
        if error.name in ("partition_not_found", "resource_not_found"):  # another client took some away
            self.forget_partitions(stream, topic)

    def forget_partitions(self, stream: Name | None = None, topic: Name | None = None) -> None:
        """Drop the cached number of partitions of a topic, or of all topics."""
        if stream is None or topic is None:
            self._partitions.clear()
        else:
            self._partitions.pop((stream, topic), None)

    async def _resolve(self, stream: Name, topic: Name, partitioning: Partitioning | int | None) -> int:
        if isinstance(partitioning, int):
            return partitioning
        if partitioning is not None and partitioning.kind is PartitioningKind.PARTITION_ID:
            return partitioning.partition_id
        count = self._partitions.get((stream, topic))
        if count is None:
            found = await self.topic(stream, topic)
            if found is None or not found.partitions:
                raise refusal("no_partitions", f"there is no topic {topic} with partitions in {stream}")
            count = self._partitions[stream, topic] = found.partitions
        if partitioning is None or partitioning.kind is PartitioningKind.BALANCED:
            self._turn += 1
            return (self._turn - 1) % count
        return position_of_key(partitioning.raw, count)

    async def poll(
        self,
        stream: Name,
        topic: Name,
        partition: int = 0,
        *,
        consumer: Consumer | None = None,
        strategy: PollingStrategy | None = None,
        count: int = 1000,
        auto_commit: bool = False,
    ) -> list[ReceivedMessage]:
        """Messages of one partition, from where `strategy` says (next); none when there are none. `auto_commit`: the server
        stores the offset of the last one as it answers."""
        return (await self.poll_as(stream, topic, partition, consumer, strategy, count, auto_commit)).messages

    async def poll_as(
        self,
        stream: Name,
        topic: Name,
        partition: int,
        consumer: Consumer | None = None,
        strategy: PollingStrategy | None = None,
        count: int = 1000,
        auto_commit: bool = False,
    ) -> Polled:
        """As `poll`, with the other fields of the answer."""
        address = _poll_address(consumer or _ANYBODY, stream, topic, partition)
        body = _poll_body(address, strategy or _NEXT, count, auto_commit)
        polled: Polled = await self.request_read(Code.POLL_MESSAGES, (body,), _read_polled)
        return polled
