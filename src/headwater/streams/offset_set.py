# cython: boundscheck=True, wraparound=True
"""A set of offsets, for logs with many deletions: one bit per offset where they are scattered, next to nothing for long
runs.

Offsets are kept in blocks of 4096, each one int used as a bitmap (512 bytes), and all full blocks share one int. Ten
million offsets in long runs cost some 2,400 dict entries, scattered ones 1.25 MB. Ranges are half-open. Pure.
"""

from collections.abc import Iterator, Sequence

import cython

BLOCK: int = 4096
_BLOCK: cython.longlong = BLOCK
FULL = (1 << BLOCK) - 1
_NONE: bytes = bytes(BLOCK // 8)


class OffsetSet:
    """Offsets that are not negative; `len` is how many."""

    def __init__(self) -> None:
        self._blocks: dict[int, int] = {}
        self._count = 0
        self._looked_at = -1  # the block that `has` looked at last, and its bits: -1 once a block has changed
        self._looked = _NONE

    def __len__(self) -> int:
        return self._count

    def __contains__(self, offset: int) -> bool:
        bits = self._blocks.get(offset // BLOCK)
        return bits is not None and bool(bits >> (offset % BLOCK) & 1)

    def has(self, offset: cython.longlong) -> cython.bint:
        """As `in`, for many offsets one after another: shifting the bits of a block costs ten times as much for each."""
        number: cython.longlong = offset // _BLOCK
        if number != self._looked_at:
            bits = self._blocks.get(number)
            self._looked = _NONE if bits is None else bits.to_bytes(BLOCK // 8, "little")
            self._looked_at = number
        byte: cython.int = self._looked[(offset - number * _BLOCK) >> 3]
        return byte >> (offset & 7) & 1 == 1

    def add(self, start: int, end: int) -> int:
        """Add `[start, end)`; returns how many of them were new."""
        added = 0
        self._looked_at = -1
        for number, mask in _masks(start, end):
            bits = self._blocks.get(number, 0)
            merged = bits | mask
            if merged != bits:
                added += (merged ^ bits).bit_count()
                self._blocks[number] = FULL if merged == FULL else merged
        self._count += added
        return added

    def add_each(self, offsets: Sequence[int], start: cython.longlong, end: cython.longlong) -> list[int]:
        """Add those in `[start, end)`, which come block by block as a rule; returns those that were new, in their order."""
        new: list[int] = []
        number: cython.longlong = -1
        bits = bytearray()
        for each in offsets:
            offset: cython.longlong = each
            if not start <= offset < end:
                continue
            if offset // _BLOCK != number:
                self._put(number, bits)
                number = offset // _BLOCK
                bits = bytearray(self._blocks.get(number, 0).to_bytes(BLOCK // 8, "little"))
            at: cython.Py_ssize_t = (offset - number * _BLOCK) >> 3
            mask: cython.int = 1 << (offset & 7)
            if not bits[at] & mask:
                bits[at] |= mask
                new.append(each)
        self._put(number, bits)
        self._count += len(new)
        self._looked_at = -1
        return new

    def _put(self, number: int, bits: bytearray) -> None:
        if number >= 0:
            self._blocks[number] = FULL if (merged := int.from_bytes(bits, "little")) == FULL else merged

    def count(self, start: int, end: int) -> int:
        """How many of `[start, end)` are in the set."""
        if not self._blocks:
            return 0
        return sum((self._blocks.get(number, 0) & mask).bit_count() for number, mask in _masks(start, end))

    def touches(self, start: int, end: int) -> bool:
        """Whether any of `[start, end)` is in the set."""
        blocks = self._blocks
        return bool(blocks) and any(blocks.get(number, 0) & mask for number, mask in _masks(start, end))

    def next_outside(self, offset: int) -> int:
        """The lowest offset at or above this one that is not in the set."""
        number, bit = divmod(offset, BLOCK)
        while True:
            bits = self._blocks.get(number, 0)
            # Beyond the block all bits of ~ are ones, so a full rest shows as BLOCK - bit or more.
            free = ~(bits >> bit)
            step = (free & -free).bit_length() - 1
            if bit + step < BLOCK:
                return number * BLOCK + bit + step
            number, bit = number + 1, 0

    def ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The maximal runs within `[start, end)`, ascending."""
        begun = -1
        at = start
        while at < end:
            number, bit = divmod(at, BLOCK)
            limit = min(end, (number + 1) * BLOCK)
            bits = self._blocks.get(number, 0) >> bit
            while at < limit:
                turn = bits if begun < 0 else ~bits
                step = (turn & -turn).bit_length() - 1 if turn else BLOCK
                if at + step >= limit:
                    break
                at += step
                bits >>= step
                if begun < 0:
                    begun = at
                else:
                    yield begun, at
                    begun = -1
            at = limit
        if begun >= 0:
            yield begun, end

    def discard_below(self, offset: int) -> None:
        """Forget all offsets below this one, in whole blocks: what is below `offset` and in its block stays."""
        self._looked_at = -1
        for number in [number for number in self._blocks if (number + 1) * BLOCK <= offset]:
            self._count -= self._blocks.pop(number).bit_count()

    def part(self, start: int, end: int) -> "OffsetSet":
        """A copy of what is in `[start, end)`, for another thread."""
        copy = OffsetSet()
        for number, mask in _masks(start, end):
            bits = self._blocks.get(number, 0) & mask
            if bits:
                copy._blocks[number] = bits
                copy._count += bits.bit_count()
        return copy


def _masks(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The blocks that `[start, end)` touches, each with the bits of the range."""
    for number in range(start // BLOCK, -(-end // BLOCK)):
        low = max(0, start - number * BLOCK)
        high = min(BLOCK, end - number * BLOCK)
        yield number, FULL if high - low == BLOCK else ((1 << (high - low)) - 1) << low
