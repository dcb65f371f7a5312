"""A client's side of QUIC: one connection, each request on its own bidirectional stream.

    link.ask(bytes) ─▶ a stream, ended at once        its answer ─▶ owner.answered(stream, bytes), once the peer has ended it

aioquic does the protocol and its timers. The end of a connection is reported once, by `owner.lost`.
"""

import asyncio
import socket
import ssl
from typing import Any, Protocol

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, QuicEvent, StreamDataReceived, StreamReset

from headwater.errors import ConfigError, TransportError

WINDOW_BYTES = 16 << 20  # flow-control window; a poll returns a few megabytes at most
IDLE_SECONDS = 60.0


class Owner(Protocol):
    """Receives a connection's answers."""

    def answered(self, stream: int, data: bytearray) -> None: ...
    def lost(self, error: Exception | None) -> None: ...


class QuicClientLink(QuicConnectionProtocol):
    """Made by `dial_quic`."""

    def __init__(self, *arguments: Any, owner: Owner, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._owner = owner
        self._answers: dict[int, bytearray] = {}
        self._over = False

    def ask(self, data: bytes) -> int:
        """Send one complete request; returns the id of its stream."""
        stream = self._quic.get_next_available_stream_id()
        self._quic.send_stream_data(stream, data, end_stream=True)
        self.transmit()
        return stream

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived):
            answer = self._answers.setdefault(event.stream_id, bytearray())
            answer += event.data
            if event.end_stream:
                self._owner.answered(event.stream_id, self._answers.pop(event.stream_id))
        elif isinstance(event, StreamReset):
            self._owner.answered(event.stream_id, self._answers.pop(event.stream_id, bytearray()))
        elif isinstance(event, ConnectionTerminated):
            reason = event.reason_phrase or f"error {event.error_code}"
            self._end(TransportError(f"the QUIC connection ended: {reason}") if event.error_code else None)

    def abort(self) -> None:
        """End the connection without waiting for retransmissions."""
        self.close()
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        if self._over:
            return
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.close()
        self._owner.lost(error)


async def dial_quic(
    host: str, port: int, owner: Owner, timeout: float, ca_file: str = "", server_name: str = "", verify: bool = True
) -> QuicClientLink:
    """Connect to UDP `host:port` within `timeout` seconds. `verify` False accepts any certificate.

    Raises TransportError, and ConfigError for a `ca_file` that cannot be used.
    """
    options = QuicConfiguration(
        is_client=True,
        server_name=server_name or host,
        max_data=WINDOW_BYTES,
        max_stream_data=WINDOW_BYTES,
        idle_timeout=IDLE_SECONDS,
    )
    if not verify:
        options.verify_mode = ssl.CERT_NONE
    if ca_file:
        try:
            options.load_verify_locations(ca_file)
        except (OSError, ValueError) as error:
            raise ConfigError(f"the certificates in {ca_file} cannot be used: {error}", value=ca_file) from error
    loop, link = asyncio.get_running_loop(), None
    try:
        async with asyncio.timeout(timeout):
            found: Any = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            _, link = await loop.create_datagram_endpoint(
                lambda: QuicClientLink(QuicConnection(configuration=options), owner=owner), remote_addr=found[0][4]
            )
            link.connect(found[0][4], transmit=True)
            await link.wait_connected()
    except (OSError, TimeoutError) as error:
        if link is not None:
            link.abort()
        reason = f"no answer within {timeout:g} s" if isinstance(error, TimeoutError) else str(error) or "refused"
        raise TransportError(f"cannot connect to {host}:{port} (UDP): {reason}", value=f"{host}:{port}") from error
    return link
