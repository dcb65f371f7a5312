"""A producer for a topic: sends at once, or through background workers, and repeats sends with the same ids.

    producer = client.producer("orders", "eu")                                     stored when `send` returns
    producer = client.producer("orders", "eu", ProducerOptions(mode=Background()))  taken when `send` returns, `flush` waits

Stream and topic are made at first use. A message without an id gets one: 64 bits of the producer, and a 64-bit counter.
A send that gets no answer is repeated with them, `retries` times; a server with `--iggy-unique-ids` stores each once,
any other at least once.

Messages that cannot be sent are in an IncompleteSend, raised by `send`, or in the background by the next `flush` or
`close`; `on_error` gets it at once.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from headwater.client_connection.timeouts import Timeout, seconds_of
from headwater.errors import HeadwaterError, IggyError, IncompleteSend, RequestTimeout, TransportError
from headwater.iggy_client.background import Background, Workers
from headwater.iggy_client.management import Name
from headwater.iggy_client.messages import Messages
from headwater.iggy_client.values import TopicOptions
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import Partitioning
from headwater.iggy_wire.reply_codec import SentView
from headwater.model.record import Record

Where = Partitioning | int | None
Place = tuple[Name, Name, Where]


class Direct(NamedTuple):
    """`batch`: messages of one request; `linger`: seconds, or a `timedelta`, between two requests."""

    batch: int = 1000
    linger: Timeout = 0.0


class ProducerOptions(Record):
    """`partitioning`: an id, by key, or by turns (None). The topic that is made has `partitions` and `topic`."""

    mode: Direct | Background = Direct()
    partitioning: Partitioning | int | None = None
    create_stream: bool = True
    create_topic: bool = True
    partitions: int = 1
    topic: TopicOptions | None = None
    retries: int = 3
    retry_wait: Timeout = 1.0
    on_error: Callable[[IncompleteSend], object] | None = None


class Producer:
    """See the head of this module. Made by `Client.producer`; any task may send."""

    def __init__(self, client: Messages, stream: Name, topic: Name, options: ProducerOptions) -> None:
        self.stream = stream
        self.topic = topic
        self.options = options
        self._client = client
        self._first_id = int.from_bytes(os.urandom(8), "little") << 64
        self._made = 0
        self._prepared: asyncio.Future[None] | None = None
        self._pause = asyncio.Lock()
        self._sent_at = 0.0
        self._background: Workers | None = None

    async def send(self, messages: Sequence[Message], partitioning: Where = None) -> list[SentView]:
        """Send to the topic; returns partition and offset of each batch, or [] in the background. `partitioning`
        overrides the producer's own.

        Raises IncompleteSend; in the background BufferFull when there is no room in time.
        """
        return await self.send_to(self.stream, self.topic, messages, partitioning)

    async def send_one(self, message: Message, partitioning: Where = None) -> list[SentView]:
        """As `send`, for one message."""
        return await self.send_to(self.stream, self.topic, [message], partitioning)

    async def send_to(
        self, stream: Name, topic: Name, messages: Sequence[Message], partitioning: Where = None
    ) -> list[SentView]:
        """As `send`, to another topic, which must exist."""
        if (stream, topic) == (self.stream, self.topic):
            await self._prepare()
        where = self.options.partitioning if partitioning is None else partitioning
        numbered = [message if message.id else self._with_id(message) for message in messages]
        if not numbered:
            return []
        if isinstance(self.options.mode, Background):
            if self._background is None:
                self._background = Workers(self._deliver_later, self.options.mode, self.options.on_error)
            await self._background.put((stream, topic, where), numbered)
            return []
        return await self._deliver((stream, topic, where), numbered, self.options.mode.batch, self.options.mode.linger)

    async def flush(self) -> None:
        """Wait until everything sent before is stored. Raises IncompleteSend for failures."""
        if self._background is not None:
            await self._background.flush()

    async def close(self) -> None:
        """Flush, then stop the workers. The client stays open."""
        if self._background is not None:
            workers, self._background = self._background, None
            await workers.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _deliver_later(self, place: Any, messages: list[Message]) -> None:
        await self._deliver(place, messages, len(messages))

    async def _deliver(
        self, place: Place, messages: list[Message], batch: int, linger: Timeout = 0.0
    ) -> list[SentView]:
        """Send in batches, each again when there is no answer. Raises IncompleteSend."""
        sent: list[SentView] = []
        size = batch or len(messages)
        for at in range(0, len(messages), size):
            try:
                sent.append(await self._deliver_one(place, messages[at : at + size], linger))
            except HeadwaterError as error:
                raise IncompleteSend(error, failed=messages[at:], committed=sent) from error
        return sent

    async def _deliver_one(self, place: Place, batch: list[Message], linger: Timeout) -> SentView:
        if linger:
            await self._linger(seconds_of(linger))
        stream, topic, where = place
        retries = self.options.retries
        while True:
            try:
                return await self._client.send(stream, topic, batch, where)
            except (TransportError, RequestTimeout):
                if not retries:
                    raise
            retries -= 1
            await asyncio.sleep(seconds_of(self.options.retry_wait))

    async def _linger(self, seconds: float) -> None:
        clock = asyncio.get_running_loop().time
        async with self._pause:
            await asyncio.sleep(max(0.0, self._sent_at + seconds - clock()))
            self._sent_at = clock()

    def _with_id(self, message: Message) -> Message:
        self._made += 1
        return Message(
            message.payload, message.headers, self._first_id + self._made, origin_timestamp=message.origin_timestamp
        )

    async def _prepare(self) -> None:
        if self._prepared is None or (self._prepared.done() and self._prepared.exception() is not None):
            self._prepared = asyncio.ensure_future(self._make())
        await asyncio.shield(self._prepared)

    async def _make(self) -> None:
        client, options = self._client, self.options
        if options.create_stream and await client.stream(self.stream) is None:
            await _unless_there(client.create_stream(str(self.stream)), "stream_name_already_exists")
        if options.create_topic and await client.topic(self.stream, self.topic) is None:
            making = client.create_topic(
                self.stream, str(self.topic), options.partitions, options.topic or TopicOptions()
            )
            await _unless_there(making, "topic_name_already_exists")


async def _unless_there(making: Awaitable[object], name: str) -> None:
    try:
        await making
    except IggyError as error:
        if error.name != name:  # another client was first
            raise
