"""Chunks into a file: answered one by one, refused by a full disk, given up after a silence."""

import asyncio
import os
from collections.abc import Sequence

from headwater.durable_files.files import File
from headwater.exchange.router import Router
from headwater.jetstream_backup import receiving
from headwater.jetstream_backup.receiving import ChunkReceiver
from headwater.jetstream_state.memory_files import MemoryFiles


class Client:
    """Sends chunks to `restore.here` and keeps the answers."""

    def __init__(self, patience: float = 20.0, spool: File | None = None) -> None:
        self.router = Router(asyncio.get_running_loop().call_soon, 1)
        self.spool = spool if spool is not None else MemoryFiles(os.urandom).create("spool")
        self.answers: asyncio.Queue[bytes] = asyncio.Queue()
        self.finished: list[tuple[int, str]] = []
        self.router.subscribe_internal(
            b"answer", lambda subject, reply, block, payload: self.answers.put_nowait(payload)
        )
        self.receiver = ChunkReceiver(self.router, b"restore.here", self.spool, self._finish, patience=patience)

    async def _finish(self, size: int, failure: str) -> bytes:
        self.finished.append((size, failure))
        return failure.encode() or b"done"

    def send(self, chunk: bytes) -> None:
        self.router.publish(b"restore.here", b"answer", b"", chunk)


def test_every_chunk_is_answered_once_it_is_in_the_file() -> None:
    async def scenario() -> None:
        client = Client()
        running = asyncio.create_task(client.receiver.run())
        for chunk in (b"abc", b"de"):
            client.send(chunk)
            assert await client.answers.get() == b""
        assert client.spool.pread(9, 0) == b"abcde"
        client.send(b"")
        assert await client.answers.get() == b"done"
        assert await running
        assert client.finished == [(5, "")]
        assert not client.router.has_interest(b"restore.here")

    asyncio.run(scenario())


def test_a_client_that_falls_silent_has_given_up() -> None:
    async def scenario() -> None:
        client = Client(patience=0.02)
        client.send(b"abc")
        assert not await client.receiver.run()
        assert client.finished == []
        assert not client.router.has_interest(b"restore.here")

    asyncio.run(scenario())


class FullDisk:
    """A file that takes nothing: no real disk here is full at the right moment."""

    def pwrite(self, pieces: Sequence[bytes], position: int) -> None:
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_said_at_once() -> None:
    async def scenario() -> None:
        client = Client(spool=FullDisk())  # type: ignore[arg-type]
        client.send(b"abc")
        assert await client.receiver.run()
        assert await client.answers.get() == b"No space left on device"

    asyncio.run(scenario())


def test_a_client_that_does_not_wait_is_refused_before_it_fills_the_memory() -> None:
    async def scenario() -> None:
        before, receiving.MOST_WAITING = receiving.MOST_WAITING, 10
        try:
            client = Client()
            for _ in range(4):
                client.send(b"abc")
            assert await client.receiver.run()
            assert client.finished == [(0, "chunks are sent without waiting for their answers")]
        finally:
            receiving.MOST_WAITING = before

    asyncio.run(scenario())
