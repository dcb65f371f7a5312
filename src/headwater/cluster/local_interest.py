"""The interest of local clients, as announced to peers. Pure: takes changes, and returns protocol lines.

v2 announces counts: one line for the first subscription to a subject and one for the end of the last, and for a queue
group a line at every change of its member count. v1 has a line for every subscription, each with its own token:

    RSID:<number>:1     QRSID:<number>:1 for a member of a queue group

The protocol document builds the token from the client's number and sid, which peers split wrongly when the sid contains a
colon; our tokens use a number that is never reused.

Ended queue subscriptions are kept for a while (`forget_departed` removes them, in two steps): messages to them may
still be in flight, and must reach another member.

Interest of our leaf nodes is announced with the name of their cluster (LS+), to peers that support it; v1 does not.

Subjects below `_SYS.` belong to the server and are never announced, nor are subjects that `imports` does not allow.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from headwater.exchange.sublist import Subscription
from headwater.wire.route_lines import (
    interest_v2,
    leaf_interest_v2,
    no_interest_v2,
    subscribe_v1,
    unsubscribe_v1,
)


class InterestChange(NamedTuple):
    """One change in both dialects; b"" if a dialect does not announce it."""

    v1: bytes
    v2: bytes
    leaf: bytes = b""  # v2, for peers that support leaf nodes


NO_CHANGE = InterestChange(b"", b"")


class _Departed:
    """Queue group members that have left: their groups by token, and the set of groups."""

    def __init__(self) -> None:
        self.tokens: dict[bytes, bytes] = {}
        self.queues: set[bytes] = set()


class LocalInterest:
    """The interest in one account. `imports(subject)`: whether peers may send us messages on `subject`."""

    def __init__(self, account: bytes, imports: Callable[[bytes], bool] = lambda subject: True) -> None:
        self.account = account
        self._imports = imports
        self._counts: dict[tuple[bytes, bytes], int] = {}
        self._of_leafs: dict[tuple[bytes, bytes, bytes], int] = {}  # by origin, subject and queue
        self._tokens: dict[Subscription, bytes] = {}
        self._queues: dict[bytes, bytes] = {}  # the queue group of each QRSID token
        self._departed = _Departed()
        self._departed_before = _Departed()
        self._number = 0

    def add(self, subscription: Subscription) -> InterestChange:
        """Add a subscription."""
        subject, queue = subscription.subject, subscription.queue
        if subject.startswith(b"_SYS.") or not self._imports(subject):
            return NO_CHANGE
        count = self._counts[subject, queue] = self._counts.get((subject, queue), 0) + 1
        self._number += 1
        token = b"%s:%d:1" % (b"QRSID" if queue else b"RSID", self._number)
        self._tokens[subscription] = token
        if queue:
            self._queues[token] = queue
        line = interest_v2(self.account, subject, queue, count) if queue or count == 1 else b""
        return InterestChange(subscribe_v1(subject, queue, token), line)

    def remove(self, subscription: Subscription) -> InterestChange:
        """Remove a subscription, which may never have been announced."""
        token = self._tokens.pop(subscription, None)
        if token is None:
            return NO_CHANGE
        subject, queue = subscription.subject, subscription.queue
        count = self._counts[subject, queue] = self._counts[subject, queue] - 1
        if count == 0:
            del self._counts[subject, queue]
            line = no_interest_v2(self.account, subject, queue)
        else:
            line = interest_v2(self.account, subject, queue, count) if queue else b""
        if queue:
            self._departed.tokens[token] = self._queues.pop(token)
            self._departed.queues.add(queue)
        return InterestChange(unsubscribe_v1(token), line)

    def add_of_leafs(self, origin: bytes, subject: bytes, queue: bytes, change: int) -> InterestChange:
        """Change the number of leaf nodes in the cluster `origin`, or of queue group members behind them, with this
        interest.
        """
        if subject.startswith(b"_SYS.") or not self._imports(subject):
            return NO_CHANGE
        key = (origin, subject, queue)
        before = self._of_leafs.get(key, 0)
        count = self._of_leafs[key] = max(0, before + change)
        if not count:
            del self._of_leafs[key]
        if count == before or (not queue and bool(count) == bool(before)):
            return NO_CHANGE
        return InterestChange(b"", b"", leaf_interest_v2(origin, self.account, subject, queue, count))

    def queue_of(self, token: bytes) -> bytes | None:
        """The group behind one of our QRSID tokens, current or recent; None for an unknown token."""
        return self._queues.get(token) or self._departed.tokens.get(token) or self._departed_before.tokens.get(token)

    def has_departed(self, queue: bytes) -> bool:
        """Whether a member of that group has left recently."""
        return queue in self._departed.queues or queue in self._departed_before.queues

    def forget_departed(self) -> None:
        """Remove members that left before the previous call; call this periodically."""
        self._departed_before, self._departed = self._departed, _Departed()

    def all_v1(self) -> Iterator[bytes]:
        """The lines that announce all interest to a new v1 peer."""
        for subscription, token in self._tokens.items():
            yield subscribe_v1(subscription.subject, subscription.queue, token)

    def all_v2(self) -> Iterator[bytes]:
        """The lines that announce all interest to a new v2 peer."""
        for (subject, queue), count in self._counts.items():
            yield interest_v2(self.account, subject, queue, count)

    def none_v1(self) -> Iterator[bytes]:
        """The lines that withdraw all interest from a v1 peer."""
        for token in self._tokens.values():
            yield unsubscribe_v1(token)

    def none_v2(self) -> Iterator[bytes]:
        """The lines that withdraw all interest from a v2 peer."""
        for subject, queue in self._counts:
            yield no_interest_v2(self.account, subject, queue)

    def all_of_leafs(self, *, wanted: bool) -> Iterator[bytes]:
        """The lines that announce the interest of leaf nodes to a v2 peer, or withdraw it."""
        for (origin, subject, queue), count in self._of_leafs.items():
            yield leaf_interest_v2(origin, self.account, subject, queue, count if wanted else 0)

    def wants(self, subject: bytes) -> bool:
        """Whether a local client has a plain subscription to exactly this subject."""
        return (subject, b"") in self._counts

    def wanted(self) -> list[tuple[bytes, bytes, int]]:
        """All local (subject, queue, members), sorted; plain interest counts once. For monitoring and tests."""
        return sorted((subject, queue, count if queue else 1) for (subject, queue), count in self._counts.items())
