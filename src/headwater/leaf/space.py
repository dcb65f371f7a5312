"""One account and its leaf nodes: its router, the local interest, and that of the neighbours.

It is created for the first neighbour that joins the account, or for a hub that is dialled for it. Interest in the server's
own subjects (`$SYS.`) is not announced, except for the system account.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.leaf.forwarding import LeafForwarding, LeafTarget
from headwater.leaf.interest import Interest, Line
from headwater.model.short_hash import short_name
from headwater.wire.leaf_lines import LOOP_DETECTION

if TYPE_CHECKING:
    from headwater.exchange.account import Account
    from headwater.exchange.sublist import Subscription

_MARK_LENGTH = 22


class LeafSpace:
    """`tell` sends interest lines to neighbours."""

    def __init__(self, account: "Account", tell: Callable[["LeafSpace", list[Line]], None]) -> None:
        self.account = account
        mark = short_name(os.urandom(_MARK_LENGTH))
        self.interest = Interest(LOOP_DETECTION + mark.encode())
        self.forwarding = LeafForwarding(int.from_bytes(os.urandom(4)))
        self._tell = tell
        self._announced: set[Subscription] = set()
        self._mapped: list[bytes] = []
        # Counts of closed connections: messages that might not cross, either way, and those for groups without members.
        self.refused = 0
        self.missed = 0
        self._kept_back = 0
        account.router.join(self.forwarding, self, leafs=True)
        self.mappings_changed()

    def mappings_changed(self) -> None:
        """Announce interest in the sources of the account's mappings, whether or not their targets have subscribers."""
        before, self._mapped = self._mapped, self.account.mappings.sources if self.account.mappings is not None else []
        for source in self._mapped:
            self._tell(self, self.interest.add(source, b""))
        for source in before:
            self._tell(self, self.interest.remove(source, b""))

    def kept_back(self) -> int:
        """Messages that might not cross to a neighbour."""
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
        self._tell(self, self.interest.add(subject, subscription.queue))

    def unsubscribed(self, subscription: "Subscription") -> None:
        """A subscription has ended."""
        if subscription in self._announced:
            self._announced.discard(subscription)
            self._tell(self, self.interest.remove(subscription.subject, subscription.queue))
