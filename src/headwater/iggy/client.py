"""The asyncio Iggy client: generation V, for our server face and for real Iggy servers of 0.9.

    client = await connect("iggy://iggy:iggy@127.0.0.1:8090")
    await client.create_stream("orders")
    await client.create_topic("orders", "eu", partitions=2)
    await client.send("orders", "eu", [Message(b"hello", TypedHeaders({"key 1": "value1"}))])
    for message in await client.poll("orders", "eu", partition=0): ...
    await client.close()

Every method may be called from many tasks: requests go out in the order of the calls, and the answers come back in it.
As the SDKs do, a balanced or keyed send is resolved here, by the topic's number of partitions, which is asked for once.

A refusal is an IggyError with the server's number; a lost connection fails what is in flight with ConnectionClosed, and a
send whose answer is missing may have been stored: send it again with the same ids where that matters.
"""

import asyncio
import os
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from headwater.errors import ConfigError, ConnectionClosed, IggyError, RequestTimeout
from headwater.iggy_wire import command_codec, eras, reply_codec, vsr_frames
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import messages, of_messages, xxh3_64
from headwater.iggy_wire.classic_codec import PREFIX, write_address
from headwater.iggy_wire.commands import EVERY, Code, Command, Message
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import of_number, refusal
from headwater.iggy_wire.identifiers import (
    Consumer,
    Identifier,
    Partitioning,
    PartitioningKind,
    PollingStrategy,
    position_of_key,
)
from headwater.iggy_wire.reply_codec import (
    Assignment,
    GroupView,
    LoginView,
    OffsetView,
    SentView,
    StreamView,
    TopicView,
)
from headwater.net.link import Link
from headwater.net.tcp import dial

Name = str | int
DEFAULT_PORT: Final = 8090
SDK: Final = "headwater"
VERSION: Final = "0.11.0"
_RESULT_SIZE: Final = 4


class _Waiting(NamedTuple):
    code: Code
    operation: int
    answer: asyncio.Future[bytes]


class Polled(NamedTuple):
    """An answer to a poll; `partition` is `EVERY` where a group member has to sync first."""

    partition: int
    current_offset: int
    messages: list[Message]


