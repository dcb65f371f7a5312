"""Streams, topics, partitions and segments: each method is one command."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from headwater.iggy_client.values import TopicOptions, options_block
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Command
from headwater.iggy_wire.identifiers import Identifier
from headwater.iggy_wire.reply_codec import StreamView, TopicView

Name = str | int
"""Of a stream, a topic, a group or a user: its name, or its number."""


class Executor(ABC):
    """What carries out commands."""

    @abstractmethod
    async def execute(self, command: Command) -> Any:
        """Any command of `commands`, and its view; None for an empty answer. Raises IggyError, TransportError."""

    @abstractmethod
    def forget_partitions(self, stream: Name | None = None, topic: Name | None = None) -> None:
        """How many partitions a topic has may have changed."""


class Management(Executor):
    """Every method raises IggyError for what the server refuses, and TransportError."""

    async def create_stream(self, name: str) -> StreamView:
        """A stream of that name, without topics."""
        view: StreamView = await self.execute(c.CreateStream(name))
        return view

    async def stream(self, stream: Name) -> StreamView | None:
        """With its topics in `details`; None when there is none."""
        view: StreamView | None = await self.execute(c.GetStream(Identifier(stream)))
        return view

    async def streams(self) -> list[StreamView]:
        """All that the user may see."""
        return await self.execute(c.GetStreams()) or []

    async def update_stream(self, stream: Name, name: str, options: Mapping[str, str] | None = None) -> None:
        """Another `name`, and other `options` by name."""
        await self.execute(c.UpdateStream(Identifier(stream), name, options_block(options)))

    async def delete_stream(self, stream: Name) -> None:
        """With all that is in it."""
        await self.execute(c.DeleteStream(Identifier(stream)))
        self.forget_partitions()

    async def purge_stream(self, stream: Name) -> None:
        """All messages of all its topics are gone; offsets begin anew."""
        await self.execute(c.PurgeStream(Identifier(stream)))

    async def create_topic(
        self, stream: Name, name: str, partitions: int = 1, options: TopicOptions | bytes = b""
    ) -> TopicView:
        """A topic with that many partitions; `options` also as a block in the form of the wire."""
        block = options if isinstance(options, bytes) else options.encode()
        view: TopicView = await self.execute(c.CreateTopic(Identifier(stream), name, partitions, options=block))
        return view

    async def topic(self, stream: Name, topic: Name) -> TopicView | None:
        """With its partitions in `parts`; None when there is none."""
        view: TopicView | None = await self.execute(c.GetTopic(Identifier(stream), Identifier(topic)))
        return view

    async def topics(self, stream: Name) -> list[TopicView]:
        """All of the stream."""
        return await self.execute(c.GetTopics(Identifier(stream))) or []

    async def update_topic(self, stream: Name, topic: Name, name: str, options: TopicOptions | None = None) -> None:
        """Another `name`, and what `options` name: the compression, the expiry, the largest size."""
        block = b"" if options is None else options.encode()
        await self.execute(c.UpdateTopic(Identifier(stream), Identifier(topic), name, options=block))
        self.forget_partitions(stream, topic)

    async def delete_topic(self, stream: Name, topic: Name) -> None:
        """With all that is in it."""
        await self.execute(c.DeleteTopic(Identifier(stream), Identifier(topic)))
        self.forget_partitions(stream, topic)

    async def purge_topic(self, stream: Name, topic: Name) -> None:
        """All its messages are gone; offsets begin anew."""
        await self.execute(c.PurgeTopic(Identifier(stream), Identifier(topic)))

    async def create_partitions(self, stream: Name, topic: Name, count: int) -> None:
        """`count` more of them."""
        await self.execute(c.CreatePartitions(Identifier(stream), Identifier(topic), count))
        self.forget_partitions(stream, topic)

    async def delete_partitions(self, stream: Name, topic: Name, count: int) -> None:
        """The last `count`, with their messages."""
        await self.execute(c.DeletePartitions(Identifier(stream), Identifier(topic), count))
        self.forget_partitions(stream, topic)

    async def delete_segments(self, stream: Name, topic: Name, partition: int, count: int) -> None:
        """The oldest `count` closed segments of a partition."""
        await self.execute(c.DeleteSegments(Identifier(stream), Identifier(topic), partition, count))
