"""`HeaderLines`: the lines behind a `Headers` and its views, and the block they came in as long as nothing has changed.

A block that is plain (`header_scan`) is kept as bytes: who only passes it on pays for one look over its bytes and no
object per line. The first two names that somebody asks for are searched in the bytes, which costs a third of splitting;
from then on, and for whatever else is asked, there is a list of lines. A block that is not plain has been read already,
or refused.

Names are matched exactly here; the ADR's other two ways of matching are for `Headers`.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.model.header_scan import find_plain, split_plain
else:
    from headwater.model.header_scan import find_plain, split_plain

Pairs = list[tuple[str, str]]


class HeaderLines:
    """`block` is None once something has changed, or when there never was one."""

    __slots__ = ("_pairs", "_searches", "block")

    def __init__(self, block: bytes | None, pairs: Pairs | None) -> None:
        """`pairs`: what is in `block`, or None for a block that `is_plain`."""
        self.block = block
        self._pairs = pairs
        self._searches = 0

    def pairs(self) -> Pairs:
        """The list itself, not a copy: for reading."""
        pairs = self._pairs
        if pairs is None:
            pairs = self._pairs = split_plain(self.block or b"")
        return pairs

    def is_empty(self) -> bool:
        """Whether there is no line; a block is not split for that."""
        if self._pairs is None and self.block is not None:
            return self.block.find(b"\r\n") + 4 == len(self.block)  # the version line's end, then the block's
        return not self.pairs()

    def changed(self) -> Pairs:
        """The list itself, about to be altered."""
        pairs = self.pairs()
        self.block = None
        return pairs

    def first(self, name: object) -> str | None:
        """The first value under exactly this name."""
        if self._pairs is None and self._searches < 2:
            self._searches += 1
            return find_plain(self.block or b"", name)
        for pair in self.pairs():
            if pair[0] == name:
                return pair[1]
        return None

    def values(self, name: object) -> list[str]:
        """Every value under exactly this name; a list of the caller's own."""
        return [pair[1] for pair in self.pairs() if pair[0] == name]
