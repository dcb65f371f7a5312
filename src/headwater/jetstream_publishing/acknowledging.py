# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Handles a batch once it is durable: counts its messages, answers their publishers, notifies the stream.

Hot and compiled, like `capture.py` on the way in: with one publish in flight a batch is one message, so the cost here is
paid per message. The stream is not called at all when it has no consumers, limits, pending deletions or other work that
follows a message.
"""

from collections.abc import Callable, Mapping

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.jetstream_ranges.outgoing import send_acks, send_at_once
    from cython.cimports.headwater.jetstream_state.items import Item
    from cython.cimports.headwater.jetstream_state.subject_table import SubjectTable
else:
    from headwater.exchange.router import Router
    from headwater.jetstream_ranges.outgoing import send_acks, send_at_once
    from headwater.jetstream_state.items import Item
    from headwater.jetstream_state.subject_table import SubjectTable

from headwater.jetstream_state.contents import Contents


class Acknowledging:
    """`consumers`: the stream's, shared with it. `ack_head`: the ordinary PubAck up to its sequence.
    `on_stored(first, count, items)` is called when `count` messages of a batch became durable, from sequence `first` on.
    `is_plain`: the configuration requires no work after a message is stored. `alone()`: nothing else ends in this turn of
    the loop whose answers are written together with this stream's; None where that is not known."""

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
        self.subjects: SubjectTable | None = None  # the table of `contents`, if that keeps no history
        self.is_plain = False
        self.alone: Callable[[], bool] | None = None

    def answer_first(self, item: Item) -> None:
        """This item alone is durable: if no other answer waits, its publisher is woken before the message is counted, and
        goes on meanwhile. `take` follows in the same turn of the loop, so that no client is served in between."""
        router: Router | None = self.router
        assert router is not None
        if self.alone is None or item.answer is not None or not item.reply or not self.alone():
            return
        if send_at_once(router, item, self._ack_head):
            item.reply = b""

    def take(self, items: list[Item]) -> None:
        """A batch is durable."""
        router: Router | None = self.router
        subjects: SubjectTable | None = self.subjects
        assert router is not None
        if subjects is not None:
            first, stored = subjects.add_all(items)
        else:
            first, stored = self._contents.added_all(items)
        lone: Item | None = items[0] if len(items) == 1 else None
        if lone is None or lone.reply or lone.answer is not None:  # else it is answered, or wants none
            send_acks(router, items, self._ack_head)
        if stored and (not self.is_plain or self._consumers or self._log.has_deletions):
            self._on_stored(first, stored, items)
