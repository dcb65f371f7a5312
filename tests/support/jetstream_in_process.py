"""JetStream without a socket: a service on a router of its own, asked as a client would ask it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from headwater.durable_files.files import Files
from headwater.exchange.router import Router
from headwater.jetstream.service import JetStream
from headwater.model.stream_limits import ServerLimits
from headwater.streams.options import SyncPolicy

TIMEOUT = 20.0  # seconds


class Received(NamedTuple):
    """One message that reached a listener."""

    subject: bytes
    reply: bytes
    header_block: bytes
    payload: bytes


class Listener:
    """What arrives on a subject."""

    def __init__(self, router: Router, subject: bytes) -> None:
        self._router = router
        self._queue: asyncio.Queue[Received] = asyncio.Queue()
        self._subscription = router.subscribe_internal(subject, lambda *call: self._queue.put_nowait(Received(*call)))

    async def next(self) -> Received:
        return await asyncio.wait_for(self._queue.get(), TIMEOUT)

    async def take(self, count: int) -> list[Received]:
        return [await self.next() for _ in range(count)]

    @property
    def empty(self) -> bool:
        return self._queue.empty()

    def stop(self) -> None:
        self._router.unsubscribe(self._subscription)


class Desk:
    """A client's place: `api` asks, `publish` waits for the ack, `listen` subscribes."""

    def __init__(self, service: JetStream, router: Router) -> None:
        self.service = service
        self.router = router
        self._requests = 0

    def listen(self, subject: str) -> Listener:
        return Listener(self.router, subject.encode())

    async def ask(self, subject: str, payload: bytes = b"", header_block: bytes = b"") -> Received:
        self._requests += 1
        inbox = f"inbox.{self._requests}"
        listener = self.listen(inbox)
        try:
            self.router.publish(subject.encode(), inbox.encode(), header_block, payload)
            return await listener.next()
        finally:
            listener.stop()

    async def api(self, verb: str, document: object = None) -> dict[str, Any]:
        body = json.dumps(document).encode() if document is not None else b""
        return dict(json.loads((await self.ask(f"$JS.API.{verb}", body)).payload))

    async def publish(self, subject: str, payload: bytes = b"", header_block: bytes = b"") -> dict[str, Any]:
        return dict(json.loads((await self.ask(subject, payload, header_block)).payload))

    async def make(self, name: str, **settings: object) -> dict[str, Any]:
        """A stream; raises AssertionError when it is refused."""
        answer = await self.api(f"STREAM.CREATE.{name}", {"name": name, "subjects": [f"{name}.>"], **settings})
        assert "error" not in answer, answer
        return answer

    async def consume(self, stream: str, name: str, **settings: object) -> dict[str, Any]:
        """A consumer, or the error."""
        document = {"stream_name": stream, "config": {"name": name, **settings}}
        return await self.api(f"CONSUMER.CREATE.{stream}.{name}", document)


@asynccontextmanager
async def served(
    directory: Path,
    clock: list[int] | None = None,
    files: Files | None = None,
    ticks: list[int] | None = None,
    server_limits: ServerLimits = ServerLimits(),  # noqa: B008  (a constant)
    sync: SyncPolicy = "always",
) -> AsyncIterator[Desk]:
    """A running service; `clock[0]` is its time of day in ns, if given, and `ticks[0]` the clock that is never set; `files`:
    where it stores."""
    import time

    router = Router(asyncio.get_running_loop().call_soon, 1)
    clock_ns = (lambda: clock[0]) if clock is not None else time.time_ns
    ticks_ns = (lambda: ticks[0]) if ticks is not None else None
    service = JetStream(
        router, directory, clock_ns=clock_ns, ticks_ns=ticks_ns, files=files, server_limits=server_limits, sync=sync
    )
    await service.start()
    try:
        async with asyncio.timeout(TIMEOUT):
            yield Desk(service, router)
    finally:
        await service.stop()
