# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The table of a stream's subjects: number of messages and last sequence of each. In memory, some 50 bytes per subject.

It serves requests by subject (`num_subjects`, `last_by_subj`, Nats-Expected-Last-Subject-Sequence, the pending count of
a filtered consumer) without reading the log. It is derived data: filled from the log when a stream is opened (or from
the document of a clean stop), and updated with every durable batch. Only durable messages are in it.

With a limit per subject the table also has the sequences of all its messages (`history`), so that the oldest is known
when another arrives; of a subject with one message, as most of a bucket, they are in its row. Without a history, the last
message of a subject may become unknown when it is deleted: the next request searches for it once.

`SubjectFilter` is the filter of a consumer, with a cache, because the subjects of a stream repeat. `previous_of` and
`replaced_by` tell what a batch stands in for, before the table counts it.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import cython
import msgspec

if cython.compiled:
    from cython.cimports.headwater.jetstream_state.items import Item
    from cython.cimports.headwater.jetstream_state.subject_rows import SubjectRows
    from cython.cimports.headwater.model.subject_match import matches, matches_one
    from cython.cimports.headwater.streams.log_format import StoredRecord
    from cython.cimports.headwater.streams.record_places import RecordPlaces
else:
    from headwater.jetstream_state.items import Item
    from headwater.jetstream_state.subject_rows import SubjectRows
    from headwater.model.subject_match import matches, matches_one
    from headwater.streams.log_format import StoredRecord
    from headwater.streams.record_places import RecordPlaces

from headwater.model.subject import is_literal
from headwater.model.thinning import thin_out
from headwater.streams.log_reader import Wanted

STORE_OVERHEAD = 30  # bytes that nats-server's file store adds to a message; what STREAM.INFO calls bytes includes them
HEADER_OVERHEAD = 4  # added to a message with a header block
MEMORY_OVERHEAD = 16  # the same for its memory store, with or without headers
# In C: with objects the sum took 200 to 380 instructions of a message's 6,100.
_STORE_OVERHEAD: cython.Py_ssize_t = STORE_OVERHEAD
_HEADER_OVERHEAD: cython.Py_ssize_t = HEADER_OVERHEAD
_MEMORY_OVERHEAD: cython.Py_ssize_t = MEMORY_OVERHEAD
CACHED_SUBJECTS = 8192
# Patterns with wildcards of a filter that are compared with each subject; the answers of more are cached. A comparison takes
# 20 ns, a look into the cache 50. Interpreted, a comparison takes as long as ten looks.
COMPARED: int = 4 if cython.compiled else 0
MOST_LISTED = (
    64  # subjects of a filter, and messages of one of them, whose sequences are listed; a bucket's longest history
)
AHEAD: int = 32  # items whose rows are read ahead, some 3 KiB of the processor's caches
_DOT: cython.int = ord(".")


def stored_size(subject: bytes, header_block: bytes, payload: bytes) -> int:
    """Bytes that STREAM.INFO counts for a message, as nats-server's file store does, so that the two can be
    compared."""
    size: cython.Py_ssize_t = _STORE_OVERHEAD + len(subject) + len(payload)
    return size + _HEADER_OVERHEAD + len(header_block) if header_block else size


def memory_size(subject: bytes, header_block: bytes, payload: bytes) -> int:
    """The same for a stream with memory storage."""
    return _MEMORY_OVERHEAD + len(subject) + len(header_block) + len(payload)


def no_places(*, in_memory: bool) -> RecordPlaces:
    """To be filled; weighs records as `memory_size` or `stored_size`."""
    if in_memory:
        return RecordPlaces(MEMORY_OVERHEAD, MEMORY_OVERHEAD)
    return RecordPlaces(STORE_OVERHEAD, STORE_OVERHEAD + HEADER_OVERHEAD)


