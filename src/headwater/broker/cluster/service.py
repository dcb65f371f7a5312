"""The cluster of a broker, at work: listens for routes, dials them, does what the mesh decides, and tells of interest.

    accept, dial ─▶ Route ─▶ Mesh (who is in) ─▶ actions done here
    a client subscribes ─▶ LocalInterest ─▶ a line to every peer
    a client publishes ─▶ Router ─▶ Forwarding ─▶ frames to the peers that want it
    a peer's frame ─▶ Route ─▶ Arrivals ─▶ Router ─▶ clients here

Interest that comes before a peer is registered is kept: real brokers send it before their INFO has been answered. A new
peer gets all interest before any message that depends on it, for both go down the same connection in order. When a peer
is lost its interest and its addresses are gone in the same step.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from headwater.broker.accounts import Account
from headwater.broker.auth.passwords import is_correct, is_hashed, require_bcrypt
from headwater.broker.backpressure import Backpressure
from headwater.broker.cluster.arrivals import Arrivals
from headwater.broker.cluster.forwarding import Forwarding
from headwater.broker.cluster.local_interest import LocalInterest, News
from headwater.broker.cluster.mesh import (
    Action,
    Close,
    Dial,
    Dialect,
    Lost,
    Mesh,
    MeshOptions,
    Peer,
    Registered,
    Repeat,
    Send,
    TellClients,
)
from headwater.broker.cluster.route import Interest, Route
from headwater.broker.cluster.route_permissions import Filter
from headwater.broker.cluster.unclaimed import Unclaimed
from headwater.broker.cluster_options import ClusterOptions
from headwater.broker.router import Router
from headwater.broker.sublist import Outlet, Subscription
from headwater.errors import HeadwaterError, TransportError
from headwater.net.address import bracketed, url_address
from headwater.net.layer import Layer
from headwater.net.link import Link, LinkOwner
from headwater.net.tcp import dial, listen
from headwater.wire.error_texts import AUTHENTICATION_TIMEOUT, encode_error
from headwater.wire.route_lines import RouteConnect, RouteInfo
from headwater.wire.route_ops import V1, V2

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

DIAL_SECONDS = 1.0
AUTHORIZATION_SECONDS = 1.0
SWEEP_SECONDS = 0.5
FIRST_PING_SECONDS = 1.0
DEPARTED_SECONDS = 30.0  # at least so long a member of a queue group that has left is remembered; gnatsd's
LONGEST_PING_INTERVAL = 30.0  # nats-server's, for routes, whatever clients are pinged at


class Space:
    """One account in the cluster: its router here, what is wanted here, and what the peers want."""

    def __init__(
        self, name: bytes, router: Router, tell: Callable[["Space", News], None], imports: Filter, exports: Filter
    ) -> None:
        self.router = router
        self.wanted = LocalInterest(name, imports.lets)
        self.forwarding = Forwarding(name, int.from_bytes(os.urandom(4)))
        self.forwarding.withheld = exports.denied
        self.arrivals = Arrivals(router, self.forwarding, self.wanted.has_departed, self.wanted.queue_of)
        self._tell = tell

    def subscribed(self, subscription: Subscription) -> None:
        """The router has a new subscription."""
        self._tell(self, self.wanted.add(subscription))

    def unsubscribed(self, subscription: Subscription) -> None:
        """One has ended."""
        self._tell(self, self.wanted.remove(subscription))


class Cluster:
    """`info` is what routes are told of this broker, client URLs included; `tell_clients` gets those of the others, for
    plain clients and for those that speak WebSocket.
    """

    def __init__(
        self,
        options: ClusterOptions,
        info: RouteInfo,
        accounts: Iterable[Account],
        tell_clients: Callable[[tuple[str, ...], tuple[str, ...]], None],
        *,
        ping_interval: float,
        ping_max: int,
        write_deadline: float,
        max_pending: int,
    ) -> None:
        self.options = options
        self.mesh: Mesh | None = None
        self.port = options.port
        self.slow = 0  # routes that took nothing for too long
        self.stale = 0  # and those that did not answer
        self._info = info
        self._tell_clients = tell_clients
        self._ping_interval = min(options.ping_interval or ping_interval, LONGEST_PING_INTERVAL)
        self._ping_max = options.ping_max or ping_max
        self._write_deadline = options.write_deadline or write_deadline
        self._loop = asyncio.get_running_loop()
        self.clock = self._loop.time
        self._imports, self._exports = Filter(options.imports), Filter(options.exports)
        info.imports, info.exports = self._imports.announced(), self._exports.announced()
        self._spaces: dict[bytes, Space] = {}
        for account in accounts:
            self._make_space(account)
        self._unclaimed = Unclaimed()
        self._routes: dict[int, Route] = {}
        self._next_ping: dict[int, float] = {}
        self._deadlines: dict[int, float] = {}  # until when a connection has to be a route
        self._backpressure = Backpressure(self.clock, max_pending)
        self._forget_at = self.clock() + DEPARTED_SECONDS
        self._unsent: list[Route] = []  # what was said to them waits for the end of `_do`
        self._numbers = 0
        self._listener: asyncio.Server | None = None
        self._dial_tls: ssl.SSLContext | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._stopping = False
        self._peers_changed = asyncio.Event()

    # starting and stopping

    async def start(self) -> None:
        """Bind the route port, then look for the others. Raises EnvironmentProblem and ConfigError."""
        options = self.options
        if is_hashed(options.password):
            require_bcrypt()
        elif options.username:
            is_correct("", "")  # imports what compares, 7 ms, before the first peer waits for it
        make_link: Callable[[LinkOwner], Link] = Link
        if options.tls is not None:
            from headwater.net.tls import Beginning, ServerTls, client_context, secure_link, server_context

            tls = options.tls
            self._dial_tls = client_context(tls.ca_file, tls.cert_file, tls.key_file)
            # A route's TLS comes before any other byte, and each side must show a certificate.
            context = server_context(tls.cert_file, tls.key_file, tls.ca_file, verify=True, ciphers=tls.ciphers)
            settings = ServerTls(context, Beginning.FIRST, timeout=tls.timeout)
            make_link = partial(secure_link, settings)
        self._listener = await listen(options.host, options.port, self._accept, make_link)
        self.port = int(self._listener.sockets[0].getsockname()[1])
        info = self._info
        info.port = self.port
        info.host = options.host
        if options.advertise:
            info.ip = f"nats-route://{options.advertise}/"
        self.mesh = Mesh(
            MeshOptions(
                info=info,
                protocol=options.protocol,
                routes=options.routes,
                user=options.username,
                password=options.password,
                name_is_dynamic=not options.name,
                connect_retries=options.connect_retries,
                connect_backoff=options.connect_backoff,
                advertise=not options.no_advertise,
                tls_required=options.tls is not None,
            ),
            _any_fraction,
        )
        for space in self._spaces.values():
            space.router.join(space.forwarding, space)
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        self._do(self.mesh.start())
        await asyncio.sleep(0)  # on their way to the others before this broker says, in the log, that it is there

    async def stop(self) -> None:
        """End every route; safe to call again."""
        self._stopping = True
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._sweeper is not None:
            self._sweeper.cancel()
        for timer in self._timers:
            timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for route in list(self._routes.values()):
            route.close()

    def leave(self) -> None:
        """Lame duck: the peers send no more clients here."""
        if self.mesh is not None:
            self._do(self.mesh.leave())

    def _make_space(self, account: Account) -> Space:
        name = account.name.encode()
        space = self._spaces[name] = Space(name, account.router, self._tell_peers, self._imports, self._exports)
        return space

    def add_account(self, account: Account) -> None:
        """A reload has brought it: the peers hear what is wanted here, and what they wanted long ago counts now."""
        space = self._make_space(account)
        space.router.join(space.forwarding, space)
        for number, interest in self._unclaimed.claim(account.name.encode()):
            self.on_interest(self._routes[number], interest)

    # what others may ask

    @property
    def peers(self) -> list[Peer]:
        """Who is in, in the order they came."""
        return list(self.mesh.peers.values()) if self.mesh is not None else []

    async def wait_for_peers(self, count: int) -> None:
        """Return once there are at least so many peers; they may be fewer again by the time that is seen."""
        while len(self.peers) < count:
            self._peers_changed.clear()
            await self._peers_changed.wait()

    def routes(self) -> list[tuple[Peer, Route]]:
        """Every peer with its connection."""
        return [(peer, self._routes[peer.link]) for peer in self.peers if peer.link in self._routes]

    def wants_of(self, route: Route) -> list[bytes]:
        """The subjects that a peer wants, in all accounts."""
        outlet = route.outlet
        if outlet is None:
            return []
        return [subject for space in self._spaces.values() for subject in space.forwarding.wants_of(outlet)]

    def space(self, account: str) -> Space:
        """One account's part. Raises KeyError."""
        return self._spaces[account.encode()]

    # routes come and go

    def _accept(self) -> Route:
        self._numbers += 1
        return Route(self, self._numbers)

    def route_opened(self, route: Route) -> None:
        """A connection stands; who accepted speaks first."""
        if self.mesh is None or self._stopping or route.link is None:
            route.close()
            return
        self._routes[route.number] = route
        self._next_ping[route.number] = self.clock() + FIRST_PING_SECONDS
        self._deadlines[route.number] = self.clock() + (self.options.auth_timeout or AUTHORIZATION_SECONDS)
        host = route.link.host
        if route.dialled:
            self._do(self.mesh.dialled(route.number, route.dialled, host))
        else:
            self._do(self.mesh.accepted(route.number, host))

    def route_lost(self, route: Route) -> None:
        """A connection is gone."""
        self._routes.pop(route.number, None)
        self._next_ping.pop(route.number, None)
        self._deadlines.pop(route.number, None)
        self._unclaimed.forget(route.number)
        if route.link is not None:
            self._backpressure.progress.forget(route.link)
        if self.mesh is not None:
            self._do(self.mesh.lost(route.number))
        self._drop_interest(route)

    def complain(self, route: Route, error: HeadwaterError) -> None:
        """The peer broke the protocol: say so here, and end it."""
        logger.warning("route_failed number=%d peer=%s error=%s", route.number, _peer_of(route), error)
        route.close()

    # what peers say

    def on_connect(self, route: Route, connect: RouteConnect) -> bool:
        """True when the verdict comes later, and nothing more may be read until then."""
        if self.mesh is None:
            return False
        if not is_hashed(self.options.password) or connect.user != self.options.username or route.link is None:
            self._do(self.mesh.on_connect(route.number, connect))
            return False
        route.link.pause_reading()
        check = partial(is_correct, self.options.password, connect.password)
        outcome = self._loop.run_in_executor(None, check)
        outcome.add_done_callback(partial(self._hear_verdict, route, connect))
        return True

    def _hear_verdict(self, route: Route, connect: RouteConnect, outcome: "asyncio.Future[bool]") -> None:
        """A hashed password was compared, which takes a tenth of a second, in another thread."""
        if self.mesh is None or self._stopping or outcome.cancelled():
            return
        known = outcome.exception() is None and outcome.result()
        self._do(self.mesh.on_connect(route.number, connect, known=known))
        route.go_on()

    def on_info(self, route: Route, info: RouteInfo) -> None:
        if self.mesh is not None:
            self._do(self.mesh.on_info(route.number, info))

    def on_error(self, route: Route, text: str) -> None:
        if self.mesh is not None:
            logger.info("route_error number=%d peer=%s text=%s", route.number, _peer_of(route), text)
            self._do(self.mesh.on_error(route.number, text))

    def is_proved(self, route: Route) -> bool:
        """Whether a peer that is not registered yet may speak of messages; refused and closed when not."""
        actions = self.mesh.on_other(route.number) if self.mesh is not None else []
        self._do(actions)
        return not actions

    def on_interest(self, route: Route, interest: Interest) -> None:
        """An account that we do not have may come, until then it is noted; what we do not export is passed over."""
        account, subject, queue, token, number = interest
        space = self.find_space(account)
        if space is None:
            if not self._unclaimed.note(route.number, interest):
                logger.warning("unknown_accounts peer=%s account=%r too_many", _peer_of(route), account)
            return
        if subject and not self._exports.lets(subject):
            return
        outlet = _outlet(route)
        if not space.forwarding.has_peer(outlet):
            peer = self.mesh.peer_of(route.number) if self.mesh is not None else None
            if peer is None or outlet.closed:
                return
            space.forwarding.add_peer(outlet, peer.dialect == "v1", peer.ours)
        if not token:
            space.forwarding.want(outlet, subject, queue, number)
        elif subject:
            space.forwarding.want_one(outlet, subject, queue, token)
        else:
            space.forwarding.limit_one(outlet, token, number)

    def find_space(self, account: bytes) -> Space | None:
        """Where messages of an account go, of the first one's when it has no name; None when we do not have it."""
        return self._spaces.get(account) if account else self._default()

    def hold_route(self, route: Route, congested: list[Outlet]) -> None:
        """Some who got messages of this peer are behind."""
        if route.link is not None:
            self._backpressure.hold_route(route.link, congested)

    def _default(self) -> Space:
        return next(iter(self._spaces.values()))

    # what clients here want

    def _tell_peers(self, space: Space, news: News) -> None:
        if self.mesh is None:
            return
        for peer in self.mesh.peers.values():
            line = news.v2 if peer.dialect == "v2" else news.v1 if space is self._default() else b""
            route = self._routes.get(peer.link)
            if line and route is not None and route.link is not None and not route.link.closing:
                # Written with what the client is answered, or before: once it has its PONG, the news is on its way.
                route.link.output.append(line)
                space.router.mark_dirty(_outlet(route))

    def _tell_everything(self, route: Route, dialect: Dialect) -> None:
        if dialect == "v2":
            lines = b"".join(line for space in self._spaces.values() for line in space.wanted.all_v2())
        else:
            lines = b"".join(self._default().wanted.all_v1())
        if lines:
            self._say(route, lines)

    # what the mesh decided

    def _do(self, actions: Iterable[Action]) -> None:
        """What is to be said goes out in this turn of the loop, in one write for each peer: others wait for it."""
        for action in actions:
            match action:
                case Send(link, data):
                    if link in self._routes:
                        self._say(self._routes[link], data)
                case Close(link, reason, hold):
                    self._close(link, reason, hold)
                case Dial(url, 0.0):
                    self._start_dial(url)
                case Dial(url, delay):
                    self._later(delay, partial(self._start_dial, url))
                case Registered(peer):
                    self._registered(peer)
                case Repeat(peer):
                    self._tell_everything(self._routes[peer.link], peer.dialect)
                case Lost(peer):
                    self._lost(peer)
                case TellClients() if self.mesh is not None:
                    self._tell_clients(self.mesh.client_urls(), self.mesh.websocket_urls())
        unsent, self._unsent = self._unsent, []
        for route in unsent:
            if route.link is not None:
                route.link.flush()

    def _say(self, route: Route, data: bytes) -> None:
        """Written at the end of what is being done."""
        if route.link is not None and not route.link.closing:
            route.link.output.append(data)
            self._unsent.append(route)

    def _note(self, text: str, *values: object) -> None:
        """Log it, a turn later: a line takes longer to write than all that others wait for."""
        self._loop.call_soon(partial(logger.info, text, *values))

    def _close(self, link: int, reason: str, hold: float) -> None:
        route = self._routes.get(link)
        if route is None:
            return
        self._note("route_closed number=%d peer=%s reason=%s", link, _peer_of(route), reason)
        route.parser.stopped = True
        self._deadlines.pop(link, None)
        if hold:
            self._later(hold, route.close)
        else:
            route.close()

    def _registered(self, peer: Peer) -> None:
        route = self._routes[peer.link]
        route.parser.dialect = V1 if peer.dialect == "v1" else V2
        outlet = _outlet(route)
        outlet.headers = peer.headers
        route.register()
        self._deadlines.pop(peer.link, None)
        self._note("route_created id=%s name=%s peer=%s", peer.server_id, peer.name, _peer_of(route))
        self._tell_everything(route, peer.dialect)
        self._peers_changed.set()

    def _lost(self, peer: Peer) -> None:
        """Its interest goes in this step, whether or not its connection is gone yet."""
        self._note("route_lost id=%s name=%s", peer.server_id, peer.name)
        route = self._routes.get(peer.link)
        if route is not None:
            self._drop_interest(route)

    def _drop_interest(self, route: Route) -> None:
        if route.outlet is not None:
            for space in self._spaces.values():
                space.forwarding.drop_peer(route.outlet)

    def _later(self, delay: float, what: Callable[[], object]) -> None:
        if self._stopping:
            return

        def run() -> None:
            self._timers.discard(timer)
            what()

        timer = self._loop.call_later(delay, run)
        self._timers.add(timer)

    def _start_dial(self, url: str) -> None:
        if self.mesh is None or self._stopping or not self.mesh.still_wanted(url):
            return
        task = self._loop.create_task(self._dial(url))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self, url: str) -> None:
        self._numbers += 1
        route = Route(self, self._numbers, dialled=url)
        layer: Layer | None = None
        try:
            place = url_address(url)
            if self._dial_tls is not None:
                from headwater.net.tls import TlsLayer

                layer = TlsLayer(self._dial_tls, server_side=False, server_hostname=place.host)
            await dial(place.host, place.port or 0, route, DIAL_SECONDS, layer)
        except (TransportError, ValueError) as error:
            logger.debug("route_not_reached url=%s error=%s", _without_password(url), error)
            if self.mesh is not None:
                self._do(self.mesh.dial_failed(url))

    # watching over them

    def _sweep(self) -> None:
        now = self.clock()
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        if now >= self._forget_at:
            self._forget_at = now + DEPARTED_SECONDS
            for space in self._spaces.values():
                space.wanted.forget_departed()
        for number, route in list(self._routes.items()):
            deadline = self._deadlines.get(number)
            if deadline is not None and now > deadline:
                self._deadlines.pop(number)
                if not route.dialled:
                    route.send(encode_error(AUTHENTICATION_TIMEOUT))
                self._do([Close(number, "it did not become a route in time")])
            elif now >= self._next_ping.get(number, now + 1):
                self._next_ping[number] = now + self._ping_interval
                if not route.ping(self._ping_max, now):
                    self.stale += 1
            if self._backpressure.progress.end_stuck(route.link, now, self._write_deadline):
                logger.warning("slow_route peer=%s deadline=%g", _peer_of(route), self._write_deadline)
                self.slow += 1


def _outlet(route: Route) -> Outlet:
    if route.outlet is None:
        raise AssertionError("a route that was never attached said something")
    return route.outlet


def _peer_of(route: Route) -> str:
    return route.link.peer if route.link is not None else ""


def _without_password(url: str) -> str:
    try:
        place = url_address(url)
    except ValueError:
        return "?"
    return f"nats-route://{bracketed(place.host)}:{place.port or 0}"


def _any_fraction() -> float:
    """Of 1; the `random` module would do it faster, and hold a quarter of a mebibyte for it."""
    return int.from_bytes(os.urandom(4)) / (1 << 32)
