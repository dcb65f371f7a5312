"""Following a consumer of the origin: which of its messages is next, which came before, and when one is missing. Pure.

A delivery bears its numbers in its reply subject, in either form of an ack subject. One that crossed a route or a leaf node
shows its own subject behind them: `$JS.ACK.ORD.JS_MIRROR_x.1.7.3.1690000000000000000.0@orders.eu`.

    next in the consumer's count                     take; stream sequences may be missing: the origin has them no longer
    an older stream sequence                         pass over: it is here
    a later count, a heartbeat that names another    something was lost on the way: ask for a new consumer
"""

from typing import Literal, NamedTuple

from headwater.model.header_block import lookup

CONTROL = b"NATS/1.0 100"
Verdict = Literal["take", "pass", "lost"]


class Delivery(NamedTuple):
    """One message of the origin. `times`: how often it has gone out, `pending`: how many are behind it, `shown`: its
    subject, where the reply tells it."""

    consumer: bytes
    times: int
    sequence: int
    consumer_sequence: int
    timestamp_ns: int
    pending: int
    shown: bytes


def read_delivery(reply: bytes) -> Delivery | None:
    """None for what is no delivery of a consumer."""
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
    """Where a copy is in what one consumer sends. `taken`: the origin's sequence of the last message that was taken,
    `delivered`: that of the consumer."""

    def __init__(self, consumer: str, taken: int) -> None:
        self.taken = taken
        self.delivered = 0
        self._consumer = consumer.encode()

    def judge(self, delivery: Delivery) -> Verdict:
        """What to do about a message; one to be taken counts as taken."""
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
        """Whether nothing is missing according to a heartbeat."""
        last = lookup(heartbeat, b"Nats-Last-Consumer") or b""
        return not last.isdigit() or int(last) in (0, self.delivered)

    def flow_answer(self) -> bytes:
        """What answers a flow-control request: how far everything is safe here."""
        numbers = self.delivered, self.taken
        return b"NATS/1.0\r\nNats-Last-Consumer: %d\r\nNats-Last-Stream: %d\r\n\r\n" % numbers