class SubjectFilter:
    """True for subjects that match one of the patterns. Patterns without a wildcard but a last `>`, such as a bucket's, only
    look at the beginning. Where more than COMPARED others have wildcards, the answers are kept for CACHED_SUBJECTS
    subjects."""

    patterns: tuple[bytes, ...]

    def __init__(self, patterns: Iterable[bytes]) -> None:
        self.patterns = tuple(patterns)
        self.literals = all(map(is_literal, self.patterns))
        wild = [pattern for pattern in self.patterns if pattern == b">" or pattern.endswith(b".>")]
        heads = [pattern[:-1] for pattern in wild if is_literal(pattern[:-2])]
        self._heads = tuple(heads) if len(heads) == len(self.patterns) else ()
        self._literal = frozenset(filter(is_literal, self.patterns))
        self._wild = tuple(pattern for pattern in self.patterns if pattern not in self._literal)
        self._known: dict[bytes, bool] = {}

    @property
    def compared(self) -> Wanted | tuple[bytes, ...]:
        """The same for `LogReader.find_places`: the patterns, if all there is to do is to compare a subject with each."""
        return self._wild if not self._literal and not self._heads and len(self._wild) <= COMPARED else self.wanted

    @property
    def wanted(self) -> Wanted:
        """The same for `Log.read_matching`: a subject if it can be only one."""
        return self.patterns[0] if self.literals and len(self.patterns) == 1 else self.matches

    def matches(self, subject: bytes) -> cython.bint:
        if self._heads:
            return subject.startswith(self._heads) and _is_whole(subject)
        if self._literal and subject in self._literal:
            return True
        if len(self._wild) <= COMPARED:
            return matches_one(self._wild, subject)
        known: bool | None = self._known.get(subject)
        if known is None:
            if len(self._known) >= CACHED_SUBJECTS:
                thin_out(self._known)
            known = self._known[subject] = matches_one(self._wild, subject)
        return known is True


def _is_whole(subject: bytes) -> cython.bint:
    """Whether no token is empty."""
    size: cython.Py_ssize_t = len(subject)
    return size > 0 and subject[0] != _DOT and subject[size - 1] != _DOT and b".." not in subject


class SubjectRow(msgspec.Struct, array_like=True):
    """The stored form of a subject."""

    subject: bytes
    count: int
    last: int
    history: list[tuple[int, int]]


