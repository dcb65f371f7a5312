"""Streams, topics, partitions and segments: each method is one command.

`Executor` carries a command to the server, by frames or by HTTP; the mix-ins for groups and users build on it, too. A
missing stream or topic is returned as None by a method that reads, and raises IggyError from one that changes it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from headwater.iggy_client.values import TopicOptions, options_block
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Command
from headwater.iggy_wire.identifiers import Identifier
from headwater.iggy_wire.reply_codec import StreamView, TopicView

Name = str | int
"""The name or the number of a stream, a topic, a group or a user."""


class Executor(ABC):
    """Executes commands."""

    @abstractmethod
    async def execute(self, command: Command) -> Any:
        """Any command of `commands`, and its view; None for an empty answer. Raises IggyError, TransportError."""

    @abstractmethod
    def forget_partitions(self, stream: Name | None = None, topic: Name | None = None) -> None:
        """Drop the cached number of partitions of a topic, or of all topics: it may have changed."""


class Management(Executor):
    """Every method raises IggyError for what the server refuses, and TransportError."""

    async def create_stream(self, name: str) -> StreamView:
        """Create a stream with this name, without topics."""
        view: StreamView = await self.execute(c.CreateStream(name))
        return view

    async def stream(self, stream: Name) -> StreamView | None:
        """A stream, with its topics in `details`; None when it does not exist."""
        view: StreamView | None = await self.execute(c.GetStream(Identifier(stream)))
        return view

    async def streams(self) -> list[StreamView]:
        """All streams that the user may see."""
        return await self.execute(c.GetStreams()) or []

    async def update_stream(self, stream: Name, name: str, options: Mapping[str, str] | None = None) -> None:
        """Change the `name` and the `options` (by name) of a stream."""
        await self.execute(c.UpdateStream(Identifier(stream), name, options_block(options)))

    async def delete_stream(self, stream: Name) -> None:
        """Delete a stream with its topics and messages."""
        await self.execute(c.DeleteStream(Identifier(stream)))
        self.forget_partitions()

    async def purge_stream(self, stream: Name) -> None:
        """Delete all messages of all topics of a stream; offsets start again at 0."""
        await self.execute(c.PurgeStream(Identifier(stream)))

    async def create_topic(
        self, stream: Name, name: str, partitions: int = 1, options: TopicOptions | bytes = b""
    ) -> TopicView:
        """Create a topic with `partitions` partitions; `options` may also be a block in wire form."""
        block = options if isinstance(options, bytes) else options.encode()
        view: TopicView = await self.execute(c.CreateTopic(Identifier(stream), name, partitions, options=block))
        return view

    async def topic(self, stream: Name, topic: Name) -> TopicView | None:
        """A topic, with its partitions in `parts`; None when it does not exist."""
        view: TopicView | None = await self.execute(c.GetTopic(Identifier(stream), Identifier(topic)))
        return view

    async def topics(self, stream: Name) -> list[TopicView]:
        """All topics of a stream."""
        return await self.execute(c.GetTopics(Identifier(stream))) or []

    async def update_topic(self, stream: Name, topic: Name, name: str, options: TopicOptions | None = None) -> None:
        """Change the `name` of a topic and the settings in `options`: compression, expiry, largest size."""
        block = b"" if options is None else options.encode()
        await self.execute(c.UpdateTopic(Identifier(stream), Identifier(topic), name, options=block))
        self.forget_partitions(stream, topic)

    async def delete_topic(self, stream: Name, topic: Name) -> None:
        """Delete a topic with its messages."""
        await self.execute(c.DeleteTopic(Identifier(stream), Identifier(topic)))
        self.forget_partitions(stream, topic)

    async def purge_topic(self, stream: Name, topic: Name) -> None:
        """Delete all messages of a topic; offsets start again at 0."""
        await self.execute(c.PurgeTopic(Identifier(stream), Identifier(topic)))

    async def create_partitions(self, stream: Name, topic: Name, count: int) -> None:
        """Add `count` partitions to a topic."""
        await self.execute(c.CreatePartitions(Identifier(stream), Identifier(topic), count))
        self.forget_partitions(stream, topic)

    async def delete_partitions(self, stream: Name, topic: Name, count: int) -> None:
        """Delete the last `count` partitions of a topic, with their messages."""
        await self.execute(c.DeletePartitions(Identifier(stream), Identifier(topic), count))
        self.forget_partitions(stream, topic)

    async def delete_segments(self, stream: Name, topic: Name, partition: int, count: int) -> None:
        """Delete the oldest `count` closed segments of a partition."""
        await self.execute(c.DeleteSegments(Identifier(stream), Identifier(topic), partition, count))
