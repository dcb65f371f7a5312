# cython: boundscheck=True, wraparound=True
"""The newest published batches in memory, so that readers at the end of the log do not read the disk.

Bounded by bytes (bodies plus what the objects cost); the newest batch always stays, whatever its size. The batches are
consecutive up to the end of the log, so "at or after the first of them" is the whole condition for a hit. Belongs to
the loop thread.
"""

from bisect import bisect_right

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.log_format import BatchHeader
else:
    from headwater.streams.log_format import BatchHeader

OBJECT_COST = 400  # bytes per batch for header tuple, numbers and list slots: what counts when batches hold one record


class RecentBatches:
    """Batches in offset order; `size` is what they cost in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bases: list[int] = []
        self._batches: list[tuple[BatchHeader, bytes]] = []
        self.size = 0

    def add(self, header: BatchHeader, body: bytes) -> None:
        """A batch was published behind all others."""
        if self._limit == 0:
            return
        self._bases.append(header.base_offset)
        self._batches.append((header, body))
        self.size += header.body_size + OBJECT_COST
        if self.size > self._limit:
            self._shrink()

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
            found.append(self._batches[at])
            max_bytes -= self._batches[at][0].body_size
            if max_bytes <= 0:
                break
        return found

    def at(self, offset: int) -> tuple[BatchHeader, bytes] | None:
        """The batch with this offset; None if it is not in memory."""
        place = bisect_right(self._bases, offset) - 1
        if place < 0 or self._batches[place][0].end_offset <= offset:
            return None
        return self._batches[place]

    def _shrink(self) -> None:
        """Drop old batches down to three quarters of the limit, so that the lists are shifted rarely."""
        drop = 0
        while self.size * 4 > self._limit * 3 and drop < len(self._batches) - 1:
            self.size -= self._batches[drop][0].body_size + OBJECT_COST
            drop += 1
        del self._batches[:drop]
        del self._bases[:drop]
