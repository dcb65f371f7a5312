"""What every way in and every way out is given: where to connect, and the streams that are there.

    owner    the node that has the streams; consulted for the truth, never part of what is tested
    writer   where messages go in
    reader   where they come out
    iggy     the ports of the Iggy face, which is beside the owner

A seat is a URL; where several servers share one address its fragment is the name of the one that is wanted.

Connections are made when they are first wanted, one for each seat and client, and closed with the world.
"""

import asyncio
import json
import ssl
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urldefrag, urlsplit

import nats
from crossings.table import BUCKET, EVENTS, OBJECTS, TOPIC, Place
from nats.aio.client import Client as NatsPy
from support.raw_wire import connect_op
from support.websocket_wire import frame, upgrade_request

import headwater
from headwater.client.client import Client
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import Republish, StreamConfig, StreamInfo
from headwater.client.key_value import BucketConfig
from headwater.client.object_store import StoreConfig
from headwater.errors import JetStreamError, NoResponders
from headwater.iggy_client.client import Client as IggyClient
from headwater.iggy_client.client import connect as connect_iggy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIES = 100  # connections to an address that two servers share, until one is with the right one
PATIENCE = 20.0  # seconds for what has to come: a tenth of one on a quiet machine, ten under seven times its load

IGGY_STREAM, IGGY_TOPIC = "cross", "topic"  # what JetStream shows as `TOPIC`
SUBJECTS = {EVENTS: "events", BUCKET: "$KV.CROSS", OBJECTS: "$O.CROSS", TOPIC: "iggy.cross.topic.0"}
REPUBLISHED = {EVENTS: "source", BUCKET: "source-kv"}  # what is published below these goes into that stream
SERVICE = "outside"  # below it the importing account publishes

T = TypeVar("T")


class Iggy(NamedTuple):
    """The ports of an Iggy face: for clients that log in, and the seed's."""

    tcp_port: int
    seed_port: int


