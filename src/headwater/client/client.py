"""The NATS client: connect, publish, subscribe, request.

    async with await headwater.connect("nats://127.0.0.1:4222") as client:
        subscription = await client.subscribe("orders.>")
        client.publish("orders.eu", b"hello", headers={"Trace": "1"})
        async for message in subscription: ...

A publish is copied into the connection's output and written with all others of this turn of the event loop. Its result
may be awaited: that costs nothing, but for a turn of the loop once in a MiB, and waits while the server does not keep up.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from headwater.client.contexts import find_options
from headwater.client.nats_py_arguments import CLIENT as CLIENT_ARGUMENTS
from headwater.client.nats_py_arguments import SUBSCRIPTION as SUBSCRIPTION_ARGUMENTS
from headwater.client.nats_py_arguments import take
from headwater.client.nats_py_names import CLIENT, CLIENT_ADVICE, SUBSCRIPTION, install
from headwater.client.request_many import Sentinel, ask_many
from headwater.client_connection.connection import Connection
from headwater.client_connection.connection_ops import BytesLike
from headwater.client_connection.connector import Connector
from headwater.client_connection.events import EventCallback, Events, EventStream
from headwater.client_connection.many_publishes import Outgoing
from headwater.client_connection.options import ClientOptions, ConnectArguments
from headwater.client_connection.requests import RequestSender, new_inbox
from headwater.client_connection.server_url import parse_server_urls
from headwater.client_connection.subscription import MessageCallback, Subscription, WhenFull
from headwater.client_connection.timeouts import Timeout, seconds_of
from headwater.errors import ConfigError, HeadwaterError
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message
from headwater.wire.handshake import ServerInfo

if TYPE_CHECKING:
    from headwater.client.jetstream import JetStream
    from headwater.client_connection.connection_ops import Sender


class Client(RequestSender):
    """A connected client; made by `connect`. Its methods raise ConnectionClosed once the connection has ended."""

    if TYPE_CHECKING:  # pyright does not see the bases of a class whose bases are compiled
        publish = Sender.publish

    def __init__(self, connection: Connection, connector: Connector, options: ClientOptions) -> None:
        super().__init__(connection, options.inbox_prefix)
        self._connection: Connection = connection
        self._connector = connector
        self._options = options

    @property
    def server_info(self) -> ServerInfo:
        """The server's latest INFO."""
        return self._connection.info

    @property
    def server(self) -> str:
        """The URL of the connected server, without credentials; "" while there is none."""
        conversation = self._connection.conversation
        return conversation.address.url if conversation is not None and self.is_connected else ""

    @property
    def servers(self) -> list[str]:
        """The URLs of all servers that may be tried, including those discovered in the cluster, in the order of the
        tries."""
        return self._connector.servers

    @property
    def reconnects(self) -> int:
        """The number of times that the connection was lost and re-established."""
        return self._connection.reconnects

    def events(self) -> EventStream:
        """An iteration over the events of the connection from now on: see `headwater.client.events`."""
        return self._connection.events.stream()

    def on_event(self, callback: EventCallback) -> Callable[[], None]:
        """Call `callback(event)` for each event; returns a function that removes the callback."""
        return self._connection.events.listen(callback)

    async def reconnect(self) -> None:
        """Leave this server and connect again, with credential files read again. Returns once connected."""
        await self._connection.reconnect()

    @property
    def is_connected(self) -> bool:
        """Whether the client is connected to a server; otherwise it dials and buffers publishes."""
        return self._connection.is_connected

    @property
    def is_closed(self) -> bool:
        """Whether the client is closed for good."""
        return self._connection.closed.done()

    async def publish_many(self, messages: Iterable[Outgoing]) -> int:
        """Publish all `messages`, tuples of subject, data and, where there are some, headers; returns how many they were.

        They are buffered as by `publish`, for two thirds of the cost: a compiled loop, which waits where awaited
        publishes would. `messages` may be a generator: the event loop has its turn every few milliseconds.

        Raises what `publish` raises, and TypeError for what is no such tuple, with a note that names the message. Those
        before it were accepted, and an iterator has given none after it: pass it again to go on.
        """
        return await self._connection.publish_many(messages)

    async def subscribe(
        self,
        subject: str,
        queue: str = "",
        cb: MessageCallback | None = None,
        *,
        callback: MessageCallback | None = None,
        max_messages: int = 0,
        max_msgs: int = 0,
        max_pending: int | None = None,
        max_pending_bytes: int | None = None,
        when_full: WhenFull = "drop_newest",
    ) -> Subscription:
        """Subscribe to `subject`, which may be a pattern, as a member of `queue` if given, for `max_messages` if given.

        With `callback` (or `cb`) each message is passed to it, one after the other, in a task of the subscription; a
        coroutine function is awaited before the next. Its exceptions go to `error_callback`. Without, iterate over the
        subscription. `max_pending`, `max_pending_bytes` and `when_full` limit the messages that wait to be read: see
        `Subscription.limit`. Raises SubjectError, and ConfigError for a negative `max_messages`. `cb` and `max_msgs` are
        nats-py's names of `callback` and `max_messages`.
        """
        if max_messages < 0 or max_msgs < 0:
            raise ConfigError("max_messages is below 0", value=max_messages or max_msgs, limit=0, hint="0: no limit")
        options = self._options
        subscription = self._connection.subscribe(subject, queue, max_messages or max_msgs)
        try:
            subscription.limit(
                options.max_pending if max_pending is None else max_pending,
                options.max_pending_bytes if max_pending_bytes is None else max_pending_bytes,
                when_full,
            )
        except HeadwaterError:
            subscription.unsubscribe()
            raise
        if callback is not None or cb is not None:
            subscription.serve(callback or cb)  # type: ignore[arg-type] # one of them is not None
        return subscription

    def deliver_directly(self, subject: str, receive: Callable[[Message], object]) -> Subscription:
        """For layers above: subscribe to `subject`, and have `receive` called in the reader's turn; it must not block."""
        return self._connection.subscribe(subject, direct=receive)

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
    ) -> AsyncIterator[Message]:
        """Publish `data` to `subject`, with `headers`, and iterate over the answers: `count` of them, or until none came for
        `stall` seconds, or up to one for which `sentinel` is true (`headwater.client.request_many.is_empty`), and for
        `timeout` seconds at most. Raises NoResponders at once, RequestTimeout when not one answer came in time."""
        return ask_many(self, subject, data, headers, seconds_of(timeout), count, seconds_of(stall), sentinel)

    def new_inbox(self) -> str:
        """A reply subject that no other client uses."""
        return new_inbox(self._options.inbox_prefix)

    def jetstream(self, *, timeout: Timeout = 5.0, domain: str = "", prefix: str = "$JS.API") -> "JetStream":
        """The server's JetStream, or that of a `domain` or API `prefix`; `timeout` in seconds, for each request and ack."""
        from headwater.client.jetstream import JetStream

        return JetStream(self, seconds_of(timeout), f"$JS.{domain}.API" if domain else prefix)

    async def flush(self, timeout: Timeout = 10.0) -> None:
        """Wait until the server has processed everything before. Raises RequestTimeout after `timeout` seconds."""
        await self._connection.flush(seconds_of(timeout))

    async def drain(self, timeout: Timeout = 10.0) -> None:
        """End all subscriptions once messages on their way have come, write everything, and close, in any case.

        Callbacks get all their messages before that, and may publish and request meanwhile. Messages waiting in other
        subscriptions can be read afterwards, but not answered. Raises RequestTimeout after `timeout` seconds.
        """
        seconds = seconds_of(timeout)
        try:
            await self._connection.drain(seconds)
            await self._connection.flush(seconds)
        finally:
            await self.close()

    async def close(self) -> None:
        """Write what is buffered and close. Safe to call again."""
        await self._connection.close()

    async def wait_closed(self) -> HeadwaterError | None:
        """Wait until the connection has ended; returns why, None when it was closed on purpose."""
        return await asyncio.shield(self._connection.closed)

    def on_closed(self, callback: Callable[[HeadwaterError | None], object]) -> Callable[[], None]:
        """Call `callback(reason)` when the connection has ended; None when it was closed on purpose.

        Returns a function that removes the callback.
        """
        closed = self._connection.closed

        def run(ended: "asyncio.Future[HeadwaterError | None]") -> None:
            callback(ended.result())

        def forget() -> None:
            closed.remove_done_callback(run)

        closed.add_done_callback(run)
        return forget

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"connected to {self.server}" if self.server else "reconnecting"
        return f"<Client {state}>"

    if TYPE_CHECKING:  # nats-py's names for the same things, installed below

        @property
        def connected_url(self) -> str | None: ...

        @property
        def discovered_servers(self) -> list[str]: ...

        @property
        def is_reconnecting(self) -> bool: ...

        @property
        def is_connecting(self) -> bool: ...

        @property
        def max_payload(self) -> int: ...

        @property
        def client_id(self) -> int: ...

        @property
        def client_ip(self) -> str: ...

        @property
        def server_pool(self) -> list[str]: ...

        @property
        def connected_server_version(self) -> str: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self.is_connected:
                await self._connection.flush(10.0)
        finally:
            await self.close()


