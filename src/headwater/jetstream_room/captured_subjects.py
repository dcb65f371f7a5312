"""Which subjects the streams of an account capture, so that an overlap is found without a look at each of them.

Two patterns can only match the same subject if the literal beginning of one (up to its first wildcard) begins with that of
the other. So the beginnings are kept in order: those that begin with a given one are neighbours, and those that a given one
begins with are as few as it has characters. With 600 streams, comparing a new stream with each of them took 0.25 ms, a
fifth of its creation.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from headwater.model.subject import patterns_overlap


class CapturedSubjects:
    """The subjects of each stream, by its name."""

    def __init__(self) -> None:
        self._subjects: dict[str, list[str]] = {}
        self._begun: dict[str, list[tuple[str, str]]] = {}  # by beginning: the stream and its subject
        self._beginnings: list[str] = []  # the keys of `_begun`, in order

    def put(self, name: str, subjects: Iterable[str]) -> None:
        """The stream captures these, and no others."""
        self.drop(name)
        self._subjects[name] = list(subjects)
        for subject in self._subjects[name]:
            beginning = literal_beginning(subject)
            if beginning not in self._begun:
                insort(self._beginnings, beginning)
            self._begun.setdefault(beginning, []).append((name, subject))

    def drop(self, name: str) -> None:
        """The stream is gone; not an error when it was not there."""
        for subject in self._subjects.pop(name, ()):
            beginning = literal_beginning(subject)
            begun = self._begun[beginning]
            begun.remove((name, subject))
            if not begun:
                del self._begun[beginning]
                del self._beginnings[bisect_left(self._beginnings, beginning)]

    def overlap(self, name: str, subjects: Iterable[str]) -> bool:
        """Whether a stream of another name captures one of these."""
        return any(
            patterns_overlap(subject.encode(), other.encode())
            for subject in subjects
            for beginning in self._related(literal_beginning(subject))
            for owner, other in self._begun[beginning]
            if owner != name
        )

    def _related(self, beginning: str) -> Iterator[str]:
        """The beginnings that begin with this one, or that it begins with."""
        for size in range(len(beginning)):
            if beginning[:size] in self._begun:
                yield beginning[:size]
        for at in range(bisect_left(self._beginnings, beginning), len(self._beginnings)):
            if not self._beginnings[at].startswith(beginning):
                return
            yield self._beginnings[at]


def literal_beginning(subject: str) -> str:
    """The beginning that all subjects have which this one matches."""
    return subject.partition("*")[0].partition(">")[0]
