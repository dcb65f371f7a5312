"""Follows a consumer of the origin: tells the next message from repeated ones, and detects missing ones. Pure.

A delivery has its numbers in its reply subject, in either form of an ack subject. After a route or a leaf node the
message's own subject follows them: `$JS.ACK.ORD.JS_MIRROR_x.1.7.3.1690000000000000000.0@orders.eu`.

    next in the consumer's count                     take; stream sequences may be missing: the origin has them no longer
    an older stream sequence                         pass over: it is here
    a later count, a heartbeat that names another    something was lost on the way: ask for a new consumer
"""

from typing import Literal, NamedTuple

from headwater.model.header_block import lookup

CONTROL = b"NATS/1.0 100"
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
    its consumer sequence."""

    def __init__(self, consumer: str, taken: int) -> None:
        self.taken = taken
        self.delivered = 0
        self._consumer = consumer.encode()

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
