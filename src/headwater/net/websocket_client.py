"""A client's side of WebSocket, as a layer of a link: NATS bytes in binary frames, masked as RFC 6455 requires.

wsproto (extra `websocket`) does the HTTP upgrade and the framing. We do not offer compression: on messages of a few
hundred bytes it costs both sides more than it saves. The layer is ready once the server has accepted the upgrade.
"""

from typing import NoReturn

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from headwater.errors import TransportError


class WebSocketClientLayer:
    """One connection (`net.layer.Layer`) to the server at `host` (`host:port`), under `path`."""

    def __init__(self, host: str, path: str) -> None:
        self._connection = WSConnection(ConnectionType.CLIENT)
        self._outgoing = bytearray(self._connection.send(Request(host=host, target=path or "/")))
        self._incoming = bytearray()
        self._accepted = False
        self._ended = False

    @property
    def ready(self) -> bool:
        return self._accepted and not self._ended

    @property
    def ended(self) -> bool:
        return self._ended

    def feed(self, data: memoryview) -> None:
        try:
            self._connection.receive_data(bytes(data))
            for event in self._connection.events():
                self._heed(event)
        except RemoteProtocolError as error:
            self._fail(f"the server breaks the rules of WebSocket: {error}")

    def read_into(self, space: memoryview) -> int:
        size = min(len(space), len(self._incoming))
        space[:size] = self._incoming[:size]
        del self._incoming[:size]
        return size

    def write(self, data: memoryview) -> None:
        self._outgoing += self._connection.send(BytesMessage(data=bytes(data)))

    def take(self) -> bytes:
        taken = bytes(self._outgoing)
        self._outgoing.clear()
        return taken

    def finish(self) -> None:
        if not self.ready:
            return
        try:
            self._outgoing += self._connection.send(CloseConnection(code=1000))
        except LocalProtocolError:
            pass  # the server has closed first
        self._ended = True

    def _heed(self, event: object) -> None:
        match event:
            case AcceptConnection():
                self._accepted = True
            case BytesMessage():
                self._incoming += event.data
            case TextMessage():
                self._incoming += event.data.encode()
            case Ping():
                self._outgoing += self._connection.send(event.response())
            case CloseConnection():
                if not self._ended:
                    self._outgoing += self._connection.send(event.response())
                self._ended = True
            case RejectConnection():
                if not event.has_body:
                    self._fail(f"the server refuses WebSocket: HTTP {event.status_code}")
            case RejectData():
                self._fail("the server refuses WebSocket")
            case _:
                pass  # a Pong, or more of the page that follows a refusal

    def _fail(self, why: str) -> NoReturn:
        self._ended = True
        raise TransportError(why)