install(Client, CLIENT, CLIENT_ADVICE)
install(Subscription, SUBSCRIPTION, {})
take(Client, CLIENT_ARGUMENTS)
take(Subscription, SUBSCRIPTION_ARGUMENTS)


async def connect(servers: str | Sequence[str] | None = None, **arguments: Unpack[ConnectArguments]) -> Client:
    """Connect to the first of `servers` that accepts the connection; credentials in a URL take precedence over the
    arguments.

    The arguments are the fields of `headwater.client.options.ClientOptions`. Without `servers`: those of `context`, or of
    the environment (NATS_URL, NATS_CONTEXT), or the chosen context of the `nats` tool, or nats://127.0.0.1:4222.

    `error_callback(error)` is called for errors that no task awaits: a missing permission, a full subscription, an
    exception in a callback, the loss of the connection; without it they are logged. `event_callback(event)` gets all
    events (`headwater.client.events`). Either may be a coroutine function: its coroutine runs as a task of its own. A
    lost connection is re-established; see `Connection`.

    Raises ConfigError for an invalid URL; otherwise the last failure when no server accepts the connection:
    AuthorizationError when it refuses the credentials, TransportError when it cannot be reached or does not answer,
    RemoteProtocolError when it is not a NATS server.
    """
    return await connect_with(find_options(servers, arguments))


async def connect_with(options: ClientOptions) -> Client:
    """As `connect`, with the options as a value."""
    events = Events(options.error_callback, options.event_callback)
    connection = Connection(events, away_limit=options.reconnect_buffer, pings_out=options.pings_out)
    connector = Connector.prepare(connection, parse_server_urls(list(options.servers)), options)
    conversation = await connector.first()
    if options.reconnect:
        connection.comeback = connector
        connector.announced(connection.info, conversation.address)
    connection.keep_alive.start(options.ping_interval)
    connection.adopt(conversation)
    return Client(connection, connector, options)
