"""The broker: a NATS server to embed in a running event loop, or to run by `headwater serve`.

    async with Broker(jetstream=True, store_dir="data") as broker:
        client = await headwater.connect(broker.url)

Starting binds the port, recovers the streams, and then accepts: a client never sees a stream that is not there yet.
Stopping takes no new clients, writes what streams have staged, and ends the connections.
"""

import asyncio
import os
import random
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from headwater import __version__
from headwater.broker.options import BrokerOptions, SyncPolicy
from headwater.broker.router import Router
from headwater.broker.sessions import Sessions
from headwater.errors import LocalProtocolError
from headwater.model.nkey import NkeyKind, encode_nkey
from headwater.net.tcp import listen
from headwater.wire.handshake import ServerInfo

COMPATIBLE_VERSION = "2.15.1"
"""What INFO claims, for clients decide by it which features there are: the nats-server that ours was held against."""
API_LEVEL = 4  # of JetStream; the one of that server

_STOP_SECONDS = 5.0


class Broker:
    """A NATS server in this process. The arguments are those of `BrokerOptions`.

    `url`, `host` and `port` hold once it is started. Raises ConfigError for options that cannot work, and from `start`
    EnvironmentProblem when the address cannot be bound.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        jetstream: bool = False,
        store_dir: str | Path | None = None,
        sync: SyncPolicy = "always",
        server_name: str = "",
        max_payload: int = 1 << 20,
        options: BrokerOptions | None = None,
    ) -> None:
        self.options = options or BrokerOptions(
            host=host,
            port=port,
            jetstream=jetstream,
            store_dir=Path(store_dir) if store_dir is not None else Path("headwater-data"),
            sync=sync,
            server_name=server_name,
            max_payload=max_payload,
        )
        self.server_id = encode_nkey(NkeyKind.SERVER, os.urandom(32))
        self.host = self.options.host
        self.port = self.options.port
        self.router: Router | None = None
        self.sessions: Sessions | None = None
        self._server: asyncio.Server | None = None
        self._jetstream: object | None = None

    @property
    def url(self) -> str:
        """Where clients connect to."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"nats://{host}:{self.port}"

    async def start(self) -> None:
        """Recover the streams, bind, accept."""
        if self._server is not None:
            raise LocalProtocolError("the broker is started already")
        loop = asyncio.get_running_loop()
        options = self.options
        # Which member of a queue group gets a message need not be unpredictable, only even.
        self.router = Router(loop.call_soon, random.getrandbits(32), options.max_pending)
        if options.jetstream:
            from headwater.broker.jetstream.service import JetStream

            service = JetStream(self.router, options.store_dir, clock_ns=time.time_ns, sync=options.sync)
            await service.start()
            self._jetstream = service
        self.sessions = Sessions(options, self.router, self._info(), time.monotonic)
        self._server = await listen(options.host, options.port, self.sessions.make)
        self.port = self._server.sockets[0].getsockname()[1]
        self.sessions.info.port = self.port

    async def stop(self) -> None:
        """End all connections and write what is staged. Safe to call again."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._jetstream is not None:
            await self._jetstream.stop()  # type: ignore[attr-defined]
            self._jetstream = None
        if self.sessions is not None:
            self.sessions.close_all()
            self.sessions = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _info(self) -> ServerInfo:
        options = self.options
        return ServerInfo(
            server_id=self.server_id,
            server_name=options.server_name or self.server_id,
            version=COMPATIBLE_VERSION,
            proto=1,
            git_commit=f"headwater-{__version__}",
            go="python",
            host=options.host,
            headers=True,
            max_payload=options.max_payload,
            jetstream=options.jetstream,
            api_lvl=API_LEVEL,
            xkey=encode_nkey(NkeyKind.CURVE, os.urandom(32)),
        )
