"""The interest of clients here, in the form that peers get. Pure: changes go in, lines come out.

v2 counts: a line goes out when the first subscription to a subject comes and when the last one goes, and for a queue group
at every change of its number of members. In v1 every subscription has a line, under a token of its own:

    RSID:<number>:1     QRSID:<number>:1 for a member of a queue group

The document makes the token of the client's number and sid, and a peer cuts a sid with a colon in it wrong; ours is
made of a number that is never used twice.

What has ended is remembered for a while (`forget_departed` ends it, in two steps): messages for members of queue groups
that have left are on their way, and another member is to have them.

Subjects below `_SYS.` are the servers' own and stay here, and so does what `imports` does not let in.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from headwater.exchange.sublist import Subscription
from headwater.wire.route_lines import interest_v2, no_interest_v2, subscribe_v1, unsubscribe_v1


class News(NamedTuple):
    """The same change in both dialects; empty where a dialect does not mention it."""

    v1: bytes
    v2: bytes


NOTHING = News(b"", b"")


class _Departed:
    """Members of queue groups that have left: their tokens with their groups, and the groups."""

    def __init__(self) -> None:
        self.tokens: dict[bytes, bytes] = {}
        self.queues: set[bytes] = set()


class LocalInterest:
    """One account's. `imports(subject)` is whether peers may send us messages on `subject`."""

    def __init__(self, account: bytes, imports: Callable[[bytes], bool] = lambda subject: True) -> None:
        self.account = account
        self._imports = imports
        self._counts: dict[tuple[bytes, bytes], int] = {}
        self._tokens: dict[Subscription, bytes] = {}
        self._queues: dict[bytes, bytes] = {}  # of a QRSID
        self._departed = _Departed()
        self._departed_before = _Departed()
        self._number = 0

    def add(self, subscription: Subscription) -> News:
        """A subscription was made."""
        subject, queue = subscription.subject, subscription.queue
        if subject.startswith(b"_SYS.") or not self._imports(subject):
            return NOTHING
        count = self._counts[subject, queue] = self._counts.get((subject, queue), 0) + 1
        self._number += 1
        token = b"%s:%d:1" % (b"QRSID" if queue else b"RSID", self._number)
        self._tokens[subscription] = token
        if queue:
            self._queues[token] = queue
        line = interest_v2(self.account, subject, queue, count) if queue or count == 1 else b""
        return News(subscribe_v1(subject, queue, token), line)

    def remove(self, subscription: Subscription) -> News:
        """A subscription ended; it may be one that was never announced."""
        token = self._tokens.pop(subscription, None)
        if token is None:
            return NOTHING
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
        return News(unsubscribe_v1(token), line)

    def queue_of(self, token: bytes) -> bytes | None:
        """The group that a QRSID of ours stands or stood for; None when it is not known (any more)."""
        return self._queues.get(token) or self._departed.tokens.get(token) or self._departed_before.tokens.get(token)

    def has_departed(self, queue: bytes) -> bool:
        """Whether a member of that group has left, not long ago."""
        return queue in self._departed.queues or queue in self._departed_before.queues

    def forget_departed(self) -> None:
        """To be called now and then: members that left before the last call are forgotten."""
        self._departed_before, self._departed = self._departed, _Departed()

    def all_v1(self) -> Iterator[bytes]:
        """The lines that a new v1 peer gets."""
        for subscription, token in self._tokens.items():
            yield subscribe_v1(subscription.subject, subscription.queue, token)

    def all_v2(self) -> Iterator[bytes]:
        """The lines that a new v2 peer gets."""
        for (subject, queue), count in self._counts.items():
            yield interest_v2(self.account, subject, queue, count)

    def none_v1(self) -> Iterator[bytes]:
        """The lines that take back all interest of v1 peers."""
        for token in self._tokens.values():
            yield unsubscribe_v1(token)

    def none_v2(self) -> Iterator[bytes]:
        """The lines that take back all interest of v2 peers."""
        for subject, queue in self._counts:
            yield no_interest_v2(self.account, subject, queue)

    def wants(self, subject: bytes) -> bool:
        """Whether a client here has subscribed to exactly this, in no group."""
        return (subject, b"") in self._counts

    def wanted(self) -> list[tuple[bytes, bytes, int]]:
        """Every (subject, queue, members) here, sorted; plain interest counts once. For monitoring and tests."""
        return sorted((subject, queue, count if queue else 1) for (subject, queue), count in self._counts.items())
