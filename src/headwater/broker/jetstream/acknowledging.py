# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The way of most batches out of the committer: count the messages, answer their publishers, nothing else.

Hot and compiled, as `capture.py` is on the way in: with one publish in flight a batch is one message, and what is done here
is done for every one of them. A batch of a stream that has consumers, limits, deletions under way or anything else to
see to goes to `rest`, the stream's own long way.
"""

from collections.abc import Callable, Mapping

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.jetstream.items import Item
    from cython.cimports.headwater.broker.jetstream.outgoing import send_acks
    from cython.cimports.headwater.broker.jetstream.subject_table import SubjectTable
    from cython.cimports.headwater.broker.router import Router
else:
    from headwater.broker.jetstream.items import Item
    from headwater.broker.jetstream.outgoing import send_acks
    from headwater.broker.jetstream.subject_table import SubjectTable
    from headwater.broker.router import Router

from headwater.streams.log import Log


class Acknowledging:
    """`consumers`: the stream's, as it is at any time. `ack_head`: the ordinary PubAck up to its sequence. `is_plain`: the
    configuration asks for nothing but this; then `subjects` is the table to count in."""

    def __init__(
        self, log: Log, consumers: Mapping[str, object], ack_head: bytes, rest: Callable[[list[Item]], None]
    ) -> None:
        self._log = log
        self._consumers = consumers
        self._ack_head = ack_head
        self._rest = rest
        self.router: Router | None = None
        self.subjects: SubjectTable | None = None
        self.is_plain = False

    def take(self, items: list[Item]) -> None:
        """A batch is durable."""
        router: Router | None = self.router
        subjects: SubjectTable | None = self.subjects
        if not self.is_plain or self._consumers or router is None or subjects is None or self._log.has_deletions:
            self._rest(items)
            return
        subjects.add_all(items)
        send_acks(router, items, self._ack_head)
