"""PINGs of this client in the order of their PONGs: who waits for each, and what the server refused before it.

A server answers in order, so the -ERR for a publish comes before the PONG of a flush behind it. That flush raises the error,
unless a task that waited for more has got it already (`handed_over`).
"""

import asyncio
from collections import deque

from headwater.errors import AuthorizationError, HeadwaterError

MOST_REFUSALS = 64  # that are kept for a program that never flushes; the first one is what it has to know


class Flushes:
    """Of one connection."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None] | None] = deque()  # None: a sign of life, for which no task waits
        self._refused: list[AuthorizationError] = []

    def __len__(self) -> int:
        """PONGs that are due."""
        return len(self._waiting)

    def add(self) -> "asyncio.Future[None]":
        """A PING goes out, and a task waits for its PONG, which may still come when that task has given up."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    def add_sign_of_life(self) -> None:
        """A PING goes out for which no task waits."""
        self._waiting.append(None)

    def answered(self) -> None:
        """A PONG came."""
        waiter = self._waiting.popleft() if self._waiting else None
        if waiter is None or waiter.done():
            return
        if self._refused:
            _fail(waiter, self._refused[0])
            self._refused.clear()
        else:
            waiter.set_result(None)

    def refuse(self, error: AuthorizationError) -> None:
        """The server does not allow what was sent before the next PONG."""
        if len(self._refused) < MOST_REFUSALS:
            self._refused.append(error)

    def handed_over(self, error: HeadwaterError) -> None:
        """A task has got this error, so that no flush needs to raise it."""
        self._refused = [one for one in self._refused if one is not error]

    def fail(self, error: HeadwaterError) -> None:
        """The PONGs that are due will not come."""
        waiting, self._waiting = self._waiting, deque()
        for waiter in waiting:
            if waiter is not None and not waiter.done():
                _fail(waiter, error)


def _fail(waiter: "asyncio.Future[None]", error: HeadwaterError) -> None:
    waiter.set_exception(error)
    waiter.exception()  # the task still gets it; without one asyncio would warn
