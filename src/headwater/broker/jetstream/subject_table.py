"""Which subjects a stream holds: how many messages, which was the last. In memory, about 200 bytes a subject.

It answers what clients ask by subject (`num_subjects`, `last_by_subj`, Nats-Expected-Last-Subject-Sequence, the pending
count of a filtered consumer) without a look at the log. It is derived: filled from the log when a stream is opened, one
read of everything, and kept up with every batch that became durable. Only durable messages are in it.

`SubjectFilter` is the filter of a consumer, with a cache, for a stream repeats its subjects.
"""

from collections.abc import Iterable

from headwater.model.subject import is_literal, matches

STORE_OVERHEAD = 30  # bytes that nats-server's file store adds to a message; what STREAM.INFO calls bytes includes them
HEADER_OVERHEAD = 4  # and to one with a header block
CACHED_SUBJECTS = 8192


def stored_size(subject: bytes, header_block: bytes, payload: bytes) -> int:
    """Bytes that STREAM.INFO counts for a message, as nats-server's file store does, so that the two can be
    compared."""
    size = STORE_OVERHEAD + len(subject) + len(payload)
    return size + HEADER_OVERHEAD + len(header_block) if header_block else size


class SubjectFilter:
    """True for subjects that match one of the patterns."""

    __slots__ = ("_known", "patterns")

    def __init__(self, patterns: Iterable[bytes]) -> None:
        self.patterns = tuple(patterns)
        self._known: dict[bytes, bool] = {}

    def matches(self, subject: bytes) -> bool:
        known = self._known.get(subject)
        if known is None:
            if len(self._known) >= CACHED_SUBJECTS:
                self._known.clear()
            known = self._known[subject] = any(matches(pattern, subject) for pattern in self.patterns)
        return known


class SubjectTable:
    """`messages` and `bytes` of the stream, and per subject the count and the last sequence."""

    __slots__ = ("_subjects", "bytes", "messages")

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self._subjects: dict[bytes, list[int]] = {}  # [messages, last sequence]

    def __len__(self) -> int:
        return len(self._subjects)

    def add(self, subject: bytes, sequence: int, size: int) -> None:
        """A message became durable; sequences arrive in ascending order."""
        self.messages += 1
        self.bytes += size
        entry = self._subjects.get(subject)
        if entry is None:
            self._subjects[subject] = [1, sequence]
        else:
            entry[0] += 1
            entry[1] = sequence

    def last(self, pattern: bytes) -> int:
        """Sequence of the last message whose subject matches; 0 when there is none."""
        if is_literal(pattern):
            entry = self._subjects.get(pattern)
            return entry[1] if entry is not None else 0
        return max((entry[1] for subject, entry in self._subjects.items() if matches(pattern, subject)), default=0)

    def lasts(self, wanted: SubjectFilter) -> list[int]:
        """Sequences of the last message of each matching subject, ascending."""
        return sorted(entry[1] for subject, entry in self._subjects.items() if wanted.matches(subject))

    def count(self, wanted: SubjectFilter) -> int:
        """Messages whose subject matches."""
        return sum(entry[0] for subject, entry in self._subjects.items() if wanted.matches(subject))

    def counts(self, pattern: bytes) -> list[tuple[bytes, int]]:
        """(subject, messages) of the matching subjects, in the order of the subjects."""
        return sorted((subject, entry[0]) for subject, entry in self._subjects.items() if matches(pattern, subject))
