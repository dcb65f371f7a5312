"""Consumer groups and stored offsets: each method is one command."""

from headwater.iggy_client.management import Executor, Name
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import Consumer, Identifier
from headwater.iggy_wire.reply_codec import Assignment, GroupView, OffsetView


class Groups(Executor):
    """Every method raises IggyError for what the server refuses, and TransportError.

    Where no `consumer` is given, it is the single consumer 0.
    """

    async def create_group(self, stream: Name, topic: Name, name: str) -> GroupView:
        """Create a consumer group, without members."""
        view: GroupView = await self.execute(c.CreateGroup(Identifier(stream), Identifier(topic), name))
        return view

    async def group(self, stream: Name, topic: Name, group: Name) -> GroupView | None:
        """A group, with its members in `details`; None when it does not exist."""
        command = c.GetGroup(Identifier(stream), Identifier(topic), Identifier(group))
        view: GroupView | None = await self.execute(command)
        return view

    async def groups(self, stream: Name, topic: Name) -> list[GroupView]:
        """All groups of a topic."""
        return await self.execute(c.GetGroups(Identifier(stream), Identifier(topic))) or []

    async def delete_group(self, stream: Name, topic: Name, group: Name) -> None:
        """Delete a group with its offsets."""
        await self.execute(c.DeleteGroup(Identifier(stream), Identifier(topic), Identifier(group)))

    async def join_group(self, stream: Name, topic: Name, group: Name) -> Assignment:
        """Join the group; returns the partitions that this client reads until the generation changes."""
        await self.execute(c.JoinGroup(Identifier(stream), Identifier(topic), Identifier(group)))
        return await self.sync_group(stream, topic, group)

    async def leave_group(self, stream: Name, topic: Name, group: Name) -> None:
        """Leave the group; its other members get this client's partitions."""
        await self.execute(c.LeaveGroup(Identifier(stream), Identifier(topic), Identifier(group)))

    async def sync_group(self, stream: Name, topic: Name, group: Name) -> Assignment:
        """The partitions assigned to this client. Raises IggyError where it is no member: servers then answer nothing."""
        command = c.SyncGroup(Identifier(stream), Identifier(topic), Identifier(group))
        view: Assignment | None = await self.execute(command)
        if view is None:
            raise refusal(
                "consumer_group_member_not_found", f"this client is not in group {group}: join it first", group
            )
        return view

    async def store_offset(
        self, stream: Name, topic: Name, partition: int, offset: int, consumer: Consumer | None = None
    ) -> None:
        """Store `offset` as that of the last consumed message, durably on return."""
        reader = consumer or Consumer.single()
        await self.execute(c.StoreOffset(reader, Identifier(stream), Identifier(topic), partition, offset))

    async def offset(
        self, stream: Name, topic: Name, partition: int, consumer: Consumer | None = None
    ) -> OffsetView | None:
        """The stored offset; None when there is none."""
        reader = consumer or Consumer.single()
        view: OffsetView | None = await self.execute(
            c.GetOffset(reader, Identifier(stream), Identifier(topic), partition)
        )
        return view

    async def delete_offset(self, stream: Name, topic: Name, partition: int, consumer: Consumer | None = None) -> None:
        """Delete the stored offset, so that the consumer starts again."""
        reader = consumer or Consumer.single()
        await self.execute(c.DeleteOffset(reader, Identifier(stream), Identifier(topic), partition))
