# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The fast path for most acknowledgements: they settle a message, or refuse it until later, and need no answer.

Hot and compiled: `take` is the callback of the router for a consumer's ack subjects. An acknowledgement of another kind,
one with a reply subject, one that makes a message leave the stream, and a -NAK whose advisory has a listener go to
`rest` (`Acks` in consumer_acks.py). `taken(settled)` is called once for all links that were readable in the same turn;
`settled`: whether there was more than -NAK.

The subscription is `<head>>` and not `<head>*.*.*.*.*`: the router then knows the receiver of every ack by the head, and
need not walk nine tokens, which took as long as all the rest. Subjects with more or fewer tokens have no receiver here.
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
TOKENS: int = 9  # of an ack subject in the short form


class AckIntake:
    """`head`: what the subjects in the short form begin with. `closed`: the consumer has ended, and acknowledgements are
    ignored. `sampled`: there are metrics about some, so all go to `rest`."""

    def __init__(
        self,
        stream: ConsumedStream,
        state: Consumer,
        head: bytes,
        taken: Callable[[bool], None],
        has_listener: Callable[[], bool],
        rest: Rest,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._stream = stream
        self._state = state
        self._numbers_at = len(head)
        self._taken = taken
        self._has_listener = has_listener
        self._rest = rest
        self._soon: Callable[[Callable[[], None]], object] = getattr(loop, "after_reads", loop.call_soon)
        self._where = AckSubject()
        self._unreported = False
        self._settled = False
        self._seen: object = None  # the stream's configuration at the last ack, and what it says
        self._keeps = False
        self.closed = False
        self.sampled = False

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        """A client has published to an ack subject; False: to one that is none."""
        plain: cython.bint = not reply and (not payload or payload == b"+ACK") and not self.closed
        if plain and not self.sampled and self._where.read_behind(subject, self._numbers_at) and self._keeps_acked():
            self._state.ack(self._where.stream_sequence, self._where.consumer_sequence)
            self._settled = True
            self._report_soon()
            return True
        plain = not reply and payload == b"-NAK" and not self.closed
        if plain and self._where.read_behind(subject, self._numbers_at) and not self._has_listener():
            self._state.nak(self._where.stream_sequence, 0, 0)
            self._report_soon()
            return True
        if subject.count(b".") != TOKENS - 1:
            return False
        self._rest(subject, reply, header_block, payload)
        return True

    def _keeps_acked(self) -> cython.bint:
        """Whether an acknowledged message stays in the stream."""
        config = self._stream.config
        if config is not self._seen:
            self._seen, self._keeps = config, config.retention == "limits"
        return self._keeps

    def _report_soon(self) -> cython.int:
        if not self._unreported:
            self._unreported = True
            self._soon(self.report)
        return 0

    def report(self) -> None:
        """Call `taken` now, if there is something to report."""
        if self._unreported:
            settled, self._unreported, self._settled = self._settled, False, False
            self._taken(settled)
