"""Sends and polls of every era: choosing the partition and the first offset, and committing the last.

The messages of a send arrive here as one checked batch of generation V in a buffer; a poll returns stored batches. The
eras' codecs run before and after (`conversation`).
"""

import asyncio
from collections.abc import Callable, Generator
from typing import Final, NamedTuple

from headwater.errors import IggyError, StorageError
from headwater.iggy.catalog import group_of
from headwater.iggy.clients import HTTP, Client
from headwater.iggy.group_commands import consumer_key
from headwater.iggy.partition import MAX_POLL_BYTES, TURN_BYTES, Batch, Partition, Polled
from headwater.iggy.service import Service
from headwater.iggy.topics import Topic
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import NO_PARTITION
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import Consumer, ConsumerKind, PollingStrategy
from headwater.iggy_wire.reply_codec import SentView

Done = Callable[[StorageError | None], None]


class SendRoute(NamedTuple):
    """The target of an address. `partition` is the position in the topic, as numbered by generation V."""

    stream_id: int
    topic: Topic
    partition: int
    messages: int


Polling = Generator[None, None, Polled]
"""A poll in steps, with a turn of the loop between them: reading 32 MiB takes at least 30 ms."""


class Found(NamedTuple):
    """The answer to a poll. `partition` is in the client's numbering, `NO_PARTITION` for a member that must sync its
    partitions."""

    partition: int
    polled: Polled
    incarnation: int = 0
    owner: int = 0


NOTHING: Final = Polled([], 0, -1, 0)


def found_in(client: Client, topic: Topic, partition: Partition, consumer: Consumer, polled: Polled) -> Found:
    """The answer for the messages polled."""
    owner = 0
    if client.era >= Era.W and consumer.kind is ConsumerKind.GROUP:
        owner = topic.group(group_of(topic.entry, consumer.id).id).generation
    return Found(partition.index + client.era.first_id, polled, topic.incarnation(partition), owner)


def send(
    service: Service,
    client: Client,
    address: c.SendMessages,
    batch: Batch,
    checksums: bytes,
    done: Done,
    incarnation: int = 0,
) -> SentView:
    """Stage the batch of `address.count` messages; `done` is called when it is durable, or
    has failed. `incarnation`: of the partition that the client means.

    Raises HeadwaterError, and `done` is not called then.
    """
    service.refresh()
    service.authorize(client, address)
    stream, topic = service.topic(address.stream, address.topic)
    try:
        partition = topic.for_send(address.partitioning, client.era.first_id)
    except IggyError as error:
        if client.era >= Era.V and client.transport != HTTP and error.name == "partition_not_found":
            raise refusal(
                "resource_not_found", error.message, error.value
            ) from error  # upstream's one answer to a send
        raise
    topic.check_incarnation(partition, incarnation)
    shown = partition.index + client.era.first_id
    base_offset = partition.append(batch, address.count, checksums, service.clock_us(), partition.index, done)
    return SentView(stream.id, topic.entry.id, shown, base_offset)


def send_again(
    service: Service,
    route: SendRoute,
    batch: Batch,
    checksums: bytes,
    done: Done,
    incarnation: int = 0,
) -> SentView:
    """As `send`, by a remembered route."""
    stream_id, topic, shown, count = route
    partition = topic.partition(shown, 0)
    if incarnation:
        topic.check_incarnation(partition, incarnation)
    base_offset = partition.append(batch, count, checksums, service.clock_us(), shown, done)
    return SentView(stream_id, topic.entry.id, shown, base_offset)


def poll(
    service: Service,
    client: Client,
    command: c.PollMessages,
    ranges: bool = False,
    *,
    most: int = 0,
    strict: bool = False,
    incarnation: int = 0,
) -> Generator[None, None, Found]:
    """Poll messages, in steps; with `ranges`, some of them as ranges of files; up to `most` bytes where that is not 0, but
    one message at least, unless that is `strict`. Raises HeadwaterError."""
    service.refresh()
    topic = service.topic(command.stream, command.topic)[1]
    partition = partition_to_poll(topic, client, command)
    if partition is None:
        if client.era >= Era.W:
            raise refusal("consumer_group_partition_not_owned", f"client {client.id} does not own this partition")
        return Found(NO_PARTITION if client.era is Era.V else client.era.first_id, NOTHING)
    topic.check_incarnation(partition, incarnation)
    key = consumer_key(topic, command.consumer)
    strategy, count, commits = command.strategy, command.count, command.auto_commit
    polled = yield from poll_partition(
        service, topic, partition, key, strategy, count, commits, ranges, most=most, strict=strict
    )
    return found_in(client, topic, partition, command.consumer, polled)


def poll_partition(
    service: Service,
    topic: Topic,
    partition: Partition,
    consumer: str,
    strategy: PollingStrategy,
    count: int,
    auto_commit: bool,
    ranges: bool,
    *,
    most: int = 0,
    strict: bool = False,
) -> Polling:
    """Poll for the consumer whose committed offset is under the key `consumer`. Raises StorageError."""
    offset = partition.start_of(strategy, count, topic.committed(partition.index, consumer))
    limit = min(most or MAX_POLL_BYTES, MAX_POLL_BYTES)
    part = polled = partition.poll(offset, count, partition.index, ranges, min(limit, TURN_BYTES))
    size = polled.size
    while part.messages and polled.messages < count and size < limit:
        if part.last_offset >= partition.current_offset:
            break
        yield
        rest = count - polled.messages
        part = partition.poll(part.last_offset + 1, rest, partition.index, ranges, min(limit, TURN_BYTES))
        size += part.size
        if size <= limit and part.messages:
            polled = polled.followed_by(part)
    if most and polled.size > most:  # a stored batch may exceed the limit
        polled = polled.shortened(most, strict)
    if auto_commit and polled.messages:
        topic.commit(partition.index, consumer, polled.last_offset)
        service.saver.note(topic)
    return polled


def partition_to_poll(topic: Topic, client: Client, command: c.PollMessages) -> Partition | None:
    """The partition to poll; None when the client is a group member that does not own it, or owns none. Raises IggyError."""
    number, first_id = command.partition, client.era.first_id
    if command.consumer.kind is ConsumerKind.CONSUMER:
        return topic.partition(first_id if number is None else number, first_id)
    group = topic.group(group_of(topic.entry, command.consumer.id).id)
    if client.era >= Era.V and number is not None:
        partition = topic.partition(number, first_id)
        return partition if group.owns(client.id, partition.index) else None
    index = group.next_of(client.id)
    return None if index is None else topic.partitions[index]


async def poll_in_turns(polling: Generator[None, None, Found]) -> Found:
    """Run the steps of a poll, with a turn of the loop before each."""
    while True:
        await asyncio.sleep(0)
        try:
            next(polling)
        except StopIteration as end:
            found: Found = end.value
            return found
