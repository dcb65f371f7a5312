"""Recounts the messages of a stream by subject, after damage that destroyed subjects.

A table without a history knows how many messages a subject has, not which. So the readable records are counted, in turns
with the broker's other work, and what the table has more of a subject is what was lost. That difference does not change
while the count runs, for a lost message is neither stored nor removed again:

    stored meanwhile      behind the end at which the count began, so in neither of the two numbers
    removed meanwhile     counted as read, when the count had not come so far (`note_removed`)
"""

from collections.abc import Callable, Iterator

from headwater.streams.log import Log, StoredRecord

RECORDS_A_TURN = 4096
BYTES_A_TURN = 4 << 20


class Recount:
    """One count. `excess` begins as what the table has of each subject and ends as what it has too many, `excess_bytes`
    likewise; messages from offset `end` on are not in either."""

    def __init__(self, excess: dict[bytes, int], excess_bytes: int, end: int) -> None:
        self.excess = excess
        self.excess_bytes = excess_bytes
        self._end = end
        self._at = 0

    def note_removed(self, subject: bytes, offset: int, size: int) -> None:
        """A message has left the stream."""
        if self._at <= offset < self._end:
            self._count(subject, size)

    def turns(self, log: Log, size_of: Callable[[StoredRecord], int]) -> Iterator[None]:
        """Read all there is, a piece for each step of the iterator. Raises StorageError."""
        while records := log.read(self._at, RECORDS_A_TURN, BYTES_A_TURN):
            for record in records:
                if record.offset >= self._end:
                    return
                self._count(record.subject, size_of(record))
            self._at = records[-1].offset + 1
            yield

    def _count(self, subject: bytes, size: int) -> None:
        self.excess[subject] = self.excess.get(subject, 0) - 1
        self.excess_bytes -= size
