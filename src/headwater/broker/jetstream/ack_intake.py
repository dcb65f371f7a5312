# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The way of most acknowledgements: settled, nothing to answer.

Hot and compiled: `take` is the callback of the router for a consumer's ack subjects. What says more than "done", wants to be
told that it was heard, or makes a message leave the stream goes to `rest`, the consumer's long way. The consumer hears of
what was settled once for all links that were ready together (`settled`).
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.jetstream.consumer import Consumer
else:
    from headwater.broker.jetstream.consumer import Consumer

if TYPE_CHECKING:
    from headwater.broker.jetstream.stream import Stream

Rest = Callable[[bytes, bytes, bytes, bytes], None]
LONGEST_NUMBER: cython.Py_ssize_t = 18  # digits that certainly fit 63 bits; longer ones are looked at by `rest`
DOT: cython.uchar = 46


class AckIntake:
    """`closed`: the consumer is over, and nothing is taken in any more."""

    def __init__(
        self,
        stream: "Stream",
        state: Consumer,
        settled: Callable[[], None],
        rest: Rest,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._stream = stream
        self._state = state
        self._settled = settled
        self._rest = rest
        self._soon: Callable[[Callable[[], None]], object] = getattr(loop, "after_reads", loop.call_soon)
        self._untold = False
        self.closed = False

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """A client has published to an ack subject."""
        plain: cython.bint = not reply and (not payload or payload == b"+ACK") and not self.closed
        if plain and self._stream.config.retention == "limits":
            end: cython.Py_ssize_t = _token_start(subject, _token_start(subject, len(subject)) - 1) - 1
            consumer_sequence: cython.longlong = _number_before(subject, end)
            stream_sequence: cython.longlong = -1
            if consumer_sequence >= 0:
                stream_sequence = _number_before(subject, _token_start(subject, end) - 1)
            if stream_sequence >= 0:
                self._state.ack(stream_sequence, consumer_sequence)
                if not self._untold:
                    self._untold = True
                    self._soon(self.tell)
                return
        self._rest(subject, reply, header_block, payload)

    def tell(self) -> None:
        """Have the consumer hear now of what was settled."""
        if self._untold:
            self._untold = False
            self._settled()


def _token_start(subject: bytes, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the token that ends at `end` begins; 0 where there is none."""
    at: cython.Py_ssize_t = end
    while at > 0 and subject[at - 1] != DOT:
        at -= 1
    return max(at, 0)


def _number_before(subject: bytes, end: cython.Py_ssize_t) -> cython.longlong:
    """The number that ends at `end`; -1 when the token there is none, or too long."""
    at: cython.Py_ssize_t = _token_start(subject, end)
    number: cython.longlong = 0
    digit: cython.int
    if not 0 < end - at <= LONGEST_NUMBER:
        return -1
    while at < end:
        digit = cython.cast(cython.int, subject[at]) - 48
        if not 0 <= digit <= 9:
            return -1
        number = number * 10 + digit
        at += 1
    return number
