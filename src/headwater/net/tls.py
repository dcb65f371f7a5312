"""TLS on a link: contexts made from files, and the encrypting layer.

A NATS connection begins in the clear: the first line is the server's INFO, which announces whether TLS follows on the
same socket. The layer therefore has three ways to begin:

    UPGRADE    the greeting is sent in the clear, then only TLS is accepted
    WAIT       nothing is sent until a TLS hello arrives, or until `greet()` (then UPGRADE)
    FIRST      TLS before anything else: `wss`, or `handshake_first`

The cryptography is OpenSSL's, through `ssl`: TLS 1.2 or newer, with Python's default ciphers. An SSLObject over two
memory buffers does the work, so link, broker and client contain no TLS code.
"""

import asyncio
import hashlib
import math
import ssl
import time
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import NamedTuple, cast

from headwater.errors import ConfigError, TransportError, open_failure
from headwater.net.layer import Layer, Stack
from headwater.net.link import Link, LinkOwner

_HELLO = 0x16  # the first byte of a TLS record that carries a handshake
_REMEMBERED = 20_480  # sessions: as many as OpenSSL keeps in a context


class Beginning(Enum):
    """How the server's side of a TLS connection begins."""

    FIRST = "first"
    WAIT = "wait"
    UPGRADE = "upgrade"


class _State(Enum):
    GREETING = "greeting"  # the next write is sent in the clear
    SILENT = "silent"  # nothing is sent; a hello must arrive
    HANDSHAKE = "handshake"
    OPEN = "open"
    CLEAR = "clear"  # the peer chose not to use TLS, which is allowed
    REFUSED = "refused"  # the handshake succeeded, but the peer was refused


class _VerifyingContext(ssl.SSLContext):
    """A listener's context whose clients show certificates, and until when those of resumable sessions are good, by the
    session's id. OpenSSL does not look at a certificate again when a session of TLS 1.2 is resumed, and Python cannot
    keep it from remembering sessions. Before the handshake is done, the id is all that is known of a resumed one."""

    good_until: dict[bytes, float]

    def remember(self, session: bytes, until: float) -> None:
        self.good_until[session] = until
        if len(self.good_until) > _REMEMBERED:
            del self.good_until[next(iter(self.good_until))]


def _judge_resumption(
    tls: "ssl.SSLSocket | ssl.SSLObject", _name: str | None, context: ssl.SSLContext
) -> "ssl.AlertDescription | None":
    """Called for each hello: the alert that refuses it, or None."""
    if not tls.session_reused or tls.session is None or not isinstance(context, _VerifyingContext):
        return None
    expired = context.good_until.get(tls.session.id, math.inf) < time.time()
    return ssl.AlertDescription.ALERT_DESCRIPTION_CERTIFICATE_EXPIRED if expired else None


def server_context(
    cert_file: str | Path,
    key_file: str | Path,
    ca_file: str | Path | None = None,
    *,
    verify: bool = False,
    ciphers: Iterable[str] = (),
    min_version: str = "1.2",
) -> ssl.SSLContext:
    """The context of a listener. `verify`: clients must present a certificate issued by `ca_file` (default: the
    system's CAs), which must be good in every connection, of resumed sessions, too.

    Raises ConfigError for files that cannot be read or do not belong together.
    """
    context = (_VerifyingContext if verify else ssl.SSLContext)(ssl.PROTOCOL_TLS_SERVER)
    _load(context, cert_file, key_file, ca_file)
    if isinstance(context, _VerifyingContext):
        context.good_until = {}
        context.verify_mode = ssl.CERT_REQUIRED
        context.num_tickets = 0  # of TLS 1.3; without one, no session is resumed
        context.options |= ssl.OP_NO_TICKET  # of TLS 1.2: the id of a session with a ticket is the client's choice
        context.sni_callback = _judge_resumption
        if ca_file is None:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    _limit(context, ciphers, min_version)
    return context


