"""A broker's side of the cluster: performs the actions that the mesh decides, and composes the other parts.

    Connections (accept, dial) ─▶ Route ─▶ Mesh (membership) ─▶ actions, performed here
    a client subscribes ─▶ Spaces (LocalInterest) ─▶ a line to every peer
    a client publishes ─▶ Router ─▶ Forwarding ─▶ frames to the peers that have interest
    a peer's frame ─▶ Route ─▶ Arrivals ─▶ Router ─▶ clients here
    RouteWatch: PINGs, write deadlines, logins

Interest that arrives before its peer is registered is queued: real brokers send it before their INFO is answered. A new
peer gets all interest before any message that depends on it, because both go over the same connection in order. When a
peer is lost, its interest and its addresses are removed in the same step.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, assert_never

from headwater.cluster.connections import Connections
from headwater.cluster.local_interest import InterestChange
from headwater.cluster.mesh import (
    Action,
    AnnounceUrls,
    Close,
    Dial,
    Lost,
    Mesh,
    MeshOptions,
    Peer,
    Registered,
    Repeat,
    Send,
)
from headwater.cluster.route import Interest, Route
from headwater.cluster.route_watch import RouteWatch
from headwater.cluster.spaces import JETSTREAM_API, Space, Spaces
from headwater.errors import HeadwaterError
from headwater.exchange.account import Account
from headwater.exchange.sublist import Outlet
from headwater.model.passwords import is_correct, is_hashed, require_bcrypt
from headwater.net.address import announced
from headwater.net.limits import Limits
from headwater.net.peer_timers import address_of
from headwater.net.random_fraction import random_fraction
from headwater.options.cluster import ClusterOptions
from headwater.wire.route_lines import RouteConnect, RouteInfo
from headwater.wire.route_ops import V1, V2

if TYPE_CHECKING:
    from headwater.net.journal import Journal

logger = logging.getLogger(__name__)

# For a peer to read pending output before the end; a round trip on a loaded machine takes some 10 ms.
SETTLE_SECONDS = 1.0


class Cluster:
    """`info` describes this broker to its peers, client URLs included; `announce_urls` is called with the peers' client
    URLs, plain and WebSocket. Times are in seconds, `max_pending` in bytes.
    """

    def __init__(
        self,
        options: ClusterOptions,
        info: RouteInfo,
        accounts: Iterable[Account],
        announce_urls: Callable[[tuple[str, ...], tuple[str, ...]], None],
        *,
        ping_interval: float,
        ping_max: int,
        write_deadline: float,
        max_pending: int,
        limits: Limits,
        journal: "Journal | None" = None,
    ) -> None:
        self.options = options
        self.mesh: Mesh | None = None
        self.clock = asyncio.get_running_loop().time
        self._spaces = Spaces(options, self._announce)
        self._spaces.declare(info)
        for account in accounts:
            self._spaces.add(account)
        self.connections = Connections(options, limits, self._make_route, self._dial_failed, journal)
        self.watch = RouteWatch(
            options,
            self._login_timed_out,
            self._spaces.forget_departed,
            ping_interval=ping_interval,
            ping_max=ping_max,
            write_deadline=write_deadline,
            max_pending=max_pending,
        )
        self._info = info
        self._url_listeners: list[Callable[[Mesh], None]] = [
            lambda mesh: announce_urls(mesh.client_urls(), mesh.websocket_urls())
        ]
        self._journal = journal
        self._routes: dict[int, Route] = {}
        self._last_number = 0  # the highest route number in use
        self._unsent: list[Route] = []  # routes whose output is written at the end of `_do`
        self._stopping = False  # we are withdrawing our interest from the peers
        self._silent: set[int] = set()  # routes whose peers did not answer during the stop
        self._peers_changed = asyncio.Event()

    # starting and stopping

    async def start(self) -> None:
        """Bind the route port; `open` starts accepting and dialling. Raises EnvironmentProblem and ConfigError."""
        options = self.options
        if is_hashed(options.password):
            require_bcrypt()
        elif options.username:
            is_correct("", "")  # imports the comparison, 7 ms, before the first peer waits for it
        self.connections.bind()
        info = self._info
        info.port = self.port
        info.host = options.host
        if options.advertise:
            info.ip = f"nats-route://{announced(options.advertise, self.port)}/"
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
            random_fraction,
        )
        self._spaces.join()

    def open(self) -> None:
        """Start accepting and dialling routes. Raises EnvironmentProblem when another process has taken the port."""
        if self.mesh is not None:
            self.connections.open()
            self.watch.start()
            self._do(self.mesh.start())

    async def withdraw(self) -> None:
        """Stop making routes, and withdraw our interest: on return, everything that the peers sent before has arrived.

        Local messages are still forwarded. A peer has SETTLE_SECONDS to answer.
        """
        if self._stopping:
            return
        self._stopping = True
        self.connections.withdraw()
        for peer, route in self.routes():
            self._send_interest(route, peer, wanted=False)
        await self._settle()

    async def stop(self) -> None:
        """Close every route, once the peers have read our output; safe to call again."""
        await self.withdraw()
        await self._settle()
        self.watch.stop()
        await self.connections.stop()
        for route in list(self._routes.values()):
            route.close()

    async def _settle(self) -> None:
        """Wait until the peers have read all our output. A peer that failed to answer once is not waited for again."""
        awaited = {route.settled(): route for _, route in self.routes() if route.number not in self._silent}
        if not awaited:
            return
        _, late = await asyncio.wait(awaited, timeout=SETTLE_SECONDS)
        for answer in late:
            route = awaited[answer]
            self._silent.add(route.number)
            logger.warning("route_not_drained peer=%s seconds=%g", address_of(route), SETTLE_SECONDS)

    def serve_leafs(self, urls: tuple[str, ...], announce: Callable[[tuple[str, ...]], None]) -> None:
        """This broker accepts leaf nodes at `urls`; `announce` is called with the peers' URLs whenever they change."""
        self._spaces.has_leafs = True
        self._url_listeners.append(lambda mesh: announce(mesh.leafnode_urls()))
        if self.mesh is not None:
            self.mesh.offer_leafnodes(urls)

    def leave(self) -> None:
        """Lame duck: the peers stop announcing this broker to clients."""
        if self.mesh is not None:
            self._do(self.mesh.leave())

    def add_account(self, account: Account) -> None:
        """A reload has added an account: announce its interest, and apply what peers announced before."""
        space = self._spaces.add(account)
        space.join()
        for number, interest in self._spaces.claim(account):
            self.on_interest(self._routes[number], interest)

    # views, for monitoring and tests

    @property
    def port(self) -> int:
        """The bound route port; before that, the configured one."""
        return self.connections.port

    def name(self) -> str:
        """The cluster's name; a broker without a configured one adopts the first configured name among its peers."""
        return self._info.cluster

    @property
    def peers(self) -> list[Peer]:
        """The other members of the cluster, in the order they joined."""
        return list(self.mesh.peers.values()) if self.mesh is not None else []

    async def wait_for_peers(self, count: int) -> None:
        """Return once there are at least `count` peers; some may have left again by the time the caller looks."""
        while len(self.peers) < count:
            self._peers_changed.clear()
            await self._peers_changed.wait()

    def routes(self) -> list[tuple[Peer, Route]]:
        """Every peer with its connection."""
        return [(peer, self._routes[peer.link]) for peer in self.peers if peer.link in self._routes]

    def every_route(self) -> list[Route]:
        """All routes, registered or not."""
        return list(self._routes.values())

    def wants_of(self, route: Route) -> list[bytes]:
        """The subjects that a peer has interest in, in all accounts."""
        return self._spaces.wants_of(route.outlet) if route.outlet is not None else []

    def spaces(self) -> list[tuple[str, Space]]:
        """The space of every account, with its name."""
        return self._spaces.named()

    def space(self, account: str) -> Space:
        """The space of one account. Raises KeyError."""
        found = self._spaces.find(account.encode())
        if found is None:
            raise KeyError(account)
        return found

    # opening and closing of routes

    def _make_route(self, url: str) -> Route:
        self._last_number += 1
        return Route(self, self._last_number, dialled=url)

    def route_opened(self, route: Route) -> None:
        """A connection is established; the accepting side sends first."""
        if self.mesh is None or self._stopping or route.link is None:
            route.close()
            return
        self._routes[route.number] = route
        self.watch.opened(route)
        host = route.link.host
        if route.dialled:
            self._do(self.mesh.dialled(route.number, route.dialled, host))
        else:
            self._do(self.mesh.accepted(route.number, host))

    def route_lost(self, route: Route) -> None:
        """A connection is gone."""
        self._routes.pop(route.number, None)
        self.watch.forget(route)
        self._spaces.forget(route.number)
        if self.mesh is not None:
            self._do(self.mesh.lost(route.number))
        self._drop_interest(route)

    def complain(self, route: Route, error: HeadwaterError) -> None:
        """The peer broke the protocol: log it, and close the route."""
        logger.warning("route_failed number=%d peer=%s error=%s", route.number, address_of(route), error)
        route.close()

    def _login_timed_out(self, route: Route) -> None:
        self._do([Close(route.number, "it did not become a route in time")])

    def _dial_failed(self, url: str) -> None:
        if self.mesh is not None:
            self._do(self.mesh.dial_failed(url))

    def _dial(self, url: str) -> None:
        if self.mesh is not None and self.mesh.still_wanted(url):
            self.connections.dial(url)

    # ops of peers

    def on_connect(self, route: Route, connect: RouteConnect) -> bool:
        """Handle CONNECT. True if the verdict arrives later: nothing more may be parsed until then."""
        if self.mesh is None:
            return False
        if not is_hashed(self.options.password) or connect.user != self.options.username or route.link is None:
            self._do(self.mesh.on_connect(route.number, connect))
            return False
        route.link.pause_reading()
        check = partial(is_correct, self.options.password, connect.password)
        outcome = asyncio.get_running_loop().run_in_executor(None, check)
        outcome.add_done_callback(partial(self._password_checked, route, connect))
        return True

    def _password_checked(self, route: Route, connect: RouteConnect, outcome: "asyncio.Future[bool]") -> None:
        """A hashed password has been compared; that takes 0.1 s, so it ran in another thread."""
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
            logger.info("route_error number=%d peer=%s text=%s", route.number, address_of(route), text)
            self._do(self.mesh.on_error(route.number, text))

    def is_proved(self, route: Route) -> bool:
        """Whether an unregistered peer may send interest and messages; its route is closed otherwise."""
        actions = self.mesh.on_other(route.number) if self.mesh is not None else []
        self._do(actions)
        return not actions

    def on_interest(self, route: Route, interest: Interest) -> None:
        space = self._spaces.find(interest.account)
        if space is None:
            if not self._spaces.keep(route.number, interest):
                logger.warning("unknown_accounts peer=%s account=%r too_many", address_of(route), interest.account)
            return
        peer = self.mesh.peer_of(route.number) if self.mesh is not None else None
        taken = self._spaces.take(space, _outlet(route), peer, interest)
        if taken and interest.number and interest.subject == JETSTREAM_API and self._spaces.serves_jetstream:
            # The peer also serves the JetStream API (real ones do so in the system account): clients would get two
            # answers.
            logger.warning(
                "streams_at_two_brokers peer=%s: both answer what clients ask; let one broker of a cluster have streams",
                address_of(route),
            )

    def find_space(self, account: bytes) -> Space | None:
        """The space of an account; that of the first account if `account` is empty, None for an unknown account."""
        return self._spaces.find(account)

    def find_peer(self, route: Route) -> "Peer | None":
        """The peer at the other end; None before it is registered."""
        return self.mesh.peer_of(route.number) if self.mesh is not None else None

    def hold_route(self, route: Route, congested: list[Outlet]) -> None:
        """Pause reading from this peer: receivers of its messages are behind."""
        self.watch.hold(route, congested)

    # interest of clients here

    def _announce(self, space: Space, change: InterestChange) -> None:
        """Send a change of local interest to every peer."""
        if self.mesh is None or self._stopping:
            return
        for peer in self.mesh.peers.values():
            line = self._spaces.change_line(space, change, peer)
            route = self._routes.get(peer.link)
            if line and route is not None and route.link is not None and not route.link.closing:
                # Written in the same write as the answer to the client, or earlier: once it has its PONG, the change
                # has been sent.
                route.link.output.append(line)
                space.router.mark_dirty(_outlet(route))

    def _send_interest(self, route: Route, peer: Peer, *, wanted: bool) -> None:
        """Announce all interest of local clients and leaf nodes to a peer, or withdraw it."""
        data = self._spaces.lines(peer, wanted=wanted)
        if data:
            self._send(route, data)

    def _drop_interest(self, route: Route) -> None:
        if route.outlet is not None:
            self._spaces.drop_peer(route.outlet)

    # actions of the mesh

    def _do(self, actions: Iterable[Action]) -> None:
        """Perform actions. Their output is written in this turn of the loop, in one write per peer."""
        for action in actions:
            match action:
                case Send(link, data):
                    if link in self._routes:
                        self._send(self._routes[link], data)
                case Close(link, reason, hold):
                    self._close(link, reason, hold)
                case Dial(url, 0.0):
                    self._dial(url)
                case Dial(url, delay):
                    self.connections.later(delay, partial(self._dial, url))
                case Registered(peer):
                    self._registered(peer)
                case Repeat(peer):
                    self._send_interest(self._routes[peer.link], peer, wanted=not self._stopping)
                case Lost(peer):
                    self._lost(peer)
                case AnnounceUrls():
                    # When we stop, the routes end first; clients and leaf nodes still need the addresses of other
                    # brokers.
                    if self.mesh is not None and not self._stopping:
                        for announce in self._url_listeners:
                            announce(self.mesh)
                case _:
                    assert_never(action)
        unsent, self._unsent = self._unsent, []
        for route in unsent:
            if route.link is not None:
                route.link.flush()

    def _send(self, route: Route, data: bytes) -> None:
        """Queue output, which the end of `_do` writes."""
        if route.link is not None and not route.link.closing:
            route.link.output.append(data)
            self._unsent.append(route)

    def _close(self, link: int, reason: str, hold: float) -> None:
        route = self._routes.get(link)
        if route is None:
            return
        _log_later("route_closed number=%d peer=%s reason=%s", link, address_of(route), reason)
        route.parser.stopped = True
        self.watch.settled(route)
        if hold:
            self.connections.later(hold, route.close)
        else:
            route.close()

    def _registered(self, peer: Peer) -> None:
        route = self._routes[peer.link]
        route.parser.dialect = V1 if peer.dialect == "v1" else V2
        _outlet(route).headers = peer.headers
        route.register()
        self.watch.settled(route)
        self.connections.forget_reasons()
        _log_later("route_created id=%s name=%s peer=%s", peer.server_id, peer.name, address_of(route))
        if self._spaces.has_leafs and not peer.knows_leafs:
            what = "what is published there reaches no leaf node of ours: it does not say that it knows them (lnoc)"
            logger.warning("peer_without_leafs peer=%s: %s", address_of(route), what)
        self._send_interest(route, peer, wanted=not self._stopping)
        self._peers_changed.set()

    def _lost(self, peer: Peer) -> None:
        """Remove the interest of a lost peer in this step, even if its connection is not closed yet."""
        _log_later("route_lost id=%s name=%s", peer.server_id, peer.name)
        if self._journal is not None:
            self._journal.note("route_lost", name=peer.name, id=peer.server_id, log=False)
        route = self._routes.get(peer.link)
        if route is not None:
            self._drop_interest(route)


def _outlet(route: Route) -> Outlet:
    if route.outlet is None:
        raise AssertionError("an op came from a route that was never attached")
    return route.outlet


def _log_later(text: str, *values: object) -> None:
    """Log in the next turn of the loop: writing a line takes longer than all the work that peers wait for."""
    asyncio.get_running_loop().call_soon(partial(logger.info, text, *values))
