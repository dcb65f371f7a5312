"""The NATS client: connect, publish, subscribe, request.

    async with await headwater.connect("nats://127.0.0.1:4222") as client:
        subscription = await client.subscribe("orders.>")
        client.publish("orders.eu", b"hello", headers={"Trace": "1"})
        async for message in subscription: ...

A publish is copied into the connection's output and written with all others of this turn of the event loop. Its result
may be awaited: that costs nothing, but for a turn of the loop once in a MiB, and waits while the server does not keep up.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from headwater import __version__
from headwater.client.connection import Connection, ErrorCallback
from headwater.client.connection_ops import BytesLike
from headwater.client.requests import Requests, new_inbox
from headwater.client.server_url import ServerAddress, parse_server_url
from headwater.client.subscription import MessageCallback, Subscription
from headwater.errors import ConfigError, HeadwaterError, TransportError
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message
from headwater.net.tcp import dial
from headwater.wire.handshake import PROTOCOL_DYNAMIC, ConnectOptions, ServerInfo

if TYPE_CHECKING:
    from headwater.client.jetstream import JetStream

DEFAULT_URL = "nats://127.0.0.1:4222"


class Client:
    """A connected client; made by `connect`. Its methods raise ConnectionClosed once the connection has ended."""

    def __init__(self, connection: Connection, inbox_prefix: str) -> None:
        self._connection = connection
        self._inbox_prefix = inbox_prefix
        self._requests = Requests(connection, inbox_prefix)

    @property
    def server_info(self) -> ServerInfo:
        """The server's latest INFO."""
        return self._connection.info

    @property
    def is_connected(self) -> bool:
        """Whether messages can be sent."""
        return not self._connection.closed.done()

    def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        reply: str = "",
    ) -> Awaitable[None]:
        """Send a message; the result may be awaited, for back-pressure.

        Raises SubjectError, HeaderError or PayloadTooLarge; then nothing was sent. An empty set of headers sends none.
        """
        return self._connection.publish(subject, data, reply, headers)

    async def subscribe(
        self, subject: str, *, queue: str = "", callback: MessageCallback | None = None, max_messages: int = 0
    ) -> Subscription:
        """Subscribe to a subject or pattern, as a member of `queue` if given, for `max_messages` if given.

        With `callback` each message is passed to it, one after the other, in a task of the subscription; a coroutine
        function is awaited before the next. Its exceptions go to `error_callback`. Without, iterate over the
        subscription. Raises SubjectError.
        """
        subscription = self._connection.subscribe(subject, queue, max_messages)
        if callback is not None:
            subscription.serve(callback)
        return subscription

    def deliver_directly(self, subject: str, receive: Callable[[Message], object]) -> Subscription:
        """For layers above: subscribe, and have `receive` called in the reader's turn; it must not block."""
        return self._connection.subscribe(subject, direct=receive)

    async def request(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        timeout: float = 2.0,
    ) -> Message:
        """Publish and wait for one answer. Raises NoResponders at once, RequestTimeout after `timeout` seconds."""
        return await self._requests.ask(subject, data, headers, timeout)

    def new_inbox(self) -> str:
        """A reply subject that nobody else uses."""
        return new_inbox(self._inbox_prefix)

    def jetstream(self, *, timeout: float = 5.0) -> "JetStream":
        """The server's JetStream; `timeout` seconds for each API request and acknowledgement."""
        from headwater.client.jetstream import JetStream

        return JetStream(self, timeout)

    async def flush(self, timeout: float = 10.0) -> None:
        """Wait until the server has processed everything before. Raises RequestTimeout."""
        await self._connection.flush(timeout)

    async def drain(self, timeout: float = 10.0) -> None:
        """End all subscriptions after what is on its way has come, write everything, and close, in any case.

        Callbacks have had all their messages then, and may publish and request meanwhile. What waits in other
        subscriptions can still be read afterwards, but no longer be answered. Raises RequestTimeout.
        """
        try:
            await self._connection.drain(timeout)
            await self._connection.flush(timeout)
        finally:
            await self.close()

    async def close(self) -> None:
        """Write what is buffered and close. Safe to call again."""
        await self._connection.close()

    async def wait_closed(self) -> HeadwaterError | None:
        """Wait until the connection has ended; returns why, None when it was closed on purpose."""
        return await asyncio.shield(self._connection.closed)

    def on_closed(self, callback: Callable[[HeadwaterError | None], object]) -> Callable[[], None]:
        """Have `callback(reason)` called when the connection has ended; None when it was closed on purpose.

        Returns a function that takes this back.
        """
        closed = self._connection.closed

        def tell(ended: "asyncio.Future[HeadwaterError | None]") -> None:
            callback(ended.result())

        def forget() -> None:
            closed.remove_done_callback(tell)

        closed.add_done_callback(tell)
        return forget

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