def client_context(
    ca_file: str | Path | None = None,
    cert_file: str | Path | None = None,
    key_file: str | Path | None = None,
    *,
    verify: bool = True,
) -> ssl.SSLContext:
    """The context for dialling. The server is verified against `ca_file` (default: the system's CAs); with `verify`
    False it is not verified.

    Raises ConfigError for files that cannot be read or do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, cert_file, key_file, ca_file)
    if ca_file is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _limit(context, (), "1.2")
    return context


def _load(
    context: ssl.SSLContext, cert_file: str | Path | None, key_file: str | Path | None, ca_file: str | Path | None
) -> None:
    try:
        if cert_file is not None:
            # No password prompt: a broker has no terminal.
            context.load_cert_chain(cert_file, key_file, password=_refuse_to_ask)
        if ca_file is not None:
            context.load_verify_locations(ca_file)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        files = [path for path in (cert_file, key_file, ca_file) if path is not None]
        names = ", ".join(map(str, files))
        missing = [
            open_failure(path, error)
            for path in files
            if isinstance(error, FileNotFoundError) and not Path(path).exists()
        ]
        reason = missing[0] if missing else f"{names}: {error.strerror if isinstance(error, OSError) else error}"
        raise ConfigError(f"error parsing X509 certificate/key pair: {reason}", value=names) from error


def _refuse_to_ask() -> str:
    raise ValueError("the private key is encrypted")


def _limit(context: ssl.SSLContext, ciphers: Iterable[str], min_version: str) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if min_version == "1.3" else ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    names = ":".join(ciphers)
    if not names:
        return
    try:
        context.set_ciphers(names)
    except ssl.SSLError as error:
        raise ConfigError(f"no cipher suite of {names!r} is known", value=names) from error


class TlsLayer:
    """One TLS connection (`net.layer.Layer`).

    `on_open` is called once, when the handshake is done; a TransportError from it refuses the peer. `clear_allowed`: a
    peer that does not begin with a TLS hello is served in the clear.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        server_hostname: str | None = None,
        beginning: Beginning = Beginning.FIRST,
        clear_allowed: bool = False,
        on_open: Callable[[], None] | None = None,
    ) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side, server_hostname)
        self._clear_allowed = clear_allowed
        self._on_open = on_open
        self._clear_in = bytearray()
        self._clear_out = bytearray()
        self._peer_ended = False
        self._state = _State.SILENT
        if beginning is Beginning.UPGRADE:
            self._state = _State.GREETING
        elif not server_side:
            self._handshake()

    @property
    def ready(self) -> bool:
        return self._state in (_State.GREETING, _State.OPEN, _State.CLEAR)

    @property
    def open(self) -> bool:
        """Whether the handshake is done."""
        return self._state is _State.OPEN

    @property
    def settled(self) -> bool:
        """Whether the mode is decided: encrypted, or in the clear by the peer's choice."""
        return self._state in (_State.OPEN, _State.CLEAR)

    @property
    def ended(self) -> bool:
        return self._peer_ended

    @property
    def peer_certificate(self) -> bytes | None:
        """The peer's certificate in DER; None if it sent none."""
        return self._tls.getpeercert(binary_form=True) if self._state is _State.OPEN else None

    @property
    def peer_names(self) -> dict[str, object]:
        """The peer's verified certificate in the form of `ssl.SSLSocket.getpeercert`; empty if there is none."""
        return dict(self._tls.getpeercert() or {}) if self._state is _State.OPEN else {}

    @property
    def version(self) -> str:
        """The protocol version, such as "TLSv1.3"; empty before the handshake is done."""
        return self._tls.version() or "" if self._state is _State.OPEN else ""

    @property
    def cipher(self) -> str:
        """The cipher suite; empty before the handshake is done."""
        suite = self._tls.cipher() if self._state is _State.OPEN else None
        return suite[0] if suite else ""

    def greet(self) -> None:
        """No hello has arrived in time: send the greeting in the clear, and expect the hello after it."""
        if self._state is _State.SILENT:
            self._state = _State.GREETING

    def feed(self, data: memoryview) -> None:
        if self._state in (_State.GREETING, _State.SILENT):
            self._begin(data[0])
        if self._state is _State.CLEAR:
            self._clear_in += data
            return
        self._incoming.write(data)
        if self._state is _State.HANDSHAKE:
            self._handshake()

    def read_into(self, space: memoryview) -> int:
        if self._state is _State.CLEAR:
            size = min(len(space), len(self._clear_in))
            space[:size] = self._clear_in[:size]
            del self._clear_in[:size]
            return size
        if self._state is not _State.OPEN or self._peer_ended:
            return 0
        try:
            size = cast(int, self._tls.read(len(space), cast(bytearray, space)))
        except ssl.SSLWantReadError:
            return 0
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._peer_ended = True
            return 0
        except ssl.SSLError as error:
            raise TransportError(f"TLS: {_reason(error)}") from error
        if size == 0:
            self._peer_ended = True
        return size

    def write(self, data: memoryview) -> None:
        if self._state is _State.OPEN:
            self._tls.write(data)
            return
        self._clear_out += data
        if self._state is _State.GREETING:
            self._state = _State.SILENT

    def take(self) -> bytes:
        clear = bytes(self._clear_out)
        self._clear_out.clear()
        return clear + self._outgoing.read() if clear else self._outgoing.read()

    def finish(self) -> None:
        if self._state is not _State.OPEN:
            return
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass  # our close_notify is in `_outgoing`; we do not wait for the peer's

    def _begin(self, first: int) -> None:
        if first == _HELLO:
            self._state = _State.HANDSHAKE
        elif self._clear_allowed:
            self._state = _State.CLEAR
        else:
            raise TransportError("the peer did not begin with a TLS hello")

    def _handshake(self) -> None:
        self._state = _State.HANDSHAKE
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except (ssl.SSLError, OSError, ValueError) as error:  # ValueError: a certificate name that cannot be matched
            raise TransportError(f"the TLS handshake failed: {_reason(error)}") from error
        self._state = _State.OPEN
        try:
            if isinstance(self._tls.context, _VerifyingContext):
                self._look_at_certificate(self._tls.context)
            if self._on_open is not None:
                self._on_open()
        except TransportError:
            self._state = _State.REFUSED  # input already received is discarded
            raise

    def _look_at_certificate(self, context: _VerifyingContext) -> None:
        """Remember until when the client's certificate is good; refuse one that expired since its session began."""
        shown = self.peer_names.get("notAfter")
        if shown is None or self._tls.session is None or self.version == "TLSv1.3":  # which has no tickets here
            return
        until = ssl.cert_time_to_seconds(str(shown))
        if not self._tls.session_reused:
            context.remember(self._tls.session.id, until)
        elif until < time.time():  # OpenSSL remembered the session longer than we
            raise TransportError("the TLS handshake failed: certificate has expired")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return str(error.verify_message)
    if isinstance(error, ssl.SSLError) and error.reason == "CALLBACK_FAILED":  # ours has the one reason to refuse
        return "certificate has expired"
    if isinstance(error, ssl.SSLError) and error.reason:
        return str(error.reason).lower().replace("_", " ")
    return str(error)


