"""The server's side of WebSocket (RFC 6455) as a layer of a link. Its messages carry NATS bytes, cut anywhere.

    GET / HTTP/1.1 … ──▶ answered with 101, or refused with a status ──▶ frames: data, ping, pong, close

A refusal keeps the connection, as in nats-server, for MOST_REFUSALS requests and until `handshake_timeout`; input that
is not HTTP ends it. h11 parses HTTP, wsproto the frames. Text frames may carry NATS bytes too. Payload is passed on as
it arrives, so a frame that announces a terabyte costs nothing. Compression (RFC 7692) is per message, without context
takeover, and the decompressed size of a message is bounded. The decisions about a request are pure functions of it.
"""

import asyncio
import base64
import hashlib
import logging
import zlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from headwater.errors import EnvironmentProblem, TransportError
from headwater.model.record import Record
from headwater.net.layer import Layer, Stack
from headwater.net.link import Link, LinkOwner

try:
    import h11
    from wsproto.extensions import Extension
    from wsproto.frame_protocol import CloseReason, FrameDecoder, FrameProtocol, Opcode, ParseFailed, RsvBits
except ImportError as error:
    raise EnvironmentProblem(
        "WebSocket needs the package wsproto", hint="pip install 'headwater[websocket]'"
    ) from error

if TYPE_CHECKING:
    from wsproto.frame_protocol import Frame

logger = logging.getLogger(__name__)

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_COMPRESSION = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
_COMPRESS_ABOVE = 64  # bytes; smaller messages would only grow
_SYNC_TAIL = b"\x00\x00\xff\xff"  # RFC 7692, 7.2.1
HEAD_BYTES = (1 << 20) + 4096  # of a request that is not complete; Go's bound
MOST_REFUSALS = 8  # requests that do not become a WebSocket, on one connection
MQTT, LEAFNODE = "/mqtt", "/leafnode"
"""nats-server's endpoints besides that of clients, which is any other path. Headwater has no MQTT."""


class WebSocketServer(Record):
    """WebSocket options of a listener. `secure`: clients connect through TLS. `max_message`: bytes, after
    decompression. `leafnodes`: the listener also has the endpoint for leaf nodes.
    """

    compression: bool = False
    same_origin: bool = False
    allowed_origins: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    secure: bool = False
    handshake_timeout: float = 2.0
    max_message: int = 1 << 20
    leafnodes: bool = False


