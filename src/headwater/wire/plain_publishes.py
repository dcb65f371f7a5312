"""Interpreted only: publishes in the common form go to their receivers without a call of ours for each.

    control line ─▶ known: payload size, each receiver's MSG line ─▶ pieces per client ─▶ one append to its output

Interpreted, calls and attributes cost most: a view of each message, and the methods of parser, session, sublist and
router, take 2 us. So a line that was seen before is looked up whole; the rest of the message is one slice. The result is
that of `Session.on_publish` for each message in order. What needs more than appending (callbacks, queue groups, guards, a
limit of deliveries, no echo, -ERR, 503) is left to it, and so are runs, which cost least there.

The protocols below are what is used of `headwater.exchange`, a layer above this one.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from headwater.model.thinning import thin_out
from headwater.wire.client_ops import ClientOpParser
from headwater.wire.memory import OutputBuffer

MOST_LINES = 1 << 13  # that are known in one account, as many as `sublist.CACHE_SIZE`
LOOKED_AT = 1 << 14  # bytes that are copied and looked at together; larger messages are left to the session
PUB = b"P"[0]
RESERVED_SUBJECTS = (b"_GR_.", b"$NRG.")  # both as in exchange/session.py, which answers with an error
RESERVED_REPLIES = (b"_R_.", b"_GR_.", b"$JS.ACK.")
SELDOM_REPEATED = (b"_", b"$")  # inboxes and acks, as in `Sublist.find`

_LINE = re.compile(rb"PUB ([^\0- ]++) (?:([^\0- ]++) )?([0-9]{1,9})")


class Outlet(Protocol):
    """The destination of a client's deliveries."""

    output: OutputBuffer
    guard: Any
    echo: bool
    out_messages: int
    out_bytes: int


class Subscription(Protocol):
    """A subscription; it has no outlet if it is the broker's own."""

    after_subject: bytes
    maximum: int
    delivered: int
    closed: bool

    @property
    def outlet(self) -> Outlet | None: ...


class Match(Protocol):
    """The receivers of a subject; `separate`: all are plain subscriptions of different clients."""

    separate: Any

    @property
    def plain(self) -> Sequence[Subscription]: ...


class Sublist(Protocol):
    """All subscriptions; `generation` changes with each of them."""

    generation: int

    def match(self, subject: bytes) -> Match: ...


Line = tuple[int, tuple[tuple[Subscription, bytes], ...]]
"""The size of the payload, and the receivers, each with its MSG line."""
Target = tuple[list[bytes], list[int]]
"""What is appended to a client's output, and the sizes of a subscription's messages."""


class Lines:
    """The control lines that were published with last, in one account."""

    def __init__(self) -> None:
        self.known: dict[bytes, Line] = {}
        self._generation = -1  # of the sublist, when the receivers were looked up

    def renew(self, generation: int) -> None:
        """Forget the lines if interest has changed since."""
        if self._generation != generation:
            self._generation = generation
            self.known.clear()

    def look_up(self, text: bytes, match: Callable[[bytes], Match]) -> Line | None:
        """The line `text`, which has no line end; None if it is not in the common form, or its message needs more."""
        found = _LINE.fullmatch(text)
        if found is None:
            return None
        subject, reply, digits = found.groups()
        receivers = match(subject)
        if not receivers.separate or subject.startswith(RESERVED_SUBJECTS):
            return None
        if reply is not None and (not receivers.plain or reply.startswith(RESERVED_REPLIES)):
            return None
        tail = text[found.end(1) + 1 :]
        heads = tuple([(each, b"MSG %b%b%b\r\n" % (subject, each.after_subject, tail)) for each in receivers.plain])
        line = int(digits), heads
        if reply is None and not subject.startswith(SELDOM_REPEATED):
            if len(self.known) >= MOST_LINES:
                thin_out(self.known)
            self.known[text] = line
        return line


class Stretch:
    """Consecutive messages of one publisher. Nothing is appended to any output before its end."""

    def __init__(self, publisher: Outlet) -> None:
        self._publisher = publisher
        self.sizes: list[int] = []
        self.targets: dict[Subscription, Target] = {}
        self._pieces: dict[Outlet, list[bytes]] = {}

    def add(self, subscription: Subscription) -> bool:
        """Make a target of `subscription`; False if its deliveries need more than appending."""
        outlet = subscription.outlet
        if (
            outlet is None
            or subscription.closed
            or subscription.maximum != 0
            or outlet.guard is not None
            or (outlet is self._publisher and not outlet.echo)
        ):
            return False
        self.targets[subscription] = self._pieces.setdefault(outlet, []), []
        return True

    def finish(self, mark_dirty: Callable[[Any], object]) -> list[int]:
        """Append everything, and count it; returns the sizes of the messages."""
        for subscription, (_, sizes) in self.targets.items():
            if (outlet := subscription.outlet) is not None:
                subscription.delivered += len(sizes)
                outlet.out_messages += len(sizes)
                outlet.out_bytes += sum(sizes)
        for outlet, pieces in self._pieces.items():
            if pieces:
                outlet.output.append(b"".join(pieces))
                mark_dirty(outlet)
        return self.sizes


_lines: WeakKeyDictionary[Sublist, Lines] = WeakKeyDictionary()


def collect_plain_publishes(
    sublist: Sublist, stretch: Stretch, limits: ClientOpParser, buffer: bytearray, start: int, filled: int
) -> int:
    """Collect the publishes at the front of `buffer[start:filled]`; returns where the first one begins that is left to
    `Session.on_publishes`, or what is no publish, or incomplete.

    For a session without verbose, pedantic, mappings, a guard and peers.
    """
    if buffer[start] != PUB:
        return start
    lines = _lines.get(sublist)
    if lines is None:
        lines = _lines[sublist] = Lines()
    lines.renew(sublist.generation)
    with memoryview(buffer) as view:
        while start < filled:
            text = bytes(view[start : min(start + LOOKED_AT, filled)])
            used = _collect(lines, stretch, text, limits, sublist.match)
            start += used
            if used == 0 or len(text) < LOOKED_AT:
                break
    return start


def _collect(
    lines: Lines, stretch: Stretch, text: bytes, limits: ClientOpParser, match: Callable[[bytes], Match]
) -> int:
    known, targets, find, sizes = lines.known.get, stretch.targets, text.find, stretch.sizes
    filled, max_payload, longest = len(text), limits.max_payload, limits.max_control_line + len(b"PUB ")
    at, previous = 0, b""
    while True:
        line_end = find(b"\r\n", at)
        line = text[at:line_end]
        found = known(line)
        if found is None:
            found = lines.look_up(line, match) if line_end > 0 else None
            if found is None:
                return at
        size, receivers = found
        end = line_end + size + 2
        following = end + 2
        if following > filled or size > max_payload or line_end - at > longest or text[end:following] != b"\r\n":
            return at
        if (at == 0 or line == previous) and text.startswith(line, following):
            return at  # a run
        for subscription, _ in receivers:
            if subscription not in targets and not stretch.add(subscription):
                return at
        message = text[line_end + 2 : following]
        for subscription, head in receivers:
            pieces, delivered = targets[subscription]
            pieces += (head, message)
            delivered.append(size)
        sizes.append(size)
        at, previous = following, line
