"""The Iggy server: starts and stops its listeners over one service. A broker starts it for
`Broker(iggy=IggyOptions(...))` (server/faces/iggy.py); alone, over a directory of its own:

    async with Iggy(IggyOptions(tcp=("127.0.0.1", 0)), directory) as iggy:
        iggy.tcp_port

Each listener is an address, or None for none. `seed` is a listener of its own: its clients use the protocol of the seed
document without a login, so it is off by default and belongs on a loopback address.
"""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from headwater.errors import ConfigError
from headwater.iggy import clients
from headwater.iggy.foreign import ForeignStreams
from headwater.iggy.service import Service
from headwater.iggy.service_options import ServiceOptions
from headwater.iggy.session import Session
from headwater.net.layer import Layer
from headwater.net.limits import DEFAULTS, IGGY, IGGY_HTTP, IGGY_QUIC, Limits
from headwater.net.link import Link, LinkOwner, end_all
from headwater.net.listening import Listener, bind
from headwater.net.places import Places

Address = tuple[str, int]
LISTENERS: Final = ("tcp", "seed", "http", "seed_http", "quic", "websocket")


@dataclass(frozen=True, slots=True)
class IggyOptions:
    """Where to listen (host and port, port 0 for any free one; None: not at all), and the options of the service.

    `seed_http` is the HTTP listener of the seed: no login, the seed's answers. `websocket`: the frames of TCP in the
    messages of a WebSocket, by the extra `websocket`. `cert_file` and `key_file` enable TLS on TCP and HTTP; QUIC
    always uses TLS, with a generated certificate by default. If they are None, those of a broker with TLS are used.
    Raises ConfigError for an invalid address.
    """

    tcp: Address | None = ("127.0.0.1", 8090)
    seed: Address | None = None
    http: Address | None = None
    seed_http: Address | None = None
    quic: Address | None = None
    websocket: Address | None = None
    cert_file: str | Path | None = None
    key_file: str | Path | None = None
    service: ServiceOptions = field(default_factory=ServiceOptions)
    limits: Mapping[str, Limits] = field(default_factory=lambda: DEFAULTS)  # in a broker, the broker's limits apply

    def __post_init__(self) -> None:
        for name in LISTENERS:
            address = getattr(self, name)
            if address is not None and not (len(address) == 2 and 0 <= address[1] < 1 << 16):
                raise ConfigError(
                    f"iggy {name} cannot listen on {address!r}",
                    value=address,
                    hint="(host, port), port 0 for any free one",
                )
        if (self.cert_file is None) != (self.key_file is None):
            raise ConfigError("iggy needs cert_file and key_file, or neither", value=self.cert_file or self.key_file)


TCP, SEED, WEBSOCKET = "tcp", "seed", "websocket"
WEBSOCKET_HANDSHAKE: Final = 5.0  # seconds


def _links(context: ssl.SSLContext | None, websocket: bool) -> Callable[[LinkOwner], Link]:
    """The factory of a connection's link: TCP, with TLS, with WebSocket, or both. Raises EnvironmentProblem if the
    package for WebSockets is missing."""
    if context is None and not websocket:
        return Link

    def secure(owner: LinkOwner, upper: Layer | None = None) -> Link:
        from headwater.net.tls import Beginning, ServerTls, secure_link

        assert context is not None
        return secure_link(ServerTls(context, beginning=Beginning.FIRST), owner, upper)

    if not websocket:
        return secure
    from headwater.net.websocket import WebSocketServer, websocket_link

    settings = WebSocketServer(secure=context is not None, handshake_timeout=WEBSOCKET_HANDSHAKE)
    if context is None:
        return lambda owner: websocket_link(settings, owner)
    return lambda owner: websocket_link(settings, owner, lambda layer: secure(owner, layer))


