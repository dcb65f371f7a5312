"""One account and its leaf nodes: the account's router, the local interest, and that of the neighbours.

It is created when the first neighbour joins the account, or for a hub that is dialled for it. Interest in the server's
own subjects (`$SYS.`) is announced only for the system account.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.exchange.junction import junction_of, meet
from headwater.leaf.forwarding import LeafForwarding, LeafTarget
from headwater.leaf.interest import Interest, Line
from headwater.model.short_hash import short_name
from headwater.wire.leaf_lines import LOOP_DETECTION

if TYPE_CHECKING:
    from headwater.exchange.account import Account
    from headwater.exchange.sublist import Outlet, Subscription
    from headwater.leaf.interest import Neighbour

_MARK_LENGTH = 22


class LeafSpace:
    """`send` sends interest lines to neighbours."""

    def __init__(self, account: "Account", send: Callable[["LeafSpace", list[Line]], None]) -> None:
        self.account = account
        mark = short_name(os.urandom(_MARK_LENGTH))
        self.interest = Interest(LOOP_DETECTION + mark.encode())
        self.forwarding = LeafForwarding(int.from_bytes(os.urandom(4)))
        self._send = send
        self._announced: set[Subscription] = set()
        self._mapped: list[bytes] = []
        # Counts of closed connections: messages that were not allowed to cross, either way, and messages for groups
        # without members.
        self.refused = 0
        self.missed = 0
        self._kept_back = 0
        account.router.join_leafs(self.forwarding, self)
        meet(account.router)
        self.mappings_changed()

    def mappings_changed(self) -> None:
        """Announce interest in the sources of the account's mappings, whether or not their targets have subscribers."""
        before, self._mapped = self._mapped, self.account.mappings.sources if self.account.mappings is not None else []
        for source in self._mapped:
            self._send(self, self.interest.add(source, b""))
        for source in before:
            self._send(self, self.interest.remove(source, b""))

    def kept_back(self) -> int:
        """Messages that were not allowed to cross to a neighbour."""
        return self._kept_back + sum(target.kept_back for target in self.forwarding.targets.values())

    def count_lost(self, target: LeafTarget | None, refused: int, missed: int) -> None:
        """Add the counts of a closed connection."""
        self.refused += refused
        self.missed += missed
        if target is not None:
            self._kept_back += target.kept_back

    def subscribed(self, subscription: "Subscription") -> None:
        """The router has a new subscription."""
        subject = subscription.subject
        if subject.startswith(b"$SYS.") and not self.account.is_system:
            return
        self._announced.add(subscription)
        self._send(self, self.interest.add(subject, subscription.queue))

    def unsubscribed(self, subscription: "Subscription") -> None:
        """A subscription has ended."""
        if subscription in self._announced:
            self._announced.discard(subscription)
            self._send(self, self.interest.remove(subscription.subject, subscription.queue))

    # ── neighbours ──

    def want(self, neighbour: "Neighbour", subject: bytes, queue: bytes, weight: int) -> None:
        """A neighbour's interest is now `weight`: announce it to the others and, for a spoke, to peers in our cluster."""
        before = neighbour.wants.get((subject, queue), 0)
        self._send(self, self.interest.want(neighbour, subject, queue, weight))
        self._announce_to_peers(neighbour, subject, queue, neighbour.wants.get((subject, queue), 0) - before)

    def leave(self, neighbour: "Neighbour") -> None:
        """A neighbour is gone."""
        wanted = dict(neighbour.wants)
        self._send(self, self.interest.leave(neighbour))
        for (subject, queue), weight in wanted.items():
            self._announce_to_peers(neighbour, subject, queue, -weight)

    def _announce_to_peers(self, neighbour: "Neighbour", subject: bytes, queue: bytes, change: int) -> None:
        junction = junction_of(self.account.router)
        if junction is None or neighbour.is_hub or not change or not self._concerns_peers(neighbour, subject):
            return
        junction.leafs_want(neighbour.origin, subject, queue, change)

    def _concerns_peers(self, neighbour: "Neighbour", subject: bytes) -> bool:
        """Whether to announce interest to peers: not in the server's own subjects, nor in subjects that may not cross."""
        if subject.startswith(b"$SYS.") and not self.account.is_system:
            return False
        return neighbour.sends is None or neighbour.sends.lets(subject)

    # ── peers in our cluster ──

    def leafs_wanted(self) -> list[tuple[bytes, bytes, bytes, int]]:
        """The current interest of the spokes: origin, subject, queue, members."""
        return [
            (each.origin, subject, queue, weight)
            for each, subject, queue, weight in self.interest.of_spokes()
            if self._concerns_peers(each, subject)
        ]

    def peer_wants(self, peer: "Outlet", origin: bytes, subject: bytes, queue: bytes, weight: int) -> None:
        """A peer's interest, or that of its spokes in the cluster `origin`, is now `weight`."""
        if not subject.startswith(b"$SYS.") or self.account.is_system:
            self._send(self, self.interest.peer_wants(peer, origin, subject, queue, weight))

    def peer_left(self, peer: "Outlet") -> None:
        """A peer is gone: remove its interest."""
        self._send(self, self.interest.peer_left(peer))
