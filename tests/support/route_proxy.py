"""A proxy in front of a broker's route port, which the broker advertises, so that every route to it goes through here.

It can cut its connections, refuse new ones, swallow what goes one way or both while the connections stand, and let little
through at a time.
"""

import asyncio
import socket
from contextlib import suppress

INTO, OUT_OF = "into", "out of"


class RouteProxy:
    """`target` may be set later; `swallow` names the directions whose bytes vanish. `pace`: bytes let through a
    millisecond, each way; 0 for as many as come.
    """

    def __init__(self, port: int = 0) -> None:
        self.target = 0
        self.port = port
        self.closed = False
        self.swallow: set[str] = set()
        self.pace = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "RouteProxy":
        listening = socket.create_server(("127.0.0.1", self.port))
        # What a slow one is sent soon waits at the sender.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self._server = await asyncio.start_server(self._accept, sock=listening)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def connections(self) -> set[asyncio.StreamWriter]:
        """Those that stand."""
        return set(self._writers)

    def cut(self) -> None:
        """End every connection at once."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            writer.transport.abort()
            return
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, inner_writer}
        for source, sink, way in ((reader, inner_writer, INTO), (inner_reader, writer, OUT_OF)):
            task = asyncio.create_task(self._pump(source, sink, way))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: str) -> None:
        with suppress(OSError):
            while data := await source.read(self.pace or 65536):
                if self.pace:
                    await asyncio.sleep(0.001)
                if way not in self.swallow:
                    sink.write(data)
                    await sink.drain()
        self._writers.discard(sink)
        sink.transport.abort()
