"""A stream registry and its consumers over a directory, without the API in front of them."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from headwater.durable_files.files import Files, OsFiles
from headwater.exchange.router import Router
from headwater.group_commit.writers import Writers
from headwater.jetstream.consumer_registry import ConsumerRegistry
from headwater.jetstream.domain import Domain
from headwater.jetstream.stream import Stream
from headwater.jetstream.stream_registry import StreamRegistry, StreamSettings
from headwater.jetstream_documents.account import AccountLimits
from headwater.jetstream_documents.streams import StreamConfig
from headwater.streams.options import LogOptions

NOW = 1_700_000_000_000_000_000  # ns since 1970


class Registries:
    """`streams` and `consumers` of one account; `router` is its own."""

    def __init__(self, directory: Path, files: Files | None = None, **limits: Any) -> None:
        self.router = Router(asyncio.get_running_loop().call_soon, 1)
        self.clerk = ThreadPoolExecutor(1)
        self.tasks: list[asyncio.Task[object]] = []
        self.consumers = ConsumerRegistry(self.router, lambda: NOW, self.clerk, self._spawn, durable=True)
        disk = files if files is not None else OsFiles()
        options = LogOptions(preallocate_bytes=0)
        settings = StreamSettings(
            disk, str(directory), lambda: NOW, lambda: NOW, options, AccountLimits(**limits), Domain()
        )
        self.streams = StreamRegistry(settings, self.router, self.clerk, self.consumers)

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    async def create(self, name: str = "S", **settings: Any) -> Stream:
        return await self.streams.create(StreamConfig(name=name, subjects=[name.lower()], **settings))

    async def publish(self, subject: bytes, count: int = 1) -> list[bytes]:
        """The acks of so many messages."""
        acks: list[bytes] = []
        done = asyncio.Event()

        def note(*call: bytes) -> None:
            acks.append(call[3])
            if len(acks) == count:
                done.set()

        inbox = self.router.subscribe_internal(b"inbox", note)
        for number in range(count):
            self.router.publish(subject, b"inbox", b"", b"%d" % number)
        await asyncio.wait_for(done.wait(), 60)
        self.router.unsubscribe(inbox)
        return acks


@asynccontextmanager
async def registries(directory: Path, files: Files | None = None, **limits: Any) -> AsyncIterator[Registries]:
    """Started, and stopped at the end."""
    made = Registries(directory, files, **limits)
    try:
        await made.streams.start(Writers(1, "test-write"))
        yield made
        await made.streams.stop()
    finally:
        made.streams.release()
        made.clerk.shutdown()
