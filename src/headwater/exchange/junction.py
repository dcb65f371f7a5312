"""Decides, for an account with both cluster peers and leaf nodes or hubs, which of them get a message or an
announcement.

    a message of     goes to clients here, and to
    a client here    peers, leaf nodes, hubs
    a peer           leaf nodes, but not to those of the cluster that it came from; not to hubs, as the peer has its own link
    a leaf node      peers, and other leaf nodes and hubs, but not to leaf nodes of its cluster
    a hub            leaf nodes, but not to peers, which have their own links

    interest of      is announced to
    clients here     all
    peers            leaf nodes
    leaf nodes       peers, with the name of their cluster; other leaf nodes and hubs
    hubs             leaf nodes

A queue group's message stays in the cluster if it has a member there. Otherwise one member at the leaf nodes here and
those behind peers gets it, each with the same chance. Source: nats-server 2.15.1.

Each kind stores its own interest and writes its own frames (`cluster.forwarding`, `leaf.forwarding`).
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.peer_frames import PeerFrames
    from cython.cimports.headwater.exchange.router import PeerForwarding, Router
    from cython.cimports.headwater.exchange.shown_subject import AddressedMessage
    from cython.cimports.headwater.exchange.sublist import Match, Outlet
    from cython.cimports.headwater.model.xorshift import Xorshift
    from cython.cimports.headwater.wire.message_view import MessageView
else:
    from headwater.exchange.peer_frames import PeerFrames
    from headwater.exchange.router import PeerForwarding, Router
    from headwater.exchange.shown_subject import AddressedMessage
    from headwater.exchange.sublist import Match, Outlet
    from headwater.model.xorshift import Xorshift
    from headwater.wire.message_view import MessageView

from headwater.exchange.sides import LeafsSide, RoutesSide

_NONE: list[bytes] = []


class Junction(PeerForwarding):
    """`routes` and `leafs` forward to the two kinds; `routes_side` and `leafs_side` announce interest to them."""

    def __init__(
        self,
        routes: PeerForwarding,
        leafs: PeerForwarding,
        routes_side: RoutesSide,
        leafs_side: LeafsSide,
        chance: Xorshift,
    ) -> None:
        PeerForwarding.__init__(self)
        self.routes = routes
        self.leafs = leafs
        self._routes_side = routes_side
        self._leafs_side = leafs_side
        self._chance = chance
        self._addressed = AddressedMessage()
        for peer, origin, subject, queue, weight in routes_side.peers_wanted():
            leafs_side.peer_wants(peer, origin, subject, queue, weight)
        for origin, subject, queue, weight in leafs_side.leafs_wanted():
            routes_side.leafs_want(origin, subject, queue, weight)

    # ── interest ──

    def peer_wants(self, peer: Outlet, origin: bytes, subject: bytes, queue: bytes, weight: int) -> None:
        """A peer's interest, or that of its leaf nodes of the cluster `origin`, is now `weight`."""
        self._leafs_side.peer_wants(peer, origin, subject, queue, weight)

    def peer_left(self, peer: Outlet) -> None:
        """A peer is gone: remove its interest."""
        self._leafs_side.peer_left(peer)

    def leafs_want(self, origin: bytes, subject: bytes, queue: bytes, change: int) -> None:
        """The interest of our leaf nodes in the cluster `origin` has changed by `change`."""
        self._routes_side.leafs_want(origin, subject, queue, change)

    def has_interest(self, subject: bytes) -> cython.bint:
        return self.routes.has_interest(subject) or self.leafs.has_interest(subject)

    def pending(self, subject: bytes) -> cython.Py_ssize_t:
        return max(self.routes.pending(subject), self.leafs.pending(subject))

    # ── messages from here ──

    def route(self, router: Router, publisher: Outlet | None, match: Match, message: MessageView) -> cython.int:
        """Route one message. Returns local deliveries plus frames sent."""
        frames: cython.int = self._send(router, None, b"", match, None, message)
        if not match.plain and not match.groups:
            return frames
        return frames + router.route_here(publisher, match, True, message, self.elsewhere, False)

    def route_under(self, router: Router, inbox: bytes, match: Match, message: MessageView) -> cython.int:
        """Route a message to `inbox` that shows another subject; see `shown_subject`."""
        frames: cython.int = self._send(router, None, b"", match, None, self._addressed.to(inbox, message))
        if not match.plain and not match.groups:
            return frames
        return frames + router.route_under_here(inbox, match, message, self.elsewhere, False)

    def route_run(
        self,
        router: Router,
        publisher: Outlet | None,
        match: Match,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """Route a run. Returns local receivers plus frames. If no group has to be chosen for, each gets it in one copy."""
        receivers: cython.int = 0
        if match.groups or self._has_groups(message):
            for _ in range(count):
                receivers += self.route(router, publisher, match, message)
                message.advance(stride)
            return receivers
        receivers = self.spread_run(router, None, b"", message, stride, count)
        return receivers + router.route_run_here(publisher, match, message, stride, count)

    # ── messages from elsewhere ──

    def from_leaf(
        self,
        router: Router,
        source: PeerFrames,
        origin: bytes,
        match: Match,
        queues: list[bytes],
        message: MessageView,
    ) -> cython.int:
        if origin:
            return self._send(router, source, origin, match, queues, message)
        self.elsewhere = None
        return self.leafs.spread(router, source, b"", match, queues, match.queues, message)

    def from_route(
        self, router: Router, origin: bytes, match: Match, queues: list[bytes], message: MessageView
    ) -> cython.int:
        frames: cython.int = self.leafs.spread(router, None, origin, match, queues, match.queues, message)
        self.elsewhere = self.leafs.elsewhere
        return frames

    def spread_run(
        self,
        router: Router,
        source: PeerFrames | None,
        origin: bytes,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """Send a run of a local client, or (with an `origin`) of a leaf node. No group may have interest."""
        frames: cython.int = self.leafs.spread_run(router, source, b"", message, stride, count)
        if source is None or origin:
            frames += self.routes.spread_run(router, source, origin, message, stride, count)
        return frames

    def far(self, message: MessageView) -> list[bytes]:
        """The names of the groups with interest elsewhere than here."""
        return [*self.routes.near(message), *self.routes.far(message), *self.leafs.far(message)]

    def _has_groups(self, message: MessageView) -> cython.bint:
        return bool(self.leafs.far(message) or self.routes.near(message) or self.routes.far(message))

    def _send(
        self,
        router: Router,
        source: PeerFrames | None,
        origin: bytes,
        match: Match,
        queues: list[bytes] | None,
        message: MessageView,
    ) -> cython.int:
        """Send a message of a local client or a leaf node; returns the number of frames, and sets `elsewhere`."""
        groups: list[bytes] = self.leafs.far(message)
        of_leafs: list[bytes] = _NONE  # the groups that our leaf nodes serve
        of_others: list[bytes] = _NONE  # the groups that others serve
        if groups:
            near: list[bytes] = self.routes.near(message)
            far: list[bytes] = self.routes.far(message)
            of_leafs = []
            of_others = []
            for queue in groups:
                if (
                    queue in match.queues
                    or queue in near
                    or not self._prefers_leafs(queue, far, source, origin, message)
                ):
                    of_others.append(queue)
                else:
                    of_leafs.append(queue)
        frames: cython.int = self.routes.spread(router, source, origin, match, queues, of_leafs, message)
        self.elsewhere = self.routes.elsewhere
        return frames + self.leafs.spread(router, source, b"", match, queues, of_others, message)

    def _prefers_leafs(
        self, queue: bytes, far: list[bytes], source: PeerFrames | None, origin: bytes, message: MessageView
    ) -> cython.bint:
        """Whether one of our leaf nodes gets the message for a group, rather than one behind a peer."""
        if queue not in far:
            return True
        ours: cython.Py_ssize_t = self.leafs.weigh(queue, source, b"", message)
        theirs: cython.Py_ssize_t = self.routes.weigh(queue, source, origin, message)
        return ours > 0 and (theirs == 0 or self._chance.below(ours + theirs) < ours)


def meet(router: Router) -> None:
    """Make the junction of `router` once it has joined both a cluster and leaf nodes."""
    routes, leafs = router.routes_side, router.leafs_side
    if routes is not None and leafs is not None and router.junction is None:
        router.cross(Junction(routes.forwarding, leafs.forwarding, routes, leafs, router.chance))


def junction_of(router: Router) -> Junction | None:
    """The junction of `router`; None unless it has both kinds of peers."""
    return router.junction if isinstance(router.junction, Junction) else None
