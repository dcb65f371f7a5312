"""Sends an archive in chunks, as fast as the receiver confirms them.

    chunk of full size   with a reply subject: an empty message to `$JS.SNAPSHOT.ACK.<stream>.<id>.<size>.<number>` confirms
    the last, short one  without
    empty                the end: status 204, or no header where there was no full chunk; 408 or 500 and why, where it failed

Sending begins once there is a local subscription to exactly the deliver subject: a client with a wildcard `_INBOX.x.*`
matches it from the beginning, but the `nats` tool subscribes to the subject only after the answer to its request. For a
receiver behind a route or a leaf node it begins after INTEREST_PATIENCE.

At most `window` bytes are unconfirmed. Sizes, subjects and statuses are those of nats-server 2.15.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

from headwater.errors import StorageError
from headwater.exchange.router import Router

logger = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds without a confirmation
INTEREST_PATIENCE = 2.0  # seconds to wait for a subscription; then sending begins without one
INTEREST_PAUSE = 0.02  # seconds between two checks
END = b"NATS/1.0 204\r\n\r\n"
NO_FLOW = b"NATS/1.0 408 No Flow Response\r\n\r\n"
NO_INTEREST = b"NATS/1.0 408 No Interest\r\n\r\n"


class ChunkSender:
    """Sends one archive to one receiver. `run` returns the reason for a failure, or ""."""

    def __init__(
        self, router: Router, deliver: bytes, acks: str, chunk: int, window: int, *, patience: float = PATIENCE
    ) -> None:
        self.sent = 0
        self._router = router
        self._deliver = deliver
        self._acks = acks
        self._chunk = chunk
        self._window = window
        self._patience = patience
        self._unconfirmed: dict[int, int] = {}
        self._confirmed = asyncio.Event()
        self._number = 0

    async def run(self, pieces: AsyncIterator[bytes]) -> str:
        """Send all pieces, then the final status."""
        subscription = self._router.subscribe_internal(f"{self._acks}.*.*".encode(), self._on_ack)
        try:
            await self._wait_for_interest()
            failed = await self._send(pieces)
        except (StorageError, OSError) as error:
            failed = b"NATS/1.0 500 %s\r\n\r\n" % " ".join(str(error).split()).encode()
        finally:
            self._router.unsubscribe(subscription)
        self._router.publish(self._deliver, b"", failed or (END if self._number else b""), b"")
        return failed.decode().partition(" ")[2].strip()

    async def _send(self, pieces: AsyncIterator[bytes]) -> bytes:
        held = bytearray()
        async for piece in pieces:
            held += piece
            while len(held) >= self._chunk:
                if not await self._has_room():
                    return NO_FLOW
                if self._number and not self._router.has_interest(self._deliver):
                    return NO_INTEREST
                self._send_full(bytes(held[: self._chunk]))
                del held[: self._chunk]
        if held:
            self.sent += len(held)
            self._router.publish(self._deliver, b"", b"", bytes(held))
        return b""

    def _send_full(self, chunk: bytes) -> None:
        self._number += 1
        self._unconfirmed[self._number] = len(chunk)
        self.sent += len(chunk)
        reply = f"{self._acks}.{len(chunk)}.{self._number}".encode()
        self._router.publish(self._deliver, reply, b"", chunk)

    async def _has_room(self) -> bool:
        """Wait until one more chunk fits the window; False when no confirmation came in time."""
        while self._unconfirmed and sum(self._unconfirmed.values()) + self._chunk > self._window:
            self._confirmed.clear()
            try:
                await asyncio.wait_for(self._confirmed.wait(), self._patience)
            except TimeoutError:
                return False
        return True

    def _on_ack(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        number = subject.rpartition(b".")[2]
        if number.isdigit() and len(number) < 10 and self._unconfirmed.pop(int(number), None) is not None:
            self._confirmed.set()

    async def _wait_for_interest(self) -> None:
        for _ in range(int(INTEREST_PATIENCE / INTEREST_PAUSE)):
            if any(each.subject == self._deliver for each in self._router.sublist.match(self._deliver).plain):
                return
            await asyncio.sleep(INTEREST_PAUSE)
