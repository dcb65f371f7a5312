# cython: boundscheck=True, wraparound=True
"""A sparse index of a segment by offset and by time: one entry per `SPACING` bytes of batches.

Sparse, so that ten million one-record batches cost megabytes and not hundreds of them; in memory, built while the
batches are checked at opening and extended as they are published. It is only a hint: a reader walks the batches from
the returned position, checks each of them, and never relies on the index for the contents.

Offsets and positions ascend. Clocks step back, so for time an entry holds the latest time stamp of everything before it:
if that is too early, so is every record before the entry.
"""

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import cython

if cython.compiled:
    from cython.cimports.cpython import array as carray

if TYPE_CHECKING:
    Numbers = array[int]
else:
    Numbers = array  # which takes no parameter before Python 3.12

SPACING = 4096  # bytes; a look-up reads at most this much (or one batch) too much, and 1 GiB costs 6 MiB of index
BEFORE_ALL = -(1 << 63)


class SparseIndex:
    """Batch base offsets, their file positions, and the latest time stamp before each. Positions start at `start`."""

    def __init__(self, start: int) -> None:
        self.offsets = array("Q")
        self.positions = array("Q")
        self.times = array("q")
        self.latest = BEFORE_ALL
        self._start = start
        self._next = start

    @classmethod
    def restored(cls, start: int, offsets: Numbers, positions: Numbers, times: Numbers, latest: int) -> "SparseIndex":
        """An index that was stored; the arrays become its own."""
        index: SparseIndex = cls(start)
        index.offsets, index.positions, index.times, index.latest = offsets, positions, times, latest
        if positions:
            index._next = positions[-1] + SPACING
        return index

    def add(self, base_offset: int, position: int, first_ns: int = 0, last_ns: int = 0) -> None:
        """Note the batch at `position`, with its first and last time stamp; an entry is kept only when the last one is
        `SPACING` bytes behind."""
        if position >= self._next:
            self.offsets.append(base_offset)
            self.positions.append(position)
            self.times.append(self.latest)
            self._next = position + SPACING
        self.latest = max(self.latest, first_ns, last_ns)

    def locate(self, offset: int) -> tuple[int, int]:
        """(position, base offset) of a batch at or before the one that holds `offset`."""
        entry = self.entry(offset)
        if entry < 0:
            return self._start, 0
        return self.positions[entry], self.offsets[entry]

    def entry(self, offset: cython.longlong) -> cython.Py_ssize_t:
        """The number of the entry of which `locate` tells; -1 where the segment begins."""
        if cython.compiled:  # the other way compares ten objects in a segment of 1,000 entries: 0.3 us
            low: cython.Py_ssize_t = 0
            count: cython.Py_ssize_t = len(self.offsets)
            half: cython.Py_ssize_t
            offsets: cython.p_longlong = cython.cast(
                cython.p_longlong, cython.cast(carray.array, self.offsets).data.as_ulonglongs
            )
            if count == 0 or offsets[0] > offset:
                return -1
            while count > 1:  # no branch that the processor has to guess, half of the time wrongly
                half = count >> 1
                low += half & -cython.cast(cython.Py_ssize_t, offsets[low + half] <= offset)
                count -= half
            return low
        return bisect_right(self.offsets, offset) - 1

    def offset_before(self, time_ns: int) -> int:
        """An offset below which every record is older than `time_ns`."""
        entry = bisect_left(self.times, time_ns) - 1
        return self.offsets[entry] if entry >= 0 else 0

    def __len__(self) -> int:
        return len(self.offsets)
