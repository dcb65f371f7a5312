# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Follows a consumer of the origin: tells the next message from repeated ones, and detects missing ones. Pure.

A delivery has its numbers in its reply subject, in either form of an ack subject. After a route or a leaf node the
message's own subject follows them: `$JS.ACK.ORD.JS_MIRROR_x.1.7.3.1690000000000000000.0@orders.eu`.

    next in the consumer's count                     take; stream sequences may be missing: the origin has them no longer
    an older stream sequence                         pass over: it is here
    a later count, a heartbeat that names another    something was lost on the way: ask for a new consumer

Hot and compiled: a full stream is copied at hundreds of thousands of messages a second. `goes_on` reads the numbers of a
delivery that is the next one, and makes no objects but for the subject; `read_delivery` and `judge` are for all others.
"""

from typing import Literal, NamedTuple

import cython

if cython.compiled:
    from cython.cimports.headwater.jetstream_sources.progress import Progress
    from cython.cimports.headwater.jetstream_state.ack_subject import DOT, number
    from cython.cimports.headwater.wire.memory import joined, part_of
else:
    from headwater.jetstream_sources.progress import Progress
    from headwater.jetstream_state.ack_subject import DOT, number
    from headwater.wire.memory import joined, part_of

from collections.abc import Callable

from headwater.model.header_block import lookup

CONTROL = b"NATS/1.0 100"
_NATS: bytes = b"\r\nNats-"  # what a stream may have to look at
_END: bytes = b"\r\n\r\n"  # of a block to which a line may be added as it is
CLOCK_STEP: cython.int = 64
_AT: cython.uchar = 64  # @
Verdict = Literal["take", "pass", "lost"]


class Delivery(NamedTuple):
    """One message of the origin. `times`: how often it was delivered, `pending`: how many follow it, `shown`: its
    subject, if the reply subject has it."""

    consumer: bytes
    times: int
    sequence: int
    consumer_sequence: int
    timestamp_ns: int
    pending: int
    shown: bytes


def read_delivery(reply: bytes) -> Delivery | None:
    """Parse a delivery's reply subject; None if it is not one."""
    numbers, _, shown = reply.partition(b"@")
    tokens = numbers.split(b".")
    if len(tokens) == 9:
        first = 3
    elif len(tokens) >= 11:
        first = 5
    else:
        return None
    if tokens[0] != b"$JS" or tokens[1] != b"ACK":
        return None
    try:
        times, sequence, consumer_sequence, timestamp, pending = map(int, tokens[first + 1 : first + 6])
    except ValueError:
        return None
    return Delivery(tokens[first], times, sequence, consumer_sequence, timestamp, pending, shown)


