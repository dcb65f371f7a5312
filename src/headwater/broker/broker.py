"""The broker: a NATS server to embed in a running event loop, or to run by `headwater serve`.

    async with Broker(jetstream=True, store_dir="data") as broker:
        client = await headwater.connect(broker.url)

It runs in any event loop. `headwater serve` uses one that reads from its clients without asyncio's detours, which spares a
third of the CPU of many requests at a time; a program that owns its loop may have the same, on Linux:

    asyncio.Runner(loop_factory=headwater.net.direct_loop.DirectLoop)

Starting reads certificates and keys, recovers the streams, binds the ports, and then accepts: a client never sees a
stream that is not there yet. Stopping takes no new clients, writes what streams have staged, and ends the connections.
"""

import asyncio
import logging
import os
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from headwater import __version__
from headwater.broker.accounts import Account, Accounts
from headwater.broker.auth.gate import Gate
from headwater.broker.options import GLOBAL_ACCOUNT, BrokerOptions, TlsOptions
from headwater.broker.router import Router
from headwater.broker.sessions import Sessions
from headwater.broker.system.account import SystemAccount
from headwater.errors import LocalProtocolError
from headwater.model.nkey import NkeyKind, encode_nkey
from headwater.net.address import bracketed
from headwater.net.link import Link, LinkOwner
from headwater.net.tcp import listen
from headwater.wire.handshake import ServerInfo

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.broker.cluster.service import Cluster
    from headwater.broker.cluster_options import ClusterOptions
    from headwater.broker.jetstream.service import JetStream
    from headwater.broker.monitoring.view import View
    from headwater.net.tls import ServerTls

logger = logging.getLogger(__name__)

COMPATIBLE_VERSION = "2.15.1"
"""What INFO claims, for clients decide by it which features there are: the nats-server that ours was held against."""
API_LEVEL = 5  # of JetStream; the one of that server


