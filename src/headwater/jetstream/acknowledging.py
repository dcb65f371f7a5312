# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The way of a batch out of the committer: its messages are counted, their publishers answered, the stream notified.

Hot and compiled, as `capture.py` is on the way in: with one publish in flight a batch is one message, and what is done here
is done for every one of them. A stream without consumers, limits, pending deletions or other work that follows a message
is not called at all.
"""

from collections.abc import Callable, Mapping

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.jetstream.outgoing import send_acks
    from cython.cimports.headwater.jetstream_state.items import Item
    from cython.cimports.headwater.jetstream_state.subject_table import SubjectTable
else:
    from headwater.exchange.router import Router
    from headwater.jetstream.outgoing import send_acks
    from headwater.jetstream_state.items import Item
    from headwater.jetstream_state.subject_table import SubjectTable

from headwater.jetstream_state.contents import Contents


class Acknowledging:
    """`consumers`: the stream's, as they are at any time. `ack_head`: the ordinary PubAck up to its sequence.
    `on_stored(first, count, items)` is called when `count` messages of a batch became durable, the first of them with that
    sequence. `is_plain`: the configuration demands nothing that follows a message."""

    def __init__(
        self,
        contents: Contents,
        consumers: Mapping[str, object],
        ack_head: bytes,
        on_stored: Callable[[int, int, list[Item]], None],
    ) -> None:
        self._contents = contents
        self._log = contents.log
        self._consumers = consumers
        self._ack_head = ack_head
        self._on_stored = on_stored
        self.router: Router | None = None
        self.subjects: SubjectTable | None = None  # of `contents`, where it keeps no history
        self.is_plain = False

    def take(self, items: list[Item]) -> None:
        """A batch is durable."""
        router: Router | None = self.router
        subjects: SubjectTable | None = self.subjects
        assert router is not None
        if subjects is not None:
            first, stored = subjects.add_all(items)
        else:
            first, stored = self._contents.added_all(items)
        send_acks(router, items, self._ack_head)
        if stored and (not self.is_plain or self._consumers or self._log.has_deletions):
            self._on_stored(first, stored, items)
