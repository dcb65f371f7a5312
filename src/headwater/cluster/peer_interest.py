"""What the peers of one account want, and where each of them is reached.

It is held in a `Sublist` of its own, so that brokers without a cluster never look at it, and what came over a route can
never find a way onto another (one hop). In v2 a peer names a subject once, and a queue group with its number of members:
an entry for each. In v1 every subscription of its clients is one, under a token.
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

from headwater.exchange.auth.permissions import SubjectSet


class PeerInterest(PeerForwarding):
    """`account`: its name, as frames bear it."""

    def __init__(self, account: bytes) -> None:
        self.account = account
        self.interest = Sublist()
        self.withheld: SubjectSet | None = None  # what no peer gets, though it may want more than that
        self.targets: dict[Outlet, Target] = {}
        self._known: dict[Outlet, dict[tuple[bytes, bytes], list[Subscription]]] = {}

    # ── peers ──

    def add_peer(self, outlet: Outlet, in_v1: bool, ours: bool = False) -> None:
        self.targets[outlet] = Target(outlet, in_v1, self.account, ours)
        self._known[outlet] = {}

    def has_peer(self, outlet: Outlet) -> bool:
        """Whether it is known here."""
        return outlet in self.targets

    def drop_peer(self, outlet: Outlet) -> None:
        """It is gone: so is all that it wanted."""
        for subscriptions in self._known.pop(outlet, {}).values():
            for subscription in subscriptions:
                self.interest.remove(subscription)
        self.targets.pop(outlet, None)

    # ── what they want ──

    def want(self, outlet: Outlet, subject: bytes, queue: bytes, weight: int) -> None:
        """RS+: `weight` members of a queue group, an entry for each; 1 for plain interest."""
        known = self._known.get(outlet)
        if known is None:
            return
        entries = known.setdefault((subject, queue), [])
        while len(entries) > weight:
            self.interest.remove(entries.pop())
        while len(entries) < weight:
            entries.append(Subscription(subject, queue, b"", outlet))
            self.interest.insert(entries[len(entries) - 1])
        if not entries:
            del known[subject, queue]

    def want_one(self, outlet: Outlet, subject: bytes, queue: bytes, token: bytes) -> None:
        """v1's SUB: one subscription of one client of the peer. A token that is in use is left alone."""
        known = self._known.get(outlet)
        if known is not None and (b"", token) not in known:
            subscription = Subscription(subject, queue, token, outlet)
            known[b"", token] = [subscription]
            self.interest.insert(subscription)

    def limit_one(self, outlet: Outlet, token: bytes, maximum: int) -> None:
        """v1's UNSUB: over now, or after so many messages on its token since its SUB."""
        for subscription in self._known.get(outlet, {}).get((b"", token), ()):
            if maximum > subscription.delivered:
                subscription.maximum = maximum
                self.interest.generation += 1  # what was worked out for it before knew no limit
            else:
                self.end_one(subscription)

    def end_one(self, subscription: Subscription) -> None:
        """A subscription of v1 is over."""
        self.interest.remove(subscription)
        outlet: Outlet | None = subscription.outlet
        if outlet is not None:
            self._known.get(outlet, {}).pop((b"", subscription.sid), None)

    # ── views ──

    def has_interest(self, subject: bytes) -> cython.bint:
        goes: cython.bint = self.withheld is None or not self.withheld.has(subject)
        return goes and bool(self.interest.has_interest(subject))

    def pending(self, subject: bytes) -> cython.Py_ssize_t:
        match: Match = self.interest.match(subject)
        most: cython.Py_ssize_t = 0
        members: list[Subscription]
        for members in [match.firsts(), *match.groups]:
            for subscription in members:
                outlet: Outlet | None = subscription.outlet
                if outlet is not None:
                    most = max(most, outlet.link.pending)
        return most

    def wants_of(self, outlet: Outlet) -> list[bytes]:
        """The subject of each entry that one peer has announced; of v2 a line each for subject and group."""
        return [entries[0].subject for entries in self._known.get(outlet, {}).values()]

    def peers_want(self) -> list[tuple[bytes, bytes, int]]:
        """Every (subject, queue, number) that peers have announced, sorted: of a group its members, else the peers."""
        members: dict[tuple[bytes, bytes], int] = {}
        peers: dict[tuple[bytes, bytes], set[Outlet]] = {}
        for outlet, known in self._known.items():
            for entries in known.values():
                key = (entries[0].subject, entries[0].queue)
                members[key] = members.get(key, 0) + len(entries)
                peers.setdefault(key, set()).add(outlet)
        return sorted((*key, count if key[1] else len(peers[key])) for key, count in members.items())
