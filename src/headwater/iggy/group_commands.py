"""Consumer groups and committed offsets: a function for each command, listed in HANDLERS.

A group is an entry of the catalog, on disk before its creation is answered; its members are not: who is gone has left
it. A committed offset is saved before it is confirmed only where the command asks for that (`ack`), or deletes it;
others are noted, and saved soon. Refused: an offset that is not there yet, and, from era W on, one of a partition
that another member owns. Asked for an offset that is not stored, it answers clients of era V and later with nothing,
as upstream; so it does a client that asks for its partitions and is no member of the group.
"""

from typing import Any, Final

from headwater.errors import IggyError
from headwater.iggy import catalog as rules
from headwater.iggy.catalog import GroupEntry, group_of
from headwater.iggy.clients import Client
from headwater.iggy.partition import Partition
from headwater.iggy.service import Service
from headwater.iggy.topics import Topic, key_of
from headwater.iggy_wire import commands as c
from headwater.iggy_wire import reply_codec as views
from headwater.iggy_wire.commands import Command
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import Consumer, ConsumerKind


def group_view(topic: Topic, entry: GroupEntry, first_id: int, details: bool = False) -> views.GroupView:
    group = topic.group(entry.id)
    members = [
        views.MemberView(member, [index + first_id for index in group.of_member(member)]) for member in group.members
    ]
    return views.GroupView(entry.id, len(topic.partitions), len(members), entry.name, members if details else [])


def get_group(service: Service, client: Client, command: c.GetGroup) -> views.GroupView:
    topic = service.topic(command.stream, command.topic)[1]
    return group_view(topic, group_of(topic.entry, command.group), client.era.first_id, details=True)


def get_groups(service: Service, client: Client, command: c.GetGroups) -> list[views.GroupView]:
    topic = service.topic(command.stream, command.topic)[1]
    return [group_view(topic, entry, client.era.first_id) for entry in topic.entry.groups]


async def create_group(service: Service, client: Client, command: c.CreateGroup) -> views.GroupView:
    async with service.change():
        topic = service.topic(command.stream, command.topic)[1]
        name = rules.checked_name(command.name or f"group {command.id}", "consumer_group")
        rules.check_free_name(topic.entry.groups, name, "consumer_group")
        number = rules.free_id(
            topic.entry.groups, command.id, "consumer_group", client.era.first_id, given=client.era is Era.S
        )
        entry = GroupEntry(number, name)
        topic.entry.groups.append(entry)
    return group_view(topic, entry, client.era.first_id, details=True)


async def delete_group(service: Service, client: Client, command: c.DeleteGroup) -> None:
    async with service.change():
        topic = service.topic(command.stream, command.topic)[1]
        entry = group_of(topic.entry, command.group)
        topic.entry.groups.remove(entry)
    topic.groups.pop(entry.id, None)
    topic.offsets.drop_consumer(f"g:{entry.id}")
    service.saver.note(topic)
    for member in service.clients:
        member.memberships.discard((topic.entry.uid, entry.id))


def join_group(service: Service, client: Client, command: c.JoinGroup) -> None:
    topic = service.topic(command.stream, command.topic)[1]
    entry = group_of(topic.entry, command.group)
    topic.group(entry.id).join(client.id)
    client.memberships.add((topic.entry.uid, entry.id))


def leave_group(service: Service, client: Client, command: c.LeaveGroup) -> None:
    topic = service.topic(command.stream, command.topic)[1]
    entry = group_of(topic.entry, command.group)
    client.memberships.discard((topic.entry.uid, entry.id))
    if not topic.group(entry.id).leave(client.id):
        raise refusal("consumer_group_member_not_found", f"client {client.id} is not in group {entry.name}")


def sync_group(service: Service, client: Client, command: c.SyncGroup) -> views.Assignment | None:
    """What the client reads; None says that it is no member."""
    topic = service.topic(command.stream, command.topic)[1]
    group = topic.group(group_of(topic.entry, command.group).id)
    if client.id not in group.members:
        return None
    return views.Assignment(group.generation, [index + client.era.first_id for index in group.of_member(client.id)])


# ── offsets ──


