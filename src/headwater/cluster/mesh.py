"""The decisions of the full mesh: which brokers are dialled and admitted, which of two connections stays, gossip. Pure.

Events go in (a connection was accepted or made, INFO, CONNECT, -ERR, a loss), actions come out (send, close, dial,
registered, lost, tell clients); `service.py` does them. Connections ("links") are numbers given by the caller.

    accepted ─▶ we send INFO ─▶ CONNECT ─▶ INFO ─▶ registered          an accepted peer proves itself
    dialled  ─▶ INFO ─▶ we send CONNECT, INFO ─▶ registered            a dialled one has introduced itself already

Rules, from the cluster protocol document and from what gnatsd 1.4.1 and nats-server 2.15.1 do:

* A peer counts once both documents have been read; its interest counts from then on, and is gone with its link.
* Registering a peer tells every other peer of it (gossip), and that is how one seed address makes a full mesh.
* Configured routes are dialled for ever; those learned by gossip `connect_retries` times more.
* A lost peer that gossip brought is looked for by who had dialled it, ever more seldom, for some ten minutes. Real servers
  do not: when only the route between two of them fails, they stay apart until something else makes a third one gossip.
* A second link to the same server id is closed in silence. When two brokers of ours dial each other at once, both keep
  the link that the smaller id dialled; real servers just try again, which takes a second.
* A peer that is ourselves, bears our name or another cluster's name, is closed; a name that was made up gives way.
* Nothing "soft" is ever sent: a real peer closes the route at any -ERR.
* We wait at least a second, and some jitter, before we dial the same place again, whatever closed it. Where no broker
  listened yet when we started we try sooner at first: brokers that start together need not wait so long for each other.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from headwater.exchange.auth.passwords import is_correct, is_hashed
from headwater.model.record import Record
from headwater.net.address import UrlAddress, bracketed, url_address
from headwater.wire.error_texts import encode_error
from headwater.wire.peer_documents import SubjectLists
from headwater.wire.route_lines import (
    RouteConnect,
    RouteInfo,
    encode_route_connect,
    encode_route_info,
)

Protocol = Literal["v1", "v2", "auto"]
Dialect = Literal["v1", "v2"]

FIRST_RETRY = 0.01  # before a configured route that did not answer is tried again; grows up to the second below
FIRST_GROWTH = 1.5  # so that brokers that start together wait for at most half as long again as the last of them takes
RETRY_SECONDS = 1.0  # between two tries of one address; gnatsd and nats-server alike
LONGEST_RETRY = 30.0  # where back-off is wanted, it doubles up to here
LOST_TRIES = (
    24  # 1, 2, 4, 8, 16 and then 30 seconds apart: ten minutes, until a peer that gossip brought counts as gone
)
JITTER = 0.1  # seconds, at most
_OF_V1 = (
    "server_id", "version", "host", "port", "max_payload", "connect_urls", "auth_required", "tls_required", "ip", "ldm",
    "headwater", "imports", "exports",
)  # fmt: skip
"""What v1 has of INFO."""
AUTHORIZATION = "Authorization Violation"
NOT_A_ROUTE = "attempted to connect to route port"


class Send(NamedTuple):
    """Write `data` on `link`."""

    link: int
    data: bytes


class Close(NamedTuple):
    """Write what was sent, then close. `hold`: seconds to wait before, so that an impatient peer cannot storm us."""

    link: int
    reason: str
    hold: float = 0.0


class Dial(NamedTuple):
    """Connect to `url` in `delay` seconds."""

    url: str
    delay: float


class Registered(NamedTuple):
    """`peer` is part of the cluster: send it all local interest."""

    peer: "Peer"


class Repeat(NamedTuple):
    """`peer` accepts other subscriptions than it did: send it all local interest again, what it has is no news to it."""

    peer: "Peer"


class Lost(NamedTuple):
    """`peer` is not part of the cluster any more: forget its interest."""

    peer: "Peer"


class TellClients(NamedTuple):
    """The addresses that clients may go to have changed; see `Mesh.client_urls`."""


Action = Send | Close | Dial | Registered | Repeat | Lost | TellClients


class Peer(Record, frozen=False):
    """Another broker. `url`: where others can dial it. `configured`: the route of ours that led here, or ""."""

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
    ours: bool = False  # it is a Headwater broker too
    dialled: bool = False
    leaving: bool = False  # lame duck
    imports: SubjectLists | None = None  # which subscriptions of its clients it announces to us
    exports: SubjectLists | None = None  # which subscriptions of ours it accepts

    @property
    def is_open_to_clients(self) -> bool:
        """Whether clients get its addresses."""
        return bool(self.connect_urls or self.ws_connect_urls) and not self.leaving


class _Link(Record, frozen=False):
    """A connection before it is a peer, and after."""

    number: int
    remote_host: str
    dialled: str = ""  # the URL
    connect: RouteConnect | None = None
    peer: Peer | None = None
    finished: bool = False


class _Target(Record, frozen=False):
    """An address that we dial. `tries_left` is None for a configured route: for ever."""

    tries_left: int | None
    wait: float = RETRY_SECONDS
    first_wait: float = FIRST_RETRY  # while it has not answered once; for configured routes
    busy: bool = False  # being dialled, or waiting to be
    lost: bool = False  # it was a peer


class MeshOptions(Record, secret=("routes", "password")):
    """What this broker is in its cluster. `info`: its own INFO, client URLs included.

    `user`, `password`: what peers must show; also what we show to addresses that came by gossip.
    `name_is_dynamic`: the cluster's name is not configured here, and the first that a peer has configured is taken.
    """

    info: RouteInfo
    protocol: Protocol = "v2"
    routes: tuple[str, ...] = ()
    user: str = ""
    password: str = ""
    name_is_dynamic: bool = False
    connect_retries: int = 0
    connect_backoff: bool = False
    advertise: bool = True  # whether clients get this broker's and its peers' addresses
    tls_required: bool = False


class Mesh:
    """`jitter()` gives a number in 0..1."""

    def __init__(self, options: MeshOptions, jitter: Callable[[], float]) -> None:
        self.options = options
        self.info = options.info
        self.dynamic = options.name_is_dynamic
        self.peers: dict[str, Peer] = {}
        self._said: dict[bool, bytes] = {}  # our INFO as it is, in v2 and in v1
        self._links: dict[int, _Link] = {}
        self._targets: dict[str, _Target] = {}
        self._jitter = jitter
        self._configured = {_address(url): url for url in options.routes}

    # views

    def client_urls(self) -> tuple[str, ...]:
        """Where clients may go in this cluster besides here, in a stable order."""
        return self._advertised(peer.connect_urls for peer in self.peers.values() if not peer.leaving)

    def websocket_urls(self) -> tuple[str, ...]:
        """The same for clients that use WebSocket."""
        return self._advertised(peer.ws_connect_urls for peer in self.peers.values() if not peer.leaving)

    def _advertised(self, found: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(url for urls in found for url in urls)) if self.options.advertise else ()

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
        """Somebody connected to our route port."""
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
        """Whether a dial that waited is still to be done: its peer may have come to us meanwhile."""
        target = self._targets.get(url)
        return target is not None and not self._is_reached(url, target)

    def on_connect(self, link: int, connect: RouteConnect, known: bool | None = None) -> list[Action]:
        """CONNECT: the dialling peer names and authenticates itself. `known`: the verdict on its password, when it was found
        elsewhere.
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
        """Anything else, before the peer is registered: refused when it has not shown CONNECT."""
        state = self._links.get(link)
        if state is None or state.finished or state.dialled or state.connect is not None:
            return []
        return self._refuse(state, AUTHORIZATION)

    def on_error(self, link: int, text: str) -> list[Action]:
        """-ERR: the peer has closed, or will."""
        state = self._links.get(link)
        return self._close(state, f"the peer says {text!r}") if state is not None else []

    def lost(self, link: int) -> Iterator[Action]:
        """The connection is gone, by either side. Actions are decided as they are taken: clients wait for the first."""
        state = self._links.pop(link, None)
        if state is None:
            return
        peer = state.peer
        if peer is not None and self.peers.get(peer.server_id) is peer:
            del self.peers[peer.server_id]
            if peer.is_open_to_clients:
                yield TellClients()
            yield Lost(peer)
        again = (peer.configured if peer is not None else "") or state.dialled
        if again:
            yield from self._dial_again(again, lost=peer is not None)

    def leave(self) -> list[Action]:
        """Lame duck: the peers get an INFO, so that they announce this broker to no more clients."""
        self.info.ldm = True
        self._said.clear()
        return [Send(peer.link, self._own_info(peer.dialect == "v2")) for peer in self.peers.values()]

    # parts

    def _own_info(self, in_v2: bool) -> bytes:
        """Our INFO, written once. That of v1 has nothing of v2 in it, so that no peer takes us for a v2 server."""
        if in_v2 not in self._said:
            info = self.info
            told = info if in_v2 else RouteInfo(**{name: getattr(info, name) for name in _OF_V1})
            self._said[in_v2] = encode_route_info(told)
        return self._said[in_v2]

    def _introduce(self, state: _Link, dialect: Dialect) -> list[Action]:
        """What the dialling side sends: CONNECT, with the credentials of the URL or the cluster's own, then INFO."""
        place = _place(state.dialled)
        if not place.user and is_hashed(self.options.password):
            # Gossip brought the address, and a hash proves nothing: what a configured route shows does.
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
        """The peer's dialect, if our configuration allows it."""
        said = bool(info.headers or info.server_name or info.cluster or info.proto >= 2)
        said = said or (connect is not None and bool(connect.cluster or connect.headers))
        if connect is None and self.options.protocol == "v1":
            return "v1"  # a peer that we dialled announces the newest dialect that it has; the choice is ours
        dialect: Dialect = "v2" if said else "v1"
        return dialect if self.options.protocol in ("auto", dialect) else None

    def _same_cluster(self, name: str) -> bool:
        """Whether `name` is our cluster's. A name of ours that was not configured gives way to any other."""
        if name == self.info.cluster:
            return True
        if self.dynamic and name:
            self.info.cluster = name
            self._said.clear()
            return True
        return False

    def _register(self, state: _Link, info: RouteInfo, dialect: Dialect) -> list[Action]:
        """The peer is one of us, unless it is already."""
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
        host, told = _address(info.ip) if info.ip else ("", 0)
        host, port = host or state.remote_host, told or info.port
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
            actions.append(TellClients())
        return actions

    def _prefers_new(self, known: Peer, state: _Link, info: RouteInfo) -> bool:
        """Of two links between two brokers of ours, one dialled by each, the smaller id's stays."""
        if not (known.ours and info.headwater) or known.dialled == bool(state.dialled):
            return False
        smaller_is_us = self.info.server_id < info.server_id
        return bool(state.dialled) == smaller_is_us

    def _gossip(self, peer: Peer, info: RouteInfo, others: Iterable[Peer]) -> list[Action]:
        """Tell the others where to dial the new one, each in its own dialect."""
        actions: list[Action] = []
        for other in others:
            if other.dialect != peer.dialect or info.gossip_mode == 1:
                continue  # a peer gets no address that its generation cannot dial
            told = RouteInfo(
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
                auth_required=info.auth_required,  # real servers send their password only where this is set
                tls_required=info.tls_required,
                tls_verify=info.tls_verify,
            )
            actions.append(Send(other.link, encode_route_info(told)))
        return actions

    def _on_later_info(self, peer: Peer, info: RouteInfo) -> list[Action]:
        """Gossip when it is about another server; else an update, of which the address is never believed.

        gnatsd 1.4.1 sends its INFO for clients here by mistake: the same id, the clients' port, and a client id.
        """
        if info.server_id != peer.server_id:
            return self._on_gossip(info)
        if info.client_id:
            return []
        before = (peer.connect_urls, peer.ws_connect_urls, peer.leaving)
        peer.connect_urls, peer.ws_connect_urls, peer.leaving = info.connect_urls, info.ws_connect_urls, info.ldm
        changed = before != (peer.connect_urls, peer.ws_connect_urls, peer.leaving)
        actions: list[Action] = [TellClients()] if changed else []
        if peer.exports != info.exports:
            peer.exports = info.exports
            actions.append(Repeat(peer))
        return actions

    def _on_gossip(self, info: RouteInfo) -> list[Action]:
        """Dial a broker that a peer gossips of, unless we know it, are it, or are dialling it already."""
        url = info.ip
        if not url or not info.server_id or info.server_id in self.peers or info.server_id == self.info.server_id:
            return []
        address = _address(url)
        if not address[0] or address[1] == 0 or address in self._configured:
            return []
        target = self._targets.get(url)
        if target is not None and target.busy and not target.lost:  # one that was lost is back: no need to wait
            return []
        self._targets[url] = _Target(tries_left=self.options.connect_retries, busy=True)
        return [Dial(url, 0.0)]

    def _is_reached(self, url: str, target: _Target) -> bool:
        """Whether a registered peer is the one that `url` leads to. Then it need not be dialled as long as it is one; a
        second route to it would take the place of the first when the smaller id dials it, and lose what is under way.
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
        """The next try, if there is one."""
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
        wait = target.wait
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
    """The parts of a route URL; nothing when it is none."""
    try:
        return url_address(url)
    except ValueError:
        return UrlAddress("", None, "", None)


def _address(url: str) -> tuple[str, int]:
    """Host, in lower case, and port of a route URL; ("", 0) when it has none."""
    place = _place(url)
    return place.host, place.port or 0
