"""One link to one server, from the dial to its end: the handshake, then bytes in to the parser.

    dial ─▶ INFO ─▶ [TLS] ─▶ CONNECT, PING ─▶ PONG ─▶ the connection adopts it ─▶ … ─▶ lost, once

A connection has many of these one after the other, never two at a time: during its handshake and while adopted it is
the connection's `conversation`, and the server's ops reach the connection. It ends once. Then `greeted` and `welcomed`
have a result or a reason, so that no task waits for a lost link.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.client_connection.connection_ops import ConnectionOps
from headwater.client_connection.server_url import ServerAddress
from headwater.errors import ConnectionClosed, HeadwaterError, TransportError
from headwater.wire.handshake import ConnectOptions, ServerInfo
from headwater.wire.publish import OpWriter
from headwater.wire.server_ops import ServerOpParser

if TYPE_CHECKING:
    from headwater.net.link import Link


class Conversation:
    """The owner of a link, for `connection`; calls `ended` once, with the reason, when the link is over."""

    def __init__(
        self,
        connection: ConnectionOps,
        ended: Callable[["Conversation", HeadwaterError], None],
        address: ServerAddress,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.address = address
        self.link: Link | None = None
        self.identity = ""  # the identity sent in CONNECT, for errors
        self.greeted: asyncio.Future[ServerInfo] = loop.create_future()  # INFO was received
        self.welcomed: asyncio.Future[None] = loop.create_future()  # the PONG after CONNECT was received
        self.reason: HeadwaterError | None = None  # why it ended, or is about to
        self.adopted = False  # the connection uses it
        self._connection = connection
        self._ended = ended
        self._parser = ServerOpParser(connection)
        self._parser.greeting = True

    # ── the link's owner ──

    def attach(self, link: "Link") -> None:
        self.link = link

    def receive(self, buffer: bytearray, filled: int) -> int:
        try:
            return self._parser.parse(buffer, 0, filled)
        finally:
            self._connection.wake_touched()

    def lost(self, error: Exception | None) -> None:
        if self.reason is None:
            self.reason = TransportError(
                f"the connection to {self.address.where} was lost: {error or 'the server closed it'}"
            )
        self._fail(self.greeted)
        self._fail(self.welcomed)
        self._ended(self, self.reason)

    # ── for the connection ──

    async def introduce(self, options: ConnectOptions) -> None:
        """Send CONNECT and PING, and wait for the PONG. Raises the error that the server sends instead."""
        if self.reason is not None:  # it sent an error after INFO, or closed
            raise self.reason
        if self.link is None:
            raise ConnectionClosed("there is no connection to say CONNECT on")
        writer = OpWriter(self.link.output)
        writer.connect(options)
        writer.ping()
        self.link.flush_soon()
        await self.welcomed

    def end(self, reason: HeadwaterError) -> None:
        """End it now, for `reason`; the first one counts."""
        self.reason = self.reason or reason
        if self.link is not None:
            self.link.abort()

    def _fail(self, waiting: "asyncio.Future[ServerInfo] | asyncio.Future[None]") -> None:
        if not waiting.done():
            assert self.reason is not None
            waiting.set_exception(self.reason)
            waiting.exception()  # an awaiting task still gets it; without one asyncio would warn
