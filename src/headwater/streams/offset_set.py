# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""A set of offsets, for logs with many deletions: one bit per offset where they are scattered, next to nothing for long
runs.

Offsets are kept in blocks of 4096, each with a bitmap of 512 bytes, in which a bit is set where it lies; all full blocks
are one. Ten million offsets in long runs cost some 2,400 dict entries, scattered ones 1.4 MB. Ranges are half-open. Pure.
"""

from collections.abc import Iterator, Sequence

import cython

BLOCK: int = 4096
_BLOCK: cython.longlong = BLOCK
_BYTES: cython.Py_ssize_t = BLOCK // 8
_ONES: bytes = bytes(byte.bit_count() for byte in range(256))


class Block:
    """A bitmap, and how many of its bits are set. One without any is in no set, and the full one is never changed."""

    bits: bytearray
    ones: int

    def __init__(self, bits: bytearray, ones: cython.longlong) -> None:
        self.bits = bits
        self.ones = ones


_NONE: Block = Block(bytearray(BLOCK // 8), 0)
_FULL: Block = Block(bytearray(b"\xff" * (BLOCK // 8)), BLOCK)


class OffsetSet:
    """Offsets that are not negative; `len` is how many."""

    def __init__(self) -> None:
        self._blocks: dict[int, Block] = {}
        self._count = 0
        self._lowest = 0  # no block has a lower number
        self._looked_at = -1  # the number of the block that was looked at last: it was `_looked`
        self._looked: Block = _NONE

    def __len__(self) -> int:
        return self._count

    def __contains__(self, offset: int) -> bool:
        return self.has(offset)

    def has(self, offset: cython.longlong) -> cython.bint:
        """As `in`, for compiled callers."""
        number: cython.longlong = offset >> 12
        block: Block = self._looked if number == self._looked_at else self._look(number)
        bits: bytearray = block.bits
        return bits[(offset & 4095) >> 3] >> (offset & 7) & 1 == 1

    def _look(self, number: cython.longlong) -> Block:
        """The block with this number, `_NONE` if there is none."""
        block: Block | None = self._blocks.get(number)
        self._looked_at = number
        self._looked = found = _NONE if block is None else block
        return found

    def _put(self, number: cython.longlong, block: Block) -> None:
        self._blocks[number] = block
        self._lowest = min(self._lowest, number)
        self._looked_at, self._looked = number, block

    def add(self, start: cython.longlong, end: cython.longlong) -> cython.Py_ssize_t:
        """Add `[start, end)`; returns how many of them were new."""
        added: cython.longlong = 0
        number: cython.longlong
        if start >= end:
            return 0
        for number in range(start >> 12, (end + 4095) >> 12):
            low: cython.longlong = max(0, start - number * _BLOCK)
            high: cython.longlong = min(_BLOCK, end - number * _BLOCK)
            if high - low == _BLOCK:
                added += _BLOCK - self._look(number).ones
                self._put(number, _FULL)
            else:
                added += self._add_part(number, low, high)
        self._count += added
        return added

    def _add_part(self, number: cython.longlong, low: cython.longlong, high: cython.longlong) -> cython.Py_ssize_t:
        """Set the bits `[low, high)` of a block; returns how many were not."""
        block: Block = self._look(number)
        if block is _FULL:
            return 0
        if block is _NONE:
            block = Block(bytearray(_BYTES), 0)
            self._put(number, block)
        bits: bytearray = block.bits
        added: cython.longlong = 0
        at: cython.Py_ssize_t
        for at in range(low >> 3, (high + 7) >> 3):
            old: cython.int = bits[at]
            new: cython.int = old | _part_of_byte(at, low, high)
            added += _ONES[new ^ old]
            bits[at] = new
        self._grow(number, block, added)
        return added

    def _grow(self, number: cython.longlong, block: Block, added: cython.longlong) -> None:
        block.ones += added
        if block.ones == _BLOCK:
            self._put(number, _FULL)

    def add_each(self, offsets: Sequence[int], start: cython.longlong, end: cython.longlong) -> list[int]:
        """Add those in `[start, end)`; returns those that were new, in their order."""
        new: list[int] = []
        for each in offsets:
            offset: cython.longlong = each
            if not start <= offset < end:
                continue
            number: cython.longlong = offset >> 12
            block: Block = self._looked if number == self._looked_at else self._look(number)
            if block is _NONE:
                block = Block(bytearray(_BYTES), 0)
                self._put(number, block)
            at: cython.Py_ssize_t = (offset & 4095) >> 3
            mask: cython.int = 1 << (offset & 7)
            bits: bytearray = block.bits
            if not bits[at] & mask:
                bits[at] |= mask
                self._grow(number, block, 1)
                new.append(each)
        self._count += len(new)
        return new

    def count(self, start: cython.longlong, end: cython.longlong) -> cython.Py_ssize_t:
        """How many of `[start, end)` are in the set."""
        found: cython.longlong = 0
        number: cython.longlong
        if not self._blocks:
            return 0
        for number in range(max(start >> 12, self._lowest), (end + 4095) >> 12):
            known: Block | None = self._blocks.get(number)
            if known is not None:
                found += _ones_in(known, start - number * _BLOCK, end - number * _BLOCK)
        return found

    def touches(self, start: cython.longlong, end: cython.longlong) -> cython.bint:
        """Whether any of `[start, end)` is in the set."""
        return bool(self._blocks) and self._next_inside(start, end) < end

    def next_outside(self, offset: cython.longlong) -> cython.Py_ssize_t:
        """The lowest offset at or above this one that is not in the set."""
        number: cython.longlong = offset >> 12
        at: cython.longlong = offset & 4095
        while True:
            block: Block = self._looked if number == self._looked_at else self._look(number)
            bits: bytearray = block.bits
            while block is not _FULL and at < _BLOCK:
                byte: cython.int = bits[at >> 3] >> (at & 7)
                if byte == 0xFF >> (at & 7):
                    at = (at | 7) + 1  # all of the rest of this byte
                elif byte & 1:
                    at += 1
                else:
                    return number * _BLOCK + at
            number += 1
            at = 0

    def _next_inside(self, offset: cython.longlong, end: cython.longlong) -> cython.Py_ssize_t:
        """The lowest offset of `[offset, end)` that is in the set; `end` if there is none."""
        while offset < end:
            known: Block | None = self._blocks.get(offset >> 12)
            beyond: cython.longlong = min(end, ((offset >> 12) + 1) * _BLOCK)
            if known is None:
                offset = beyond
                continue
            bits: bytearray = known.bits
            while offset < beyond:
                byte: cython.int = bits[(offset & 4095) >> 3] >> (offset & 7)
                if byte == 0:
                    offset = (offset | 7) + 1
                elif byte & 1:
                    return offset
                else:
                    offset += 1
        return end

    def ranges(self, start: cython.longlong, end: cython.longlong) -> Iterator[tuple[int, int]]:
        """The maximal runs within `[start, end)`, ascending."""
        while (start := self._next_inside(start, end)) < end:
            beyond: cython.longlong = min(end, self.next_outside(start))
            yield start, beyond
            start = beyond

    def discard_below(self, offset: cython.longlong) -> None:
        """Forget all offsets below this one, in whole blocks: what is below `offset` and in its block stays."""
        if offset >> 12 <= self._lowest:
            return
        self._lowest = offset >> 12
        self._looked_at, self._looked = -1, _NONE
        for number in [number for number in self._blocks if number < self._lowest]:
            gone: Block = self._blocks.pop(number)
            self._count -= gone.ones

    def part(self, start: cython.longlong, end: cython.longlong) -> "OffsetSet":
        """A copy of what is in `[start, end)`, for another thread."""
        copy = OffsetSet()
        number: cython.longlong
        for number in range(max(start >> 12, self._lowest), (end + 4095) >> 12):
            known: Block | None = self._blocks.get(number)
            if known is None:
                continue
            taken: Block = _part_of(known, start - number * _BLOCK, end - number * _BLOCK)
            if taken.ones:
                copy._put(number, taken)
                copy._count += taken.ones
        return copy


def _part_of_byte(at: cython.Py_ssize_t, low: cython.longlong, high: cython.longlong) -> cython.int:
    """The bits of byte `at` of a bitmap that are in `[low, high)`."""
    mask: cython.int = 0xFF
    if low > 8 * at:
        mask &= 0xFF << (low - 8 * at)
    if high < 8 * at + 8:
        mask &= 0xFF >> (8 * at + 8 - high)
    return mask


def _part_of(block: Block, low: cython.longlong, high: cython.longlong) -> Block:
    """A copy with the bits of `[low, high)`, which may reach beyond the block."""
    if low <= 0 and high >= _BLOCK:
        return block if block is _FULL else Block(bytearray(block.bits), block.ones)
    low, high = max(0, low), min(_BLOCK, high)
    copy = Block(bytearray(_BYTES), _ones_in(block, low, high))
    bits: bytearray = block.bits
    into: bytearray = copy.bits
    at: cython.Py_ssize_t
    for at in range(low >> 3, (high + 7) >> 3):
        into[at] = bits[at] & _part_of_byte(at, low, high)
    return copy


def _ones_in(block: Block, low: cython.longlong, high: cython.longlong) -> cython.Py_ssize_t:
    """How many bits of `[low, high)` are set; these may reach beyond the block."""
    if low <= 0 and high >= _BLOCK:
        return block.ones
    low, high = max(0, low), min(_BLOCK, high)
    bits: bytearray = block.bits
    found: cython.longlong = 0
    at: cython.Py_ssize_t
    for at in range(low >> 3, (high + 7) >> 3):
        found += _ONES[bits[at] & _part_of_byte(at, low, high)]
    return found
