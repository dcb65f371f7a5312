"""The files that many logs have open for reading share one limit: a log of its own may keep a thousand, a server with a
thousand logs has descriptors for a fraction of that, and its clients need some of them.

For the logs of one event loop; they are read nowhere else, so no file is closed in the middle of a read.
"""

from collections import OrderedDict
from typing import Protocol

from headwater.durable_files.files import descriptors
from headwater.streams.segment import Segment

SHARE = 4  # a quarter of the process's descriptors; files that are written have an eighth (`group_commit.kept_files`)
FEWEST = 16


class Reader(Protocol):
    """A log's reader."""

    def give_up(self, segment: Segment) -> None:
        """Close the segment's file until it is read again."""


class ReadHandles:
    """At most `most` files; the one that was opened first is closed when another needs its place."""

    def __init__(self, most: int | None = None) -> None:
        self.most = max(descriptors() // SHARE, FEWEST) if most is None else most
        self._held: OrderedDict[Segment, Reader] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def take(self, segment: Segment, reader: Reader) -> None:
        """The segment's file is about to be opened."""
        self._held[segment] = reader
        while len(self._held) > self.most:
            first, its_reader = self._held.popitem(last=False)
            its_reader.give_up(first)

    def give_back(self, segment: Segment) -> None:
        """Its file is closed."""
        self._held.pop(segment, None)