class Client:
    """See the head of this module. Made by `connect`."""

    def __init__(self, timeout: float) -> None:
        self.user_id = 0
        self._timeout = timeout
        self._link: Link | None = None
        self._id = os.urandom(16)
        self._login = 0
        self._number = 0
        self._waiting: deque[_Waiting] = deque()
        self._partitions: dict[tuple[Name, Name], int] = {}
        self._turn = 0
        self._error: Exception | None = None

    # ── the owner of the link ──

    def attach(self, link: Link) -> None:
        self._link = link

    def lost(self, error: Exception | None) -> None:
        self._link = None
        self._fail(self._error or ConnectionClosed(f"the connection was lost: {error or 'closed by the server'}"))

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Hand out complete replies; returns how far."""
        at = 0
        while at < filled:
            try:
                reply = vsr_frames.find_reply(buffer, at, filled)
            except IggyError as error:
                self._error = error
                self._fail(error)
                if self._link is not None:
                    self._link.abort()
                return filled
            if isinstance(reply, int):
                if self._link is not None:
                    self._link.expect(reply)
                break
            self._answered(reply, bytes(memoryview(buffer)[reply.start : reply.end]))
            at = reply.end
        return at

    def _answered(self, reply: vsr_frames.Reply, body: bytes) -> None:
        if not self._waiting:
            return
        waiting = self._waiting.popleft()
        if waiting.answer.done():
            return
        if reply.status:
            waiting.answer.set_exception(of_number(reply.status))
        elif vsr_frames.has_result_section(waiting.operation):
            if body[:_RESULT_SIZE] == bytes(_RESULT_SIZE):
                waiting.answer.set_result(body[_RESULT_SIZE:])
            else:
                waiting.answer.set_exception(of_number(int.from_bytes(body[8:12], "little")))
        else:
            waiting.answer.set_result(body)

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            if not one.answer.done():
                one.answer.set_exception(error)

    # ── requests ──

    async def _request(self, code: Code, *pieces: bytes | bytearray) -> bytes:
        link = self._link
        if link is None:
            raise self._error or ConnectionClosed("the client is not connected")
        operation = command_codec.OPERATION_OF.get(code, command_codec.NON_REPLICATED)
        replicated = operation not in (command_codec.NON_REPLICATED, command_codec.REGISTER)
        number = 0 if operation == command_codec.REGISTER else self._number + 1
        if replicated:
            self._number = number
        size = sum(map(len, pieces))
        checksum = xxh3_64(b"".join(pieces)) if vsr_frames.needs_checksum(code) else 0
        link.output.append(vsr_frames.request(code, size, self._id, number, self._login, checksum))
        for piece in pieces:
            link.output.append(bytes(piece))
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(code, operation, answer))
        link.flush_soon()
        try:
            async with asyncio.timeout(self._timeout):
                await link.drained()
                return await answer
        except TimeoutError:
            raise RequestTimeout(
                f"no answer to {code.name.lower()} within {self._timeout:g} s", hint="it may have been carried out"
            ) from None

    async def execute(self, command: Command) -> Any:
        """Any command of `commands`, and its view; None for an empty answer. Raises IggyError, ConnectionClosed."""
        code, body = command_codec.encode(command, Era.V)
        return reply_codec.decode(code, await self._request(code, body), Era.V)

    async def log_in(self, username: str, password: str) -> None:
        """Raises IggyError when the server refuses; the connection is gone then."""
        protocol = eras.PROTOCOL
        view: LoginView = await self.execute(c.Login(username, password, VERSION, "", protocol, SDK))
        self.user_id, self._login = view.user_id, view.login

    async def ping(self) -> None:
        """Returns when the server has answered."""
        await self.execute(c.Ping())

    # ── streams and topics ──

    async def create_stream(self, name: str) -> StreamView:
        view: StreamView = await self.execute(c.CreateStream(name))
        return view

    async def stream(self, stream: Name) -> StreamView | None:
        """None when there is none."""
        view: StreamView | None = await self.execute(c.GetStream(Identifier(stream)))
        return view

    async def delete_stream(self, stream: Name) -> None:
        await self.execute(c.DeleteStream(Identifier(stream)))

    async def create_topic(self, stream: Name, name: str, partitions: int = 1, options: bytes = b"") -> TopicView:
        view: TopicView = await self.execute(c.CreateTopic(Identifier(stream), name, partitions, options=options))
        return view

    async def topic(self, stream: Name, topic: Name) -> TopicView | None:
        """None when there is none."""
        view: TopicView | None = await self.execute(c.GetTopic(Identifier(stream), Identifier(topic)))
        return view

    # ── messages ──

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
        where = await self._resolve(stream, topic, partitioning)
        address = write_address(c.SendMessages(Identifier(stream), Identifier(topic), where, count))
        sent: list[SentView] = reply_codec.decode(
            Code.SEND_MESSAGES, await self._request(Code.SEND_MESSAGES, address, body), Era.V
        )
        return sent[0]

    async def _resolve(self, stream: Name, topic: Name, partitioning: Partitioning | int | None) -> Partitioning:
        if isinstance(partitioning, int):
            return Partitioning.partition(partitioning)
        if partitioning is not None and partitioning.kind is PartitioningKind.PARTITION_ID:
            return partitioning
        count = self._partitions.get((stream, topic))
        if count is None:
            found = await self.topic(stream, topic)
            if found is None or not found.partitions:
                raise refusal("no_partitions", f"there is no topic {topic} with partitions in {stream}")
            count = self._partitions[stream, topic] = found.partitions
        if partitioning is None or partitioning.kind is PartitioningKind.BALANCED:
            self._turn += 1
            return Partitioning.partition((self._turn - 1) % count)
        return Partitioning.partition(position_of_key(partitioning.raw, count))

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
    ) -> list[Message]:
        """Messages of one partition, from where `strategy` says (next); none when there are none."""
        who = consumer or Consumer.single()
        return (await self._poll(stream, topic, partition, who, strategy, count, auto_commit)).messages

    async def _poll(
        self,
        stream: Name,
        topic: Name,
        partition: int,
        consumer: Consumer,
        strategy: PollingStrategy | None,
        count: int,
        auto_commit: bool,
    ) -> Polled:
        where = strategy or PollingStrategy.next()
        command = c.PollMessages(consumer, Identifier(stream), Identifier(topic), partition, where, count, auto_commit)
        answer = await self._request(Code.POLL_MESSAGES, command_codec.encode(command, Era.V)[1])
        shown, current_offset, _ = PREFIX.unpack_from(answer)
        return Polled(shown, current_offset, list(messages(answer[PREFIX.size :])))

    # ── offsets and groups ──

    async def store_offset(
        self, stream: Name, topic: Name, partition: int, offset: int, consumer: Consumer | None = None
    ) -> None:
        """The message at `offset` is done with: durable once this returns."""
        who = consumer or Consumer.single()
        await self.execute(c.StoreOffset(who, Identifier(stream), Identifier(topic), partition, offset))

    async def offset(
        self, stream: Name, topic: Name, partition: int, consumer: Consumer | None = None
    ) -> OffsetView | None:
        """The stored offset; None when there is none."""
        who = consumer or Consumer.single()
        view: OffsetView | None = await self.execute(c.GetOffset(who, Identifier(stream), Identifier(topic), partition))
        return view

    async def create_group(self, stream: Name, topic: Name, name: str) -> GroupView:
        view: GroupView = await self.execute(c.CreateGroup(Identifier(stream), Identifier(topic), name))
        return view

    async def join_group(self, stream: Name, topic: Name, group: Name) -> Assignment:
        """Join the group; returns the partitions that this client reads until the generation changes."""
        await self.execute(c.JoinGroup(Identifier(stream), Identifier(topic), Identifier(group)))
        return await self.sync_group(stream, topic, group)

    async def leave_group(self, stream: Name, topic: Name, group: Name) -> None:
        await self.execute(c.LeaveGroup(Identifier(stream), Identifier(topic), Identifier(group)))

    async def sync_group(self, stream: Name, topic: Name, group: Name) -> Assignment:
        """Which partitions are this client's now."""
        view: Assignment = await self.execute(c.SyncGroup(Identifier(stream), Identifier(topic), Identifier(group)))
        return view

    async def consume(
        self, stream: Name, topic: Name, group: Name, *, count: int = 1000, idle: float = 0.05
    ) -> AsyncIterator[tuple[int, Message]]:
        """(partition, message) for a member of a group, without end; partitions are added and removed as the group changes.

        The offset of a message is stored when the next batch is asked for: what was handed out and not yet followed by
        a request is read again after a crash. `idle`: seconds to wait when nothing is there.
        """
        who = Consumer.group(group)
        own = (await self.join_group(stream, topic, group)).partitions
        while True:
            found = False
            for partition in list(own):
                polled = await self._poll(stream, topic, partition, who, None, count, False)
                if polled.partition == EVERY:
                    own = (await self.sync_group(stream, topic, group)).partitions
                    break
                for message in polled.messages:
                    found = True
                    yield partition, message
                if polled.messages:
                    await self.store_offset(stream, topic, partition, polled.messages[-1].offset, who)
            if not own:
                own = (await self.sync_group(stream, topic, group)).partitions
            if not found:
                await asyncio.sleep(idle)

    # ── the end ──

    async def close(self) -> None:
        """Close the connection; requests in flight fail."""
        link, self._link = self._link, None
        self._error = ConnectionClosed("the client was closed")
        self._fail(self._error)
        if link is not None:
            link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def connect(url: str, *, timeout: float = 30.0, tls: ssl.SSLContext | None = None) -> Client:
    """Connect and log in: `iggy://user:password@host:port`. With `tls`, before the first byte.

    Raises ConfigError for a URL that is none, TransportError, and IggyError when the server refuses.
    """
    parts = urlsplit(url)
    if parts.scheme != "iggy" or not parts.hostname:
        raise ConfigError(f"{url!r} is no iggy://user:password@host:port", value=url)
    client = Client(timeout)
    layer = None
    if tls is not None:
        from headwater.net.tls import TlsLayer

        layer = TlsLayer(tls, server_side=False, server_hostname=parts.hostname)
    link = await dial(parts.hostname, parts.port or DEFAULT_PORT, client, timeout, layer)
    try:
        await link.prepared()
        await client.log_in(unquote(parts.username or "iggy"), unquote(parts.password or "iggy"))
    except BaseException:
        link.abort()
        raise
    return client
