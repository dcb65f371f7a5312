"""`HeaderLines`: the lines behind a `Headers` and its views, and the block they came in as long as nothing has changed.

A plain block (`header_scan`) is kept as bytes: forwarding it costs one scan of its bytes and no object per line. The
first two names that are looked up are searched in the bytes, which costs a third of splitting; from then on, and for
all other operations, there is a list of lines. A block that is not plain was parsed at once, or refused.

Up to FEW lines a name is searched from the first line on. Above, an index by name is built at the first look-up: a peer
may send 130,000 names in a megabyte, and looking up each by a linear search would take minutes. With an index, a line
that is removed leaves a hole, closed when all lines are read next.

Names are matched exactly, or folded: without regard to the case of ASCII letters. The ADR's third way is for `Headers`.
"""

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.headwater.model.header_scan import find_plain, split_plain
else:
    from headwater.model.header_scan import find_plain, split_plain

Pairs = list[tuple[str, str]]

FEW = 32


class HeaderLines:
    """`block` is None once something has changed, or when there never was one."""

    __slots__ = ("_exact", "_folded", "_holes", "_pairs", "_searches", "block")

    def __init__(self, block: bytes | None, pairs: Pairs | None) -> None:
        """`pairs`: what is in `block`, or None for a block that `is_plain`."""
        self.block = block
        self._pairs: list[Any] | None = pairs  # a hole is None
        self._exact: dict[str, list[int]] | None = None  # places of the lines under each name
        self._folded: dict[str, list[int]] | None = None  # the same, by the name in lower case
        self._holes = 0
        self._searches = 0

    def pairs(self) -> Pairs:
        """The list itself, not a copy: for reading."""
        if self._pairs is None:
            self._pairs = split_plain(self.block or b"")
        elif self._holes:
            self._pairs = [pair for pair in self._pairs if pair is not None]
            self._exact = self._folded = None
            self._holes = 0
        return self._pairs

    def is_empty(self) -> bool:
        """Whether there is no line; a block is not split for that."""
        if self._pairs is None and self.block is not None:
            return self.block.find(b"\r\n") + 4 == len(self.block)  # the version line's end, then the block's
        return len(self._pairs or ()) == self._holes

    def first(self, name: object) -> str | None:
        """The first value under exactly this name."""
        if self._pairs is None and self._searches < 2:
            self._searches += 1
            return find_plain(self.block or b"", name)
        pairs = self._few()
        if pairs is None:
            found = self._matching(name, False)
            return found[0][1] if found else None
        for pair in pairs:
            if pair[0] == name:
                return pair[1]
        return None

    def values(self, name: object) -> list[str]:
        """A new list of every value under exactly this name."""
        pairs = self._few()
        if pairs is None:
            return [pair[1] for pair in self._matching(name, False)]
        return [pair[1] for pair in pairs if pair[0] == name]

    def folded(self, name: object) -> Pairs:
        """Every line under this name, which is in lower case, however it is spelt there."""
        pairs = self._few()
        return self._matching(name, True) if pairs is None else [pair for pair in pairs if pair[0].lower() == name]

    def append(self, name: str, value: str) -> None:
        """One more line, at the end."""
        lines = self._lines()
        self.block = None
        if self._exact is not None:
            self._exact.setdefault(name, []).append(len(lines))
        if self._folded is not None:
            self._folded.setdefault(name.lower(), []).append(len(lines))
        lines.append((name, value))

    def discard(self, name: object, fold: bool) -> None:
        """Remove every line under this name; `fold`: which is in lower case, however it is spelt there."""
        pairs = self._few()
        if pairs is None:
            self._make_holes(name, fold)
            return
        kept = [pair for pair in pairs if (pair[0].lower() if fold else pair[0]) != name]
        if len(kept) != len(pairs):
            self.block = None
            self._pairs = kept
            self._exact = self._folded = None

    def clear(self) -> None:
        """Remove every line."""
        self.block = None
        self._pairs = []
        self._exact = self._folded = None
        self._holes = 0

    # ── inside ──

    def _lines(self) -> list[Any]:
        """The list, including holes."""
        return self.pairs() if self._pairs is None else self._pairs

    def _few(self) -> Pairs | None:
        """The list, if it is short enough to be searched; it has no holes then."""
        lines = self._lines()
        return lines if len(lines) <= FEW else None

    def _index(self, fold: bool) -> dict[str, list[int]]:
        index = self._folded if fold else self._exact
        if index is None:
            index = {}
            for place, pair in enumerate(self._lines()):
                if pair is not None:
                    index.setdefault(pair[0].lower() if fold else pair[0], []).append(place)
            if fold:
                self._folded = index
            else:
                self._exact = index
        return index

    def _matching(self, name: object, fold: bool) -> Pairs:
        if not isinstance(name, str):
            return []
        lines = self._lines()
        return [lines[place] for place in self._index(fold).get(name, ())]

    def _make_holes(self, name: object, fold: bool) -> None:
        lines = self._lines()
        if not isinstance(name, str) or name not in self._index(fold):
            return
        places = self._index(fold).pop(name)
        self.block = None
        others = self._exact if fold else self._folded
        for place in places:
            pair = lines[place]
            lines[place] = None
            if others is not None and pair is not None:
                _forget(others, pair[0] if fold else pair[0].lower(), place)
        self._holes += len(places)


def _forget(index: dict[str, list[int]], name: str, place: int) -> None:
    index[name].remove(place)
    if not index[name]:
        del index[name]