class Following:
    """The position in the deliveries of one consumer. `taken`: stream sequence of the last message copied, `delivered`:
    its consumer sequence. `sequence` (the origin's), its `digits`, `timestamp_ns`, `pending`, `shown`: see `goes_on`."""

    def __init__(self, consumer: str, taken: int) -> None:
        self.taken = taken
        self.delivered = 0
        self.sequence = self.timestamp_ns = self.pending = 0
        self.shown = self.digits = b""
        self._consumer_sequence = 0
        self._consumer = consumer.encode()
        self._head = b""
        self._at = 0  # in the reply subject that `goes_on` reads

    def learn(self, reply: bytes) -> None:
        """A delivery of this consumer had this reply subject: the next ones begin alike."""
        tokens = reply.partition(b"@")[0].split(b".")
        self._head = b".".join(tokens[: 4 if len(tokens) == 9 else 6]) + b"."

    def goes_on(self, reply: bytes) -> cython.bint:
        """Whether a delivery is the next one, to be taken. Its numbers are here then, until the next call; `took` counts
        it."""
        end: cython.Py_ssize_t = len(reply)
        self._at = len(self._head)
        if self._at == 0 or not reply.startswith(self._head):
            return False
        times: cython.longlong = self._next_number(reply, end)
        start: cython.Py_ssize_t = self._at
        sequence: cython.longlong = self._next_number(reply, end)
        stop: cython.Py_ssize_t = self._at - 1
        count: cython.longlong = self._next_number(reply, end)
        timestamp: cython.longlong = self._next_number(reply, end)
        pending: cython.longlong = self._next_number(reply, end)
        if times != 1 or sequence <= self.taken or count != self.delivered + 1 or timestamp < 0 or pending < 0:
            return False
        self.sequence, self._consumer_sequence, self.timestamp_ns, self.pending = sequence, count, timestamp, pending
        self.digits = part_of(reply, start, stop)
        self.shown = b"" if self._at >= end else reply[self._at :].partition(b"@")[2]
        return True

    def _next_number(self, reply: bytes, end: cython.Py_ssize_t) -> cython.longlong:
        """The number that the next token is; -1 for another token, or none."""
        start: cython.Py_ssize_t = self._at
        stop: cython.Py_ssize_t = start
        while stop < end and reply[stop] != DOT and reply[stop] != _AT:
            stop += 1
        self._at = stop if stop < end and reply[stop] == _AT else stop + 1  # what is behind an @ is no token
        return number(reply, start, stop)

    def took(self) -> cython.int:
        """The delivery of which `goes_on` was true was taken."""
        self.delivered, self.taken = self._consumer_sequence, self.sequence
        return 0

    def judge(self, delivery: Delivery) -> Verdict:
        """Decide what to do with a message; the verdict to take it updates the position."""
        if delivery.consumer != self._consumer or delivery.times > 1:
            return "pass"
        is_next = delivery.consumer_sequence == self.delivered + 1
        if delivery.sequence <= self.taken:
            self.delivered += is_next
            return "pass"
        if is_next:
            self.delivered, self.taken = delivery.consumer_sequence, delivery.sequence
            return "take"
        return "lost" if delivery.consumer_sequence > self.delivered else "pass"

    def is_in_step(self, heartbeat: bytes) -> bool:
        """Whether a heartbeat shows no missing message."""
        last = lookup(heartbeat, b"Nats-Last-Consumer") or b""
        return not last.isdigit() or int(last) in (0, self.delivered)

    def flow_answer(self) -> bytes:
        """The answer to a flow-control request: the sequence up to which everything is durable here."""
        numbers = self.delivered, self.taken
        return b"NATS/1.0\r\nNats-Last-Consumer: %d\r\nNats-Last-Stream: %d\r\n\r\n" % numbers


class Intake:
    """Stores the messages that simply continue a consumer's deliveries and whose headers demand nothing. `copy`:
    `Capture.copy` of the stream. `marks`: see `stamp.marks`; None for a mirror. `moved(subject)`: where a message goes;
    None without transforms. `others` gets every message that is not stored here.

    `taken`: how many were stored since the owner has set it to 0; `received_at`: the time of the last one in seconds of
    `now`, which is read for every CLOCK_STEPth of many that come one after another."""

    def __init__(
        self,
        following: Following,
        progress: Progress,
        copy: Callable[[bytes, bytes, bytes, int, int], int],
        marks: tuple[bytes, bytes, bytes] | None,
        moved: Callable[[bytes], bytes] | None,
        now: Callable[[], float],
        others: Callable[[bytes, bytes, bytes, bytes], None],
    ) -> None:
        self._following = following
        self._progress = progress
        self._copy = copy
        self._is_mirror = marks is None
        before, self._between, behind = marks or (b"", b"", b"")
        self._first = b"NATS/1.0\r\n" + before  # of the header block, if the message has none itself
        self._before = before
        self._end = behind + b"\r\n\r\n"
        self._moved = moved
        self._now = now
        self._others = others
        self.taken = 0
        self.received_at = 0.0

    def receive(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """The callback of the deliver subject."""
        if not self.take(subject, reply, header_block, payload):
            self._others(subject, reply, header_block, payload)

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> cython.bint:
        """False for a message that is to be looked at; then nothing has happened."""
        following: Following = self._following
        block: bytes = header_block
        if not following.goes_on(reply):
            return False
        if header_block and (_NATS in header_block or not header_block.endswith(_END)):
            return False
        shown: bytes = following.shown or subject
        stored: cython.longlong
        if self._is_mirror:
            if self._moved is not None:
                shown = self._moved(shown)
            stored = self._copy(shown, block, payload, following.timestamp_ns, following.sequence)
        else:
            head: bytes = self._first
            if header_block:
                head = header_block.removesuffix(b"\r\n") + self._before
            block = joined(head, following.digits, self._between, shown, self._end)
            if self._moved is not None:
                shown = self._moved(shown)
            stored = self._copy(shown, block, payload, 0, 0)
        if stored == 0:
            return False
        following.took()
        self._progress.note(stored, following.sequence)
        if self.taken % CLOCK_STEP == 0 or following.pending == 0:
            self.received_at = self._now()
        self.taken += 1
        return True