def consumer_key(topic: Topic, consumer: Consumer) -> str:
    """The key of the consumer's offset. Raises IggyError for a missing group."""
    if consumer.kind is ConsumerKind.GROUP:
        return key_of(consumer, group_of(topic.entry, consumer.id).id)
    return key_of(consumer, None)


def partition_for(topic: Topic, client: Client, consumer: Consumer, number: int | None) -> Partition | None:
    """The partition that an offset command refers to; None: the member has none. Raises IggyError."""
    if consumer.kind is ConsumerKind.GROUP and (number is None or (client.era < Era.C2 and number == 0)):
        group = topic.group(group_of(topic.entry, consumer.id).id)
        own = group.of_member(client.id)
        return topic.partitions[own[0]] if own else None
    return topic.partition(client.era.first_id if number is None else number, client.era.first_id)


def get_offset(service: Service, client: Client, command: c.GetOffset) -> views.OffsetView | views.SeedOffset | None:
    """The committed offset; None if it, or even the topic, is missing and the client is of era V or later, as
    upstream."""
    try:
        return _stored_offset(service, client, command)
    except IggyError as error:
        if client.era >= Era.V and "not_found" in error.name:
            return None
        raise


def _stored_offset(
    service: Service, client: Client, command: c.GetOffset
) -> views.OffsetView | views.SeedOffset | None:
    topic = service.topic(command.stream, command.topic)[1]
    partition = partition_for(topic, client, command.consumer, command.partition)
    if partition is None:
        return None
    topic.check_incarnation(partition, command.incarnation)
    committed = topic.committed(partition.index, consumer_key(topic, command.consumer))
    if client.era is Era.S:
        number = command.consumer.id.value
        return views.SeedOffset(number if isinstance(number, int) else 0, committed or 0)
    if committed is None:
        return None
    return views.OffsetView(partition.index + client.era.first_id, partition.current_offset, committed)


def _check_owner(topic: Topic, partition: Partition, client: Client, command: c.StoreOffset | c.DeleteOffset) -> None:
    """Raises IggyError if a client of era W refers to a partition that was removed or belongs to another group member."""
    topic.check_incarnation(partition, command.incarnation)
    if client.era < Era.W or command.consumer.kind is not ConsumerKind.GROUP:
        return
    if not topic.group(group_of(topic.entry, command.consumer.id).id).owns(client.id, partition.index):
        raise refusal("consumer_group_partition_not_owned", f"client {client.id} does not own this partition")


async def store_offset(service: Service, client: Client, command: c.StoreOffset) -> None:
    topic = service.topic(command.stream, command.topic)[1]
    partition = partition_for(topic, client, command.consumer, command.partition)
    key = consumer_key(topic, command.consumer)
    if partition is None:
        raise refusal("consumer_group_member_not_found", f"client {client.id} reads no partition")
    _check_owner(topic, partition, client, command)
    if command.offset >= max(1, partition.log.end_offset):
        raise refusal("invalid_offset", f"offset {command.offset} is not there yet", command.offset)
    topic.commit(partition.index, key, command.offset)
    if command.ack:
        await service.saver.saved(topic)
    else:
        service.saver.note(topic)


async def delete_offset(service: Service, client: Client, command: c.DeleteOffset) -> None:
    try:
        topic = service.topic(command.stream, command.topic)[1]
        partition = partition_for(topic, client, command.consumer, command.partition)
        key = consumer_key(topic, command.consumer)
    except IggyError as error:
        if client.era >= Era.V and "not_found" in error.name:  # upstream gives the same answer whatever is missing
            raise refusal("resource_not_found", error.message, error.value) from error
        raise
    if partition is None:
        raise refusal("consumer_group_member_not_found", f"client {client.id} reads no partition")
    _check_owner(topic, partition, client, command)
    topic.uncommit(partition.index, key)
    await service.saver.saved(topic)


HANDLERS: Final[dict[type[Command], Any]] = {
    c.GetGroup: get_group,
    c.GetGroups: get_groups,
    c.CreateGroup: create_group,
    c.DeleteGroup: delete_group,
    c.JoinGroup: join_group,
    c.LeaveGroup: leave_group,
    c.SyncGroup: sync_group,
    c.GetOffset: get_offset,
    c.StoreOffset: store_offset,
    c.DeleteOffset: delete_offset,
}