def tls_of(layer: Layer | None) -> TlsLayer | None:
    """The TLS layer among the layers of a link, or None."""
    if isinstance(layer, Stack):
        return tls_of(layer.lower)
    return layer if isinstance(layer, TlsLayer) else None


def public_key_fingerprint(certificate: bytes) -> str:
    """SHA-256 of the public key (SubjectPublicKeyInfo) in a certificate in DER, as lower-case hexadecimal.

    The certificate must already have been parsed by OpenSSL: it is not checked here.
    """
    # Certificate ::= SEQUENCE { TBSCertificate ::= SEQUENCE { [0] version, serial, algorithm, issuer, validity,
    # subject, SubjectPublicKeyInfo, … (RFC 5280, 4.1). OpenSSL accepts no version 1 certificate from a CA, but a
    # self-signed one has no [0].
    position = _content(certificate, _content(certificate, 0)[0])[0]
    fields = 6 if certificate[position] == _DER_VERSION else 5
    for _ in range(fields):
        position = _content(certificate, position)[1]
    return hashlib.sha256(certificate[position : _content(certificate, position)[1]]).hexdigest()


_DER_VERSION = 0xA0


def _content(der: bytes, position: int) -> tuple[int, int]:
    """The start and end of the content of the DER element at `position`."""
    length = der[position + 1]
    start = position + 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(der[start : start + size], "big")
        start += size
    return start, start + length


class ServerTls(NamedTuple):
    """A listener's TLS settings. `hello_wait`: seconds without a hello until the greeting is sent in the clear;
    `timeout`: seconds for the handshake.

    `accepts` is called when the handshake is done; False ends the connection.
    """

    context: ssl.SSLContext
    beginning: Beginning = Beginning.UPGRADE
    hello_wait: float = 0.0
    timeout: float = 2.0
    clear_allowed: bool = False
    accepts: Callable[[TlsLayer], bool] | None = None


def secure_link(
    settings: ServerTls,
    owner: LinkOwner,
    upper: Layer | None = None,
    on_open: Callable[[], None] | None = None,
) -> Link:
    """A link for a connection that a listener is about to make, with TLS according to `settings`, and the layer `upper`
    inside it.

    `on_open` is called when the handshake is done.

    A client that has not finished its handshake after `timeout` seconds is disconnected without an error.
    """
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []

    def opened() -> None:
        for timer in timers:
            timer.cancel()
        if settings.accepts is not None and not settings.accepts(layer):
            raise TransportError("the client's certificate is not one of those that are taken")
        if on_open is not None:
            on_open()

    layer = TlsLayer(
        settings.context,
        server_side=True,
        beginning=settings.beginning,
        clear_allowed=settings.clear_allowed,
        on_open=opened,
    )
    link = Link(owner, layer if upper is None else Stack(layer, upper))

    def give_up() -> None:
        if not layer.settled:
            link.abort()

    def greet() -> None:
        layer.greet()
        link.flush()

    timers.append(loop.call_later(settings.timeout, give_up))
    if settings.beginning is Beginning.WAIT:
        timers.append(loop.call_later(settings.hello_wait, greet))
    return link


async def upgrade(link: Link, context: ssl.SSLContext, server_hostname: str | None) -> TlsLayer:
    """Client side: start TLS on `link`; returns when the handshake is done.

    `server_hostname` must match the server's certificate (None only if the context does not check it). Call this after
    INFO has been read and before anything is written: earlier output is sent in the clear. Raises TransportError if the
    handshake fails or the connection is lost. It has no timeout of its own.
    """
    layer = TlsLayer(context, server_side=False, server_hostname=server_hostname)
    link.install(layer)
    await link.prepared()
    return layer
