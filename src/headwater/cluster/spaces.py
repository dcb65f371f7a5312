"""This broker's accounts in the cluster: each has its router, the interest of local clients, and that of the peers.

    peer ──interest──▶ Spaces.take ─▶ Forwarding      (for an unknown account: kept in Unclaimed)
    client here subscribes ─▶ Space.subscribed ─▶ announce(space, news)

`cluster.permissions` apply here: a peer's interest in subjects that are not exported is ignored, and local interest in
subjects that are not imported is not announced.
"""

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headwater.cluster.arrivals import Arrivals
from headwater.cluster.forwarding import Forwarding
from headwater.cluster.local_interest import InterestChange, LocalInterest
from headwater.cluster.route_permissions import Filter
from headwater.cluster.unclaimed import Unclaimed
from headwater.exchange.account import Account
from headwater.exchange.junction import junction_of, meet
from headwater.exchange.sublist import Outlet, Subscription
from headwater.options.cluster import ClusterOptions
from headwater.wire.route_lines import RouteInfo

if TYPE_CHECKING:
    from headwater.cluster.mesh import Peer
    from headwater.cluster.route import Interest

JETSTREAM_API = b"$JS.API.>"


class Space:
    """One account in the cluster: its router, the interest of local clients, and that of the peers."""

    def __init__(
        self, account: Account, announce: Callable[["Space", InterestChange], None], imports: Filter, exports: Filter
    ) -> None:
        name, router = account.name.encode(), account.router
        self.account = account
        self.router = router
        self.takes = imports.lets  # whether peers may send messages on a subject
        self.wanted = LocalInterest(name, imports.lets)
        self.forwarding: Forwarding = Forwarding(name, int.from_bytes(os.urandom(4)))
        self.forwarding.withheld = exports.denied
        self.arrivals = Arrivals(router, self.forwarding, self.wanted.has_departed, self.wanted.queue_of)
        self._announce = announce

    def join(self) -> None:
        """Connect the router: it now forwards to the peers, and reports changes of interest."""
        self.router.join(self.forwarding, self)
        meet(self.router)

    def subscribed(self, subscription: Subscription) -> None:
        """The router has a new subscription."""
        self._announce(self, self.wanted.add(subscription))

    def unsubscribed(self, subscription: Subscription) -> None:
        """A subscription has ended."""
        self._announce(self, self.wanted.remove(subscription))

    def leafs_want(self, origin: bytes, subject: bytes, queue: bytes, change: int) -> None:
        """The interest of our leaf nodes has changed."""
        self._announce(self, self.wanted.add_of_leafs(origin, subject, queue, change))

    def peers_wanted(self) -> list[tuple[Outlet, bytes, bytes, bytes, int]]:
        """The current interest of the peers: peer, origin, subject, queue, members."""
        return self.forwarding.entries()


class Spaces:
    """All accounts, by name. `announce` sends changes of local interest to the peers."""

    def __init__(self, options: ClusterOptions, announce: Callable[[Space, InterestChange], None]) -> None:
        self._imports, self._exports = Filter(options.imports), Filter(options.exports)
        self._announce = announce
        self._spaces: dict[bytes, Space] = {}
        self._unclaimed = Unclaimed()
        self.has_leafs = False  # leaf nodes are configured here

    def add(self, account: Account) -> Space:
        """Create the space of an account; `join` connects its router later."""
        name = account.name.encode()
        space = self._spaces[name] = Space(account, self._announce, self._imports, self._exports)
        return space

    def join(self) -> None:
        """Connect the routers: they now forward to the peers, and report changes of interest."""
        for space in self:
            space.join()

    def declare(self, info: RouteInfo) -> None:
        """Put the permissions into INFO."""
        info.imports, info.exports = self._imports.announced(), self._exports.announced()

    def __iter__(self) -> Iterator[Space]:
        return iter(self._spaces.values())

    def named(self) -> list[tuple[str, Space]]:
        """Every space with its account's name."""
        return [(name.decode(), space) for name, space in self._spaces.items()]

    def find(self, account: bytes) -> Space | None:
        """The space of an account; that of the first account if `account` is empty (dialect v1), None for an unknown
        account.
        """
        return self._spaces.get(account) if account else self.first()

    def first(self) -> Space:
        """The space of the only account that dialect v1 knows."""
        return next(iter(self._spaces.values()))

    # interest of peers

    def keep(self, route: int, interest: "Interest") -> bool:
        """Keep interest in an unknown account, which a reload may add. False if the peer exceeds the limit."""
        return self._unclaimed.note(route, interest)

    def take(self, space: Space, outlet: Outlet, peer: "Peer | None", interest: "Interest") -> bool:
        """Apply interest of a peer; False for a subject that is not exported, and for a peer that is gone."""
        subject, number = interest.subject, interest.number
        if subject and not self._exports.lets(subject):
            return False
        if not space.forwarding.has_peer(outlet):
            if peer is None or outlet.closed:
                return False
            space.forwarding.add_peer(outlet, peer.dialect == "v1", peer.ours, peer.knows_leafs)
        if not interest.token:
            space.forwarding.want(outlet, subject, interest.queue, number, interest.origin)
            junction = junction_of(space.router)
            if junction is not None:
                junction.peer_wants(outlet, interest.origin, subject, interest.queue, number)
        elif subject:
            space.forwarding.want_one(outlet, subject, interest.queue, interest.token)
        else:
            space.forwarding.limit_one(outlet, interest.token, number)
        if subject and number and space.router.awaited:
            space.router.awaited.interest_arrived(subject)
        return True

    def claim(self, account: Account) -> list[tuple[int, "Interest"]]:
        """Remove and return the kept interest in an account that was just added, by route."""
        return self._unclaimed.claim(account.name.encode())

    def forget(self, route: int) -> None:
        """Drop the kept interest of a closed route."""
        self._unclaimed.forget(route)

    def drop_peer(self, outlet: Outlet) -> None:
        """Remove all interest of a peer."""
        for space in self:
            space.forwarding.drop_peer(outlet)
            junction = junction_of(space.router)
            if junction is not None:
                junction.peer_left(outlet)

    def wants_of(self, outlet: Outlet) -> list[bytes]:
        """The subjects that a peer has interest in, in all accounts."""
        return [subject for space in self for subject in space.forwarding.wants_of(outlet)]

    # interest of clients here

    def lines(self, peer: "Peer", *, wanted: bool) -> bytes:
        """The ops that announce all interest of local clients and leaf nodes, or (`wanted` False) withdraw it."""
        if peer.dialect == "v2":
            lines = [line for space in self for line in (space.wanted.all_v2() if wanted else space.wanted.none_v2())]
            if peer.knows_leafs:
                lines += [line for space in self for line in space.wanted.all_of_leafs(wanted=wanted)]
            return b"".join(lines)
        local = self.first().wanted
        return b"".join(local.all_v1() if wanted else local.none_v1())

    def change_line(self, space: Space, change: InterestChange, peer: "Peer") -> bytes:
        """The op for one change; b"" if the peer's dialect does not announce it."""
        if peer.dialect == "v2":
            return change.leaf if change.leaf and peer.knows_leafs else change.v2
        return change.v1 if space is self.first() else b""

    @property
    def serves_jetstream(self) -> bool:
        """Whether this broker serves the JetStream API in some account."""
        return any(space.wanted.wants(JETSTREAM_API) for space in self)

    def forget_departed(self) -> None:
        """Forget queue group members that left long ago."""
        for space in self:
            space.wanted.forget_departed()
