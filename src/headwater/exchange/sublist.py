"""The interest of all clients: a trie of subject tokens, and a cache of its results.

    root ─"orders"─▶ node ─"eu"─▶ node        literal tokens: a dict
                       ├─ "*" ─▶ node         one token
                       └─ ">" ─▶ node         one token or more, always last

`match(subject)` returns a `Match`: the plain subscriptions, and the members of each queue group (a group spans literal
and wildcard subscriptions). A Match is an immutable snapshot; every change of interest increments `generation`, and
who keeps a Match keeps that number with it.

Two things make a match cheap. Subjects that end at the same trie nodes share one Match, made once per generation, so
walking a new subject makes no list of subscriptions. And a table of subjects (`wire.known_subjects`) saves the walk. It
grows with the number of subscriptions and with subjects that come again, not with a flood of one-time subjects: what then
replaces what is still right is counted, and the table is bypassed for a while. Where a wildcard covers everything after a
prefix, only the prefix is cached and the table is not used: a thousand subjects under `bench.>` take one entry.

Clients come and go. A change of interest in one subject makes that one's entry stale, a change of a pattern those that begin
with the same tokens as it does before its first wildcard: all of them if it begins with one (or interpreted); none for
`_INBOX.x.*`, which each client has, and others that begin with `_` or `$`: such subjects are not in the table.

Sources: client protocol document ("SUB", wildcards); nats-server for subjects with empty tokens (they match nothing).
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.headwater.authorization.guard import Guard
    from cython.cimports.headwater.net.endpoint import Endpoint
    from cython.cimports.headwater.wire.known_subjects import Known, KnownSubjects, Receiver, tag_of
    from cython.cimports.headwater.wire.memory import OutputBuffer, equals, find_byte, has_empty_token, slice_bytes
else:
    from headwater.authorization.guard import Guard
    from headwater.net.endpoint import Endpoint
    from headwater.wire.known_subjects import Known, KnownSubjects, Receiver
    from headwater.wire.memory import OutputBuffer, equals, find_byte, has_empty_token, slice_bytes

from collections.abc import Callable
from typing import Any, Protocol

from headwater.model.subject import is_literal
from headwater.model.thinning import thin_out

CACHE_SIZE: int = 1 << 13  # Matches of several nodes that are kept; interpreted, also subjects
MOST_LISTS: int = 64  # lists of queue groups for which one Match caches the result of `serving`
_CACHE_SIZE = cython.declare(cython.Py_ssize_t, CACHE_SIZE)  # in C: each walk looks at it
# Slots that the table of subjects may have with however few subscriptions: wildcards bring many more subjects.
_FLOOR: int = 1 << 16

_NO_GROUPS: "list[list[Subscription]]" = []  # these two are shared and never modified
_NO_QUEUES: list[bytes] = []

Callback = Callable[[bytes, bytes, bytes, bytes], object]
"""Arguments: subject, reply, header block, payload; absent parts are b"". Result False: the message reached no
receiver.
"""
TracedCallback = Callable[[Any, bytes, bytes, bytes, bytes], object]
"""A callback for traced messages: the first argument is the `message_tracing.message_trace.MessageTrace`."""


class OutletLink(Protocol):
    """What an outlet needs from its connection."""

    @property
    def pending(self) -> int: ...
    def flush(self) -> None: ...
    def abort(self) -> None: ...


class Outlet:
    """The destination of a client's deliveries: its output buffer, and the client's properties that the router needs.

    `headers`: the client accepts HMSG. `echo`: it also gets its own messages. `guard` is consulted before each
    delivery; None for most clients. `is_route`: the connection leads to another broker.
    """

    def __init__(self, link: OutletLink, output: OutputBuffer) -> None:
        self.link = link
        self.endpoint = link if isinstance(link, Endpoint) else None
        self.output = output
        self.guard: Guard | None = None
        self.headers = False
        self.echo = True
        self.dirty = False
        self.closed = False
        self.is_route = False
        self.out_messages = 0
        self.out_bytes = 0
        self.subscriptions: dict[bytes, Subscription] = {}


class Subscription(Receiver):
    """One subscription of a client (`outlet`), or of the broker itself (`callback`).

    `msg` and `hmsg` are a MSG and HMSG line up to the tail if the subject is literal, otherwise b"". `maximum` is the
    number of deliveries since SUB after which the subscription ends, 0 for no limit.
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
        self.traced: TracedCallback | None = None  # called instead of `callback` for a traced message
        self.after_subject = b" " + sid + b" "
        literal = is_literal(subject)
        self.msg = b"MSG " + subject + self.after_subject if literal else b""
        self.hmsg = b"HMSG " + subject + self.after_subject if literal else b""
        self.wild = not literal
        self.maximum = 0
        self.delivered = 0  # see `Sublist.delivered`
        self.place = 0
        self.closed = False


