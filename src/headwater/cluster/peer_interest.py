"""The interest of the peers in one account, and the outlet of each peer.

It has its own `Sublist`, so that brokers without a cluster never consult it, and messages from one route cannot go to
another (one hop). A v2 peer announces a subject once, and a queue group with its member count: one entry per member. A
v1 peer announces every subscription of its clients, each with a token.

The interest of a v2 peer's leaf nodes is announced with the name of their cluster (`origin`). Their queue groups are
stored separately (`behind`), because members in our own cluster come first.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.cluster.frames import Target
    from cython.cimports.headwater.exchange.router import PeerForwarding
    from cython.cimports.headwater.exchange.sublist import Match, Outlet, Sublist, Subscription
else:
    from headwater.cluster.frames import Target
    from headwater.exchange.router import PeerForwarding
    from headwater.exchange.sublist import Match, Outlet, Sublist, Subscription

from headwater.authorization.permissions import SubjectSet


class PeerInterest(PeerForwarding):
    """`account`: the account's name, as written in frames."""

    def __init__(self, account: bytes) -> None:
        PeerForwarding.__init__(self)
        self.account = account
        self.interest = Sublist(as_one=True)
        self.behind = Sublist(as_one=True)
        self.origins: dict[Subscription, bytes] = {}  # by entry of a leaf node
        self.withheld: SubjectSet | None = None  # never sent to peers, even when a wider subscription covers it
        self.targets: dict[Outlet, Target] = {}
        self._known: dict[Outlet, dict[tuple[bytes, ...], list[Subscription]]] = {}

    # ── peers ──

    def add_peer(self, outlet: Outlet, in_v1: bool, ours: bool = False, knows_leafs: bool = False) -> None:
        self.targets[outlet] = Target(outlet, in_v1, self.account, ours, knows_leafs)
        self._known[outlet] = {}

    def has_peer(self, outlet: Outlet) -> bool:
        """Whether `outlet` belongs to a peer."""
        return outlet in self.targets

    def drop_peer(self, outlet: Outlet) -> None:
        """Remove a peer and its interest."""
        for subscriptions in self._known.pop(outlet, {}).values():
            for subscription in subscriptions:
                self._remove(subscription)
        self.targets.pop(outlet, None)

    # ── their interest ──

    def want(self, outlet: Outlet, subject: bytes, queue: bytes, weight: int, origin: bytes = b"") -> None:
        """RS+: set the number of queue group members, one entry each; `weight` is 1 for plain interest. LS+: the same
        for leaf nodes in the cluster `origin`.
        """
        known = self._known.get(outlet)
        if known is None:
            return
        key = (subject, queue, origin) if origin else (subject, queue)
        entries = known.setdefault(key, [])
        while len(entries) > weight:
            self._remove(entries.pop())
        while len(entries) < weight:
            entry = Subscription(subject, queue, b"", outlet)
            entries.append(entry)
            if origin:
                self.origins[entry] = origin
            (self.behind if origin and queue else self.interest).insert(entry)
        if not entries:
            del known[key]

    def _remove(self, entry: Subscription) -> None:
        origin = self.origins.pop(entry, b"")
        (self.behind if origin and entry.queue else self.interest).remove(entry)

    def want_one(self, outlet: Outlet, subject: bytes, queue: bytes, token: bytes) -> None:
        """v1's SUB: add one subscription of one client of the peer. A token in use keeps its subscription."""
        known = self._known.get(outlet)
        if known is not None and (b"", token) not in known:
            subscription = Subscription(subject, queue, token, outlet)
            known[b"", token] = [subscription]
            self.interest.insert(subscription)

    def limit_one(self, outlet: Outlet, token: bytes, maximum: int) -> None:
        """v1's UNSUB: end the subscription now, or once `maximum` messages have been sent to its token since its SUB."""
        for subscription in self._known.get(outlet, {}).get((b"", token), ()):
            if maximum > subscription.delivered:
                subscription.maximum = maximum
                self.interest.renew()  # existing plans lack the limit
            else:
                self.end_one(subscription)

    def end_one(self, subscription: Subscription) -> None:
        """Remove a v1 subscription."""
        self.interest.remove(subscription)
        outlet: Outlet | None = subscription.outlet
        if outlet is not None:
            self._known.get(outlet, {}).pop((b"", subscription.sid), None)

    # ── views ──

    def has_interest(self, subject: bytes) -> cython.bint:
        goes: cython.bint = self.withheld is None or not self.withheld.has(subject)
        return goes and bool(self.interest.has_interest(subject) or self.behind.has_interest(subject))

    def pending(self, subject: bytes) -> cython.Py_ssize_t:
        match: Match = self.interest.match(subject)
        most: cython.Py_ssize_t = 0
        members: list[Subscription]
        for members in [match.firsts(), *match.groups, *self.behind.match(subject).groups]:
            for subscription in members:
                outlet: Outlet | None = subscription.outlet
                if outlet is not None:
                    most = max(most, outlet.link.pending)
        return most

    def wants_of(self, outlet: Outlet) -> list[bytes]:
        """The subject of each entry of one peer; for v2 one per subject and group."""
        return [entries[0].subject for entries in self._known.get(outlet, {}).values()]

    def entries(self) -> list[tuple[Outlet, bytes, bytes, bytes, int]]:
        """All interest announced by v2 peers: peer, origin, subject, queue, members."""
        return [
            (outlet, self.origins.get(found[0], b""), found[0].subject, found[0].queue, len(found))
            for outlet, known in self._known.items()
            for found in known.values()
        ]