class SubjectTable:
    """`messages` and `size_bytes` of the stream, and per subject the count and the last sequence. That is negative where the
    last message is unknown, but below that number.

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
        self._rows = SubjectRows(with_weight=with_history)
        self._histories: dict[bytes, deque[tuple[int, int]]] = {}  # of subjects with several messages: oldest first

    def __len__(self) -> int:
        return self._rows.size

    @property
    def with_history(self) -> bool:
        return self._with_history

    def _place_of(self, subject: bytes) -> cython.Py_ssize_t:
        """Of a row that may be new."""
        place: cython.Py_ssize_t = self._rows.find(subject)
        return place if place else self._rows.add(subject)

    def add(self, subject: bytes, sequence: int, size: int) -> None:
        """A message became durable; sequences arrive in ascending order."""
        self.messages += 1
        self.size_bytes += size
        place = self._place_of(subject)
        count = self._rows.count(place)
        if self._with_history:
            if count:
                self._history_of(subject, place).append((sequence, size))
            self._rows.set_weight(place, size)
        self._rows.set(place, count + 1, sequence)

    def _history_of(self, subject: bytes, place: cython.Py_ssize_t) -> deque[tuple[int, int]]:
        """The history of a subject with messages, to be extended."""
        history = self._histories.get(subject)
        if history is None:
            history = deque([(self._rows.last(place), self._rows.weight(place))])
            self._histories[subject] = history
        return history

    def add_all(self, items: list[Item]) -> tuple[int, int]:
        """As `add` for each that has a subject, when no history is kept; returns the first sequence and how many."""
        rows: SubjectRows = self._rows
        first: cython.longlong = 0
        count: cython.longlong = 0
        size: cython.longlong = 0
        item: Item
        before: bytes = b""
        place: cython.Py_ssize_t = 0
        at: cython.Py_ssize_t
        number: cython.Py_ssize_t = len(items)
        for at in range(number):
            if at % AHEAD == 0:
                self._read_ahead(items, at, min(at + AHEAD, number))
            item = items[at]
            if item.subject:
                if place == 0 or item.subject != before:
                    before = item.subject
                    place = rows.find(before)
                    if place == 0:
                        place = rows.add(before)
                rows.set(place, rows.count(place) + 1, item.sequence)
                size += item.size
                count += 1
                if first == 0:
                    first = item.sequence
        self.messages += count
        self.size_bytes += size
        return first, count

    def _read_ahead(self, items: list[Item], start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """Have the rows of these read from memory, all at a time: each takes as long as fifty messages' subjects take that
        are in the processor's caches."""
        if cython.compiled and end - start > 2:
            item: Item
            at: cython.Py_ssize_t
            for at in range(start, end):
                item = items[at]
                self._rows.slot_ahead(item.subject)
            for at in range(start, end):
                item = items[at]
                self._rows.row_ahead(item.subject)
        return 0

    def replace_all(self, items: list[Item], most: cython.longlong) -> tuple[int, int, list[int], list[bytes]]:
        """As `add_all` when a history is kept: of each subject the oldest messages beyond `most` are removed. Also returns
        their sequences and subjects."""
        rows: SubjectRows = self._rows
        first: cython.longlong = 0
        count: cython.longlong = 0
        size: cython.longlong = 0
        held: cython.longlong
        gone: list[int] = []
        gone_subjects: list[bytes] = []
        item: Item
        place: cython.Py_ssize_t
        at: cython.Py_ssize_t
        number: cython.Py_ssize_t = len(items)
        for at in range(number):
            if at % AHEAD == 0:
                self._read_ahead(items, at, min(at + AHEAD, number))
            item = items[at]
            if not item.subject:
                continue
            place = self._place_of(item.subject)
            held = rows.count(place)
            if held == 1 and most == 1:
                gone.append(rows.last(place))
                gone_subjects.append(item.subject)
                size -= rows.weight(place)
                held = 0
            elif held > 0:
                history = self._history_of(item.subject, place)
                history.append((item.sequence, item.size))
                while held >= most:
                    oldest, oldest_size = history.popleft()
                    held -= 1
                    size -= oldest_size
                    gone.append(oldest)
                    gone_subjects.append(item.subject)
                if held == 0:
                    del self._histories[item.subject]
            rows.set(place, held + 1, item.sequence)
            rows.set_weight(place, item.size)
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

    def remove_all(self, places: RecordPlaces) -> None:
        """As `remove` for each of these."""
        at: cython.Py_ssize_t
        for at in range(len(places.offsets)):
            self.remove(places.subjects[at], places.offsets[at] + 1, places.sizes[at])

    def remove(self, subject: bytes, sequence: cython.longlong, size: cython.longlong) -> None:
        """A message was removed."""
        rows: SubjectRows = self._rows
        place: cython.Py_ssize_t = rows.find(subject)
        if place == 0:
            return
        self.messages -= 1
        self.size_bytes -= size
        count: cython.longlong = rows.count(place) - 1
        last: cython.longlong = rows.last(place)
        if count <= 0:
            rows.drop(place, subject)
            return
        if self._with_history:
            last = self._remove_from_history(subject, place, sequence)
        elif last == sequence:
            last = -sequence
        rows.set(place, count, last)

    def _remove_from_history(
        self, subject: bytes, place: cython.Py_ssize_t, sequence: cython.longlong
    ) -> cython.Py_ssize_t:
        """Of a subject with several messages; returns the last one that is left."""
        history = self._histories[subject]
        if history[0][0] == sequence:
            history.popleft()
        else:  # mostly near the front: acks that overtook others
            end: cython.Py_ssize_t = 1
            while end < len(history) and history[end][0] < sequence:
                end *= 2
            at: cython.Py_ssize_t = bisect_left(history, (sequence,), end // 2, min(end + 1, len(history)))
            if at < len(history) and history[at][0] == sequence:
                del history[at]
        last, weight = history[len(history) - 1]
        if len(history) == 1:
            del self._histories[subject]
        self._rows.set_weight(place, weight)
        return last

    def forget_lasts(self, start: int, end: int) -> None:
        """The messages from sequence `start` up to `end` cannot be read: mark the last message of their subjects as
        unknown."""
        for place in self._places():
            last = self._rows.last(place)
            if start <= last < end:
                self._rows.set(place, self._rows.count(place), -last)

    def correct(self, excess: dict[bytes, int], excess_bytes: int) -> None:
        """Subtract the excess of each subject, when no history is kept; the total stays."""
        self.size_bytes -= excess_bytes
        for subject, count in excess.items():
            place = self._rows.find(subject)
            if place and count:
                left = self._rows.count(place) - count
                if left <= 0:
                    self._rows.drop(place, subject)
                else:
                    self._rows.set(place, left, self._rows.last(place))

    def clear(self) -> None:
        """Forget everything: all messages were removed."""
        self.messages = self.size_bytes = 0
        self._rows.clear()
        self._histories.clear()

    def names(self, most: int) -> Iterator[list[bytes]]:
        """All subjects, `most` at a time. Those that are added or removed meanwhile may be left out."""
        names: list[bytes] = []
        for place in self._places():
            names.append(self._rows.name(place))
            if len(names) >= most:
                yield names
                names = []
        if names:
            yield names

    def _places(self) -> Iterator[int]:
        """Of all rows, which stay where they are meanwhile."""
        rows: SubjectRows = self._rows
        generation: cython.Py_ssize_t = rows.generation
        place: cython.Py_ssize_t = 0
        rows.begin_scan()
        try:
            while rows.generation == generation and (place := rows.following(place)) != 0:
                yield place
        finally:
            rows.end_scan()

    def entry(self, subject: bytes) -> tuple[int, int]:
        """Count and last sequence of one subject; (0, 0) when it has no messages."""
        place = self._rows.find(subject)
        if not place:
            return 0, 0
        return self._rows.count(place), self._rows.last(place)

    def history(self, subject: bytes) -> list[tuple[int, int]]:
        """(sequence, size) of its messages, oldest first, when a history is kept."""
        place = self._rows.find(subject)
        if not place or not self._with_history:
            return []
        history = self._histories.get(subject)
        return list(history) if history is not None else [(self._rows.last(place), self._rows.weight(place))]

    def lasts_of(self, names: list[bytes]) -> list[int]:
        """Sequences of the last messages of these subjects; subjects without messages are left out."""
        return [self._last_of(name, place) for name in names if (place := self._rows.find(name))]

    def total(self, subject: bytes) -> cython.Py_ssize_t:
        """The number of messages of one subject."""
        place: cython.Py_ssize_t = self._rows.find(subject)
        return self._rows.count(place) if place else 0

    def last(self, pattern: bytes) -> cython.Py_ssize_t:
        """Sequence of the last message whose subject matches; 0 when there is none."""
        if (b"*" not in pattern and b">" not in pattern) or is_literal(pattern):
            place: cython.Py_ssize_t = self._rows.find(pattern)
            if place == 0:
                return 0
            last: cython.longlong = self._rows.last(place)
            return last if last >= 0 else self._last_of(pattern, place)
        return self._last_matching(pattern)

    def _last_matching(self, pattern: bytes) -> int:
        return max((self._last_of(subject, place) for subject, place in self._matching(pattern)), default=0)

    def lasts(self, wanted: SubjectFilter) -> list[int]:
        """Sequences of the last message of each matching subject, ascending."""
        return sorted(self._last_of(subject, place) for subject, place in self._wanted(wanted))

    def count(self, wanted: SubjectFilter) -> int:
        """The number of messages whose subject matches."""
        rows: SubjectRows = self._rows
        total: cython.longlong = 0
        place: cython.Py_ssize_t = 0
        if wanted.literals:
            return sum([self.total(pattern) for pattern in wanted.patterns])
        while (place := rows.following(place)) != 0:
            if wanted.matches(rows.name(place)):
                total += rows.count(place)
        return total

    def sequences_from(self, wanted: SubjectFilter, sequence: cython.longlong) -> list[int] | None:
        """The sequences from `sequence` on of literal subjects, ascending. None where they are in the log only (no history
        is kept, and the last message of a subject is not its only one), and where there are too many to list."""
        found: list[int] = []
        if len(wanted.patterns) > MOST_LISTED:
            return None
        for subject, place in self._wanted(wanted):
            count, last = self._rows.count(place), self._rows.last(place)
            if abs(last) < sequence:
                continue
            if count == 1 and last > 0:
                found.append(last)
            elif self._with_history and count <= MOST_LISTED:
                found += [each for each, _ in self.history(subject) if each >= sequence]
            else:
                return None
        return sorted(found)

    def counts(self, pattern: bytes) -> list[tuple[bytes, int]]:
        """(subject, messages) of the matching subjects, in the order of the subjects."""
        return sorted((subject, self._rows.count(place)) for subject, place in self._matching(pattern))

    def rows(self) -> list[SubjectRow]:
        """All entries, for `restore`."""
        found: list[SubjectRow] = []
        rows: SubjectRows = self._rows
        place: cython.Py_ssize_t = 0
        while (place := rows.following(place)) != 0:
            subject = rows.name(place)
            history = self.history(subject) if self._with_history else []
            found.append(SubjectRow(subject, rows.count(place), rows.last(place), history))
        return found

    def restore(self, rows: Iterable[SubjectRow], messages: int, size: int) -> None:
        """Restore the result of `rows`, and the totals."""
        self.messages, self.size_bytes = messages, size
        for row in rows:
            place = self._place_of(row.subject)
            self._rows.set(place, row.count, row.last)
            if self._with_history:
                if len(row.history) > 1:
                    self._histories[row.subject] = deque(row.history)
                self._rows.set_weight(place, row.history[len(row.history) - 1][1])

    def _last_of(self, subject: bytes, place: cython.Py_ssize_t) -> int:
        last = self._rows.last(place)
        if last < 0:
            last = self._find_before(subject, -last)
            place = self._rows.find(subject)  # what was read may have been damaged, and its subjects changed
            if place:
                self._rows.set(place, self._rows.count(place), last)
        return last

    def _matching(self, pattern: bytes) -> Iterator[tuple[bytes, int]]:
        if is_literal(pattern):
            place = self._rows.find(pattern)
            return iter([(pattern, place)] if place else [])
        named = ((self._rows.name(place), place) for place in self._places())
        return (item for item in named if matches(pattern, item[0]))

    def _wanted(self, wanted: SubjectFilter) -> Iterator[tuple[bytes, int]]:
        if wanted.literals:
            found = ((pattern, self._rows.find(pattern)) for pattern in wanted.patterns)
            return ((pattern, place) for pattern, place in found if place)
        named = ((self._rows.name(place), place) for place in self._places())
        return (item for item in named if wanted.matches(item[0]))


def previous_of(items: list[Item], subjects: SubjectTable) -> dict[int, int]:
    """By sequence, the message of the same subject before each of these, which are not added yet; 0 for none."""
    known: dict[bytes, int] = {}
    found: dict[int, int] = {}
    is_alone: cython.bint = False  # behind a roll-up of everything
    item: Item
    for item in items:
        if item.subject:
            sequence = item.sequence
            before = known.get(item.subject)
            found[sequence] = before if before is not None else 0 if is_alone else subjects.last(item.subject)
            if item.particulars is not None and item.particulars.rollup == b"all":
                known, is_alone = {}, True
            known[item.subject] = sequence
    return found


def replaced_by(items: list[Item], subjects: SubjectTable) -> dict[int, tuple[int, int]]:
    """By sequence of those of these, which are not added yet, that roll up their subject: the only message of the
    subject before it and its size, 0 for none and where only the log has the size. Those with more before them are
    left out: only the log has their sequences."""
    found: dict[int, tuple[int, int]] = {}
    newest: dict[bytes, tuple[int, int] | None] = {}  # None: more than one may be there
    item: Item
    kind: bytes
    for item in items:
        kind = item.particulars.rollup if item.particulars is not None else b""
        if kind == b"all":
            return found
        if kind == b"sub" and is_literal(item.subject):  # with wildcards it replaces messages of other subjects, too
            if item.subject not in newest:
                lone = subjects.total(item.subject) <= 1
                newest[item.subject] = (subjects.last(item.subject), 0) if lone else None
            only = newest[item.subject]
            if only is not None:
                found[item.sequence] = only
            newest[item.subject] = (item.sequence, item.size)
        elif item.subject:
            newest[item.subject] = None
    return found
