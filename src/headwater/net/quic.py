"""QUIC: a listener whose connections carry requests, each on its own bidirectional stream.

    client opens a stream ─▶ its bytes, as they arrive ─▶ owner.receive(stream, buffer) ─▶ number of bytes used
    owner answers with `link.send(stream, pieces)`, at once or later; the stream ends once the client has ended its half

aioquic does the protocol and its timers. QUIC has no mode without TLS: if no certificate is configured, a self-signed
one is made for the life of the process. Authentication of the server needs a real one.
"""

import asyncio
import datetime
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent, StreamDataReceived, StreamReset
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headwater.errors import ConfigError, EnvironmentProblem
from headwater.net.address import plain_host
from headwater.net.limits import Limits
from headwater.net.listening import NO_LIMITS
from headwater.net.places import Place, Places

logger = logging.getLogger(__name__)

VALID_DAYS = 30
WINDOW_BYTES = 16 << 20  # flow-control window of one stream, and of a connection; a batch has up to a megabyte
BUFFERED_BYTES = 80 << 20  # incomplete requests of a connection: one of the largest size, and some more
EXCESSIVE_LOAD = 0x107  # HTTP/3's code; QUIC itself defines none for an application that sheds load


class StreamOwner(Protocol):
    """Receives a connection's requests."""

    def attach(self, link: "QuicLink", peer: str) -> None: ...
    def receive(self, stream: int, buffer: bytearray) -> int: ...
    def lost(self) -> None: ...


class QuicLink(QuicConnectionProtocol):
    """One connection of a client."""

    def __init__(
        self, *arguments: Any, owner: StreamOwner, limits: Limits, places: Places, port: int, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._owner = owner
        self._limits = limits
        self._places = places
        self._port = port
        self._place: Place | None = None
        self._deadline: asyncio.TimerHandle | None = None  # closes a connection without a request
        self._buffers: dict[int, bytearray] = {}
        self._ended: set[int] = set()
        self._buffered = 0
        self._attached = False
        self._over = False

    def datagram_received(self, data: bytes | str, addr: Any) -> None:
        """Apply the limits at the first datagram, which gives the peer's address, before the handshake costs anything."""
        if self._place is None and not self._over:
            host = plain_host(str(addr[0]))
            reason = self._places.refusal(host)
            if reason:
                self._over = True
                self._places.note_refusal(self._port, host, reason)
                self._quic.close(EXCESSIVE_LOAD, reason_phrase=reason)
            else:
                self._place = self._places.take(host)
                if self._limits.login_seconds:
                    self._deadline = self._loop.call_later(self._limits.login_seconds, self._silent)
        super().datagram_received(data, addr)

    def _silent(self) -> None:
        if not self._attached:
            self.close()

    def _left(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._place is not None:
            self._place.leave()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived):
            self._received(event.stream_id, event.data, event.end_stream)
        elif isinstance(event, StreamReset):
            self._forget(event.stream_id)
        elif isinstance(event, ConnectionTerminated):
            self._left()
            if not self._over:
                self._over = True
                self._owner.lost()

    def _received(self, stream: int, data: bytes, ended: bool) -> None:
        if not self._attached:
            self._attached = True
            self._owner.attach(self, self._peer())
        buffer = self._buffers.setdefault(stream, bytearray())
        buffer += data
        self._buffered += len(data)
        if ended:
            self._ended.add(stream)
        try:
            used = self._owner.receive(stream, buffer)
        except Exception:
            logger.exception("quic_owner_failed")
            self.close()
            return
        del buffer[:used]
        if ended:
            buffer.clear()  # the request stays incomplete
        if used or ended:
            self._buffered = sum(map(len, self._buffers.values()))
        if self._buffered > BUFFERED_BYTES:
            logger.warning("quic_peer_sends_too_much peer=%s", self._peer())
            self.close(EXCESSIVE_LOAD, reason_phrase="too much is waiting to be complete")

    def _peer(self) -> str:
        path = self._quic._network_paths[0].addr
        return f"{path[0]}:{path[1]}"

    def send(self, stream: int, pieces: Sequence[bytes]) -> None:
        """Answer on a stream; it ends if the client has ended its half."""
        if self._over:
            return
        self._quic.send_stream_data(stream, b"".join(pieces), stream in self._ended)
        if stream in self._ended:
            self._forget(stream)
        self.transmit()

    def _forget(self, stream: int) -> None:
        self._buffers.pop(stream, None)
        self._ended.discard(stream)


class QuicListener:
    """Made by `listen`."""

    def __init__(self, server: QuicServer, port: int, places: Places) -> None:
        self._server = server
        self.port = port
        self.places = places

    async def stop(self) -> None:
        """End all connections."""
        self._server.close()
        await asyncio.sleep(0)  # the transport closes at the end of this turn of the loop


async def listen(
    host: str,
    port: int,
    make_owner: Callable[[], StreamOwner],
    cert_file: str | Path | None = None,
    key_file: str | Path | None = None,
    limits: Limits = NO_LIMITS,
) -> QuicListener:
    """Accept connections on UDP `host:port` (port 0: any free one), each with its own owner. `limits` bound their
    number and the time until the first request.

    Raises EnvironmentProblem when the address cannot be bound, ConfigError for a certificate that cannot be used.
    """
    options = QuicConfiguration(is_client=False, max_data=WINDOW_BYTES, max_stream_data=WINDOW_BYTES)
    if cert_file is not None:
        try:
            options.load_cert_chain(cert_file, key_file)
        except (OSError, ValueError) as error:
            raise ConfigError(f"the certificate {cert_file} cannot be used: {error}", value=cert_file) from error
    else:
        options.certificate, options.private_key = made_certificate(host)

    places = Places(limits, asyncio.get_running_loop().time)

    def make_link(*arguments: Any, **more: Any) -> QuicLink:
        return QuicLink(*arguments, owner=make_owner(), limits=limits, places=places, port=port, **more)

    try:
        server = await serve(host, port, configuration=options, create_protocol=make_link)
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot listen on {host}:{port} (UDP): {error}",
            value=f"{host}:{port}",
            hint="choose another address or port; port 0 takes any free one",
        ) from error
    port = server._transport.get_extra_info("sockname")[1]  # type: ignore[union-attr]
    return QuicListener(server, port, places)


def made_certificate(host: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A self-signed certificate for `localhost` and `host`, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "headwater")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.DNSName(host)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(names, critical=False)
    )
    return builder.sign(key, hashes.SHA256()), key
