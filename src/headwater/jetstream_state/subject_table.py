# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The table of a stream's subjects: number of messages and last sequence of each. In memory, about 200 bytes per subject.

It serves requests by subject (`num_subjects`, `last_by_subj`, Nats-Expected-Last-Subject-Sequence, the pending count of
a filtered consumer) without reading the log. It is derived data: filled from the log when a stream is opened (or from
the document of a clean stop), and updated with every durable batch. Only durable messages are in it.

With a limit per subject the table also has the sequences of all its messages (`history`), so that the oldest is known
when another arrives. Without it, the last message of a subject may become unknown when it is deleted: the next request
searches for it once.

`SubjectFilter` is the filter of a consumer, with a cache, because the subjects of a stream repeat.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import cython
import msgspec

if cython.compiled:
    from cython.cimports.headwater.jetstream_state.items import Item
    from cython.cimports.headwater.streams.log_format import StoredRecord
else:
    from headwater.jetstream_state.items import Item
    from headwater.streams.log_format import StoredRecord

from headwater.model.subject import is_literal, matches
from headwater.streams.log_reader import Wanted

STORE_OVERHEAD = 30  # bytes that nats-server's file store adds to a message; what STREAM.INFO calls bytes includes them
HEADER_OVERHEAD = 4  # added to a message with a header block
MEMORY_OVERHEAD = 16  # the same for its memory store, with or without headers
CACHED_SUBJECTS = 8192
MOST_LISTED = (
    64  # subjects of a filter, and messages of one of them, whose sequences are listed; a bucket's longest history
)
_DOT: cython.int = ord(".")


def stored_size(subject: bytes, header_block: bytes, payload: bytes) -> int:
    """Bytes that STREAM.INFO counts for a message, as nats-server's file store does, so that the two can be
    compared."""
    size = STORE_OVERHEAD + len(subject) + len(payload)
    return size + HEADER_OVERHEAD + len(header_block) if header_block else size


def memory_size(subject: bytes, header_block: bytes, payload: bytes) -> int:
    """The same for a stream with memory storage."""
    return MEMORY_OVERHEAD + len(subject) + len(header_block) + len(payload)


class SubjectFilter:
    """True for subjects that match one of the patterns. Patterns without a wildcard but a last `>`, such as a bucket's, only
    look at the beginning; the answers of others are kept for CACHED_SUBJECTS subjects."""

    patterns: tuple[bytes, ...]

    def __init__(self, patterns: Iterable[bytes]) -> None:
        self.patterns = tuple(patterns)
        self.literals = all(map(is_literal, self.patterns))
        wild = [pattern for pattern in self.patterns if pattern == b">" or pattern.endswith(b".>")]
        heads = [pattern[:-1] for pattern in wild if is_literal(pattern[:-2])]
        self._heads = tuple(heads) if len(heads) == len(self.patterns) else ()
        self._known: dict[bytes, bool] = {}

    @property
    def wanted(self) -> Wanted:
        """The same for `Log.read_matching`: a subject if it can be only one."""
        return self.patterns[0] if self.literals and len(self.patterns) == 1 else self.matches

    def matches(self, subject: bytes) -> cython.bint:
        if self._heads:
            return subject.startswith(self._heads) and _is_whole(subject)
        known: bool | None = self._known.get(subject)
        if known is None:
            if len(self._known) >= CACHED_SUBJECTS:
                self._known.clear()
            known = self._known[subject] = self._look(subject)
        return known is True

    def _look(self, subject: bytes) -> bool:
        return any(matches(pattern, subject) for pattern in self.patterns)


def _is_whole(subject: bytes) -> cython.bint:
    """Whether no token is empty."""
    size: cython.Py_ssize_t = len(subject)
    return size > 0 and subject[0] != _DOT and subject[size - 1] != _DOT and b".." not in subject


class SubjectEntry:
    """One subject. `last` is the sequence of its last message; negative: unknown, but below that number. `sizes_of` are
    its messages, oldest first, as (sequence, size), when a history is kept."""

    count: int
    last: int
    history: deque[tuple[int, int]] | None

    def __init__(self, history: deque[tuple[int, int]] | None) -> None:
        self.count = 0
        self.last = 0
        self.history = history


class SubjectRow(msgspec.Struct, array_like=True):
    """The stored form of a subject."""

    subject: bytes
    count: int
    last: int
    history: list[tuple[int, int]]