class Node:
    """A node of the trie: the subscriptions that end here, and the children by token."""

    def __init__(self) -> None:
        self.literals: dict[bytes, Node] = {}
        self.one: Node | None = None
        self.tail: Node | None = None
        self.plain: dict[Subscription, None] = {}
        self.groups: dict[bytes, dict[Subscription, None]] = {}
        self.alone: Match | None = None  # the Match of only the subscriptions that end here, until they change

    def child(self, token: bytes) -> "Node | None":
        """The child for `token` of a pattern, or None."""
        if token == b"*":
            return self.one
        if token == b">":
            return self.tail
        return self.literals.get(token)

    def set_child(self, token: bytes, node: "Node | None") -> None:
        """Set or (None) remove the child for `token` of a pattern."""
        if token == b"*":
            self.one = node
        elif token == b">":
            self.tail = node
        elif node is None:
            del self.literals[token]
        else:
            self.literals[token] = node

    def is_empty(self) -> cython.bint:
        return not (self.literals or self.plain or self.groups or self.one is not None or self.tail is not None)


class Match:
    """The receivers of a message: all of `plain`, and one of each list in `groups`.

    `separate`: no client has two of these subscriptions, and none is of a queue group or has a callback. A run of
    messages may then be written to one receiver after another. `lone`: the only receiver, if it has a callback.
    """

    def __init__(
        self,
        generation: cython.Py_ssize_t,
        plain: "list[Subscription]",
        groups: "list[list[Subscription]] | None" = None,
        queues: "list[bytes] | None" = None,
    ) -> None:
        self.plain = plain
        self.groups: list[list[Subscription]] = _NO_GROUPS if groups is None else groups
        self.queues: list[bytes] = _NO_QUEUES if queues is None else queues  # the group of each list in `groups`
        self.generation = generation
        self.separate = self._is_separate()
        self.lone = self._only_callback()
        self._firsts: list[Subscription] | None = None
        self._longer: dict[Node, Match] | None = None  # cache: this Match plus one node
        self._serving: dict[bytes, Match] | None = None  # cache of `serving`
        self.plan: object = None  # the plan for this Match, computed by forwarding to peers

    def _is_separate(self) -> cython.bint:
        if self.groups:
            return False
        if len(self.plain) == 1:  # most often; if each subject has its own subscriber, this is most of the work
            subscription: Subscription = self.plain[0]
            return subscription.outlet is not None
        outlets = {subscription.outlet for subscription in self.plain}
        return None not in outlets and len(outlets) == len(self.plain)

    def _only_callback(self) -> Subscription | None:
        if self.groups or len(self.plain) != 1:
            return None
        subscription: Subscription = self.plain[0]
        return subscription if subscription.callback is not None else None

    def takes_series(self) -> cython.bint:
        """Whether every receiver may get every message: none has a guard, and none ends after a number of them. For a
        `separate` Match."""
        subscription: Subscription
        for subscription in self.plain:
            outlet: Outlet = cython.cast(Outlet, subscription.outlet)
            if subscription.maximum != 0 or outlet.guard is not None:
                return False
        return True

    def firsts(self) -> list[Subscription]:
        """The first subscription of each client in `plain`."""
        if self._firsts is None:
            found: dict[Outlet | None, Subscription] = {}
            for subscription in self.plain:
                found.setdefault(subscription.outlet, subscription)
            self._firsts = list(found.values())
        return self._firsts

    def serving(self, queues: list[bytes], plain: cython.bint) -> "Match":
        """A Match of only these queue groups, and of `self.plain` if `plain` is true.

        The only member of a group counts as plain in it, because there is no choice.
        """
        key: bytes = b" ".join(queues) if plain else b"|" + b" ".join(queues)  # a queue group's name contains no space
        if self._serving is None:
            self._serving = {}
        known = self._serving.get(key)
        if known is not None:
            return known
        wanted: list[Subscription] = list(self.plain) if plain else []
        names: list[bytes] = []
        several: list[list[Subscription]] = []
        for queue, members in zip(self.queues, self.groups, strict=True):
            if queue not in queues:
                continue
            if len(members) == 1:
                wanted.extend(members)
            else:
                names.append(queue)
                several.append(members)
        made: Match = Match(self.generation, wanted, several, names)
        if len(self._serving) >= MOST_LISTS:
            self._serving.clear()
        self._serving[key] = made
        return made

    def extend(self, node: Node) -> "Match":
        """A Match of these subscriptions and those that end at `node`."""
        if not self.groups and not node.groups:
            return Match(self.generation, [*self.plain, *node.plain])
        groups = dict(zip(self.queues, self.groups, strict=True))
        for queue, members in node.groups.items():
            groups[queue] = groups.get(queue, []) + list(members)
        return Match(self.generation, [*self.plain, *node.plain], list(groups.values()), list(groups))


