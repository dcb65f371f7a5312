"""Reuse of arrays that were given to a reader, as soon as it has no reference to them.

A batch of columns is given away whole. With a new array for each one, most of a batch's cost is page faults: memory of this
size goes back to the kernel as soon as it is freed, and comes from it page by page.
"""

from collections.abc import Sized
from typing import Generic, TypeVar

from headwater.wire.receive import UNUSED, references

ArrayT = TypeVar("ArrayT", bound=Sized)

# A reader that takes one batch after another still holds the last one, and the one before it, when the next is made.
KEPT = 3


class Spares(Generic[ArrayT]):
    """The last `KEPT` arrays of one column."""

    def __init__(self) -> None:
        self._lent: list[ArrayT] = []

    def lend(self, array: ArrayT) -> None:
        """`array` has been handed over."""
        self._lent = [*self._lent[1 - KEPT :], array]

    def find(self, length: int) -> ArrayT | None:
        """An array of `length` elements or more, at most twice as many, that nothing else refers to any more."""
        for at, has in enumerate(map(len, self._lent)):
            if length <= has <= 2 * length and references(self._lent, at) == UNUSED:
                return self._lent.pop(at)
        return None