class SubjectTable:
    """`messages` and `size_bytes` of the stream, and per subject the count and the last sequence.

    `with_history`: keep the sequences of each subject. `find_before(subject, sequence)`: the last message of a subject
    below a sequence, 0 for none.
    """

    def __init__(
        self, *, with_history: bool = False, find_before: Callable[[bytes, int], int] = lambda _subject, _sequence: 0
    ) -> None:
        self.messages = 0
        self.size_bytes = 0
        self._with_history = with_history
        self._find_before = find_before
        self._subjects: dict[bytes, SubjectEntry] = {}

    def __len__(self) -> int:
        return len(self._subjects)

    @property
    def with_history(self) -> bool:
        return self._with_history

    def add(self, subject: bytes, sequence: int, size: int) -> SubjectEntry:
        """A message became durable; sequences arrive in ascending order."""
        self.messages += 1
        self.size_bytes += size
        entry = self._subjects.get(subject)
        if entry is None:
            entry = self._subjects[subject] = SubjectEntry(deque() if self._with_history else None)
        entry.count += 1
        entry.last = sequence
        if entry.history is not None:
            entry.history.append((sequence, size))
        return entry

    def add_all(self, items: list[Item]) -> tuple[int, int]:
        """As `add` for each that has a subject, when no history is kept; returns the first sequence and how many."""
        subjects = self._subjects
        first: cython.longlong = 0
        count: cython.longlong = 0
        size: cython.longlong = 0
        item: Item
        before: bytes = b""
        entry: SubjectEntry | None = None
        for item in items:
            if item.subject:
                if entry is None or item.subject != before:
                    before = item.subject
                    entry = subjects.get(before)
                    if entry is None:
                        entry = subjects[before] = SubjectEntry(None)
                entry.count += 1
                entry.last = item.sequence
                size += item.size
                count += 1
                if first == 0:
                    first = item.sequence
        self.messages += count
        self.size_bytes += size
        return first, count

    def replace_all(self, items: list[Item], most: cython.longlong) -> tuple[int, int, list[int], list[bytes]]:
        """As `add_all` when a history is kept: of each subject the oldest messages beyond `most` are removed. Also returns
        their sequences and subjects."""
        subjects = self._subjects
        first: cython.longlong = 0
        count: cython.longlong = 0
        size: cython.longlong = 0
        gone: list[int] = []
        gone_subjects: list[bytes] = []
        item: Item
        entry: SubjectEntry | None
        for item in items:
            if not item.subject:
                continue
            entry = subjects.get(item.subject)
            if entry is None:
                entry = subjects[item.subject] = SubjectEntry(deque())
            history = entry.history
            assert history is not None
            history.append((item.sequence, item.size))
            entry.count += 1
            entry.last = item.sequence
            while entry.count > most:
                oldest, oldest_size = history.popleft()
                entry.count -= 1
                size -= oldest_size
                gone.append(oldest)
                gone_subjects.append(item.subject)
            size += item.size
            count += 1
            if first == 0:
                first = item.sequence
        self.messages += count - len(gone)
        self.size_bytes += size
        return first, count, gone, gone_subjects

    def remove_records(self, records: list[StoredRecord], *, in_memory: cython.bint) -> list[tuple[int, bytes]]:
        """As `remove` for each of these; returns their sequences and subjects. `in_memory`: how they are counted."""
        gone: list[tuple[int, bytes]] = []
        record: StoredRecord
        size: cython.longlong
        for record in records:
            if in_memory:
                size = memory_size(record.subject, record.header_block, record.payload)
            else:
                size = stored_size(record.subject, record.header_block, record.payload)
            self.remove(record.subject, record.offset + 1, size)
            gone.append((record.offset + 1, record.subject))
        return gone

    def remove(self, subject: bytes, sequence: cython.longlong, size: cython.longlong) -> None:
        """A message was removed."""
        entry: SubjectEntry | None = self._subjects.get(subject)
        if entry is None:
            return
        self.messages -= 1
        self.size_bytes -= size
        entry.count -= 1
        if entry.count <= 0:
            del self._subjects[subject]
            return
        if entry.history is not None:
            if entry.history[0][0] == sequence:
                entry.history.popleft()
            else:
                entry.history = deque([item for item in entry.history if item[0] != sequence])
        if entry.last == sequence:
            entry.last = entry.history[len(entry.history) - 1][0] if entry.history else -sequence

    def forget_lasts(self, start: int, end: int) -> None:
        """The messages from sequence `start` up to `end` cannot be read: mark the last message of their subjects as
        unknown."""
        for entry in self._subjects.values():
            if start <= entry.last < end:
                entry.last = -entry.last

    def correct(self, excess: dict[bytes, int], excess_bytes: int) -> None:
        """Subtract the excess of each subject, when no history is kept; the total stays."""
        self.size_bytes -= excess_bytes
        for subject, count in excess.items():
            entry = self._subjects.get(subject)
            if entry is not None and count:
                entry.count -= count
                if entry.count <= 0:
                    del self._subjects[subject]

    def clear(self) -> None:
        """Forget everything: all messages were removed."""
        self.messages = self.size_bytes = 0
        self._subjects.clear()

    def names(self) -> list[bytes]:
        """A new list of all subjects."""
        return list(self._subjects)

    def entry(self, subject: bytes) -> SubjectEntry | None:
        """The entry of one subject; None when it has no messages."""
        return self._subjects.get(subject)

    def lasts_of(self, names: list[bytes]) -> list[int]:
        """Sequences of the last messages of these subjects; subjects without messages are left out."""
        found = [(name, self._subjects.get(name)) for name in names]
        return [self._last_of(name, entry) for name, entry in found if entry is not None]

    def total(self, subject: bytes) -> int:
        """The number of messages of one subject."""
        entry = self._subjects.get(subject)
        return entry.count if entry is not None else 0

    def last(self, pattern: bytes) -> cython.Py_ssize_t:
        """Sequence of the last message whose subject matches; 0 when there is none."""
        if (b"*" not in pattern and b">" not in pattern) or is_literal(pattern):
            entry: SubjectEntry | None = self._subjects.get(pattern)
            if entry is None:
                return 0
            return entry.last if entry.last >= 0 else self._last_of(pattern, entry)
        return self._last_matching(pattern)

    def _last_matching(self, pattern: bytes) -> int:
        return max((self._last_of(subject, entry) for subject, entry in self._matching(pattern)), default=0)

    def lasts(self, wanted: SubjectFilter) -> list[int]:
        """Sequences of the last message of each matching subject, ascending."""
        return sorted(self._last_of(subject, entry) for subject, entry in self._wanted(wanted))

    def count(self, wanted: SubjectFilter) -> int:
        """The number of messages whose subject matches."""
        total: cython.longlong = 0
        entry: SubjectEntry
        if wanted.literals:
            return sum([entry.count for _, entry in self._wanted(wanted)])
        for subject, entry in self._subjects.items():
            if wanted.matches(subject):
                total += entry.count
        return total

    def sequences_from(self, wanted: SubjectFilter, sequence: cython.longlong) -> list[int] | None:
        """The sequences from `sequence` on of literal subjects, ascending. None where they are in the log only (no history
        is kept, and the last message of a subject is not its only one), and where there are too many to list."""
        found: list[int] = []
        entry: SubjectEntry
        if len(wanted.patterns) > MOST_LISTED:
            return None
        for _, entry in self._wanted(wanted):
            if abs(entry.last) < sequence:
                continue
            if entry.history is not None and entry.count <= MOST_LISTED:
                found += [each for each, _ in entry.history if each >= sequence]
            elif entry.count == 1 and entry.last > 0:
                found.append(entry.last)
            else:
                return None
        return sorted(found)

    def counts(self, pattern: bytes) -> list[tuple[bytes, int]]:
        """(subject, messages) of the matching subjects, in the order of the subjects."""
        return sorted((subject, entry.count) for subject, entry in self._matching(pattern))

    def rows(self) -> list[SubjectRow]:
        """All entries, for `restore`."""
        return [SubjectRow(s, e.count, e.last, list(e.history or ())) for s, e in self._subjects.items()]

    def restore(self, rows: Iterable[SubjectRow], messages: int, size: int) -> None:
        """Restore the result of `rows`, and the totals."""
        self.messages, self.size_bytes = messages, size
        for row in rows:
            entry = self._subjects[row.subject] = SubjectEntry(deque(row.history) if self._with_history else None)
            entry.count, entry.last = row.count, row.last

    def _last_of(self, subject: bytes, entry: SubjectEntry) -> int:
        if entry.last < 0:
            entry.last = self._find_before(subject, -entry.last)
        return entry.last

    def _matching(self, pattern: bytes) -> Iterator[tuple[bytes, SubjectEntry]]:
        if is_literal(pattern):
            entry = self._subjects.get(pattern)
            return iter([(pattern, entry)] if entry is not None else [])
        return (item for item in self._subjects.items() if matches(pattern, item[0]))

    def _wanted(self, wanted: SubjectFilter) -> Iterator[tuple[bytes, SubjectEntry]]:
        if wanted.literals:
            found = ((pattern, self._subjects.get(pattern)) for pattern in wanted.patterns)
            return ((pattern, entry) for pattern, entry in found if entry is not None)
        return (item for item in self._subjects.items() if wanted.matches(item[0]))
