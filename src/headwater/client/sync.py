"""The client without asyncio: the same names, and each call returns when it is done.

    with headwater.client.sync.connect("nats://127.0.0.1:4222") as client:
        client.publish("greet", b"hello")
        answer = client.request("time", timeout=1.0)
        for message in client.subscribe("orders.>", max_messages=10): ...
        client.jetstream().create_stream(StreamConfig(name="ORDERS", subjects=["orders.>"]))

An event loop in a thread of its own runs the asyncio client, so keep-alive, reconnecting and everything else are the same
code; a call costs two hops between threads (some 50 us). Any thread may call. For programs that must not have a second
thread, and for reading streams into columns, there is `headwater.client.blocking`.

The client and its subscriptions have classes of their own here. JetStream's objects (consumers, buckets, stores) are
wrapped: coroutine methods block, asynchronous iterations become plain ones, `async with` becomes `with`. `sync_types`
has the signatures.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from headwater.client import client as asynchronous
from headwater.client.request_many import Sentinel
from headwater.client_connection.connection_ops import BytesLike
from headwater.client_connection.many_publishes import Outgoing
from headwater.client_connection.options import ConnectArguments
from headwater.client_connection.subscription import Subscription, WhenFull
from headwater.client_connection.timeouts import Timeout
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message
from headwater.net.loop_thread import LoopThread, SyncProxy, iterate

if TYPE_CHECKING:
    from headwater.client.sync_types import SyncJetStream

PIECE = 128  # messages read ahead of `publish_many`: a hop of 50 us is less than half a microsecond for each then


class SyncSubscription:
    """A subscription: iterate over it, or take `next`."""

    def __init__(self, loop: LoopThread, subscription: Subscription) -> None:
        self._loop = loop
        self._subscription = subscription

    @property
    def subject(self) -> str:
        return self._subscription.subject

    @property
    def pending(self) -> int:
        """The number of messages that wait to be read."""
        return self._subscription.pending

    @property
    def dropped(self) -> int:
        """The number of messages lost because the queue was full."""
        return self._subscription.dropped

    def next(self, timeout: Timeout | None = None) -> Message:
        """The next message. Raises RequestTimeout after `timeout` seconds, ConnectionClosed when none will come."""
        return self._loop.run(self._subscription.next(timeout))

    def __iter__(self) -> Iterator[Message]:
        for batch in self.batches():
            yield from batch

    def batches(self, maximum: int = 1024) -> Iterator[list[Message]]:
        """The waiting messages as lists of up to `maximum`; each list costs one hop between threads."""
        yield from iterate(self._loop, self._subscription.batches(maximum))

    def record_batches(self, rows: int = 1 << 16, linger: float = 0.0) -> Iterator[Any]:
        """As `Subscription.record_batches`."""
        yield from iterate(self._loop, self._subscription.record_batches(rows, linger))

    def unsubscribe(self, maximum: int = 0) -> None:
        """End the subscription now, or after `maximum` messages in all."""
        self._loop.call(self._subscription.unsubscribe, maximum)

    def drain(self, timeout: Timeout = 10.0) -> None:
        """End the subscription once the messages in flight have arrived; they can still be read."""
        self._loop.run(self._subscription.drain(timeout))


class SyncClient:
    """A connected client; made by `connect`. Methods and errors are those of `headwater.client.client.Client`."""

    def __init__(self, loop: LoopThread, client: asynchronous.Client) -> None:
        self._loop = loop
        self._client = client

    @property
    def is_connected(self) -> bool:
        """Whether the client is connected to a server."""
        return self._client.is_connected

    @property
    def server(self) -> str:
        """The URL of the connected server, without credentials."""
        return self._client.server

    def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        reply: str = "",
    ) -> None:
        """As `Client.publish` of `data` to `subject`, with `headers` and `reply`; returns when the message is buffered.
        After `flush` the server has it."""

        async def send() -> None:
            await self._client.publish(subject, data, headers=headers, reply=reply)

        if self._loop.is_here:  # a callback, which cannot wait for its own thread
            self._client.publish(subject, data, headers=headers, reply=reply)
        else:
            self._loop.run(send())

    def publish_many(self, messages: Iterable[Outgoing]) -> int:
        """As `Client.publish_many` of `messages`. A list or tuple costs one hop between threads. What else there is to
        iterate over is read in this thread, a piece of up to 128 messages at a time, so that it may use this client."""
        if isinstance(messages, list | tuple):
            return self._loop.run(self._client.publish_many(messages))
        connection, source, sent = self._client._connection, iter(messages), 0
        while piece := list(islice(source, PIECE)):
            sent = self._loop.run(connection.publish_many(piece, sent))
        return sent

    def subscribe(
        self,
        subject: str,
        *,
        queue: str = "",
        callback: Callable[[Message], object] | None = None,
        max_messages: int = 0,
        max_pending: int | None = None,
        max_pending_bytes: int | None = None,
        when_full: WhenFull = "drop_newest",
    ) -> SyncSubscription:
        """As `Client.subscribe` to `subject`, with its `queue`, `max_messages`, `max_pending`, `max_pending_bytes` and
        `when_full`. A `callback` runs in the loop's thread and must be quick. It may `publish` and `respond`;
        what waits for the server raises LocalProtocolError there."""
        subscribing = self._client.subscribe(
            subject,
            queue=queue,
            callback=callback,
            max_messages=max_messages,
            max_pending=max_pending,
            max_pending_bytes=max_pending_bytes,
            when_full=when_full,
        )
        return SyncSubscription(self._loop, self._loop.run(subscribing))

    def request(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        timeout: Timeout = 2.0,
        repeat: bool = False,
    ) -> Message:
        """As `Client.request` of `data` to `subject`, with `headers` and `repeat`: raises NoResponders at once,
        RequestTimeout after `timeout` seconds."""
        return self._loop.run(self._client.request(subject, data, headers=headers, timeout=timeout, repeat=repeat))

    def request_many(
        self,
        subject: str,
        data: BytesLike = b"",
        timeout: Timeout = 2.0,
        *,
        headers: HeaderSource | Headers | None = None,
        count: int = 0,
        stall: Timeout = 0.0,
        sentinel: Sentinel | None = None,
    ) -> Iterator[Message]:
        """As `Client.request_many` of `data` to `subject`, with `headers`: until `count`, `stall` or `sentinel` ends it, or
        `timeout` seconds are over."""
        answers = self._client.request_many(
            subject, data, timeout, headers=headers, count=count, stall=stall, sentinel=sentinel
        )
        return iterate(self._loop, answers)

    def respond(self, message: Message, data: bytes = b"", headers: HeaderSource | Headers | None = None) -> None:
        """Answer a message that was read here with `data` and `headers`."""
        self._loop.call(message.respond, data, headers=headers)

    def jetstream(self, *, timeout: Timeout = 5.0, domain: str = "") -> "SyncJetStream":
        """JetStream, of a `domain` if given; every method blocks, `timeout` seconds at most. See the top of this module."""
        jetstream = self._client.jetstream(timeout=timeout, domain=domain)
        return cast("SyncJetStream", SyncProxy(self._loop, jetstream))

    def flush(self, timeout: Timeout = 10.0) -> None:
        """Wait until the server has processed everything before. Raises RequestTimeout after `timeout` seconds."""
        self._loop.run(self._client.flush(timeout))

    def drain(self, timeout: Timeout = 10.0) -> None:
        """As `Client.drain`: `timeout` in seconds."""
        try:
            self._loop.run(self._client.drain(timeout))
        finally:
            self._loop.stop()

    def close(self) -> None:
        """Write what is buffered, close, and end the thread. Safe to call again."""
        if not self._client.is_closed:
            self._loop.run(self._client.close())
        self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self.is_connected:
                self.flush()
        finally:
            self.close()


def connect(servers: str | Sequence[str] | None = None, **arguments: Unpack[ConnectArguments]) -> SyncClient:
    """As `headwater.connect`, blocking."""
    loop = LoopThread()
    try:
        return SyncClient(loop, loop.run(asynchronous.connect(servers, **arguments)))
    except BaseException:
        loop.stop()
        raise