class Broker:
    """A NATS server in this process. The keyword arguments are the fields of `BrokerOptions`, or `options` has them all.

    `url`, `host` and `port` hold once it is started, and so do `websocket_url` and `websocket_port` if there is such a
    listener. Raises ConfigError for options that cannot work, and from `start` EnvironmentProblem when an address cannot
    be bound or a package is missing.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        store_dir: "str | Path | None" = None,
        options: BrokerOptions | None = None,
        **fields: Any,
    ) -> None:
        if options is None:
            if store_dir is not None:
                fields["store_dir"] = store_dir
            options = BrokerOptions(host=host, port=port, **fields)
        elif fields:
            raise TypeError(f"give options, or {', '.join(fields)}: not both")
        self.options = options
        self.server_id = encode_nkey(NkeyKind.SERVER, os.urandom(32))
        self.host = options.host
        self.port = options.port
        self.websocket_port = 0
        self.accounts: Accounts | None = None
        self.sessions: Sessions | None = None
        self.jetstreams: dict[str, JetStream] = {}  # by account
        self.cluster: Cluster | None = None
        self.system_account = options.system_account
        self.system: SystemAccount | None = None
        self.view: View | None = None  # of monitoring, once there is any
        self._started_ns = 0
        self._listeners: list[asyncio.Server] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._tls: ServerTls | None = None

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"{'tls' if self.options.tls else 'nats'}://{bracketed(self.host)}:{self.port}"

    @property
    def websocket_url(self) -> str:
        """Where WebSocket clients connect to; empty when they cannot."""
        websocket = self.options.websocket
        if websocket is None:
            return ""
        host = bracketed(websocket.host or self.host)
        return f"{'wss' if websocket.tls else 'ws'}://{host}:{self.websocket_port}"

    @property
    def router(self) -> Router | None:
        """That of the global account; None when the broker does not run."""
        return self.accounts[GLOBAL_ACCOUNT].router if self.accounts is not None else None

    async def start(self) -> None:
        """Recover the streams, bind, accept."""
        if self.sessions is not None:
            raise LocalProtocolError("the broker is started already")
        self._started_ns = time.time_ns()
        options = self.options
        gate = Gate(options)
        if options.tls is not None:
            self.renew_certificates(options.tls)
        loop = asyncio.get_running_loop()
        accounts = Accounts(
            [*options.accounts, *gate.more_accounts], gate.system_account, loop.call_soon, options.max_pending
        )
        sessions = Sessions(options, accounts, gate, self._info(), time.monotonic)
        accounts.map_subjects(options.mappings, options.cluster.name if options.cluster is not None else "")
        for account in accounts:
            account.server_name = sessions.info.server_name
        self.system_account = gate.system_account
        self.accounts, self.sessions = accounts, sessions
        self.system = SystemAccount(self, accounts, sessions, accounts[gate.system_account])
        try:
            for account in accounts:
                if options.jetstream and self._has_streams(account, accounts):
                    await self._start_jetstream(account)
            server = await listen(
                options.host, options.port, sessions.make, self._make_link, reuse_port=options.reuse_port
            )
            self._listeners.append(server)
            self.port = sessions.info.port = _port_of(server)
            if options.websocket is not None:
                from headwater.broker.listeners import websocket_links

                host = options.websocket.host or options.host
                links = websocket_links(options.websocket, options.max_payload)
                server = await listen(
                    host, options.websocket.port, sessions.make_websocket, links, reuse_port=options.reuse_port
                )
                self._listeners.append(server)
                self.websocket_port = _port_of(server)
                sessions.websocket_address = (host, self.websocket_port)
            if options.cluster is not None:
                await self._start_cluster(options.cluster, accounts, sessions)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End all connections and write what is staged. Safe to call again."""
        self._stop_listening()
        if self.system is not None:
            self.system.stop()
            self.system = None
        if self.cluster is not None:
            await self.cluster.stop()
            self.cluster = None
        for task in [*self._starting]:
            task.cancel()
        for service in self.jetstreams.values():
            await service.stop()
        self.jetstreams.clear()
        if self.sessions is not None:
            self.sessions.close_all()
            self.sessions = None
        self.view = None

    async def lame_duck(self) -> None:
        """Send the clients away, gently: take no new ones, tell those that understand, and after the grace period end
        their connections one by one, spread over `lame_duck_duration`. Call `stop` afterwards.
        """
        sessions, options = self.sessions, self.options
        if sessions is None:
            return
        self._stop_listening()
        if self.system is not None:
            self.system.lame_duck()
        if self.cluster is not None:
            self.cluster.leave()
        sessions.announce(ldm=True)
        if not len(sessions):
            return
        await asyncio.sleep(options.lame_duck_grace_period)
        leaving = [session.link for session in sessions.all() if session.link is not None]
        pause = max(0.0, options.lame_duck_duration - options.lame_duck_grace_period) / max(1, len(leaving))
        for link in leaving:
            link.close()
            # At most a second: the last client is not worth waiting for, the spread only spares the others a stampede.
            await asyncio.sleep(min(pause, 1.0))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def reload(self, options: BrokerOptions) -> int:
        """Go on under other options, as far as `reauthorization.accounts_can_change` and `Sessions.reload` allow; returns
        how many clients had to leave. Streams of new accounts are there a moment later.

        Raises EnvironmentProblem when a package is missing that the new users need; nothing has changed then.
        """
        if self.sessions is None or self.accounts is None:
            raise LocalProtocolError("the broker is not started")
        left = self.sessions.reload(options)
        self.options = options
        if options.operator is None:
            for account in self.accounts.reload(options.accounts):
                account.server_name = self.sessions.info.server_name
                if self.system is not None:
                    self.system.add(account)
                if self.cluster is not None:
                    self.cluster.add_account(account)
                if options.jetstream and self._has_streams(account, self.accounts):
                    starting = asyncio.get_running_loop().create_task(self._start_jetstream(account))
                    self._starting.add(starting)
                    starting.add_done_callback(self._started)
        self.accounts.map_subjects(options.mappings, self.sessions.info.cluster)
        for session in self.sessions.all():
            session.mappings = session.account.mappings if session.account is not None else None
        return left

    def _started(self, task: "asyncio.Task[None]") -> None:
        self._starting.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("the streams of a new account cannot be used: %s", task.exception())

    def observe(self) -> "View":
        """What monitoring looks at; from the first call on the books of clients are kept. The broker has to run."""
        if self.view is None:
            from headwater.broker.config.draft import MonitoringOptions
            from headwater.broker.monitoring.connz import describe_departed
            from headwater.broker.monitoring.ledger import Ledger
            from headwater.broker.monitoring.view import View

            ledger = Ledger(describe_departed)
            monitoring = MonitoringOptions(host=self.options.host, port=0)
            self.view = View(self, ledger, monitoring, 0, "", started=self._started_ns)
            if self.sessions is not None:
                self.sessions.observers.append(ledger)
        return self.view

    def renew_certificates(self, options: TlsOptions) -> None:
        """Read certificates and keys again: they hold for clients that come from now on, WebSocket's apart.

        Raises ConfigError for files that cannot be used; nothing has changed then.
        """
        from headwater.broker.listeners import tls_settings

        self._tls = tls_settings(options)

    def _make_link(self, owner: LinkOwner) -> Link:
        if self._tls is None:
            return Link(owner)
        from headwater.broker.listeners import secure_session

        return secure_session(self._tls, owner)

    def _stop_listening(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    def _has_streams(self, account: Account, accounts: Accounts) -> bool:
        """As in nats-server: the global account, as long as it is the only one; else those that say so."""
        if account.options is not None:
            return account.options.jetstream is not None
        return account.name == GLOBAL_ACCOUNT and all(other.options is None or other.is_system for other in accounts)

    async def _start_jetstream(self, account: Account) -> None:
        from pathlib import Path

        from headwater.broker.jetstream.service import JetStream
        from headwater.broker.jetstream_limits import storage_limits

        directory = Path(self.options.store_dir)
        if account.name != GLOBAL_ACCOUNT:
            directory = directory / "accounts" / account.directory
        own = account.options.jetstream if account.options is not None else None
        service = JetStream(
            account.router,
            directory,
            clock_ns=time.time_ns,
            sync=self.options.sync,
            limits=storage_limits(own or self.options.jetstream_limits),
            server_name=account.server_name,
        )
        await service.start()
        self.jetstreams[account.name] = service

    async def _start_cluster(self, cluster: "ClusterOptions", accounts: Accounts, sessions: Sessions) -> None:
        from headwater.broker.cluster.service import Cluster
        from headwater.wire.route_lines import RouteInfo

        options, info = self.options, sessions.info
        name = cluster.name or self.server_id  # nobody chose it: it gives way to one that somebody did
        ours, ours_by_websocket = self._advertised(cluster)
        sessions.info = info.replace(
            cluster=name,
            cluster_dynamic=not cluster.name,
            connect_urls=ours,
            ws_connect_urls=ours_by_websocket,
        )
        self.cluster = Cluster(
            cluster,
            RouteInfo(
                server_id=self.server_id,
                server_name=info.server_name,
                version=info.version,
                go=info.go,
                headers=info.headers,
                max_payload=info.max_payload,
                cluster=name,
                cluster_dynamic=not cluster.name,
                connect_urls=ours,
                ws_connect_urls=ours_by_websocket,
                headwater=__version__,
                auth_required=bool(cluster.username),
                tls_required=cluster.tls is not None,
                tls_verify=cluster.tls is not None,
            ),
            accounts,
            lambda others, by_websocket: sessions.announce(
                connect_urls=(*ours, *others), ws_connect_urls=(*ours_by_websocket, *by_websocket)
            ),
            ping_interval=options.ping_interval,
            ping_max=options.ping_max,
            write_deadline=options.write_deadline,
            max_pending=options.max_pending,
        )
        await self.cluster.start()

    def _advertised(self, cluster: "ClusterOptions") -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Where clients of the whole cluster may find this broker, and where those that speak WebSocket."""
        if cluster.no_advertise:
            return (), ()
        websocket = self.options.websocket
        plain = self.options.client_advertise or f"{_reachable(self.host)}:{self.port}"
        if websocket is None:
            return (plain,), ()
        return (plain,), (websocket.advertise or f"{_reachable(websocket.host or self.host)}:{self.websocket_port}",)

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
            headers=not options.no_header_support,
            max_payload=options.max_payload,
            jetstream=options.jetstream,
            domain=options.jetstream_domain if options.jetstream else "",
            api_lvl=API_LEVEL,
            xkey=encode_nkey(NkeyKind.CURVE, os.urandom(32)),
        )


def _reachable(host: str) -> str:
    """What a client can dial of a broker that listens on `host`: any address is not one."""
    return bracketed("127.0.0.1" if host in ("0.0.0.0", "::", "") else host)


def _port_of(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])
