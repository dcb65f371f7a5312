"""A proxy that lets one connection come to grief at a chosen byte, and leaves all others alone.

    async with UnrulyProxy(server_url) as proxy:
        proxy.plan(Mishap("cut", "to client", 17))      # the next connection is cut behind its 17th byte

`cut` resets both sides; `truncate` swallows what follows, then ends both sides in order; `delay` passes the rest on after
some turns of the loop, so that the receiver has to read an op in two pieces. It runs in the test's own loop.
"""

import asyncio
from dataclasses import dataclass
from typing import Literal, Self
from urllib.parse import urlsplit

DELAY_TURNS = 5


@dataclass(frozen=True, slots=True)
class Mishap:
    kind: Literal["cut", "truncate", "delay"]
    direction: Literal["to client", "to server"]
    after: int  # bytes of that direction


class UnrulyProxy:
    """`.url` to connect to; `met` counts the mishaps that came to pass, `connections` those accepted."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 0)
        self._planned: list[Mishap] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.passed = {"to client": 0, "to server": 0}  # of the last connection
        self.met = 0
        self.connections = 0
        self.refusing = False
        self.url = ""

    def plan(self, *mishaps: Mishap) -> None:
        """One for each of the next connections."""
        self._planned[:] = mishaps

    def cut_all(self) -> None:
        """Reset every connection there is."""
        for writer in self._writers:
            writer.transport.abort()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        mishap = self._planned.pop(0) if self._planned else None
        if self.refusing:
            writer.transport.abort()
            return
        server_reader, server_writer = await asyncio.open_connection(*self._target)
        self.passed = {"to client": 0, "to server": 0}
        pair = (writer, server_writer)
        self._writers.update(pair)
        pumps = [
            asyncio.create_task(self._pump("to client", server_reader, writer, mishap, pair)),
            asyncio.create_task(self._pump("to server", reader, server_writer, mishap, pair)),
        ]
        for pump in pumps:
            self._tasks.add(pump)
            pump.add_done_callback(self._tasks.discard)

    async def _pump(
        self,
        direction: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        mishap: Mishap | None,
        pair: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
    ) -> None:
        left = mishap.after if mishap is not None and mishap.direction == direction else -1
        passed = self.passed
        try:
            while data := await reader.read(1 << 16):
                if 0 <= left < len(data):
                    assert mishap is not None
                    self.met += 1
                    writer.write(data[:left])
                    if mishap.kind == "cut":
                        await _turns()
                        for each in pair:
                            each.transport.abort()
                        return
                    if mishap.kind == "truncate":
                        return
                    await _turns()
                    data, left = data[left:], -1
                elif left >= 0:
                    left -= len(data)
                writer.write(data)
                passed[direction] += len(data)
        except (ConnectionError, OSError):
            pass
        finally:
            for each in pair:
                each.close()
            self._writers.difference_update(pair)


async def _turns() -> None:
    for _ in range(DELAY_TURNS):
        await asyncio.sleep(0)