class Iggy:
    """See the head of this module. `foreign`: streams of another face, shown as topics of the stream `nats`.

    Raises EnvironmentProblem from `start` when an address or the directory cannot be
    used, ConfigError for a certificate that cannot."""

    def __init__(self, options: IggyOptions, directory: Path, foreign: ForeignStreams | None = None) -> None:
        self.options = options
        self.service = Service(directory, options.service, foreign=foreign)
        self.tcp_port = self.seed_port = self.http_port = self.seed_http_port = self.quic_port = 0
        self.websocket_port = 0
        self._servers: list[Listener] = []
        self._others: list[Any] = []
        self._links: set[Link] = set()

    def listeners(self) -> dict[str, Address]:
        """The bound hosts and ports, by the name of the option."""
        found: dict[str, Address] = {}
        for name in LISTENERS:
            address: Address | None = getattr(self.options, name)
            if address is not None:
                found[name] = (address[0], getattr(self, f"{name}_port"))
        return found

    @property
    def bound_options(self) -> IggyOptions:
        """The options with the actual ports in place of 0."""
        at = self.listeners()
        return replace(
            self.options,
            tcp=at.get("tcp"),
            seed=at.get("seed"),
            http=at.get("http"),
            seed_http=at.get("seed_http"),
            quic=at.get("quic"),
            websocket=at.get("websocket"),
        )

    async def start(self) -> None:
        """Recover the stored topics, then listen."""
        options = self.options
        context = self._context()
        await self.service.start()
        try:
            if options.tcp is not None:
                self.tcp_port = await self._listen(options.tcp, context)
            if options.seed is not None:
                self.seed_port = await self._listen(options.seed, context, SEED)
            if options.http is not None:
                self.http_port = await self._serve_http(options.http)
            if options.seed_http is not None:
                self.seed_http_port = await self._serve_http(options.seed_http, seed=True)
            if options.quic is not None:
                self.quic_port = await self._serve_quic(options.quic)
            if options.websocket is not None:
                self.websocket_port = await self._listen(options.websocket, context, WEBSOCKET)
            self.service.machine.listeners = self.listeners()
        except BaseException:
            await self.stop()
            raise

    def _context(self) -> ssl.SSLContext | None:
        if self.options.cert_file is None or self.options.key_file is None:
            return None
        from headwater.net.tls import server_context

        return server_context(self.options.cert_file, self.options.key_file)

    async def _listen(self, address: Address, context: ssl.SSLContext | None, what: str = TCP) -> int:
        connect = _links(context, what == WEBSOCKET)
        limits = self.options.limits[IGGY]
        transport = clients.WEBSOCKET if what == WEBSOCKET else clients.TCP

        def make_link(owner: LinkOwner) -> Link:
            link = connect(owner)
            self._links.add(link)
            return link

        def make_session() -> Session:
            return Session(self.service, what == SEED, self._links.discard, limits, transport)

        server = bind(*address, make_session, make_link, limits=limits)
        server.open()
        self._servers.append(server)
        self._watch(server.places, server.port)
        return server.port

    async def _serve_http(self, address: Address, seed: bool = False) -> int:
        from headwater.iggy.http_face import HttpFace

        http = HttpFace(self.service, seed, self.options.limits[IGGY_HTTP])
        files = self.options.cert_file, self.options.key_file
        self._others.append(http)
        port = await http.start(*address, *(str(name) if name is not None else None for name in files))
        if http.server is not None:
            self._watch(http.server.listener.places, port)
        return port

    async def _serve_quic(self, address: Address) -> int:
        from headwater.iggy.quic_session import QuicSession
        from headwater.net import quic

        files = self.options.cert_file, self.options.key_file
        limits = self.options.limits[IGGY_QUIC]
        listener = await quic.listen(*address, lambda: QuicSession(self.service, limits), *files, limits=limits)
        self._others.append(listener)
        self._watch(listener.places, listener.port)
        return listener.port

    def _watch(self, places: Places, port: int) -> None:
        places.on_turned_away = lambda address, reason: self.service.note(
            "connection_turned_away", port=port, address=address, reason=reason, log=False
        )

    async def stop(self) -> None:
        """Stop listening, write what is staged, close the connections. Safe to call again."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        for other in self._others:
            await other.stop()
        self._others.clear()
        await self.service.stop()
        links = list(self._links)
        for link in links:
            link.close()
        self._links.clear()
        await end_all(links)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
