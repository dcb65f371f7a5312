"""Commands that create, change, describe and remove streams, topics and partitions: a function for each.

Names, numbers and options are checked before anything is made; the catalog is on disk before the answer. Views have
what the client's era knows: first ids of 0 or 1, an expiry in seconds or microseconds, options as fields or as a
block. Options are read and refused by `iggy_wire.options`.
"""

from dataclasses import replace
from typing import Any, Final

from headwater.errors import IggyError
from headwater.iggy import catalog as rules
from headwater.iggy.catalog import StreamEntry, TopicEntry
from headwater.iggy.clients import Client
from headwater.iggy.partition import Partition
from headwater.iggy.service import Service
from headwater.iggy.store import Offsets
from headwater.iggy.topic_files import SMALLEST_SEGMENT
from headwater.iggy.topics import Topic
from headwater.iggy.upkeep import drop
from headwater.iggy_wire import commands as c
from headwater.iggy_wire import reply_codec as views
from headwater.iggy_wire.commands import Command
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.option_catalog import DERIVED_OF_STREAMS, check_creation, derived
from headwater.iggy_wire.options import (
    STREAM,
    TOPIC,
    TopicOptions,
    canonical,
    check_update,
    is_fixed,
    merged,
    names_in,
    read_options,
    reset_options,
)
from headwater.iggy_wire.reply_codec import Context

# ── views ──


def partition_view(partition: Partition, first_id: int, metadata: int) -> views.PartitionView:
    log = partition.log
    return views.PartitionView(
        partition.index + first_id,
        partition.created,
        len(log.spans),
        partition.current_offset,
        partition.size,
        log.record_count,
        Context(partition.uid, 0, metadata),
    )


def topic_view(topic: Topic, era: Era, metadata: int | None = None) -> views.TopicView:
    """The view of a topic; with `metadata`, the number of operations so far, it includes the partitions."""
    entry = topic.entry
    return views.TopicView(
        id=entry.id,
        created=entry.created,
        partitions=len(topic.partitions),
        name=entry.name,
        message_expiry=_shown_expiry(entry.message_expiry, era),
        compression=entry.compression,
        max_size=entry.max_size or rules.NEVER,
        replication=entry.replication,
        size=topic.size,
        messages=topic.messages,
        options=entry.options,
        derived=derived(_chosen(entry), entry.options, era) if era >= Era.V else b"",
        parts=[]
        if metadata is None
        else [partition_view(partition, era.first_id, metadata) for partition in topic.partitions],
    )


