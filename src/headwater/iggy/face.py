"""The Iggy server face as one thing to start and stop: its listeners over one service.

    async with Iggy(IggyOptions(tcp=("127.0.0.1", 0)), directory) as iggy:
        iggy.tcp_port

Each listener is an address, or None for none. `seed` is a listener of its own: whoever connects there speaks as the
seed document has it and needs no login, so it is off unless it is asked for, and belongs on a loopback address.
"""

import asyncio
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headwater.iggy.foreign import ForeignStreams
from headwater.iggy.service import Service, ServiceOptions
from headwater.iggy.session import Session
from headwater.net.link import Link, LinkOwner
from headwater.net.tcp import listen

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class IggyOptions:
    """Where to listen (host and port, port 0 for any free one), and what the service is to do.

    `seed_http` is the HTTP listener of the seed: no login, the seed's answers.
    `cert_file` and `key_file` put TLS on TCP and HTTP; QUIC always has it, and makes itself a certificate without them.
    """

    tcp: Address | None = ("127.0.0.1", 8090)
    seed: Address | None = None
    http: Address | None = None
    seed_http: Address | None = None
    quic: Address | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    service: ServiceOptions = field(default_factory=ServiceOptions)


class Iggy:
    """See the head of this module. `foreign`: streams of another face, shown as topics of the stream `nats`.

    Raises EnvironmentProblem from `start` when an address or the directory cannot be
    used, ConfigError for a certificate that cannot."""

    def __init__(self, options: IggyOptions, directory: Path, foreign: ForeignStreams | None = None) -> None:
        self.options = options
        self.service = Service(directory, options.service, foreign=foreign)
        self.tcp_port = self.seed_port = self.http_port = self.seed_http_port = self.quic_port = 0
        self._servers: list[asyncio.Server] = []
        self._others: list[Any] = []
        self._links: set[Link] = set()

    async def start(self) -> None:
        """Recover what is stored, then listen."""
        options = self.options
        context = self._context()
        await self.service.start()
        try:
            if options.tcp is not None:
                self.tcp_port = await self._listen(options.tcp, context)
                self.service.tcp_address = (options.tcp[0], self.tcp_port)
            if options.seed is not None:
                self.seed_port = await self._listen(options.seed, context, seed=True)
            if options.http is not None:
                self.http_port = await self._serve_http(options.http)
            if options.seed_http is not None:
                self.seed_http_port = await self._serve_http(options.seed_http, seed=True)
            if options.quic is not None:
                self.quic_port = await self._serve_quic(options.quic)
        except BaseException:
            await self.stop()
            raise

    def _context(self) -> ssl.SSLContext | None:
        if self.options.cert_file is None or self.options.key_file is None:
            return None
        from headwater.net.tls import server_context

        return server_context(self.options.cert_file, self.options.key_file)

    async def _listen(self, address: Address, context: ssl.SSLContext | None, seed: bool = False) -> int:
        def make_link(owner: LinkOwner) -> Link:
            if context is None:
                link = Link(owner)
            else:
                from headwater.net.tls import Beginning, ServerTls, secure_link

                link = secure_link(ServerTls(context, beginning=Beginning.FIRST), owner)
            self._links.add(link)
            return link

        server = await listen(*address, lambda: Session(self.service, seed, self._links.discard), make_link)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _serve_http(self, address: Address, seed: bool = False) -> int:
        from headwater.iggy.http_face import HttpFace

        http = HttpFace(self.service, seed)
        files = self.options.cert_file, self.options.key_file
        self._others.append(http)
        return await http.start(*address, *(str(name) if name is not None else None for name in files))

    async def _serve_quic(self, address: Address) -> int:
        from headwater.iggy.quic_session import QuicSession
        from headwater.net import quic

        files = self.options.cert_file, self.options.key_file
        listener = await quic.listen(*address, lambda: QuicSession(self.service), *files)
        self._others.append(listener)
        return listener.port

    async def stop(self) -> None:
        """Take nothing more, write what is staged, end the connections. Safe to call again."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        for other in self._others:
            await other.stop()
        self._others.clear()
        await self.service.stop()
        for link in list(self._links):
            link.close()
        self._links.clear()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
