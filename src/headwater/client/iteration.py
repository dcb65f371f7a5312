"""Iteration that can be left at any time: `async for`, and around it `async with`, which ends it at once after a `break`.

Without `async with` an iteration that was left ends when the interpreter collects its generator, as for any async
generator; until then its consumer stays at the server. The generator refers back to its owner, so the owner keeps it
only inside a block, whose end releases it.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")


class Iteration(Generic[Item]):
    """Each `async for` starts again, with a new `_items()`."""

    def __init__(self) -> None:
        self._running: AsyncGenerator[Item, None] | None = None
        self._entered = False

    def _items(self) -> AsyncGenerator[Item, None]:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        self._entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.aclose()

    def __aiter__(self) -> AsyncIterator[Item]:
        running = self._items()
        if self._entered:
            self._running = running
        return running