def _shown_expiry(expiry: int, era: Era) -> int:
    """In the era's unit: seconds in 32 bits at first, microseconds later; "never" is its largest number from B on."""
    if era < Era.B:
        return min(expiry // 1_000_000, 0xFFFFFFFF)
    return expiry or rules.NEVER


def stream_view(service: Service, stream: StreamEntry, era: Era, details: bool = False) -> views.StreamView:
    topics = [service.topics[entry.uid] for entry in stream.topics]
    return views.StreamView(
        id=stream.id,
        created=stream.created,
        topics=len(topics),
        name=stream.name,
        size=sum(topic.size for topic in topics),
        messages=sum(topic.messages for topic in topics),
        options=stream.options,
        derived=DERIVED_OF_STREAMS if era >= Era.W else b"",
        details=[topic_view(topic, era) for topic in topics] if details else [],
    )


# ── streams ──


def get_stream(service: Service, client: Client, command: c.GetStream) -> views.StreamView:
    return stream_view(service, service.catalog.stream(command.stream), client.era, details=True)


def get_streams(service: Service, client: Client, command: c.GetStreams) -> list[views.StreamView]:
    return [stream_view(service, stream, client.era) for stream in listed(service)]


def listed(service: Service) -> list[StreamEntry]:
    """The streams in a list; one that shows another face's streams only if it has topics."""
    return [stream for stream in service.catalog.streams if stream.topics or not stream.origin]


async def create_stream(service: Service, client: Client, command: c.CreateStream) -> views.StreamView:
    name = rules.checked_name(command.name, "stream", seed=client.era is Era.S)
    check_creation(STREAM, names_in(command.options), client.era)
    read_options(command.options, STREAM)
    async with service.change() as catalog:
        rules.check_free_name(catalog.streams, name, "stream")
        number = rules.free_id(catalog.streams, command.id, "stream", client.era.first_id, given=client.era is Era.S)
        stream = StreamEntry(number, name, service.clock_us(), [], command.options)
        catalog.streams.append(stream)
    return stream_view(service, stream, client.era)


async def update_stream(service: Service, client: Client, command: c.UpdateStream) -> None:
    name = rules.checked_name(command.name, "stream")
    check_update(command.options, 2)
    async with service.change() as catalog:
        stream = catalog.stream(command.stream)
        rules.check_free_name(catalog.streams, name, "stream", but=stream)
        stream.name = name


async def delete_stream(service: Service, client: Client, command: c.DeleteStream) -> None:
    async with service.change() as catalog:
        stream = catalog.stream(command.stream)
        catalog.streams.remove(stream)
    for entry in stream.topics:
        await _remove_topic(service, service.topics.pop(entry.uid))


async def purge_stream(service: Service, client: Client, command: c.PurgeStream) -> None:
    for entry in list(service.catalog.stream(command.stream).topics):
        await _purge(service, service.topics[entry.uid])


# ── topics ──


def get_topic(service: Service, client: Client, command: c.GetTopic) -> views.TopicView:
    return topic_view(service.topic(command.stream, command.topic)[1], client.era, service.operations)


def get_topics(service: Service, client: Client, command: c.GetTopics) -> list[views.TopicView]:
    try:
        stream = service.catalog.stream(command.stream)
    except IggyError:
        if client.era >= Era.V:  # as upstream: the list is empty if the stream is missing
            return []
        raise
    return [topic_view(service.topics[entry.uid], client.era) for entry in stream.topics]


def _settings(command: c.CreateTopic | c.UpdateTopic, era: Era) -> TopicOptions:
    """The topic options of a command: fields before V (at first an expiry in seconds), a block since. Raises IggyError."""
    if era >= Era.V:
        check_creation(TOPIC, names_in(command.options), era)
        return read_options(command.options, TOPIC)
    unit = 1 if era >= Era.B else 1_000_000
    if command.compression not in (0, 1, 2, 3):
        raise refusal("invalid_command", f"compression {command.compression} is not known", command.compression)
    never = 0 if era >= Era.B else 0xFFFFFFFF
    expiry = 0 if command.message_expiry == never else rules.limit(command.message_expiry)
    return TopicOptions(
        expiry * unit, rules.limit(command.max_size), command.compression or 1, command.replication or 1
    )


async def create_topic(service: Service, client: Client, command: c.CreateTopic) -> views.TopicView:
    name = rules.checked_name(command.name, "topic", seed=client.era is Era.S)
    rules.checked_partitions(command.partitions)
    chosen = _settings(command, client.era)
    _check_size(chosen, command.partitions)
    options = canonical(command.options, 1)
    partitions: list[Partition] = []
    try:
        async with service.change() as catalog:
            stream = catalog.stream(command.stream)
            rules.check_free_name(stream.topics, name, "topic")
            number = rules.free_id(stream.topics, command.id, "topic", client.era.first_id, given=client.era is Era.S)
            entry = TopicEntry(number, catalog.new_uid(), name, service.clock_us(), [], options=options)
            _choose(entry, chosen)
            partitions = await service.files.open_partitions(service.catalog, entry, command.partitions)
            stream.topics.append(entry)
            topic = Topic(entry, partitions, Offsets(), service.new_identity(entry.uid))
            service.topics[entry.uid] = topic
    except BaseException:
        if partitions:
            service.topics.pop(entry.uid, None)
            await service.files.close_partitions(partitions, remove=True)
        raise
    return topic_view(topic, client.era, service.operations)


def _check_size(chosen: TopicOptions, partitions: int) -> None:
    """Refuse a limit that cannot be enforced: every partition keeps its newest segment. Raises IggyError."""
    least = max(chosen.segment_bytes, SMALLEST_SEGMENT * max(1, partitions))
    if 0 < chosen.max_size < least:
        raise refusal(
            "invalid_topic_size", f"{chosen.max_size} bytes are less than segments of {least}", chosen.max_size
        )


def _chosen(entry: TopicEntry) -> TopicOptions:
    return TopicOptions(entry.message_expiry, entry.max_size, entry.compression, entry.replication, entry.segment_bytes)


def _choose(entry: TopicEntry, chosen: TopicOptions) -> None:
    entry.message_expiry, entry.max_size = chosen.message_expiry, chosen.max_size
    entry.compression, entry.replication = chosen.compression, chosen.replication
    entry.segment_bytes = chosen.segment_bytes


async def update_topic(service: Service, client: Client, command: c.UpdateTopic) -> None:
    name = rules.checked_name(command.name, "topic")
    async with service.change() as catalog:
        stream, entry = catalog.topic(command.stream, command.topic)
        rules.check_free_name(stream.topics, name, "topic", but=entry)
        before = _chosen(entry)
        modern = client.era >= Era.V
        block = command.options if modern else b""
        if modern:
            chosen = read_options(block, TOPIC, reset_options(before, command.reset))
        else:
            chosen = _settings(command, client.era)
        if chosen.max_size != before.max_size:
            _check_size(replace(chosen, segment_bytes=entry.segment_bytes), len(entry.partitions))
        entry.name = name
        _choose(entry, replace(chosen, segment_bytes=entry.segment_bytes))
        if block or command.reset:  # unnamed keys stay unchanged
            entry.options = merged(entry.options, canonical(block, TOPIC), command.reset)
    service.topics[entry.uid].limit_segments()


async def delete_topic(service: Service, client: Client, command: c.DeleteTopic) -> None:
    async with service.change() as catalog:
        stream, entry = catalog.topic(command.stream, command.topic)
        stream.topics.remove(entry)
    await _remove_topic(service, service.topics.pop(entry.uid))


async def _remove_topic(service: Service, topic: Topic) -> None:
    service.saver.forget(topic)
    for client in service.clients:
        client.memberships = {member for member in client.memberships if member[0] != topic.entry.uid}
    await service.files.close_partitions(topic.partitions, remove=True)
    if topic.failure:
        await service.files.remove_unserved(topic)
    await service.in_thread(lambda: service.store.remove_offsets(topic.entry.uid))


async def purge_topic(service: Service, client: Client, command: c.PurgeTopic) -> None:
    await _purge(service, service.topic(command.stream, command.topic)[1])


async def _purge(service: Service, topic: Topic) -> None:
    """Replace every partition by an empty one, from offset 0, without committed offsets."""
    topic.check_served()
    async with service.change():
        count, topic.entry.partitions = len(topic.partitions), []
        fresh = await service.files.open_partitions(service.catalog, topic.entry, count)
    old, topic.partitions = topic.partitions, fresh
    topic.offsets.stored.clear()
    service.saver.note(topic)
    await service.files.close_partitions(old, remove=True)


# ── partitions ──


async def create_partitions(service: Service, client: Client, command: c.CreatePartitions) -> None:
    topic = service.topic(command.stream, command.topic)[1]
    _check_resizable(topic)
    rules.checked_partitions(command.count, len(topic.partitions))
    _check_size(_chosen(topic.entry), len(topic.partitions) + command.count)
    async with service.change():
        fresh = await service.files.open_partitions(service.catalog, topic.entry, command.count)
    topic.partitions += fresh
    topic.resized()
    topic.limit_segments()


def _check_resizable(topic: Topic) -> None:
    if is_fixed(topic.entry.options):
        raise refusal("partition_resize_disabled", f"topic {topic.entry.name} keeps its number of partitions")


async def delete_partitions(service: Service, client: Client, command: c.DeletePartitions) -> None:
    topic = service.topic(command.stream, command.topic)[1]
    _check_resizable(topic)
    keep = len(topic.partitions) - command.count
    if not 1 <= command.count <= rules.MAX_PARTITIONS:
        raise refusal("too_many_partitions", f"1 to {rules.MAX_PARTITIONS} partitions go at once", command.count)
    if keep < 0:
        raise refusal("invalid_partitions_count", f"there are {len(topic.partitions)} partitions", command.count)
    async with service.change():
        del topic.entry.partitions[keep:]
    gone = topic.partitions[keep:]
    del topic.partitions[keep:]
    topic.resized()
    topic.limit_segments()
    service.saver.note(topic)
    await service.files.close_partitions(gone, remove=True)


async def delete_segments(service: Service, client: Client, command: c.DeleteSegments) -> None:
    topic = service.topic(command.stream, command.topic)[1]
    partition = topic.partition(command.partition, client.era.first_id)
    closed = partition.log.spans[:-1][: command.count]
    if closed:
        await drop(partition, closed[-1].end)


HANDLERS: Final[dict[type[Command], Any]] = {
    c.GetStream: get_stream,
    c.GetStreams: get_streams,
    c.CreateStream: create_stream,
    c.UpdateStream: update_stream,
    c.DeleteStream: delete_stream,
    c.PurgeStream: purge_stream,
    c.GetTopic: get_topic,
    c.GetTopics: get_topics,
    c.CreateTopic: create_topic,
    c.UpdateTopic: update_topic,
    c.DeleteTopic: delete_topic,
    c.PurgeTopic: purge_topic,
    c.CreatePartitions: create_partitions,
    c.DeletePartitions: delete_partitions,
    c.DeleteSegments: delete_segments,
}
