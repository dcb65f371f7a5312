"""A NATS server that says exactly what a test wants it to say, and nothing by itself.

    async with conversation() as (client, peer):
        peer.say(b"MSG a 1 2\r\nhi\r\n")
        assert await peer.hear_line() == b"SUB a 1"

No part of Headwater writes or reads here, but for the client that the test is about.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

import headwater
from headwater.client.client import Client

T = TypeVar("T")

INFO = b'INFO {"server_id":"SCRIPT","version":"2.15.1","headers":true,"max_payload":1048576,"proto":1} \r\n'
PATIENCE = 10.0  # seconds for one test; a healthy one needs some milliseconds


def finish(main: Coroutine[Any, Any, T], seconds: float = PATIENCE) -> T:
    """Runs `main` in a loop of its own. Raises TimeoutError when it hangs."""

    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            return await main

    return asyncio.run(bounded())


async def until(holds: Callable[[], bool]) -> None:
    """Turns of the loop until `holds()`; for states without an event."""
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0)


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def receive_line(self) -> bytes:
        """The next line, without its CRLF."""
        return (await self._reader.readuntil(b"\r\n")).removesuffix(b"\r\n")

    async def receive(self, size: int) -> bytes:
        return await self._reader.readexactly(size)

    async def receive_end(self) -> bytes:
        """Everything until the client closes."""
        return await self._reader.read()

    async def welcome(self, info: bytes = INFO) -> bytes:
        """The server's part of the handshake; returns the CONNECT line."""
        self.send(info)
        connect = await self.receive_line()
        assert await self.receive_line() == b"PING"
        self.send(b"PONG\r\n")
        return connect

    async def answer_ping(self) -> None:
        assert await self.receive_line() == b"PING"
        self.send(b"PONG\r\n")

    def hang_up(self) -> None:
        """Close in order: the client reads the end of the stream."""
        self._writer.close()

    def cut(self) -> None:
        """Close with a reset."""
        self._writer.transport.abort()

    def stop_reading(self) -> None:
        """Take nothing from the socket any more, so that the client's writes pile up."""
        self._reader.set_exception(ConnectionError("the script reads no more"))
        transport = self._writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()


class ScriptedServer:
    """Accepts; what then happens is the test's business."""

    def __init__(self) -> None:
        self._accepted: asyncio.Queue[Peer] = asyncio.Queue()
        self._peers: list[Peer] = []
        self._server: asyncio.Server | None = None
        self.url = ""

    async def accept(self) -> Peer:
        """The next connection."""
        return await self._accepted.get()

    async def __aenter__(self) -> "ScriptedServer":
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for peer in self._peers:
            peer.cut()
        await asyncio.sleep(0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self._peers.append(peer)
        self._accepted.put_nowait(peer)


@contextlib.asynccontextmanager
async def conversation(info: bytes = INFO, **options: Any) -> AsyncIterator[tuple[Client, Peer]]:
    """A connected client and the peer it talks to; both are closed at the end. It does not reconnect unless asked to."""
    options.setdefault("reconnect", False)
    async with ScriptedServer() as server:
        connecting = asyncio.create_task(headwater.connect(server.url, **options))
        peer = await server.accept()
        await peer.welcome(info)
        client = await connecting
        try:
            yield client, peer
        finally:
            peer.cut()
            await client.close()
