# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The fast path for most acknowledgements: they settle a message and need no answer.

Hot and compiled: `take` is the callback of the router for a consumer's ack subjects. An acknowledgement of another kind,
one with a reply subject, and one that makes a message leave the stream go to `rest` (`Acks` in consumer_acks.py).
`settled()` is called once for all links that were readable in the same turn.
"""

import asyncio
from collections.abc import Callable

import cython

if cython.compiled:
    from cython.cimports.headwater.jetstream_state.ack_subject import AckSubject
    from cython.cimports.headwater.jetstream_state.consumer import Consumer
else:
    from headwater.jetstream_state.ack_subject import AckSubject
    from headwater.jetstream_state.consumer import Consumer

from headwater.jetstream.consumed_stream import ConsumedStream

Rest = Callable[[bytes, bytes, bytes, bytes], None]


class AckIntake:
    """`closed`: the consumer has ended, and acknowledgements are ignored. `sampled`: there are metrics about
    some, so all go to `rest`."""

    def __init__(
        self,
        stream: ConsumedStream,
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
        self._where = AckSubject()
        self._unreported = False
        self.closed = False
        self.sampled = False

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """A client has published to an ack subject."""
        plain: cython.bint = not reply and (not payload or payload == b"+ACK") and not self.closed
        if plain and not self.sampled and self._stream.config.retention == "limits" and self._where.read(subject):
            self._state.ack(self._where.stream_sequence, self._where.consumer_sequence)
            if not self._unreported:
                self._unreported = True
                self._soon(self.report)
            return
        self._rest(subject, reply, header_block, payload)

    def report(self) -> None:
        """Call `settled` now, if there is something to report."""
        if self._unreported:
            self._unreported = False
            self._settled()
