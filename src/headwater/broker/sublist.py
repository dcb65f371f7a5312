"""The interest of all clients: a trie of subject tokens, and a cache of what it found.

    root ─"orders"─▶ node ─"eu"─▶ node        literal tokens: a dict
                       ├─ "*" ─▶ node         one token
                       └─ ">" ─▶ node         one token or more, always last

`match(subject)` returns a `Match`: the plain subscriptions, and per queue group its members (a group is one group
across literal and wildcard subscriptions). A Match is a snapshot and is never changed; `generation` goes up with every
change of interest, and a Match of another generation is stale. The cache keeps at most `CACHE_SIZE` subjects and is
emptied when full: a flood of one-time subjects must not grow it.

Sources: client protocol document ("SUB", wildcards); nats-server for subjects with empty tokens (they reach nobody).
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.wire.memory import OutputBuffer
else:
    from headwater.wire.memory import OutputBuffer

from collections.abc import Callable
from typing import Protocol

from headwater.model.subject import is_literal

CACHE_SIZE: int = 8192  # subjects

Callback = Callable[[bytes, bytes, bytes, bytes], None]
"""subject, reply, header block, payload; b"" for what is absent"""


class OutletLink(Protocol):
    """What an outlet needs of its connection."""

    @property
    def pending(self) -> int: ...
    def flush(self) -> None: ...
    def abort(self) -> None: ...


class DeliveryGuard(Protocol):
    """What some clients' permissions have to say about each delivery."""

    def lets_through(self, subject: bytes, queue: bytes, reply: bytes) -> bool: ...


class Outlet:
    """Where a client's deliveries go: its output buffer, and what the router must know of the client.

    `headers`: it takes HMSG. `echo`: it wants its own messages too. `guard`: to be asked before each delivery; None for
    most clients.
    """

    def __init__(self, link: OutletLink, output: OutputBuffer) -> None:
        self.link = link
        self.output = output
        self.guard: DeliveryGuard | None = None
        self.headers = False
        self.echo = True
        self.dirty = False
        self.closed = False
        self.out_messages = 0
        self.out_bytes = 0
        self.subscriptions: dict[bytes, Subscription] = {}


class Subscription:
    """One SUB of a client (`outlet`), or of the broker itself (`callback`).

    `msg` and `hmsg` are everything of a MSG and HMSG line up to the tail, when the subject is literal; empty otherwise.
    `maximum` is 0 for no limit, else the number of deliveries since SUB after which it ends.
    """

    def __init__(
        self,
        subject: bytes,
        queue: bytes = b"",
        sid: bytes = b"",
        outlet: Outlet | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.subject = subject
        self.queue = queue
        self.sid = sid
        self.outlet = outlet
        self.callback = callback
        self.after_subject = b" " + sid + b" "
        literal = is_literal(subject)
        self.msg = b"MSG " + subject + self.after_subject if literal else b""
        self.hmsg = b"HMSG " + subject + self.after_subject if literal else b""
        self.maximum = 0
        self.delivered = 0
        self.closed = False


class Match:
    """Who gets a message: every one of `plain`, and one of each list in `groups`."""

    def __init__(self, generation: cython.Py_ssize_t) -> None:
        self.plain: list[Subscription] = []
        self.groups: list[list[Subscription]] = []
        self.generation = generation


class Node:
    """A position in the trie; subscriptions that end here, and where further tokens lead."""

    __slots__ = ("children", "groups", "plain")

    def __init__(self) -> None:
        self.children: dict[bytes, Node] = {}
        self.plain: dict[Subscription, None] = {}
        self.groups: dict[bytes, dict[Subscription, None]] = {}

    def is_empty(self) -> bool:
        return not (self.children or self.plain or self.groups)


class Sublist:
    """All subscriptions, by subject."""

    def __init__(self) -> None:
        self.generation = 0
        self.count = 0
        self._root = Node()
        self._cache: dict[bytes, Match] = {}

    def insert(self, subscription: Subscription) -> None:
        """Add interest. The subject must be valid (model.subject.is_valid_subject)."""
        node = self._root
        for token in subscription.subject.split(b"."):
            node = node.children.setdefault(token, Node())
        if subscription.queue:
            node.groups.setdefault(subscription.queue, {})[subscription] = None
        else:
            node.plain[subscription] = None
        self.count += 1
        self.generation += 1

    def remove(self, subscription: Subscription) -> None:
        """Take interest back; unknown subscriptions are ignored."""
        path = [self._root]
        tokens = subscription.subject.split(b".")
        for token in tokens:
            following = path[len(path) - 1].children.get(token)
            if following is None:
                return
            path.append(following)
        node = path[len(path) - 1]
        members = node.groups.get(subscription.queue, {}) if subscription.queue else node.plain
        if subscription not in members:
            return
        del members[subscription]
        if subscription.queue and not members:
            del node.groups[subscription.queue]
        for depth in range(len(tokens) - 1, -1, -1):
            if not path[depth + 1].is_empty():
                break
            del path[depth].children[tokens[depth]]
        self.count -= 1
        self.generation += 1

    def match(self, subject: bytes) -> Match:
        """Who is interested in a message on `subject`; wildcards in it are literal tokens."""
        cached = self._cache.get(subject)
        if cached is not None and cached.generation == self.generation:
            return cached
        found = self._walk(subject)
        if len(self._cache) >= CACHE_SIZE:
            self._cache.clear()
        self._cache[subject] = found
        return found

    def has_interest(self, subject: bytes) -> bool:
        """Whether a message on `subject` would reach anybody."""
        match = self.match(subject)
        return bool(match.plain or match.groups)

    def _walk(self, subject: bytes) -> Match:
        match = Match(self.generation)
        tokens = subject.split(b".")
        if b"" in tokens:
            return match
        groups: dict[bytes, list[Subscription]] = {}
        # All trie positions that the tokens so far can lead to; at most 2 per token survive a literal trie.
        positions = [self._root]
        for token in tokens:
            following: list[Node] = []
            for node in positions:
                tail = node.children.get(b">")
                if tail is not None:
                    _collect(tail, match.plain, groups)
                one = node.children.get(b"*")
                if one is not None:
                    following.append(one)
                if token != b"*" and token != b">":
                    literal = node.children.get(token)
                    if literal is not None:
                        following.append(literal)
            positions = following
        for node in positions:
            _collect(node, match.plain, groups)
        match.groups = list(groups.values())
        return match


def _collect(node: Node, plain: list[Subscription], groups: dict[bytes, list[Subscription]]) -> None:
    plain.extend(node.plain)
    for queue, members in node.groups.items():
        groups.setdefault(queue, []).extend(members)
