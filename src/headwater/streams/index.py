"""Where in a segment to start looking for an offset: one entry per `SPACING` bytes of batches.

Sparse, so that ten million one-record batches cost megabytes and not hundreds of them; in memory, built while the
batches are checked at opening and extended as they are published. It is a hint and nothing more: a reader walks the
batches from the position it is given, checking each, and never takes the index's word for what is there.
"""

from array import array
from bisect import bisect_right

SPACING = 4096  # bytes; a look-up reads at most this much (or one batch) too much, and 1 GiB costs 4 MiB of index


class SparseIndex:
    """Batch base offsets and their file positions, both ascending. Positions start at `start`."""

    __slots__ = ("_next", "_offsets", "_positions", "_start")

    def __init__(self, start: int) -> None:
        self._offsets = array("Q")
        self._positions = array("Q")
        self._start = start
        self._next = start

    def add(self, base_offset: int, position: int) -> None:
        """Note the batch at `position`; kept only when the last kept one is `SPACING` bytes behind."""
        if position >= self._next:
            self._offsets.append(base_offset)
            self._positions.append(position)
            self._next = position + SPACING

    def locate(self, offset: int) -> tuple[int, int]:
        """(position, base offset) of a batch at or before the one that holds `offset`."""
        entry = bisect_right(self._offsets, offset) - 1
        if entry < 0:
            return self._start, 0
        return self._positions[entry], self._offsets[entry]

    def __len__(self) -> int:
        return len(self._offsets)
