"""The asyncio Iggy client: generation V, for our server face and for real Iggy servers of 0.9.

    async with await connect("iggy://iggy:iggy@127.0.0.1:8090") as client:
        await client.create_stream("orders")
        await client.create_topic("orders", "eu", partitions=2)
        await client.send("orders", "eu", [Message(b"hello", TypedHeaders({"key 1": "value1"}))])
        for message in await client.poll("orders", "eu", partition=0): ...
        async for message in client.consumer("orders", "eu", group="billing"): ...

Every method may be called from many tasks: requests go out in the order of the calls, and over TCP the answers come back
in it.

A refusal is an IggyError with the server's number. A lost connection is restored (`session`); what was in flight then and
changes something fails with ConnectionClosed, and a send whose answer is missing may have been stored: `producer` sends it
again with the same ids. `headwater.iggy_client.sync` has the same without asyncio.
"""

import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from headwater.client_connection.timeouts import Timeout, seconds_of
from headwater.iggy_client.connection import Read
from headwater.iggy_client.consumer import ConsumerOptions, TopicConsumer
from headwater.iggy_client.management import Name
from headwater.iggy_client.messages import Messages
from headwater.iggy_client.options import options_of
from headwater.iggy_client.producer import Producer, ProducerOptions
from headwater.iggy_client.requests import login_of
from headwater.iggy_client.session import Session
from headwater.iggy_client.users import Users
from headwater.iggy_client.values import Scope
from headwater.iggy_wire import command_codec
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Code, Command
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer
from headwater.iggy_wire.reply_codec import ClientView, ClusterView, OptionView, StatsView


class Client(Messages, Users):
    """See the head of this module. Made by `connect`."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    @property
    def user_id(self) -> int:
        """The id of the logged-in user."""
        return self._session.user_id

    @property
    def is_connected(self) -> bool:
        """Whether the client is connected and logged in."""
        return self._session.is_connected

    @property
    def reconnects(self) -> int:
        """The number of times that the connection was restored."""
        return self._session.reconnects

    async def execute(self, command: Command) -> Any:
        """Execute any command of `commands`; returns its view, None for an empty answer. Raises IggyError,
        TransportError."""
        return await self._session.execute(command)

    async def request(self, code: Code, *pieces: bytes | bytearray) -> bytes:
        """Send a command as bytes; returns the bytes of its answer."""
        answer: bytes = await self._session.request(code, pieces)
        return answer

    async def request_read(self, code: Code, pieces: tuple[bytes | bytearray, ...], read: Read) -> Any:
        """Send a command as bytes; returns the result of `read`, which parses the answer in the receive buffer."""
        return await self._session.request(code, pieces, read)

    # ── the session and the server ──

    async def log_in(self, username: str, password: str) -> None:
        """Log in as this user, also after a reconnect. Raises IggyError when the server refuses, and closes the
        connection."""
        await self._session.log_in(login_of(username, password, ""))

    async def log_in_with_token(self, token: str) -> None:
        """As `log_in`, with a personal access token."""
        await self._session.log_in(login_of("", "", token))

    async def log_out(self) -> None:
        """Log out: only a log-in is allowed afterwards, and a lost connection is not restored."""
        await self._session.log_out()

    async def ping(self) -> None:
        """Returns when the server has answered."""
        await self.execute(c.Ping())

    async def stats(self) -> StatsView:
        """Statistics about the server's process and store."""
        view: StatsView = await self.execute(c.GetStats())
        return view

    async def me(self) -> ClientView:
        """This client in the server's list."""
        view: ClientView = await self.execute(c.GetMe())
        return view

    async def clients(self) -> list[ClientView]:
        """All connected clients."""
        return await self.execute(c.GetClients()) or []

    async def cluster(self) -> ClusterView:
        """The nodes of the cluster."""
        view: ClusterView = await self.execute(c.GetClusterMetadata())
        return view

    async def describe_options(self, scope: Scope = Scope.TOPIC) -> list[OptionView]:
        """The options for creating streams, topics and users."""
        return await self.execute(c.DescribeOptions(int(scope))) or []

    async def snapshot(self, compression: int = 2, types: Sequence[int] = (100,)) -> bytes:
        """A diagnostic archive of the server: `compression` 2 is deflate, type 100 all parts."""
        return await self.request(*command_codec.encode(c.GetSnapshot(compression, list(types)), Era.V))

    # ── messages ──

    def consumer(
        self,
        stream: Name,
        topic: Name,
        *,
        group: str = "",
        name: Name = 0,
        partition: int = 0,
        options: ConsumerOptions | None = None,
    ) -> TopicConsumer:
        """A consumer that iterates over a topic without end: as a member of `group`, which is created and joined at
        first use, or as the single consumer `name` of one `partition`."""
        reader = Consumer.group(group) if group else Consumer.single(name)
        return TopicConsumer(self, stream, topic, reader, partition, options or ConsumerOptions())

    def producer(self, stream: Name, topic: Name, options: ProducerOptions | None = None) -> Producer:
        """A producer that sends to a topic, created at first use, in batches, and repeats sends without an answer."""
        return Producer(self, stream, topic, options or ProducerOptions())

    # ── the end ──

    async def close(self) -> None:
        """Close the connection; requests in flight fail."""
        await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def connect(
    url: str,
    *,
    timeout: Timeout = 30.0,
    tls: ssl.SSLContext | bool | None = None,
    log_in: bool = True,
    reconnect_attempts: int | None = None,
    reconnect_wait: Timeout | None = None,
    heartbeat: Timeout | None = None,
) -> Client:
    """Connect and log in; the forms of `url` are in `headwater.iggy_client.options`.

    Times in seconds, or `timedelta`s; `timeout` is that of every request too. `tls` True checks the server by the
    system's authorities. `log_in` False: `Client.log_in` does it later. A lost connection is restored every
    `reconnect_wait` seconds (1), `reconnect_attempts` times in a row (None: for ever, 0: never). Every `heartbeat`
    seconds (5; 0: never) the client pings the server. Raises ConfigError for an invalid URL, TransportError, and
    IggyError when the server refuses.
    """
    times = {"timeout": timeout, "reconnect_wait": reconnect_wait, "heartbeat": heartbeat}
    given: dict[str, Any] = {name: seconds_of(time) for name, time in times.items() if time is not None}
    given |= {"tls": tls, "reconnect_attempts": reconnect_attempts}
    options = options_of(url, **given)
    if options.transport == "http":
        from headwater.iggy_client.http_session import connect_http

        return await connect_http(options, log_in)
    session = Session(options)
    await session.start(log_in)
    return Client(session)
