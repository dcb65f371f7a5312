"""The client's PINGs in the order of their PONGs: the task that waits for each, and the errors before it.

A server answers in order, so the -ERR for a publish comes before the PONG of a later flush. That flush raises the
error, unless another task has received it (`handed_over`).
"""

import asyncio
from collections import deque

from headwater.errors import AuthorizationError, HeadwaterError

MOST_REFUSALS = 64  # kept for a program that never flushes; the first one matters most


class Flushes:
    """The flushes of one connection."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None] | None] = deque()  # None: a keep-alive PING, for which no task waits
        self._refused: list[AuthorizationError] = []

    def __len__(self) -> int:
        """The number of outstanding PONGs."""
        return len(self._waiting)

    def add(self) -> "asyncio.Future[None]":
        """Add a PING whose PONG a task waits for; the PONG may arrive after that task has given up."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    def add_sign_of_life(self) -> None:
        """Add a PING for which no task waits."""
        self._waiting.append(None)

    def answered(self) -> None:
        """A PONG was received."""
        waiter = self._waiting.popleft() if self._waiting else None
        if waiter is None or waiter.done():
            return
        if self._refused:
            _fail(waiter, self._refused[0])
            self._refused.clear()
        else:
            waiter.set_result(None)

    def refuse(self, error: AuthorizationError) -> None:
        """The server refused an operation sent before the next PONG."""
        if len(self._refused) < MOST_REFUSALS:
            self._refused.append(error)

    def handed_over(self, error: HeadwaterError) -> None:
        """A task has received this error, so no flush needs to raise it."""
        self._refused = [one for one in self._refused if one is not error]

    def fail(self, error: HeadwaterError) -> None:
        """Fail all waiters: the outstanding PONGs will not come."""
        waiting, self._waiting = self._waiting, deque()
        for waiter in waiting:
            if waiter is not None and not waiter.done():
                _fail(waiter, error)


def _fail(waiter: "asyncio.Future[None]", error: HeadwaterError) -> None:
    waiter.set_exception(error)
    waiter.exception()  # the task still gets it; without one asyncio would warn
