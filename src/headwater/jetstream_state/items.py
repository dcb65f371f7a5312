# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""A publish between its capture and its acknowledgement.

Hot and compiled: one `Item` is made for every message that a stream takes in.
"""

from collections.abc import Callable

import cython

from headwater.errors import JetStreamError
from headwater.model.subject import is_literal
from headwater.model.subject_match import matches

Answer = Callable[[JetStreamError | None], None]
"""Called once in the loop: with None when the message is durable, else with the reason why it was not stored."""

Published = tuple[bytes, bytes, bytes, bytes]
"""A message as the router gives it: subject, reply, header block, payload."""


def all_of(answers: list[Answer]) -> Answer | None:
    """One callback for several; None for none."""
    if not answers:
        return None

    def answer(error: JetStreamError | None) -> None:
        for each in answers:
            each(error)

    return answer


class Particulars:
    """Work to do once a message is durable, beside the acknowledgement. `rollup`: b"sub", b"all" or b"". `ttl_ns`: 0 for
    none, -1 where only the header block has it."""

    rollup: bytes
    header_block: bytes
    payload: bytes
    timestamp_ns: int
    ttl_ns: int

    def __init__(
        self,
        rollup: bytes,
        header_block: bytes,
        payload: bytes,
        timestamp_ns: cython.longlong,
        ttl_ns: cython.longlong = -1,
    ) -> None:
        self.rollup = rollup
        self.header_block = header_block
        self.payload = payload
        self.timestamp_ns = timestamp_ns
        self.ttl_ns = ttl_ns


class Item:
    """One publish that is being stored. `subject` is b"" for an answer that only waits for its turn: to a duplicate, whose
    original has `sequence`, or a refusal, then 0. `reply` is b"" where no ack is wanted. `ack`: the answer; b"" for the
    ordinary PubAck. `particulars`: None if there is none. `answer`: the callback for a message that another face of the
    stream appended; None for one from a NATS client."""

    reply: bytes
    ack: bytes
    subject: bytes
    sequence: int
    size: int
    message_id: bytes
    particulars: Particulars | None
    answer: Answer | None

    def __init__(
        self,
        reply: bytes,
        ack: bytes,
        subject: bytes,
        sequence: cython.longlong,
        size: cython.Py_ssize_t,
        message_id: bytes,
        particulars: Particulars | None = None,
        answer: Answer | None = None,
    ) -> None:
        self.reply = reply
        self.ack = ack
        self.subject = subject
        self.sequence = sequence
        self.size = size
        self.message_id = message_id
        self.particulars = particulars
        self.answer = answer


def unchecked(
    reply: bytes, subject: bytes, sequence: cython.longlong, size: cython.Py_ssize_t, message_id: bytes
) -> Item:
    """`Item(reply, b"", subject, sequence, size, message_id, None, None)`, in a third of the time."""
    if not cython.compiled:
        return Item(reply, b"", subject, sequence, size, message_id)
    item: Item = Item.__new__(Item)
    item.ack = b""
    item.reply = reply
    item.subject = subject
    item.sequence = sequence
    item.size = size
    item.message_id = message_id
    item.particulars = item.answer = None
    return item


def unacknowledged(subject: bytes, sequence: cython.longlong, size: cython.Py_ssize_t) -> Item:
    """The item of a message that gets no acknowledgement of its own."""
    return unchecked(b"", subject, sequence, size, b"")


class _Index:
    """The newest item of each subject in `items`, as far as they were read, and how many there are."""

    items: list[Item]
    read: int
    newest: dict[bytes, Item]
    counts: dict[bytes, int]

    def __init__(self, items: list[Item]) -> None:
        self.items = items
        self.read = 0
        self.newest = {}
        self.counts = {}

    def catch_up(self) -> None:
        """Read what was appended."""
        item: Item
        at: cython.Py_ssize_t
        for at in range(self.read, len(self.items)):
            item = self.items[at]
            if item.subject:
                self.newest[item.subject] = item
                self.counts[item.subject] = self.counts.get(item.subject, 0) + 1
        self.read = len(self.items)


class ItemsBySubject:
    """Finds items that are not durable yet by their subject. A list of them only grows, and is read once: a publish that
    expects a sequence may come while hundreds are in flight."""

    _indexes: list[_Index]

    def __init__(self) -> None:
        self._indexes = []

    def newest(self, lists: tuple[list[Item], ...], pattern: bytes) -> Item | None:
        """The newest item whose subject matches; `lists`: all items, the newest list first."""
        literal: cython.bint = is_literal(pattern)
        for index in self._caught_up(lists):
            if literal:
                found = index.newest.get(pattern)
            else:
                matching = [item for subject, item in index.newest.items() if matches(pattern, subject)]
                found = max(matching, key=_sequence, default=None)
            if found is not None:
                return found
        return None

    def forget(self) -> None:
        """Drop the indexes, and with them the items that became durable and their payloads."""
        self._indexes = []

    def count(self, lists: tuple[list[Item], ...], subject: bytes) -> int:
        """The number of items with this subject."""
        return sum([index.counts.get(subject, 0) for index in self._caught_up(lists)])

    def _caught_up(self, lists: tuple[list[Item], ...]) -> list[_Index]:
        indexes = []
        for items in lists:
            if items:
                index = next((known for known in self._indexes if known.items is items), None) or _Index(items)
                index.catch_up()
                indexes.append(index)
        self._indexes = indexes
        return indexes


def _sequence(item: Item) -> int:
    return item.sequence
