"""Recounts the messages of a stream by subject, after damage that destroyed subjects.

A table without a history has the number of messages of a subject, but not which they are. So the readable records are
counted, interleaved with the broker's other work; the table's excess over that count is the number of lost messages.
The difference does not change while the count runs, because a lost message is neither stored nor removed again:

    stored meanwhile      behind the end at which the count began, so in neither of the two numbers
    removed meanwhile     counted as read, when the count had not come so far (`note_removed`)
"""

from collections.abc import Callable, Iterator

from headwater.streams.log import Log, StoredRecord

RECORDS_A_TURN = 4096
BYTES_A_TURN = 4 << 20


class Recount:
    """One count. `excess` starts as the table's number of messages by subject and ends as the number of lost ones,
    `excess_bytes` likewise; messages from offset `end` on are in neither."""

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
        """Read all records, a part per step of the iterator. Raises StorageError."""
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
