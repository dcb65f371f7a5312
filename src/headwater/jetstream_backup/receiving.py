"""Receives the chunks of an archive from a client into a file.

Each chunk is a request, answered by an empty message once it is in the file, so a client that waits for the answers is
never ahead of the disk. An empty chunk is the end; its answer is the result of the restore. After PATIENCE without a
chunk the file is removed, and later chunks have no receiver.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from headwater.durable_files.files import File
from headwater.exchange.router import Router

logger = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds between two chunks, as in nats-server
MOST_WAITING = 64 << 20  # bytes received but not yet in the file

Finish = Callable[[int, str], Awaitable[bytes]]


class ChunkReceiver:
    """One archive from one client. `finish(size, failure)` returns the answer to the last chunk once all are in
    `spool`, or to the chunk that could not be written, with the reason."""

    def __init__(
        self, router: Router, subject: bytes, spool: File, finish: Finish, *, patience: float = PATIENCE
    ) -> None:
        self._router = router
        self._spool = spool
        self._finish = finish
        self._patience = patience
        self._chunks: asyncio.Queue[tuple[bytes, bytes]] = asyncio.Queue()
        self._waiting = 0
        self._subscription = router.subscribe_internal(subject, self._on_chunk)

    def _on_chunk(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        self._waiting += len(payload)
        self._chunks.put_nowait((reply, payload))

    async def run(self) -> bool:
        """Receive until the end; False when the client stopped sending."""
        size = 0
        try:
            while True:
                reply, payload = await asyncio.wait_for(self._chunks.get(), self._patience)
                too_fast = self._waiting > MOST_WAITING
                self._waiting -= len(payload)
                failure = "chunks are sent without waiting for their answers" if too_fast else ""
                if payload and not failure:
                    failure = await asyncio.to_thread(self._keep, payload, size)
                    size += len(payload)
                if payload and not failure:
                    self._router.publish(reply, b"", b"", b"")
                    continue
                self._router.unsubscribe(self._subscription)
                self._router.publish(reply, b"", b"", await self._finish(size, failure))
                return True
        except TimeoutError:
            return False
        finally:
            self._router.unsubscribe(self._subscription)

    def _keep(self, payload: bytes, position: int) -> str:
        try:
            self._spool.pwrite([payload], position)
        except OSError as error:
            return error.strerror or str(error)
        return ""
