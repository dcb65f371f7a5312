# cython: boundscheck=True, wraparound=True
"""The offsets of a log with a readable record: those of `[start, end)` that are not absent.

Absent are offsets whose record was deleted or is lost, and those skipped: of a refused batch, or by a jump after a
crash. Belongs to the loop thread.
"""

from collections.abc import Sequence

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.offset_set import OffsetSet
else:
    from headwater.streams.offset_set import OffsetSet


class LiveOffsets:
    """`count`: the number of readable records. `start` is never absent, unless no record is left: then it is `end`."""

    def __init__(self, start: cython.longlong, end: cython.longlong, count: cython.longlong, absent: OffsetSet) -> None:
        self.absent = absent
        self.end = end
        self.count = count
        self.start = min(absent.next_outside(start), end)

    def has(self, offset: cython.longlong) -> cython.bint:
        """Whether a readable record has this offset."""
        return self.start <= offset < self.end and not self.absent.has(offset)

    def count_in(self, start: cython.longlong, end: cython.longlong) -> int:
        """Readable records in `[start, end)`."""
        start, end = max(start, self.start), min(end, self.end)
        return end - start - self.absent.count(start, end) if start < end else 0

    def remove(self, start: cython.longlong, end: cython.longlong) -> int:
        """Remove the records in `[start, end)`; returns how many there were. Call `advance` afterwards."""
        gone: cython.longlong = self.absent.add(start, end)
        self.count -= gone
        return gone

    def remove_each(self, offsets: Sequence[int]) -> list[int]:
        """Remove the records at these offsets; returns the offsets of those that were there. Call `advance` afterwards."""
        gone = self.absent.add_each(offsets, self.start, self.end)
        self.count -= len(gone)
        return gone

    def advance(self) -> None:
        """Move `start` past what is absent."""
        self.start = min(self.absent.next_outside(self.start), self.end)
        self.absent.discard_below(self.start)

    def extend(self, base_offset: cython.longlong, end_offset: cython.longlong) -> None:
        """Records were added (and counted) up to `end_offset`; the offsets between the old end and `base_offset` were
        skipped."""
        if base_offset > self.end:
            self.absent.add(self.end, base_offset)
            if self.start == self.end:
                self.start = base_offset
        self.end = end_offset