async def connect(
    servers: str | Sequence[str] = DEFAULT_URL,
    *,
    name: str = "",
    user: str = "",
    password: str = "",
    token: str = "",
    echo: bool = True,
    verbose: bool = False,
    pedantic: bool = False,
    connect_timeout: float = 5.0,
    ping_interval: float = 120.0,
    inbox_prefix: str = "_INBOX",
    error_callback: ErrorCallback | None = None,
) -> Client:
    """Connect to the first of `servers` that takes us; credentials in a URL win over the arguments.

    `error_callback(error)` hears of errors that nobody awaits: a permission that is missing, a full subscription, an
    exception in a callback, the loss of the connection; without it they are logged. Times in seconds. Raises ConfigError
    for a URL that is none; otherwise the last failure when no server takes us: AuthorizationError when it refuses the
    credentials, TransportError when it cannot be reached or does not answer, RemoteProtocolError when it is no server.
    """
    addresses = [parse_server_url(url) for url in ([servers] if isinstance(servers, str) else servers)]
    if not addresses:
        raise ConfigError("no server to connect to", hint=f"for example {DEFAULT_URL}")
    if ping_interval <= 0 or connect_timeout <= 0:
        raise ConfigError("times are more than 0 seconds", value=min(ping_interval, connect_timeout))
    options = ConnectOptions(
        verbose=verbose,
        pedantic=pedantic,
        echo=echo,
        headers=True,
        no_responders=True,
        protocol=PROTOCOL_DYNAMIC,
        name=name,
        lang="python-headwater",
        version=__version__,
    )
    failure: HeadwaterError | None = None
    for address in addresses:
        mine = _with_credentials(options, address, ServerAddress("", 0, user, password, token))
        try:
            connection = await _connect_one(address, mine, connect_timeout, error_callback)
        except HeadwaterError as error:
            failure = error
            continue
        connection.keep_alive(ping_interval)
        return Client(connection, inbox_prefix)
    assert failure is not None
    raise failure


def _with_credentials(options: ConnectOptions, address: ServerAddress, given: ServerAddress) -> ConnectOptions:
    carried = address if address.user or address.token else given
    unset = msgspec.UNSET
    return msgspec.structs.replace(
        options, user=carried.user or unset, password=carried.password or unset, auth_token=carried.token or unset
    )


async def _connect_one(
    address: ServerAddress, options: ConnectOptions, timeout: float, error_callback: ErrorCallback | None
) -> Connection:
    """Dial and shake hands within `timeout` seconds."""
    connection = Connection(error_callback)
    where = f"{address.host}:{address.port}"
    try:
        async with asyncio.timeout(timeout):
            await dial(address.host, address.port, connection, timeout)
            info = await connection.greeted
            if info.tls_required:
                raise ConfigError(f"{where} requires TLS, which is not built yet", value=where)
            await connection.introduce(options)
    except BaseException as error:
        if connection.link is not None:
            connection.link.abort()
        if isinstance(error, TimeoutError):
            message = f"{where} did not complete the handshake within {timeout:g} s"
            raise TransportError(message, value=where) from error
        raise
    return connection