@dataclass
class World:
    """A place that runs. `deliver`: below it push consumers reach the reader; empty where an inbox does."""

    place: Place
    stack: AsyncExitStack
    owner: str
    writer: str
    reader: str
    importer: str = ""  # the account that imports the services; empty where there is one account
    prefix: str = "$JS.API"  # of JetStream's API where the reader is
    deliver: str = ""
    iggy: Iggy | None = None
    tls: ssl.SSLContext | None = None
    authority: Path | None = None  # whose word `tls` takes
    spark: "SparkSession | None" = None
    _made: dict[tuple[str, str], asyncio.Future[Any]] = field(default_factory=dict)

    async def once(self, kind: str, url: str, make: Callable[[], Awaitable[T]]) -> T:
        """What is made once for each kind and seat, connections above all, however many ask at a time."""
        key = (kind, url)
        if key not in self._made:
            self._made[key] = asyncio.ensure_future(make())
        made: T = await self._made[key]
        return made

    async def client(self, url: str) -> Client:
        """Ours, at one of the seats."""
        address, name = urldefrag(url)

        async def make() -> Client:
            for _ in range(TRIES):
                client = await headwater.connect(address, reconnect=False, tls=self.tls or False)
                self.stack.push_async_callback(client.close)
                if name in ("", client.server_info.server_name):
                    return client
            raise AssertionError(f"{TRIES} connections to {address}, and none was with {name}")

        return await self.once("headwater", url, make)

    async def nats_py(self, url: str) -> NatsPy:
        address, name = urldefrag(url)

        async def make() -> NatsPy:
            for _ in range(TRIES):
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "parameter 'timeout' of type 'float'")  # nats-py asks aiohttp so
                    client = await nats.connect(address, allow_reconnect=False, tls=self.tls, tls_hostname="localhost")
                self.stack.push_async_callback(client.close)
                if name in ("", client._server_info["server_name"]):
                    return client
            raise AssertionError(f"{TRIES} connections to {address}, and none was with {name}")

        return await self.once("nats-py", url, make)

    async def jetstream(self, url: str) -> JetStream:
        prefix = self.prefix if url == self.reader else "$JS.API"
        return (await self.client(url)).jetstream(prefix=prefix, timeout=PATIENCE)

    async def wire(self, url: str) -> "Wire":
        address, name = urldefrag(url)

        async def make() -> Wire:
            for _ in range(TRIES):
                wire = await Wire.dial(address, self.tls)
                self.stack.callback(wire.close)
                if name in ("", wire.server_name):
                    return wire
            raise AssertionError(f"{TRIES} connections to {address}, and none was with {name}")

        return await self.once("wire", url, make)

    async def iggy_client(self, name: str = "") -> IggyClient:
        """Today's client, logged in; `name` for one of its own."""
        face = self.face

        async def make() -> IggyClient:
            client = await connect_iggy(f"iggy://iggy:iggy@127.0.0.1:{face.tcp_port}", tls=self.tls)
            self.stack.push_async_callback(client.close)
            return client

        return await self.once("iggy", name, make)

    @property
    def face(self) -> Iggy:
        assert self.iggy is not None, f"{self.place.key} has no Iggy face: its cells have to be ruled out"
        return self.iggy

    # ── streams ──

    async def make_streams(self) -> None:
        """All of them, on the owner."""
        jetstream = await self.jetstream(self.owner)
        await jetstream.create_stream(
            StreamConfig(name=EVENTS, subjects=[f"{SUBJECTS[EVENTS]}.>"], allow_direct=True, storage="memory")
        )
        await jetstream.create_key_value(BucketConfig(bucket="CROSS", history=8, storage="memory"))
        await jetstream.create_object_store(StoreConfig(bucket="CROSS", storage="memory"))
        if self.place.key == "real-stream":
            for subject in (SUBJECTS[EVENTS], SUBJECTS[BUCKET], f"{SUBJECTS[OBJECTS]}.M"):
                await until(partial(self._takes, f"{subject}.probe"), f"{subject} at the writer")
        if self.iggy is not None:
            client = await self.iggy_client()
            await client.create_stream(IGGY_STREAM)
            await client.create_topic(IGGY_STREAM, IGGY_TOPIC)
            await until(lambda: self._is_there(TOPIC), f"the stream {TOPIC}")

    async def _takes(self, subject: str) -> bool:
        """Whether what the writer publishes reaches a stream: one of three nats-servers answers that it was made, another
        one leads it, and a PUB before its interest has come over that one's route is lost without a word. The stream
        refuses this publish."""
        try:
            await (await self.jetstream(self.writer)).publish(subject, b"", expect_stream="another")
        except NoResponders:
            return False
        except JetStreamError:
            return True
        raise AssertionError(f"a publish to {subject} for another stream was stored")

    async def make_republishing(self, stream: str) -> str:
        """A stream whose messages are republished below `<subject of stream>.republish`; returns what it listens to."""
        jetstream, source = await self.jetstream(self.owner), REPUBLISHED[stream]
        to = Republish(src=f"{source}.>", dest=f"{SUBJECTS[stream]}.republish.>")
        await jetstream.create_stream(
            StreamConfig(name=source.upper(), subjects=[f"{source}.>"], republish=to, storage="memory")
        )
        publisher = await self.jetstream(self.writer)

        async def known() -> bool:
            try:
                await publisher.publish(f"{source}.probe", b"")
            except NoResponders:
                return False
            return True

        await until(known, "a new stream's subjects at the writer")
        return source

    async def _is_there(self, stream: str) -> bool:
        return await self.state(stream) is not None

    async def state(self, stream: str) -> StreamInfo | None:
        try:
            return await (await self.jetstream(self.owner)).stream_info(stream)
        except JetStreamError:
            return None


class Wire:
    """A connection that publishes, by hand: over TCP, TLS or WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, framed: bool) -> None:
        self._reader, self._writer, self._framed = reader, writer, framed
        self.server_name = ""

    @classmethod
    async def dial(cls, url: str, tls: ssl.SSLContext | None) -> "Wire":
        parts = urlsplit(url)
        framed = parts.scheme in ("ws", "wss")
        first = tls if framed else None
        name = "localhost" if first else None
        reader, writer = await asyncio.open_connection("127.0.0.1", parts.port, ssl=first, server_hostname=name)
        wire = cls(reader, writer, framed)
        if framed:
            writer.write(upgrade_request())
            await reader.readuntil(b"\r\n\r\n")
        greeting = await reader.readuntil(b"\r\n")
        wire.server_name = json.loads(greeting[greeting.index(b"{") :])["server_name"]
        if tls is not None and not framed:
            await writer.start_tls(tls, server_hostname="localhost")
        user = {"user": parts.username, "pass": parts.password} if parts.username else {}
        await wire.send(connect_op(**user))
        return wire

    async def send(self, data: bytes) -> None:
        """Send, and wait until the server has taken it."""
        for piece in (data, b"PING\r\n"):
            self._writer.write(frame(piece) if self._framed else piece)
        async with asyncio.timeout(PATIENCE):
            output = await self._reader.readuntil(b"PONG\r\n")
        assert b"-ERR" not in output, output

    def close(self) -> None:
        self._writer.close()


async def until(condition: Callable[[], Awaitable[bool]], what: str, seconds: float = PATIENCE) -> None:
    """Wait for something that no event tells of."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not await condition():
        if loop.time() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(0.005)
