# cython: boundscheck=True, wraparound=True
"""The newest published batches in memory, so that readers at the end of the log do not read the disk.

Bounded by bytes (bodies plus what the objects cost); the newest batch always stays, whatever its size. The batches are
consecutive up to the end of the log, so "at or after the first of them" is the whole condition for a hit. Belongs to
the loop thread.

Large batches of Iggy's are not kept: polls send them from the file.

A batch from which single records are read is stepped through once, and every MARK_EVERY-th place in it kept: group commit
puts hundreds of records into a batch, and stepping over half of them cost a key-value get a quarter of its time.
"""

from bisect import bisect_right

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.log_format import BatchHeader, RecordCursor, StoredRecord
else:
    from headwater.streams.log_format import BatchHeader, RecordCursor, StoredRecord

from headwater.streams.log_format import DIALECT_IGGY
from headwater.streams.segment import LARGE_BATCH

OBJECT_COST = 400  # bytes per batch for header tuple, numbers and list slots: what counts when batches hold one record
MARK_EVERY: int = 16  # records; some 5 bytes for each of them, which `size` leaves out


class RecentBatches:
    """Batches in offset order; `size` is what they cost in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bases: list[int] = []
        self._batches: list[tuple[BatchHeader, list[bytes]]] = []  # bodies in pieces, until one is read
        self._marks: dict[int, tuple[list[int], list[int]]] = {}  # base offset: offsets, and where their records begin
        self.size = 0

    def add(self, header: BatchHeader, body: list[bytes]) -> None:
        """A batch was published behind all others. The list is this object's from now on."""
        if self._limit == 0:
            return
        if header.dialect == DIALECT_IGGY and header.body_size >= LARGE_BATCH:
            self._bases.clear()  # what is kept reaches the end of the log
            self._batches.clear()
            self._marks.clear()
            self.size = 0
            return
        self._bases.append(header.base_offset)
        self._batches.append((header, body))
        self.size += header.body_size + OBJECT_COST
        if self.size > self._limit:
            self._shrink()

    def reaches(self, offset: cython.longlong) -> cython.bint:
        """Whether what has this offset, or comes behind it, is in memory."""
        return len(self._bases) > 0 and offset >= self._bases[0]

    def since(self, offset: int, max_bytes: int) -> list[tuple[BatchHeader, bytes]] | None:
        """The batches that end above `offset`, until their bodies hold `max_bytes`; None when older ones than these are
        needed, [] when there are none."""
        first = bisect_right(self._bases, offset) - 1
        if first < 0:
            return None
        if self._batches[first][0].end_offset <= offset:
            first += 1
        found = []
        for at in range(first, len(self._batches)):
            found.append((self._batches[at][0], self._body(at)))
            max_bytes -= self._batches[at][0].body_size
            if max_bytes <= 0:
                break
        return found

    def record(self, offset: cython.longlong) -> StoredRecord | None:
        """The record with this offset; None where it is not in memory, or in a batch of the other dialect."""
        if not self._bases or offset < self._bases[0]:
            return None
        place: cython.Py_ssize_t = bisect_right(self._bases, offset) - 1
        header: BatchHeader = self._batches[place][0]
        body: bytes = self._body(place)
        if header.dialect == DIALECT_IGGY:
            return None
        start: cython.Py_ssize_t = 0
        if header.record_count > MARK_EVERY:
            offsets, starts = self._marks.get(header.base_offset) or self._mark(header, body)
            start = starts[max(0, bisect_right(offsets, offset) - 1)]
        cursor = RecordCursor(body, start, len(body), header.base_offset, header.version)
        while cursor.advance():
            if cursor.offset >= offset:
                return cursor.record() if cursor.offset == offset else None
        return None

    def _body(self, place: cython.Py_ssize_t) -> bytes:
        pieces: list[bytes] = self._batches[place][1]
        if len(pieces) > 1:
            pieces[:] = [b"".join(pieces)]
        return pieces[0]

    def _mark(self, header: BatchHeader, body: bytes) -> tuple[list[int], list[int]]:
        offsets: list[int] = []
        starts: list[int] = []
        count: cython.Py_ssize_t = 0
        cursor = RecordCursor(body, 0, len(body), header.base_offset, header.version)
        while cursor.advance():
            if count % MARK_EVERY == 0:
                offsets.append(cursor.offset)
                starts.append(cursor.start)
            count += 1
        found = self._marks[header.base_offset] = (offsets, starts)
        return found

    def _shrink(self) -> None:
        """Drop old batches down to three quarters of the limit, so that the lists are shifted rarely."""
        drop = 0
        while self.size * 4 > self._limit * 3 and drop < len(self._batches) - 1:
            self.size -= self._batches[drop][0].body_size + OBJECT_COST
            self._marks.pop(self._bases[drop], None)
            drop += 1
        del self._batches[:drop]
        del self._bases[:drop]