class BoundedDeflate(Extension):
    """permessage-deflate as nats-server offers it. A message that decompresses to more than `limit` bytes is refused."""

    name = "permessage-deflate"

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._made = 0
        self._compressed = False  # the message being received
        self._in_data = False  # the frame being received carries data
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)

    def enabled(self) -> bool:
        return True

    def offer(self) -> str:
        return _COMPRESSION

    def frame_inbound_header(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, payload_length: int
    ) -> CloseReason | RsvBits:
        self._in_data = not opcode.iscontrol()
        if rsv.rsv1 and opcode not in (Opcode.TEXT, Opcode.BINARY):
            return CloseReason.PROTOCOL_ERROR
        if opcode in (Opcode.TEXT, Opcode.BINARY):
            self._compressed = rsv.rsv1
            self._made = 0
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        return RsvBits(True, False, False)

    def frame_inbound_payload_data(self, proto: FrameDecoder | FrameProtocol, data: bytes) -> bytes | CloseReason:
        return self._grow(data) if self._compressed and self._in_data else data

    def frame_inbound_complete(self, proto: FrameDecoder | FrameProtocol, fin: bool) -> bytes | CloseReason | None:
        return self._grow(_SYNC_TAIL) if fin and self._compressed and self._in_data else None

    def frame_outbound(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, data: bytes, fin: bool
    ) -> tuple[RsvBits, bytes]:
        if opcode is not Opcode.BINARY or len(data) <= _COMPRESS_ABOVE:
            return rsv, data
        deflate = zlib.compressobj(zlib.Z_BEST_SPEED, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = deflate.compress(data) + deflate.flush(zlib.Z_SYNC_FLUSH)
        return RsvBits(True, rsv.rsv2, rsv.rsv3), packed[: -len(_SYNC_TAIL)]

    def _grow(self, data: bytes) -> bytes | CloseReason:
        try:
            grown = self._inflate.decompress(data, self._limit - self._made + 1)
        except zlib.error:
            return CloseReason.INVALID_FRAME_PAYLOAD_DATA
        self._made += len(grown)
        return CloseReason.MESSAGE_TOO_BIG if self._made > self._limit else grown


class WebSocketLayer:
    """One connection (`net.layer.Layer`). `request_headers` are set once it is ready. `on_open` is called when a
    request is accepted, with its endpoint: LEAFNODE, or "" for clients.
    """

    def __init__(self, settings: WebSocketServer) -> None:
        self._settings = settings
        self._http: h11.Connection | None = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._refusals = 0
        self._decoder = FrameDecoder(client=False)
        self._encoder = FrameProtocol(client=False, extensions=[])
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._in_message = False
        self._ended = False
        self._finished = False
        self.request_headers: dict[str, str] = {}
        self.on_open: Callable[[str], None] | None = None

    @property
    def ready(self) -> bool:
        return self._http is None and not self._finished

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies that came with the request."""
        pairs = (part.partition("=") for part in self.request_headers.get("cookie", "").split(";"))
        return {name.strip(): value.strip().strip('"') for name, _, value in pairs if name.strip()}

    def feed(self, data: memoryview) -> None:
        if self._http is None:
            self._feed_frames(bytes(data))
            return
        self._http.receive_data(bytes(data))
        self._read_requests(self._http)

    def _read_requests(self, http: h11.Connection) -> None:
        """Read HTTP requests until one becomes a WebSocket."""
        while self._http is not None:
            try:
                event = http.next_event()
            except h11.RemoteProtocolError as error:
                raise self._end_http(HTTPStatus(error.error_status_hint), "the HTTP request cannot be read") from None
            if event is h11.NEED_DATA:
                return
            if isinstance(event, h11.Request):
                self._answer(http, event)
            elif isinstance(event, h11.ConnectionClosed):
                return
            if http.our_state is h11.MUST_CLOSE:
                self._finished = True
                raise TransportError("no WebSocket: it was refused, and the peer wants the connection closed")
            if self._http is not None and http.our_state is h11.DONE and http.their_state is h11.DONE:
                http.start_next_cycle()

    def read_into(self, space: memoryview) -> int:
        size = min(len(space), len(self._incoming))
        space[:size] = self._incoming[:size]
        del self._incoming[:size]
        return size

    def write(self, data: memoryview) -> None:
        self._outgoing += self._encoder.send_data(bytes(data), fin=True)

    def take(self) -> bytes:
        taken = bytes(self._outgoing)
        self._outgoing.clear()
        return taken

    def finish(self) -> None:
        self._send_close(CloseReason.NORMAL_CLOSURE, "")

    # ── the request ──

    def _answer(self, http: h11.Connection, request: h11.Request) -> None:
        headers: dict[str, str] = {}
        for name, value in request.headers:
            name_text, value_text = name.decode("latin-1").lower(), value.decode("latin-1")
            headers[name_text] = f"{headers[name_text]}, {value_text}" if name_text in headers else value_text
        status, reason = judge_request(
            request.method.decode("latin-1"), request.target.decode("latin-1"), headers, self._settings
        )
        if status is not HTTPStatus.SWITCHING_PROTOCOLS:
            self._refuse(http, status, reason)
            return
        self.request_headers = headers
        answer = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", accept_key(headers["sec-websocket-key"])),
        ]
        if self._settings.compression and _offers_compression(headers):
            extensions: list[Extension] = [BoundedDeflate(self._settings.max_message)]
            self._decoder = FrameDecoder(client=False, extensions=extensions)
            self._encoder = FrameProtocol(client=False, extensions=extensions)
            answer.append(("Sec-WebSocket-Extensions", _COMPRESSION))
        answer += self._settings.headers
        self._outgoing += (
            http.send(h11.InformationalResponse(status_code=101, headers=answer, reason="Switching Protocols")) or b""
        )
        self._http = None
        if self.on_open is not None:
            self.on_open(_endpoint(request.target.decode("latin-1")))
        if http.trailing_data[0]:
            self._feed_frames(http.trailing_data[0])

    def _refuse(self, http: h11.Connection, status: HTTPStatus, reason: str) -> None:
        """Refuse a request; another may follow."""
        self._refusals += 1
        if self._refusals >= MOST_REFUSALS:
            raise self._end_http(status, reason)
        body = f"{status.phrase}\n".encode()
        headers = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Sec-WebSocket-Version", "13"),
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Length", str(len(body))),
        ]
        answer = h11.Response(status_code=status.value, headers=headers, reason=status.phrase)
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self._outgoing += http.send(event) or b""
        logger.debug("websocket_refused status=%d reason=%s", status.value, reason)

    def _end_http(self, status: HTTPStatus, reason: str) -> TransportError:
        """Refuse, and end HTTP on this connection: its input is unreadable, too large, or the last request allowed."""
        body = f"{status.phrase}\n".encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nSec-WebSocket-Version: 13\r\nConnection: close\r\n"
            f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._outgoing += head.encode("ascii") + body
        self._finished = True
        return TransportError(f"no WebSocket: {reason}", value=status.value)

    # ── frames ──

    def _feed_frames(self, data: bytes) -> None:
        self._decoder.receive_bytes(data)
        try:
            while not self._ended and (frame := self._decoder.process_buffer()) is not None:
                self._take_frame(frame)
        except ParseFailed as error:
            self._send_close(error.code, str(error.args[0]))
            raise TransportError(f"WebSocket: {error.args[0]}", value=int(error.code)) from None

    def _take_frame(self, frame: "Frame") -> None:
        """Handle a control frame, or part of a data frame: the first part has the opcode, the others CONTINUATION."""
        payload = frame.payload if isinstance(frame.payload, bytes) else b""
        if frame.opcode is Opcode.PING:
            if not self._finished:
                self._outgoing += self._encoder.pong(payload)
        elif frame.opcode is Opcode.CLOSE:
            code, reason = _read_close(payload)
            self._send_close(code, reason)
            self._ended = True
        elif frame.opcode is not Opcode.PONG:
            if self._in_message != (frame.opcode is Opcode.CONTINUATION):
                raise ParseFailed("a message that begins within another" if self._in_message else "nothing to continue")
            self._in_message = not (frame.frame_finished and frame.message_finished)
            self._incoming += payload

    def _send_close(self, code: int, reason: str) -> None:
        if self._http is None and not self._finished:
            self._finished = True
            known = None if code == CloseReason.NO_STATUS_RCVD else code
            self._outgoing += self._encoder.close(known, reason or None)


def judge_request(
    method: str, target: str, headers: Mapping[str, str], settings: WebSocketServer
) -> tuple[HTTPStatus, str]:
    """The status of the response to a request, 101 to accept it, and the reason for a refusal (RFC 6455, 4.2.1).

    `headers` by lower-case name.
    """
    endpoint = _endpoint(target)
    if endpoint == MQTT or (endpoint == LEAFNODE and not settings.leafnodes):
        return HTTPStatus.NOT_FOUND, "there is no such endpoint"
    if method != "GET":
        return HTTPStatus.METHOD_NOT_ALLOWED, "the method is not GET"
    if not headers.get("host"):
        return HTTPStatus.BAD_REQUEST, "Host is missing"
    for name, wanted in (("upgrade", "websocket"), ("connection", "upgrade"), ("sec-websocket-version", "13")):
        if wanted not in (word.strip().lower() for word in headers.get(name, "").split(",")):
            return HTTPStatus.BAD_REQUEST, f"{name} is not {wanted}"
    try:
        key = base64.b64decode(headers.get("sec-websocket-key", ""), validate=True)
    except ValueError:
        key = b""
    if len(key) != 16:
        return HTTPStatus.BAD_REQUEST, "the key is missing or none"
    if not _origin_is_allowed(headers, settings):
        return HTTPStatus.FORBIDDEN, "the origin is not allowed"
    return HTTPStatus.SWITCHING_PROTOCOLS, ""


def _endpoint(target: str) -> str:
    path = target.partition("?")[0]
    return next((endpoint for endpoint in (MQTT, LEAFNODE) if path.endswith(endpoint)), "")


def accept_key(key: str) -> str:
    """The Sec-WebSocket-Accept value for a client's key."""
    # RFC 6455 prescribes SHA-1; no security depends on it.
    digest = hashlib.sha1(key.encode("latin-1") + _GUID, usedforsecurity=False).digest()
    return base64.b64encode(digest).decode("ascii")


def _origin_is_allowed(headers: Mapping[str, str], settings: WebSocketServer) -> bool:
    """Check the Origin that browsers send; other programs send none, and are allowed."""
    origin = headers.get("origin") or headers.get("sec-websocket-origin", "")
    if not origin or not (settings.same_origin or settings.allowed_origins):
        return True
    page = _place(origin)
    if page is None:
        return False
    if settings.same_origin and page != _place(f"{'https' if settings.secure else 'http'}://{headers['host']}"):
        return False
    return not settings.allowed_origins or page in map(_place, settings.allowed_origins)


def _place(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None if this is not the URL of a page."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (KeyError, ValueError):
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname else None


def _offers_compression(headers: Mapping[str, str]) -> bool:
    offers = headers.get("sec-websocket-extensions", "").split(",")
    return any(offer.split(";")[0].strip().lower() == BoundedDeflate.name for offer in offers)


def _read_close(payload: bytes) -> tuple[int, str]:
    """Status and reason of a Close frame. Raises ParseFailed for a status or reason that RFC 6455, 7.4 does not allow."""
    if not payload:
        return CloseReason.NO_STATUS_RCVD, ""
    if len(payload) == 1:
        raise ParseFailed("a close frame with one byte")
    code = int.from_bytes(payload[:2], "big")
    if not (1000 <= code <= 1015 or 3000 <= code < 5000) or code in (1004, 1005, 1006, 1015):
        raise ParseFailed(f"the close status {code} is invalid")
    try:
        return code, payload[2:].decode("utf-8")
    except UnicodeDecodeError:
        raise ParseFailed("the reason for the close is no UTF-8", CloseReason.INVALID_FRAME_PAYLOAD_DATA) from None


def websocket_of(layer: Layer | None) -> WebSocketLayer | None:
    """The WebSocket among the layers of a link, or None."""
    if isinstance(layer, Stack):
        return websocket_of(layer.upper)
    return layer if isinstance(layer, WebSocketLayer) else None


def websocket_link(settings: WebSocketServer, owner: LinkOwner, secure: Callable[[Layer], Link] | None = None) -> Link:
    """A link for a connection that a WebSocket listener is about to make; `secure` puts the layer inside TLS.

    A client whose request is not complete after `handshake_timeout` seconds is disconnected.
    """
    layer = WebSocketLayer(settings)
    link = Link(owner, layer) if secure is None else secure(layer)

    def give_up() -> None:
        if not layer.ready:
            link.abort()

    asyncio.get_running_loop().call_later(settings.handshake_timeout, give_up)
    return link