_NO_NODES: list[Node] = []


class Beginning:
    """The Match of every subject that consists of `prefix` and one more token, or (`deep`) any number of tokens: no
    literal token follows in the trie.
    """

    def __init__(self, prefix: bytes, deep: cython.bint, match: Match) -> None:
        self.prefix = prefix
        self.deep = deep
        self.match = match


class Sublist:
    """All subscriptions, by subject. `as_one`: any change makes every Match stale, for what is kept with them."""

    def __init__(self, *, as_one: cython.bint = False) -> None:
        self.generation = 0
        self.count = 0
        self.epoch = 0  # the generation since when what the table knows is right
        self._as_one = as_one
        self._root = Node()
        self._no_match = Match(0, [])
        self._bases: list[Match] = []  # for each Match of several nodes that is kept: with which
        self._floor = _FLOOR  # what stands for that constant now: more while subjects come again
        self._passing = 0  # the number of subjects for which the cache is still bypassed
        self._known = KnownSubjects()
        self._seen: dict[bytes, Match] = {}  # the cache when interpreted
        # The state of the last walk before the last token: often the next subject differs only in that token.
        self._prefix = b""
        self._prefix_found = self._no_match
        self._prefix_node: Node | None = None
        self._beginning: Beginning | None = None  # of the last walk that found one

    def insert(self, subscription: Subscription) -> None:
        """Add interest. The subject must be valid (model.subject.is_valid_subject)."""
        node: Node = self._root
        following: Node | None
        for token in subscription.subject.split(b"."):
            following = node.child(token)
            if following is None:
                following = Node()
                node.set_child(token, following)
            node = following
        if subscription.queue:
            node.groups.setdefault(subscription.queue, {})[subscription] = None
        else:
            node.plain[subscription] = None
        self.count += 1
        self._changed(subscription, node)

    def remove(self, subscription: Subscription) -> None:
        """Remove interest; unknown subscriptions are ignored."""
        node: Node = self._root
        following: Node | None
        path = [node]
        tokens = subscription.subject.split(b".")
        for token in tokens:
            following = node.child(token)
            if following is None:
                return
            node = following
            path.append(node)
        members = node.groups.get(subscription.queue, {}) if subscription.queue else node.plain
        if subscription not in members:
            return
        del members[subscription]
        if subscription.queue and not members:
            del node.groups[subscription.queue]
        self.count -= 1
        self._changed(subscription, node)
        path.pop()
        for token in reversed(tokens):
            if not node.is_empty():
                break
            node = path.pop()
            node.set_child(token, None)
        self._release()

    def _changed(self, subscription: Subscription, node: Node) -> cython.int:
        """Forget what was found of the subjects of a subscription that came or went."""
        subject: bytes = subscription.subject
        wild: cython.bint = subscription.wild
        beginning: Beginning | None = self._beginning
        self.generation += 1
        node.alone = self._prefix_node = None
        if self._as_one or wild or (beginning is not None and subject.startswith(beginning.prefix)):
            self._beginning = None
        if self._as_one or (wild and subject[0] != 95 and subject[0] != 36):
            if self._as_one or not cython.compiled or self._known.change(subject) == 0:
                self.epoch = self.generation
        elif not wild and cython.compiled:
            self._known.forget(subject, self.epoch)
        elif not wild:
            self._seen.pop(subject, None)
        return 0

    def renew(self) -> None:
        """What was found of any subject is stale."""
        self.generation += 1
        self.epoch = self.generation
        self._beginning = self._prefix_node = None

    def _release(self) -> None:
        """Forget some of what is stale, and all that is known if few subscriptions and subjects are left: it holds on to
        those that ended, and to the connections of these."""
        if cython.compiled:
            few: cython.Py_ssize_t = self.count
            if few > 0 and self.epoch != self.generation:
                few = max(few, self._known.used)
            if self._known.size > 1 << 10 and self._known.size > 8 * few:
                self._known.make(1 << 9)
                self._floor = _FLOOR
            self._known.forget_stale(self.epoch)
        elif len(self._seen) > 8 * self.count:
            self._seen.clear()

    def delivered(self, subscription: Subscription) -> int:
        """How many messages were delivered to a subscription."""
        return self._known.settle(subscription, True)

    def limit(self, subscription: Subscription, maximum: cython.Py_ssize_t) -> cython.bint:
        """Have a subscription end with so many messages since SUB; True if it got as many already."""
        subscription.maximum = maximum
        return self._known.settle(subscription, False) >= maximum

    def all(self) -> list[Subscription]:
        """Every subscription, in no particular order."""
        found: list[Subscription] = []
        nodes = [self._root]
        node: Node
        while nodes:
            node = nodes.pop()
            found.extend(node.plain)
            for members in node.groups.values():
                found.extend(members)
            nodes.extend(node.literals.values())
            nodes.extend(wild for wild in (node.one, node.tail) if wild is not None)
        return found

    def match(self, subject: bytes) -> Match:
        """The receivers of a message on `subject`; wildcards in it are literal tokens."""
        if not cython.compiled:
            return self._match_interpreted(subject)
        return self.find(bytearray(subject), 0, len(subject))

    def find(self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> Match:
        """As `match`, for the subject `buffer[start:end]`."""
        if not cython.compiled:
            return self._match_interpreted(bytes(buffer[start:end]))
        behind: cython.Py_ssize_t
        beginning: Beginning | None = self._beginning
        if beginning is not None:
            behind = start + len(beginning.prefix)
            if behind < end and equals(buffer, start, behind, beginning.prefix):
                if beginning.deep:
                    if not has_empty_token(buffer, behind, end):
                        return beginning.match
                elif find_byte(buffer, 46, behind, end) < 0:
                    return beginning.match
        if self._passing > 0:
            self._passing -= 1
            return self._walk(buffer, start, end)
        if start < end and (buffer[start] == 95 or buffer[start] == 36):  # _ and $: inboxes and acks seldom repeat
            return self._walk(buffer, start, end)
        tag: cython.ulonglong = 0
        if cython.compiled:
            tag = tag_of(cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer)) + start, end - start, self.epoch)
        known: object = self._known.find(buffer, start, end, tag)
        if known is not None:
            return cython.cast(Match, known)
        found: Match = self._walk(buffer, start, end)
        self._remember(tag, slice_bytes(buffer, start, end), found)
        return found

    def beginning_of(
        self, match: Match, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> Beginning | None:
        """The last beginning, if it is what gives the subject `buffer[start:end]` this Match."""
        beginning: Beginning | None = self._beginning
        if beginning is None or beginning.match is not match:
            return None
        behind: cython.Py_ssize_t = start + len(beginning.prefix)
        return beginning if start < behind < end and equals(buffer, start, behind, beginning.prefix) else None

    def reaches(self, prefix: bytes) -> cython.bint:
        """Whether a subject that begins with `prefix`, whole tokens and a dot, may have a subscription."""
        node: Node
        nodes: list[Node] = [self._root]
        tokens: list[bytes] = prefix.split(b".")
        tokens.pop()  # the empty one behind the last dot
        for token in tokens:
            found: list[Node] = []
            for node in nodes:
                if node.tail is not None:
                    return True
                if node.one is not None:
                    found.append(node.one)
                if token in node.literals:
                    found.append(node.literals[token])
            nodes = found
        return len(nodes) > 0

    def _remember(self, tag: cython.ulonglong, subject: bytes, found: Match) -> cython.int:
        """Have the table know the Match of a subject."""
        if cython.compiled:
            only: Subscription | None = None
            outlet: Outlet | None = None
            line: bytes = b""
            if not found.groups and len(found.plain) == 1:
                only = found.plain[0]
                if only.maximum == 0:
                    outlet = only.outlet
                if only.msg:
                    subject, line = only.subject, only.msg
                else:
                    line = b"MSG " + subject + only.after_subject
            known: Known = Known(subject, found, only, b"", self.epoch)
            self._known.add(tag, known, outlet, line, self._most_known())
            if self._known.evicted > 1024:
                self._gave_up()
        return 0

    def _gave_up(self) -> cython.int:
        """There are more subjects than the table may have. If they come again it may have more of them, up to 131,072, some
        40 MB; else walking is cheaper for a while."""
        if self._known.met >= self._known.evicted and self._floor < 1 << 18:
            self._floor *= 2
        elif self._known.met < 4 * self._known.evicted:
            self._passing = 1 << 15
        self._known.evicted = self._known.met = 0
        return 0

    def _most_known(self) -> cython.Py_ssize_t:
        """The most slots of the table, a power of two, half of which are filled: four for each subscription."""
        most: cython.Py_ssize_t = self._floor
        while most < 4 * self.count and most < 1 << 20:
            most *= 2
        return most

    def _match_interpreted(self, subject: bytes) -> Match:
        """`match` when interpreted: a dict is then cheaper than a table of slots, and never bypassing it is cheaper too."""
        seen = self._seen.get(subject)
        if seen is not None and seen.generation >= self.epoch:
            return seen
        beginning = self._beginning
        if beginning is not None:
            token = subject[len(beginning.prefix) :]
            if token and b"." not in token and subject.startswith(beginning.prefix):
                return beginning.match
        found = self._walk(bytearray(subject), 0, len(subject))
        if not subject.startswith((b"_", b"$")):  # as in `find`
            if len(self._seen) >= CACHE_SIZE:
                thin_out(self._seen)
            self._seen[subject] = found
        return found

    def has_interest(self, subject: bytes) -> bool:
        """Whether a message on `subject` would reach a subscriber."""
        match = self.match(subject)
        return bool(match.plain or match.groups)

    def _walk(self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> Match:
        found: Match = self._empty_match()
        # The trie nodes that the tokens so far lead to: `node`, and seldom `others`.
        node: Node | None = self._root
        others: list[Node] = _NO_NODES
        index: cython.Py_ssize_t
        beginning: Beginning | None = None
        origin: cython.Py_ssize_t = start
        behind: cython.Py_ssize_t = start + len(self._prefix)
        if (
            self._prefix_node is not None
            and behind < end
            and equals(buffer, start, behind, self._prefix)
            and find_byte(buffer, 46, behind, end) < 0
        ):
            node, found = self._prefix_node, self._prefix_found
            start = behind
        elif has_empty_token(buffer, start, end):
            return found
        behind = start
        while node is not None and start <= end:
            stop: cython.Py_ssize_t = find_byte(buffer, 46, start, end)
            if stop < 0:
                stop = end
                if start > behind and not others and node.literals:
                    self._prefix = slice_bytes(buffer, behind, start)
                    self._prefix_node, self._prefix_found = node, found
            if not others and not node.literals and (stop == end or node.one is None):
                beginning = Beginning(slice_bytes(buffer, origin, start), node.one is None, found)
            token: bytes | None = None
            next_node: Node | None = None
            next_others: list[Node] = _NO_NODES
            for index in range(len(others) + 1):
                current: Node = node if index == 0 else others[index - 1]
                if current.tail is not None:
                    found = self._grown(found, current.tail)
                if current.literals:
                    if token is None:
                        token = slice_bytes(buffer, start, stop)
                    literal: Node | None = current.literals.get(token)
                    if literal is not None and next_node is None:
                        next_node = literal
                    elif literal is not None:
                        next_others = [*next_others, literal]
                if current.one is not None and next_node is None:
                    next_node = current.one
                elif current.one is not None:
                    next_others = [*next_others, current.one]
            node, others = next_node, next_others
            start = stop + 1
            if beginning is not None:
                break
        if node is not None:
            found = self._grown(found, node)
        for current in others:
            found = self._grown(found, current)
        if beginning is not None:
            beginning.match = found
            self._beginning = beginning
        return found

    def _empty_match(self) -> Match:
        """The empty Match that every walk begins with. Where interest has changed, or too many Matches of several nodes are
        kept, it is replaced, and those are kept no more."""
        base: Match
        if self._no_match.generation != self.generation or len(self._bases) >= _CACHE_SIZE:
            for base in self._bases:
                base._longer = None
            self._bases.clear()
            self._no_match = Match(self.generation, [])
            self._prefix_node = None
        return self._no_match

    def _grown(self, match: Match, node: Node) -> Match:
        """`match` plus the subscriptions that end at `node`; kept for its generation, so a new subject costs no new list."""
        if not node.plain and not node.groups:
            return match
        longer: Match | None
        if match is self._no_match:  # kept in the node: there may be as many as subscriptions
            longer = node.alone
            if longer is None or longer.generation != self.generation:
                longer = node.alone = match.extend(node)
            return longer
        if match._longer is None:
            match._longer = {}
        longer = match._longer.get(node)
        if longer is None:
            self._bases.append(match)
            longer = match._longer[node] = match.extend(node)
        return longer
