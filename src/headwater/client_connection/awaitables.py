"""Cheaper forms of asyncio's awaitables: a deferred call, a completed one, and an event."""

import asyncio
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """Calls `begin()` when it is awaited, and awaits the result: one that is never awaited leaves no coroutine behind."""

    __slots__ = ("_begin",)

    def __init__(self, begin: Callable[[], Awaitable[T]]) -> None:
        self._begin = begin

    def __await__(self) -> Generator[Any, None, T]:
        return self._begin().__await__()


@types.coroutine
def _nothing() -> Generator[Any, Any, None]:
    yield from ()


NOTHING: Awaitable[None] = _nothing()
"""Awaiting it returns None at once, any number of times; it need not be awaited.

It is a generator that has ended: the interpreter asks it without a call of Python, an iterator of its own or an exception.
"""
for _ in NOTHING:  # type: ignore[attr-defined] # awaitable and iterable, as only such a generator is
    pass


class Bell:
    """A ring wakes every waiter, which then checks its condition again. Rings are not kept. `enough`: how much there must be
    for a ring; its owner counts."""

    __slots__ = ("_waiters", "enough")

    def __init__(self) -> None:
        self.enough = 0
        self._waiters: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        """Wake all waiters."""
        if self._waiters:
            waiters, self._waiters = self._waiters, set()
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def wait(self) -> None:
        """Wait until the next ring. A cancelled wait leaves nothing behind."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
