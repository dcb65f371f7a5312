"""Membership of the full mesh: decides which brokers to dial and admit, which of two connections to keep, and what to
gossip. Pure.

Methods take events (a connection was accepted or made, INFO, CONNECT, -ERR, a loss) and return actions (send, close,
dial, registered, lost, tell clients), which `service.py` performs. Connections ("links") are numbers chosen by the
caller.

    accepted ─▶ we send INFO ─▶ CONNECT ─▶ INFO ─▶ registered          an accepted peer authenticates itself
    dialled  ─▶ INFO ─▶ we send CONNECT, INFO ─▶ registered            a dialled peer has sent its INFO already

Rules, from the cluster protocol document and the behaviour of gnatsd 1.4.1 and nats-server 2.15.1:

* A peer is registered once both documents have been read; its interest counts from then on, and ends with its link.
* Registering a peer announces it to every other peer (gossip), which is how one seed address grows into a full mesh.
* Configured routes are retried for ever; addresses learned by gossip `connect_retries` times.
* A lost peer that was learned by gossip is redialled by the side that had dialled it, with growing delays, for about ten
  minutes. Real servers do not: when only the route between two of them fails, they stay apart until another one gossips.
* A second link to the same server id is closed silently. When two Headwater brokers dial each other at once, both keep
  the link that the smaller id dialled; real servers retry, which takes a second.
* A link to ourselves, to a peer with our name or to another cluster is closed; a generated cluster name gives way. A
  configured route that leads to ourselves (all nodes have one list of names) is tried again every LONGEST_RETRY only.
* An -ERR is never sent as a mere warning: a real peer closes the route at any -ERR.
* We wait at least a second plus jitter before redialling an address, whatever closed the connection. A configured route
  that has never answered is retried sooner at first, so that brokers that start together need not wait for each other.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from headwater.model.passwords import is_correct, is_hashed
from headwater.model.record import Record
from headwater.net.address import UrlAddress, bracketed, url_address
from headwater.wire.error_texts import encode_error
from headwater.wire.peer_documents import SubjectLists
from headwater.wire.route_lines import (
    TRACING,
    RouteConnect,
    RouteInfo,
    encode_route_connect,
    encode_route_info,
)

Protocol = Literal["v1", "v2", "auto"]
Dialect = Literal["v1", "v2"]

FIRST_RETRY = 0.01  # seconds before a configured route that did not answer is retried; grows to RETRY_SECONDS
FIRST_GROWTH = 1.5  # brokers that start together then need at most 1.5 times as long as the slowest takes to start
RETRY_SECONDS = 1.0  # between two tries of one address, as in gnatsd and nats-server
LONGEST_RETRY = 30.0  # upper bound of the delay where it doubles
# 1, 2, 4, 8, 16 and then 30 seconds apart: ten minutes, until a peer that gossip brought counts as gone.
LOST_TRIES = 24
JITTER = 0.1  # seconds, at most
_OF_V1 = (
    "server_id", "version", "host", "port", "max_payload", "connect_urls", "auth_required", "tls_required", "ip", "ldm",
    "headwater", "imports", "exports",
)  # fmt: skip
"""The INFO fields that v1 knows."""
AUTHORIZATION = "Authorization Violation"
NOT_A_ROUTE = "attempted to connect to route port"


class Send(NamedTuple):
    """Write `data` on `link`."""

    link: int
    data: bytes


class Close(NamedTuple):
    """Flush, then close. `hold`: seconds to wait before closing, so that a peer that redials at once cannot flood us."""

    link: int
    reason: str
    hold: float = 0.0


class Dial(NamedTuple):
    """Connect to `url` in `delay` seconds."""

    url: str
    delay: float


class Registered(NamedTuple):
    """`peer` has joined the cluster: send it all local interest."""

    peer: "Peer"


class Repeat(NamedTuple):
    """`peer` has changed which subscriptions it accepts: send it all local interest again; duplicates are harmless."""

    peer: "Peer"


class Lost(NamedTuple):
    """`peer` has left the cluster: remove its interest."""

    peer: "Peer"


class AnnounceUrls(NamedTuple):
    """The addresses announced to clients have changed; see `Mesh.client_urls`."""


Action = Send | Close | Dial | Registered | Repeat | Lost | AnnounceUrls


class Peer(Record, frozen=False):
    """Another broker. `url`: where others can dial it. `configured`: the configured route that led to it, or ""."""

    server_id: str
    name: str
    dialect: Dialect
    link: int
    headers: bool
    url: str
    host: str
    port: int
    connect_urls: tuple[str, ...]
    ws_connect_urls: tuple[str, ...] = ()
    configured: str = ""
    ours: bool = False  # it is also a Headwater broker
    knows_leafs: bool = False  # it understands announcements for leaf nodes
    leafnode_urls: tuple[str, ...] = ()
    traces: bool = False  # it continues the traces of messages
    dialled: bool = False
    leaving: bool = False  # lame duck
    imports: SubjectLists | None = None  # its clients' subscriptions that it announces to us
    exports: SubjectLists | None = None  # our subscriptions that it accepts

    @property
    def is_open_to_clients(self) -> bool:
        """Whether its addresses are announced to clients."""
        return bool(self.connect_urls or self.ws_connect_urls or self.leafnode_urls) and not self.leaving


class _Link(Record, frozen=False):
    """A connection, before and after its peer is registered."""

    number: int
    remote_host: str
    dialled: str = ""  # the URL
    connect: RouteConnect | None = None
    peer: Peer | None = None
    finished: bool = False


class _Target(Record, frozen=False):
    """An address that we dial. `tries_left` is None for a configured route, which is retried without a limit."""

    tries_left: int | None
    wait: float = RETRY_SECONDS
    first_wait: float = FIRST_RETRY  # for a configured route that has never answered
    busy: bool = False  # being dialled, or scheduled to be
    lost: bool = False  # it was a peer, and was lost
    ourselves: bool = False  # its last dial led to this broker


class MeshOptions(Record, secret=("routes", "password")):
    """This broker's settings in its cluster. `info`: its own INFO, client URLs included.

    `user`, `password`: the credentials peers must send; we send them to addresses learned by gossip.
    `name_is_dynamic`: no cluster name is configured here, and the first configured one among the peers is adopted.
    """

    info: RouteInfo
    protocol: Protocol = "v2"
    routes: tuple[str, ...] = ()
    user: str = ""
    password: str = ""
    name_is_dynamic: bool = False
    connect_retries: int = 0
    connect_backoff: bool = False
    advertise: bool = True  # whether the addresses of this broker and its peers are announced to clients
    tls_required: bool = False


class Mesh:
    """`jitter()` returns a random number in 0..1."""

    def __init__(self, options: MeshOptions, jitter: Callable[[], float]) -> None:
        self.options = options
        self.info = options.info
        self.dynamic = options.name_is_dynamic
        self.peers: dict[str, Peer] = {}
        self._encoded_info: dict[bool, bytes] = {}  # our encoded INFO; True for v2
        self._links: dict[int, _Link] = {}
        self._targets: dict[str, _Target] = {}
        self._jitter = jitter
        self._configured = {_address(url): url for url in options.routes}

    # views

    def client_urls(self) -> tuple[str, ...]:
        """The other client addresses of this cluster, in a stable order."""
        return self._advertised(peer.connect_urls for peer in self.peers.values() if not peer.leaving)

    def websocket_urls(self) -> tuple[str, ...]:
        """As `client_urls`, for clients that use WebSocket."""
        return self._advertised(peer.ws_connect_urls for peer in self.peers.values() if not peer.leaving)

    def leafnode_urls(self) -> tuple[str, ...]:
        """The other members' addresses for leaf nodes, in a stable order."""
        found = (peer.leafnode_urls for peer in self.peers.values() if not peer.leaving)
        return tuple(dict.fromkeys(url for urls in found for url in urls))

    def offer_leafnodes(self, urls: tuple[str, ...]) -> None:
        """Put our addresses for leaf nodes into the INFO for peers that join from now on."""
        self.info.leafnode_urls = urls
        self._encoded_info.clear()

    def _advertised(self, found: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(url for urls in found for url in urls)) if self.options.advertise else ()

    def unreached(self) -> list[str]:
        """The configured routes that lead to no peer now, as `host:port`, except one that leads to ourselves."""
        return [
            shown_address(url)
            for url, target in self._targets.items()
            if target.tries_left is None and not target.ourselves and not self._is_reached(url, target)
        ]

    def peer_of(self, link: int) -> Peer | None:
        known = self._links.get(link)
        return known.peer if known else None

    # events

    def start(self) -> list[Action]:
        """Dial the configured routes."""
        actions: list[Action] = []
        for url in self.options.routes:
            if _address(url) != (self.info.host, self.info.port):
                self._targets[url] = _Target(tries_left=None, busy=True)
                actions.append(Dial(url, 0.0))
        return actions

    def accepted(self, link: int, remote_host: str) -> list[Action]:
        """A peer connected to our route port."""
        self._links[link] = _Link(number=link, remote_host=remote_host)
        return [Send(link, self._own_info(self.options.protocol != "v1"))]

    def dialled(self, link: int, url: str, remote_host: str) -> list[Action]:
        """`url` was reached; the other side sends INFO first."""
        if url in self._targets:
            self._targets[url].first_wait = RETRY_SECONDS
        self._links[link] = _Link(number=link, remote_host=remote_host, dialled=url)
        return []

    def dial_failed(self, url: str) -> list[Action]:
        """`url` was not reached, or TLS failed."""
        target = self._targets.get(url)
        if target is None or self._is_reached(url, target):
            return []
        if target.tries_left is not None or target.first_wait >= RETRY_SECONDS:
            return self._dial_again(url)
        wait = target.first_wait
        target.first_wait *= FIRST_GROWTH
        return [Dial(url, wait * (1 + self._jitter()))]

    def still_wanted(self, url: str) -> bool:
        """Whether a delayed dial is still needed: the peer may have connected to us meanwhile."""
        target = self._targets.get(url)
        return target is not None and not self._is_reached(url, target)

    def on_connect(self, link: int, connect: RouteConnect, known: bool | None = None) -> list[Action]:
        """CONNECT: the dialling peer sends its name and credentials. `known`: the verdict on its password, if the
        caller already has one.
        """
        state = self._links.get(link)
        if state is None or state.finished:
            return []
        if connect.lang:
            return self._refuse(state, NOT_A_ROUTE)
        options = self.options
        if known is None:
            known = not options.user or (
                connect.user == options.user and is_correct(options.password, connect.password)
            )
        if state.dialled or not known:
            return self._refuse(state, AUTHORIZATION)
        in_v2 = bool(connect.cluster or connect.headers)
        if in_v2 and options.protocol == "v1":
            return self._refuse(state, "Unknown Protocol Operation", hold=RETRY_SECONDS)
        if options.protocol != "v1" and (in_v2 or options.protocol == "v2") and not self._same_cluster(connect.cluster):
            ours = self.info.cluster
            return self._refuse(
                state, f'Rejecting connection, cluster name "{connect.cluster}" does not match "{ours}"'
            )
        state.connect = connect
        return []

    def on_info(self, link: int, info: RouteInfo) -> list[Action]:
        """INFO: the peer's own, an update of it, or gossip about another broker."""
        state = self._links.get(link)
        if state is None or state.finished:
            return []
        if state.peer is not None:
            return self._on_later_info(state.peer, info)
        if not state.dialled and state.connect is None:
            return self._refuse(state, AUTHORIZATION)
        target = self._targets.get(state.dialled)
        if target is not None:
            target.ourselves = info.server_id == self.info.server_id
        if not info.server_id or info.server_id == self.info.server_id:
            return self._close(state, "a route to ourselves" if info.server_id else "INFO without a server id")
        if info.server_name and info.server_name == self.info.server_name:
            return self._close(state, f"another server bears our name {info.server_name!r}")
        dialect = self._dialect(info, state.connect)
        if dialect is None:
            return self._close(state, "the peer speaks another generation of the protocol", hold=RETRY_SECONDS)
        if dialect == "v2" and info.cluster and not self._same_cluster(info.cluster):
            return self._close(state, f"the peer is in cluster {info.cluster!r}")
        actions = self._introduce(state, dialect) if state.dialled else []
        return actions + self._register(state, info, dialect)

    def on_other(self, link: int) -> list[Action]:
        """Any other op before the peer is registered: refused if its CONNECT is missing."""
        state = self._links.get(link)
        if state is None or state.finished or state.dialled or state.connect is not None:
            return []
        return self._refuse(state, AUTHORIZATION)

    def on_error(self, link: int, text: str) -> list[Action]:
        """-ERR: the peer has closed the route, or is about to."""
        state = self._links.get(link)
        return self._close(state, f"the peer says {text!r}") if state is not None else []

    def lost(self, link: int) -> Iterator[Action]:
        """Either side closed the connection. Actions are decided one at a time, because clients wait for the first."""
        state = self._links.pop(link, None)
        if state is None:
            return
        peer = state.peer
        if peer is not None and self.peers.get(peer.server_id) is peer:
            del self.peers[peer.server_id]
            if peer.is_open_to_clients:
                yield AnnounceUrls()
            yield Lost(peer)
        again = (peer.configured if peer is not None else "") or state.dialled
        if again:
            yield from self._dial_again(again, lost=peer is not None)

    def leave(self) -> list[Action]:
        """Lame duck: send the peers an INFO, so that they stop announcing this broker to clients."""
        self.info.ldm = True
        self._encoded_info.clear()
        return [Send(peer.link, self._own_info(peer.dialect == "v2")) for peer in self.peers.values()]

    # parts

    def _own_info(self, in_v2: bool) -> bytes:
        """Our INFO, encoded once. That for v1 has no v2 fields, so that no peer takes us for a v2 server."""
        if in_v2 not in self._encoded_info:
            info = self.info
            shown = info if in_v2 else RouteInfo(**{name: getattr(info, name) for name in _OF_V1})
            if in_v2 and self.options.protocol == "v2":
                shown = info.replace(proto=TRACING)
            self._encoded_info[in_v2] = encode_route_info(shown)
        return self._encoded_info[in_v2]

    def _introduce(self, state: _Link, dialect: Dialect) -> list[Action]:
        """The dialling side's documents: CONNECT, with the credentials of the URL or the cluster's own, then INFO."""
        place = _place(state.dialled)
        if not place.user and is_hashed(self.options.password):
            # The address was learned by gossip, and our own password is only a hash: use a configured route's
            # credentials.
            place = next((known for url in self.options.routes if (known := _place(url)).user), place)
        connect = RouteConnect(
            echo=True,
            verbose=False,
            pedantic=False,
            tls_required=self.options.tls_required,
            name=self.info.server_id,
            user=place.user or self.options.user,
            password=(place.password or "") if place.user else self.options.password,
        )
        if dialect == "v2":
            connect.headers = True
            connect.cluster = self.info.cluster
        data = encode_route_connect(connect) + self._own_info(dialect == "v2")
        return [Send(state.number, data)]

    def _dialect(self, info: RouteInfo, connect: RouteConnect | None) -> Dialect | None:
        """The dialect to use with the peer; None if our configuration forbids it."""
        is_v2 = bool(info.headers or info.server_name or info.cluster or info.proto >= 2)
        is_v2 = is_v2 or (connect is not None and bool(connect.cluster or connect.headers))
        if connect is None and self.options.protocol == "v1":
            return "v1"  # a dialled peer announces the newest dialect it has; we may choose the older
        dialect: Dialect = "v2" if is_v2 else "v1"
        return dialect if self.options.protocol in ("auto", dialect) else None

    def _same_cluster(self, name: str) -> bool:
        """Whether `name` is our cluster's name. If ours was not configured, any other name replaces it."""
        if name == self.info.cluster:
            return True
        if self.dynamic and name:
            self.info.cluster = name
            self._encoded_info.clear()
            return True
        return False

    def _register(self, state: _Link, info: RouteInfo, dialect: Dialect) -> list[Action]:
        """Register the peer. If it is registered already, one of the two links is closed."""
        actions: list[Action] = []
        configured = state.dialled if _address(state.dialled) in self._configured else ""
        known = self.peers.get(info.server_id)
        if known is not None:
            known.configured = known.configured or configured
            if not self._prefers_new(known, state, info):
                return self._close(state, f"a second route to {info.server_id}")
            old = self._links[known.link]
            configured = configured or known.configured
            old.peer = None
            del self.peers[info.server_id]
            actions += [Lost(known), *self._close(old, f"a better route to {info.server_id}")]
        host, port = _address(info.ip) if info.ip else ("", 0)
        host, port = host or state.remote_host, port or info.port
        peer = Peer(
            server_id=info.server_id,
            name=info.server_name,
            dialect=dialect,
            link=state.number,
            headers=dialect == "v2" and info.headers,
            url=f"nats-route://{bracketed(host)}:{port}/",
            host=info.host,
            port=info.port,
            connect_urls=info.connect_urls,
            ws_connect_urls=info.ws_connect_urls,
            configured=configured,
            ours=bool(info.headwater),
            knows_leafs=info.lnoc,
            leafnode_urls=info.leafnode_urls,
            traces=info.proto >= TRACING,
            dialled=bool(state.dialled),
            leaving=info.ldm,
            imports=info.imports,
            exports=info.exports,
        )
        state.peer = peer
        others = list(self.peers.values())
        self.peers[peer.server_id] = peer
        if state.dialled in self._targets:
            self._targets[state.dialled].busy = False
            self._targets[state.dialled].wait = RETRY_SECONDS
            self._targets[state.dialled].lost = False
        actions.append(Registered(peer))
        actions += self._gossip(peer, info, others)
        if peer.is_open_to_clients:
            actions.append(AnnounceUrls())
        return actions

    def _prefers_new(self, known: Peer, state: _Link, info: RouteInfo) -> bool:
        """Of two links between two Headwater brokers, one dialled by each, keep the one that the smaller id dialled."""
        if not (known.ours and info.headwater) or known.dialled == bool(state.dialled):
            return False
        smaller_is_us = self.info.server_id < info.server_id
        return bool(state.dialled) == smaller_is_us

    def _gossip(self, peer: Peer, info: RouteInfo, others: Iterable[Peer]) -> list[Action]:
        """Announce the new peer's address to the others with the same dialect."""
        actions: list[Action] = []
        for other in others:
            if other.dialect != peer.dialect or info.gossip_mode == 1:
                continue  # v1 and v2 peers cannot dial each other
            gossip = RouteInfo(
                server_id=info.server_id,
                server_name=info.server_name,
                version=info.version,
                host=info.host,
                port=info.port,
                headers=info.headers,
                max_payload=info.max_payload,
                connect_urls=info.connect_urls,
                ws_connect_urls=info.ws_connect_urls,
                ip=peer.url,
                cluster=info.cluster,
                auth_required=info.auth_required,  # real servers send a password only when this is set
                tls_required=info.tls_required,
                tls_verify=info.tls_verify,
            )
            actions.append(Send(other.link, encode_route_info(gossip)))
        return actions

    def _on_later_info(self, peer: Peer, info: RouteInfo) -> list[Action]:
        """A registered peer's INFO: gossip about another server, or an update of the peer, in which its address is
        ignored.

        gnatsd 1.4.1 sends its client INFO on routes by mistake: the same id, but the client port and a client id.
        """
        if info.server_id != peer.server_id:
            return self._on_gossip(info)
        if info.client_id:
            return []
        before = (peer.connect_urls, peer.ws_connect_urls, peer.leafnode_urls, peer.leaving)
        peer.connect_urls, peer.ws_connect_urls, peer.leaving = info.connect_urls, info.ws_connect_urls, info.ldm
        peer.leafnode_urls = info.leafnode_urls
        changed = before != (peer.connect_urls, peer.ws_connect_urls, peer.leafnode_urls, peer.leaving)
        actions: list[Action] = [AnnounceUrls()] if changed else []
        if peer.exports != info.exports:
            peer.exports = info.exports
            actions.append(Repeat(peer))
        return actions

    def _on_gossip(self, info: RouteInfo) -> list[Action]:
        """Dial a broker learned by gossip, unless it is registered, is ourselves, or is being dialled already."""
        url = info.ip
        if not url or not info.server_id or info.server_id in self.peers or info.server_id == self.info.server_id:
            return []
        address = _address(url)
        if not address[0] or address[1] == 0 or address in self._configured:
            return []
        target = self._targets.get(url)
        if target is not None and target.busy and not target.lost:  # a lost peer is back: dial at once
            return []
        self._targets[url] = _Target(tries_left=self.options.connect_retries, busy=True)
        return [Dial(url, 0.0)]

    def _is_reached(self, url: str, target: _Target) -> bool:
        """Whether `url` leads to a registered peer. Such a URL must not be dialled: a second route, dialled by the
        smaller id, would replace the first and lose the messages in flight.
        """
        address = _address(url)
        for peer in self.peers.values():
            if url == peer.configured or (address[1] and address == _address(peer.url)):
                target.busy = False
                if target.tries_left is None:
                    peer.configured = peer.configured or url
                return True
        return False

    def _dial_again(self, url: str, lost: bool = False) -> list[Action]:
        """Schedule the next try, if one is left."""
        target = self._targets.get(url)
        if target is None or self._is_reached(url, target):
            return []
        if target.tries_left is not None:
            if lost:
                target.lost, target.tries_left = True, LOST_TRIES
            if target.tries_left <= 0:
                del self._targets[url]
                return []
            target.tries_left -= 1
        wait = LONGEST_RETRY if target.ourselves else target.wait
        if self.options.connect_backoff or target.lost:
            target.wait = min(target.wait * 2, LONGEST_RETRY)
        target.busy = True
        return [Dial(url, wait + self._jitter() * JITTER)]

    def _refuse(self, state: _Link, text: str, hold: float = 0.0) -> list[Action]:
        return [Send(state.number, encode_error(text)), *self._close(state, text, hold)]

    def _close(self, state: _Link, reason: str, hold: float = 0.0) -> list[Action]:
        if state.finished:
            return []
        state.finished = True
        return [Close(state.number, reason, hold)]


def _place(url: str) -> UrlAddress:
    """The parts of a route URL; empty if it is invalid."""
    try:
        return url_address(url)
    except ValueError:
        return UrlAddress("", None, "", None)


def shown_address(url: str) -> str:
    """`host:port` of a route URL, without its user and password."""
    place = _place(url)
    return f"{bracketed(place.host)}:{place.port or 0}"


def _address(url: str) -> tuple[str, int]:
    """Host, in lower case, and port of a route URL; ("", 0) if it has none."""
    place = _place(url)
    return place.host, place.port or 0
