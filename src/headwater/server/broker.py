"""The broker: a NATS server to embed in a running event loop, or to run by `headwater serve`.

    async with Broker(jetstream=True, store_dir="data") as broker:
        client = await headwater.connect(broker.url)

It runs in any event loop. `headwater serve` uses one that reads from clients without asyncio's overhead, which saves a third
of the CPU when many requests arrive at once; on Linux a program that creates its own loop can use it, too:

    asyncio.Runner(loop_factory=headwater.net.direct_loop.DirectLoop)

Starting reads certificates and keys, recovers the streams, binds the ports, and then opens all of them in one turn of the
loop: a client never finds a stream missing, and once one port accepts, so do the others. Stopping accepts no new clients,
writes the staged messages of streams, and closes the connections.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from headwater.authorization.gate import Gate
from headwater.errors import LocalProtocolError
from headwater.exchange.account import Account
from headwater.exchange.accounts import Accounts
from headwater.exchange.router import Router
from headwater.exchange.sessions import Sessions
from headwater.net.address import announced, bracketed
from headwater.net.journal import Journal
from headwater.net.limits import CLIENTS, ROUTES, WEBSOCKET
from headwater.net.link import Link, LinkOwner, end_all
from headwater.net.listener_options import TlsOptions, WebSocketOptions
from headwater.net.listening import HTTP_FAREWELL, Listener, bind
from headwater.options.access import GLOBAL_ACCOUNT, AccountOptions
from headwater.options.broker import BrokerOptions
from headwater.server.identity import identity_for
from headwater.server.stream_services import StreamServices
from headwater.server.system.account import SystemAccount
from headwater.version import API_LEVEL, COMPATIBLE_VERSION, VERSION
from headwater.wire.error_texts import MAXIMUM_CONNECTIONS, encode_error
from headwater.wire.handshake import ServerInfo

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from headwater.authorization.operator import Trust
    from headwater.cluster.service import Cluster
    from headwater.iggy.face import Iggy, IggyOptions
    from headwater.iggy.service import Service as IggyService
    from headwater.jetstream.service import JetStream
    from headwater.leaf.service import LeafNodes
    from headwater.monitoring.view import View
    from headwater.net.tls import ServerTls
    from headwater.options.cluster import ClusterOptions
    from headwater.options.leaf import LeafOptions
    from headwater.server.broker_arguments import BrokerArguments
    from headwater.server.faces.iggy import IggyFace
    from headwater.server.resolver.resolver import Resolver
    from headwater.streams.finding import Finding
    from headwater.wire.route_lines import RouteInfo

logger = logging.getLogger(__name__)

_BLOCKS = {
    "authorization": "AuthorizationOptions",
    "operator": "OperatorOptions",
    "tls": "TlsOptions",
    "websocket": "WebSocketOptions",
    "cluster": "ClusterOptions",
    "leafnodes": "LeafOptions",
}
"""Options with options of their own, and their class: for programs that come with the dict of a configuration."""


class Broker:
    """A NATS server in this process. Keyword arguments are the fields of `BrokerOptions`, or `options` has them all.
    `store_dir` is where streams are kept, `iggy` opens listeners for Iggy clients over the same streams. `leaf`: the
    URL, or several, of a hub that this broker is a leaf node of; `credentials`: the .creds file for it.

    `url`, `host` and `port` are set once it is started, and so are `websocket_url` and `websocket_port` with a WebSocket
    listener. Raises ConfigError for invalid options; `start` raises EnvironmentProblem when an address cannot be bound or
    a package is missing.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        store_dir: "str | Path | None" = None,
        options: BrokerOptions | None = None,
        iggy: "IggyOptions | None" = None,
        leaf: "str | Sequence[str]" = "",
        credentials: "str | Path" = "",
        **fields: "Unpack[BrokerArguments]",
    ) -> None:
        if options is None:
            given: dict[str, Any] = {**fields} if store_dir is None else {"store_dir": store_dir, **fields}
            for name, kind in _BLOCKS.items():
                if isinstance(given.get(name), dict):
                    raise TypeError(f"{name} is no dict but {kind}(...); read_config makes options of a configuration")
            options = BrokerOptions(host=host, port=port, **given)
        elif fields:
            raise TypeError(f"give options, or {', '.join(fields)}: not both")
        if leaf:
            from headwater.server.leafnodes import spoke_of

            if options.leafnodes is not None:
                raise TypeError("give leaf, or leafnodes: not both")
            options = options.replace(leafnodes=spoke_of(leaf, credentials))
        elif credentials:
            raise TypeError("credentials are for the hub that leaf names")
        self.options = options
        self._iggy_options = iggy
        self._iggy: IggyFace | None = None
        self.identity = identity_for(options)
        self.host = options.host
        self.port = options.port
        self.websocket_port = 0
        self.accounts: Accounts | None = None
        self.sessions: Sessions | None = None
        self.cluster: Cluster | None = None
        self.leafnodes: LeafNodes | None = None
        self.journal = Journal(time.time_ns, time.monotonic)  # events that an operator should see
        self.stream_services = StreamServices(options, self.journal)
        self.system_account = options.system_account
        self.system: SystemAccount | None = None
        self.view: View | None = None  # created when monitoring starts
        self._started_ns = 0
        self._listeners: list[Listener] = []
        self._tls: ServerTls | None = None

    @property
    def server_id(self) -> str:
        """A public nkey, new at each start of the program."""
        return self.identity.server_id

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"{'tls' if self.options.tls else 'nats'}://{bracketed(self.host)}:{self.port}"

    def __repr__(self) -> str:
        return f"<Broker {self.options.server_name or self.server_id} at {self.url}>"

    @property
    def websocket_url(self) -> str:
        """The URL for WebSocket clients; empty without such a listener."""
        websocket = self.options.websocket
        if websocket is None:
            return ""
        host = bracketed(websocket.host or self.host)
        return f"{'wss' if websocket.tls else 'ws'}://{host}:{self.websocket_port}"

    @property
    def iggy(self) -> "Iggy":
        """The running Iggy server of this broker. Raises LocalProtocolError when there is none, or the broker is not
        started."""
        if self._iggy is None:
            started = self.sessions is not None
            hint = "give Broker the keyword iggy=IggyOptions(...)" if started else "start it first"
            raise LocalProtocolError("the broker has no Iggy listeners", hint=hint)
        return self._iggy.iggy

    @property
    def jetstreams(self) -> "dict[str, JetStream]":
        """The JetStream services by account; where a start has left them for later, they are loaded now."""
        return self.stream_services.services

    @property
    def iggy_service(self) -> "IggyService | None":
        """What monitoring shows of Iggy; None without such listeners."""
        return self._iggy.iggy.service if self._iggy is not None else None

    @property
    def router(self) -> Router | None:
        """The router of the global account; None while the broker is not running."""
        return self.accounts[GLOBAL_ACCOUNT].router if self.accounts is not None else None

    async def start(self) -> None:
        """Recover the streams, bind, accept."""
        await self.prepare()
        try:
            self.open()
        except BaseException:
            await self.stop()
            raise
        await asyncio.sleep(0)  # the dials of routes begin before the caller regards this broker as ready

    async def prepare(self) -> None:
        """Start without `open`: the ports are bound, but no connection is accepted yet. Raises what `start` raises, and
        LocalProtocolError when the broker is started already."""
        if self.sessions is not None:
            raise LocalProtocolError("the broker is started already")
        self._started_ns = time.time_ns()
        options = self.options
        gate = Gate(options)
        resolver = await self._resolve(gate)
        if options.tls is not None:
            self.renew_certificates(options.tls)
        loop = asyncio.get_running_loop()
        schedule = getattr(loop, "after_callbacks", loop.call_soon)  # headwater.net.direct_loop
        if options.no_read_pauses:
            getattr(loop, "never_pause", lambda: None)()
        listed = [*options.accounts, *gate.more_accounts]
        together = getattr(loop, "together", None)
        accounts = Accounts(listed, gate.system_account, schedule, options.max_pending, together)
        sessions = Sessions(options, accounts, gate, self._info(), time.monotonic, journal=self.journal)
        sessions.keys = self.identity.keys
        self._map_subjects(accounts, options.cluster.name if options.cluster is not None else "")
        for account in accounts:
            self._describe(account, sessions)
        self.system_account = gate.system_account
        self.accounts, self.sessions = accounts, sessions
        self.system = SystemAccount(self, accounts, sessions, accounts[gate.system_account])
        if resolver is not None and gate.trust is not None:
            self.system.serve_claims(resolver, gate.trust)
        try:
            await self.stream_services.start_all(accounts, gate.system_account)
            self._bind(options, sessions)
            if options.cluster is not None:
                await self._start_cluster(options.cluster, accounts, sessions)
            if options.leafnodes is not None:
                await self._start_leafnodes(options.leafnodes, gate, accounts, sessions)
            if self._iggy_options is not None:
                await self._start_iggy(self._iggy_options)
        except BaseException:
            await self.stop()
            raise

    def open(self) -> None:
        """Open all ports; to be called once, after `prepare`. Raises EnvironmentProblem when an address is taken by now."""
        if self.cluster is not None:
            self.cluster.open()
        if self.leafnodes is not None:
            self.leafnodes.open()
        for listener in self._listeners:  # the clients' port comes last, because callers wait for it
            listener.open()

    def _make_door(self, make_client: Callable[[], LinkOwner]) -> LinkOwner:
        """The owner of a connection to the WebSocket listener; the endpoint distinguishes clients from leaf nodes."""
        if self.leafnodes is None:
            raise AssertionError("a WebSocket listener was opened before the leaf nodes were started")
        return self.leafnodes.accepting.doors.make(make_client)

    def note_turned_away(self, port: int, address: str, reason: str) -> None:
        """Record that a listener has closed a connection above its limits, and the `reason`; the listener has logged it."""
        self.journal.note("connection_turned_away", port=port, address=address, reason=reason, log=False)

    def _bind(self, options: BrokerOptions, sessions: Sessions) -> None:
        """Bind the client ports."""
        if options.websocket is not None:
            self._bind_websocket(options.websocket, options, sessions)
        unreadable = options.tls is not None and options.tls.handshake_first
        door = bind(
            options.host,
            options.port,
            sessions.make,
            self._make_link,
            reuse_port=options.reuse_port,
            limits=options.connection_limits[CLIENTS].replace(connections=0),  # the register of clients counts all
            farewell=b"" if unreadable else encode_error(MAXIMUM_CONNECTIONS),
        )
        self._listeners.append(door)
        for listener in self._listeners:
            listener.places.on_turned_away = partial(self.note_turned_away, listener.port)
        info = sessions.greetings.info
        self.port = info.port = door.port
        if options.client_advertise:
            host, _, port = announced(options.client_advertise, door.port).rpartition(":")
            info.host, info.port = host.strip("[]"), int(port)

    def _bind_websocket(self, websocket: WebSocketOptions, options: BrokerOptions, sessions: Sessions) -> None:
        """Bind the port of WebSocket clients, and of leaf nodes that come by WebSocket."""
        from headwater.net.listeners import websocket_links

        host = websocket.host or options.host
        with_leafs = options.leafnodes is not None and options.leafnodes.port is not None
        door = bind(
            host,
            websocket.port,
            partial(self._make_door, sessions.make_websocket) if with_leafs else sessions.make_websocket,
            websocket_links(websocket, options.max_payload, leafnodes=with_leafs),
            reuse_port=options.reuse_port,
            limits=options.connection_limits[WEBSOCKET].replace(connections=0),
            farewell=b"" if websocket.tls else HTTP_FAREWELL,
        )
        self._listeners.append(door)
        self.websocket_port = door.port
        sessions.greetings.websocket_address = (host, door.port)

    async def stop(self) -> None:
        """Write staged messages, and close all connections. Safe to call again.

        The order loses no accepted message: first acknowledgements go to clients here and elsewhere; then the peers of a
        cluster send what they have for clients here; then messages of clients here go to the peers.
        """
        self._stop_listening()
        links = self._links()
        if self.system is not None:
            self.system.stop()
            self.system = None
        if self._iggy is not None:
            await self._iggy.stop()
            self._iggy = None
        self.stream_services.cancel_starts()
        await self.stream_services.stop()
        if self.cluster is not None:
            await self.cluster.withdraw()
        if self.leafnodes is not None:
            await self.leafnodes.withdraw()
        if self.sessions is not None:
            self.sessions.close_all()
            self.sessions = None
        if self.cluster is not None:
            await self.cluster.stop()
            self.cluster = None
        if self.leafnodes is not None:
            await self.leafnodes.stop()
            self.leafnodes = None
        self.view = None
        await end_all(links)
        if self.accounts is not None:
            self.accounts.shared.close()

    def _links(self) -> "list[Link]":
        """All open connections: clients, routes and leaf nodes."""
        owners = [
            *(self.sessions.all() if self.sessions is not None else ()),
            *(self.cluster.every_route() if self.cluster is not None else ()),
            *(self.leafnodes.connections() if self.leafnodes is not None else ()),
        ]
        return [owner.link for owner in owners if owner.link is not None]

    async def lame_duck(self) -> None:
        """Enter lame duck mode: accept no new clients, announce `ldm`, and after the grace period close the clients'
        connections one by one, spread over `lame_duck_duration`. Call `stop` afterwards.
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
            # At most a second: the spread only prevents a stampede, so there is no need to wait for the last client.
            await asyncio.sleep(min(pause, 1.0))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def reload(self, options: BrokerOptions) -> int:
        """Apply new options, as far as `reauthorization.accounts_can_change` and `Sessions.reload` allow; returns the number
        of clients that were disconnected. Streams of new accounts are available a moment later.

        Raises EnvironmentProblem when a package that the new users need is missing, LocalProtocolError before the start;
        nothing has changed then.
        """
        if self.sessions is None or self.accounts is None:
            raise LocalProtocolError("the broker is not started")
        left = self.sessions.reload(options)
        if self.leafnodes is not None:
            from headwater.server.leafnodes import users_changed

            users_changed(self.leafnodes, self.sessions.gate, self.options, options)
        self.options = self.stream_services.options = options
        if options.operator is None:
            self._take_accounts(self.accounts, self.sessions, options.accounts)
        self._mappings_changed(self.accounts, self.sessions)
        self._make_room(self.accounts, self.sessions)
        return left

    def _make_room(self, accounts: Accounts, sessions: Sessions) -> None:
        from headwater.server.room import make_room  # here: a start does not need it

        make_room(accounts, sessions)

    def _take_accounts(self, accounts: Accounts, sessions: Sessions, listed: Iterable[AccountOptions]) -> None:
        """Apply other options to existing accounts and add new ones, whose streams are available a moment later."""
        for account in accounts.reload(listed):
            self._describe(account, sessions)
            if self.system is not None:
                self.system.add(account)
            if self.cluster is not None:
                account.cluster_name = self.cluster.name
                self.cluster.add_account(account)
            served = self.stream_services.add(account, accounts, self.system_account)
            if not served and self.cluster is not None:
                self.stream_services.pass_on_domain([account])
        for account in accounts if self.options.operator is None else ():
            self.stream_services.limits_changed(account, accounts, self.system_account)

    def _describe(self, account: Account, sessions: Sessions) -> None:
        """Set the data about this server that an account passes on."""
        account.server_name = sessions.greetings.info.server_name
        account.describe_server = self._describe_server

    def _describe_server(self) -> dict[str, object]:
        return self.system.describe() if self.system is not None else {}

    def _mappings_changed(self, accounts: Accounts, sessions: Sessions) -> None:
        self._map_subjects(accounts, sessions.greetings.info.cluster)
        if self.leafnodes is not None:
            self.leafnodes.spaces.mappings_changed()
        for session in sessions.all():
            member = session.membership
            member.mappings = member.account.mappings if member.account is not None else None

    async def _resolve(self, gate: Gate) -> "Resolver | None":
        """The resolver of operator mode, with what its directory has; None without an operator."""
        if gate.trust is None or self.options.operator is None:
            return None
        from headwater.server.resolver.resolver import Resolver

        options = self.options.operator.accounts_from
        resolver = Resolver(options, gate.trust, partial(self._account_changed, gate.trust))
        resolver.load()
        if options.url and gate.trust.system_account not in gate.trust.tokens:
            await resolver.seek(gate.trust.system_account)
        if resolver.options.kind != "memory":
            gate.trust.find = resolver.find
        return resolver

    def _account_changed(self, trust: "Trust", name: str) -> None:
        """An account's JWT was changed or removed."""
        accounts, sessions = self.accounts, self.sessions
        if accounts is None or sessions is None:
            return  # it is found at the start
        self._take_accounts(accounts, sessions, trust.options())
        self._mappings_changed(accounts, sessions)
        if name in trust.tokens:
            self.stream_services.limits_changed(accounts[name], accounts, self.system_account)
        from headwater.server.room import judge_again  # here: a start does not need it

        judge_again(sessions, self.leafnodes, trust, name, time.time())
        self._make_room(accounts, sessions)

    def observe(self) -> "View":
        """The view for monitoring; the first call starts recording clients. The broker has to be running."""
        if self.view is None:
            from headwater.monitoring.connz import describe_departed
            from headwater.monitoring.ledger import Ledger
            from headwater.monitoring.view import View
            from headwater.net.listener_options import MonitoringOptions

            ledger = Ledger(describe_departed)
            monitoring = MonitoringOptions(host=self.options.host, port=0)
            self.view = View(self, ledger, monitoring, 0, "", started=self._started_ns)
            if self.sessions is not None:
                self.sessions.observers.append(ledger)
        return self.view

    def renew_certificates(self, options: TlsOptions) -> None:
        """Read certificates and keys again, for new connections except WebSocket's.

        Raises ConfigError for files that cannot be used; nothing has changed then.
        """
        from headwater.net.listeners import tls_settings

        self._tls = tls_settings(options)

    def _make_link(self, owner: LinkOwner) -> Link:
        if self._tls is None:
            return Link(owner)
        from headwater.net.listeners import secure_session

        return secure_session(self._tls, owner)

    def _stop_listening(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    def findings(self) -> "list[Finding]":
        """Damage and losses in Iggy's partitions; those of streams are in `jetstreams`."""
        return self._iggy.iggy.service.files.findings if self._iggy is not None else []

    def _map_subjects(self, accounts: Accounts, cluster: str) -> None:
        """Set the accounts' mappings and, for those without streams, the domain that `$JS.API` refers to."""
        domains = {
            name: domain
            for name, domain in self.options.default_js_domain.items()
            if name != self.system_account  # nats-server skips it, too
        }
        accounts.map_subjects(self.options.mappings, cluster, domains)

    async def _start_leafnodes(self, leafs: "LeafOptions", gate: Gate, accounts: Accounts, sessions: Sessions) -> None:
        from headwater.server.leafnodes import make_leafnodes

        self.leafnodes = make_leafnodes(
            leafs,
            self.options,
            accounts,
            gate,
            server_id=self.server_id,
            journal=self.journal,
            stores=lambda account: self.stream_services.serves(account.name),
            ask=sessions.ask,
        )
        await self.leafnodes.start()
        if self.cluster is not None:
            self.leafnodes.own.cluster_name = self.cluster.name
            self.cluster.serve_leafs(self.leafnodes.own.urls, self.leafnodes.own.peers_listen)

    async def _start_cluster(self, cluster: "ClusterOptions", accounts: Accounts, sessions: Sessions) -> None:
        from headwater.cluster.service import Cluster

        options = self.options
        ours, ours_by_websocket = self._advertised(cluster)
        sessions.greetings.info = sessions.greetings.info.replace(
            cluster=cluster.name or self.server_id,  # a generated name gives way to one that was configured at a peer
            cluster_dynamic=not cluster.name,
            connect_urls=ours,
            ws_connect_urls=ours_by_websocket,
        )
        self.cluster = Cluster(
            cluster,
            self._route_info(cluster, sessions.greetings.info),
            accounts,
            lambda others, by_websocket: sessions.announce(
                connect_urls=(*ours, *others), ws_connect_urls=(*ours_by_websocket, *by_websocket)
            ),
            ping_interval=options.ping_interval,
            ping_max=options.ping_max,
            write_deadline=options.write_deadline,
            max_pending=options.max_pending,
            limits=options.connection_limits[ROUTES],
            journal=self.journal,
        )
        for account in accounts:
            account.cluster_name = self.cluster.name
        if not options.jetstream:
            accounts.ask_jetstream()
            self.stream_services.pass_on_domain(accounts)
        await self.cluster.start()

    def _route_info(self, cluster: "ClusterOptions", info: ServerInfo) -> "RouteInfo":
        """The INFO for peers; `info` is the one for clients."""
        from headwater.wire.route_lines import RouteInfo

        return RouteInfo(
            server_id=self.server_id,
            server_name=info.server_name,
            version=info.version,
            go=info.go,
            headers=info.headers,
            max_payload=info.max_payload,
            cluster=info.cluster,
            cluster_dynamic=info.cluster_dynamic,
            connect_urls=info.connect_urls,
            ws_connect_urls=info.ws_connect_urls,
            lnoc=True,
            lnocu=True,
            headwater=VERSION,
            auth_required=bool(cluster.username),
            tls_required=cluster.tls is not None,
            tls_verify=cluster.tls is not None,
        )

    async def _start_iggy(self, iggy_options: "IggyOptions") -> None:
        from headwater.server.faces.iggy import IggyFace

        seen = self.jetstreams if not self.options.is_spread else {}  # a worker has some of the streams only
        face = IggyFace(iggy_options, self.options, seen, self.journal)
        await face.start()
        files, note = face.iggy.service.files, partial(self.stream_services.note_finding, "")
        for finding in files.findings:
            note(finding)
        files.on_finding = note
        self._iggy = face

    def _advertised(self, cluster: "ClusterOptions") -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The client addresses of this broker that the cluster announces, plain and WebSocket."""
        if cluster.no_advertise:
            return (), ()
        websocket = self.options.websocket
        plain = _advertised(self.options.client_advertise, self.host, self.port)
        if websocket is None:
            return plain, ()
        return plain, _advertised(websocket.advertise, websocket.host or self.host, self.websocket_port)

    def _info(self) -> ServerInfo:
        options = self.options
        return ServerInfo(
            server_id=self.server_id,
            server_name=options.server_name or self.server_id,
            version=COMPATIBLE_VERSION,
            proto=1,
            git_commit=f"headwater-{VERSION}",
            go="python",
            host=options.host,
            headers=not options.no_header_support,
            max_payload=options.max_payload,
            jetstream=options.jetstream,
            domain=options.jetstream_domain,
            api_lvl=API_LEVEL,
            xkey=self.identity.xkey,
        )


def _advertised(configured: str, host: str, port: int) -> tuple[str, ...]:
    """`host:port` for clients to dial: as configured, or for a wildcard address those of this machine."""
    if configured:
        return (announced(configured, port),)
    from headwater.net.interfaces import dialable  # only brokers of clusters need it

    return tuple(f"{bracketed(each)}:{port}" for each in dialable(host) or ("127.0.0.1",))
