"""An index of a stream's consumers by subject, so that a stored message costs only the consumers that match it.

    reader without a filter        all messages, counted by the batch
    reader with literal filters    found by the subject
    reader with wildcards          found by how the subject begins, once a subject, then known

With a hundred consumers of one subject each, every message would otherwise be tested against a hundred filters, and again
when it is acknowledged and leaves a work queue. What is known is bounded: of a thousand consumers such as `orders.7.>` and
more subjects than that, each message is looked up by the tokens it begins with. The index is rebuilt with the first message
after a change of the readers (`forget`) or of their filters (`filter_changes`).
"""

from collections.abc import Iterable
from typing import Any, Final, Generic, Protocol, TypeVar

from headwater.jetstream_state.consumer import Consumer
from headwater.jetstream_state.items import Item
from headwater.jetstream_state.subject_table import SubjectFilter
from headwater.model.subject_match import matches
from headwater.model.thinning import thin_out

MOST_KNOWN: Final = 1 << 16  # entries in the lists of all known subjects together, 8 bytes each


class Reader(Protocol):
    """A consumer. `filter`: None for all subjects."""

    state: Consumer

    @property
    def filter(self) -> SubjectFilter | None: ...

    def on_new(self, count: int) -> None:
        """`count` more messages to deliver."""
        ...

    def needs(self, sequence: int, subject: bytes) -> bool:
        """Whether the message, which need not match the filter, is still to be delivered or acknowledged."""
        ...


R = TypeVar("R", bound=Reader)


class Audience(dict[str, R], Generic[R]):
    """The consumers of one stream by name. Only these four of a dict's mutating methods may be used."""

    def __init__(self) -> None:
        super().__init__()
        # Readers that may hold messages which their filters do not let through; all below this sequence.
        self._strays: dict[R, None] = {}
        self._strays_end = 0
        self.forget()

    def __setitem__(self, name: str, reader: R) -> None:
        super().__setitem__(name, reader)
        self.forget()

    def __delitem__(self, name: str) -> None:
        self._strays.pop(self[name], None)
        super().__delitem__(name)
        self.forget()

    def pop(self, name: str, *default: Any) -> Any:
        """As that of a dict."""
        if name in self:
            self._strays.pop(self[name], None)
        self.forget()
        return super().pop(name, *default)

    def clear(self) -> None:
        """As that of a dict."""
        super().clear()
        self._strays.clear()
        self.forget()

    def forget(self) -> None:
        """The readers have changed."""
        self._is_made = False
        self._everything: list[R] = []
        self._literal: dict[bytes, list[R]] = {}
        # Their patterns by the tokens before the first wildcard, with the number of the reader: the order of the readers.
        self._wild: dict[bytes, list[tuple[int, bytes, R]]] = {}
        self._deepest = 0  # tokens of these
        self._known: dict[bytes, list[R]] = {}
        self._named = 0

    def on_stored(self, first: int, count: int, items: Iterable[Item]) -> None:
        """`count` messages became durable, from sequence `first` on; `items` may hold others than these."""
        if not self._is_made:
            self._make()
        for reader in tuple(self._everything):
            position = reader.state.position
            ahead = count if first >= position else sum(1 for i in items if i.subject and i.sequence >= position)
            if ahead:
                reader.on_new(ahead)
        if len(self._everything) == len(self):
            return
        new: dict[R, int] = {}
        known = self._known
        for item in items:
            subject = item.subject
            if subject:
                found = known.get(subject)
                for reader in found if found is not None else self._look(subject):
                    if item.sequence >= reader.state.position:
                        new[reader] = new.get(reader, 0) + 1
        for reader, more in new.items():
            reader.on_new(more)

    def concerned(self, sequence: int, subject: bytes) -> list[R]:
        """The readers that may have counted, picked or delivered the message, which has left the stream: those whose filter
        lets it through, and those that had another filter when they reached it."""
        if not self._is_made:
            self._make()
        found = self._look(subject)
        if self._everything:
            found = self._everything + found
        if sequence >= self._strays_end:
            return found
        held = [reader for reader in self._strays if sequence in reader.state.unacked or reader.state.selected]
        return list(dict.fromkeys(found + held)) if held else found

    def filter_changes(self, reader: R) -> None:
        """`reader` is about to get another filter, or comes back with what it held when it may have had another one: what it
        holds need not be what its filter lets through."""
        if reader.state.unacked or reader.state.selected:
            self._strays[reader] = None
            self._strays_end = max(self._strays_end, reader.state.position)
        self.forget()

    def is_needed(self, sequence: int, subject: bytes) -> bool:
        """Whether a reader has yet to deliver the message or awaits its acknowledgement."""
        if not self._is_made:
            self._make()
        return any(r.needs(sequence, subject) for r in self._everything) or any(
            r.needs(sequence, subject) for r in self._look(subject)
        )

    def _look(self, subject: bytes) -> list[R]:
        """The readers whose filters match the subject."""
        known = self._known.get(subject)
        if known is not None:
            return known
        found = self._literal.get(subject, [])
        if self._wild:
            found = found + self._look_by_beginning(subject)
        self._named += 1 + len(found)
        while self._named > MOST_KNOWN and self._known:
            thin_out(self._known)
            self._named = 1 + len(found) + len(self._known) + sum(map(len, self._known.values()))
        self._known[subject] = found
        return found

    def _look_by_beginning(self, subject: bytes) -> list[R]:
        """The readers with wildcards whose filters match the subject."""
        found: dict[int, R] = {}
        end = 0
        for _ in range(self._deepest + 1):
            beginning = self._wild.get(subject[:end], ())
            found.update({number: reader for number, pattern, reader in beginning if matches(pattern, subject)})
            end = subject.find(b".", end) + 1
            if end == 0:
                break
        return [found[number] for number in sorted(found)] if len(found) > 1 else list(found.values())

    def _make(self) -> None:
        for number, reader in enumerate(self.values()):
            wanted = reader.filter
            if wanted is None:
                self._everything.append(reader)
            elif wanted.literals:
                for subject in set(wanted.patterns):
                    self._literal.setdefault(subject, []).append(reader)
            else:
                for pattern in set(wanted.patterns):
                    head, depth = _beginning(pattern)
                    self._wild.setdefault(head, []).append((number, pattern, reader))
                    self._deepest = max(self._deepest, depth)
        self._is_made = True


def _beginning(pattern: bytes) -> tuple[bytes, int]:
    """What each subject that matches begins with, whole tokens with their dots, and how many: the last one is never among
    them."""
    tokens = pattern.split(b".")[:-1]
    depth = next((at for at, token in enumerate(tokens) if token == b"*"), len(tokens))
    return b"".join(token + b"." for token in tokens[:depth]), depth
