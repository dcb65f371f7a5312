"""The one thing that a copy waits for next: a moment, or a subscriber for its requests, whichever comes first."""

import asyncio
from collections.abc import Callable

from headwater.exchange.router import Router


class NextStep:
    """Of one copy; a new step takes the place of the one before."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._awaited = b""
        self._work: Callable[[], None] = _nothing

    def now(self) -> float:
        """Seconds of the loop's clock."""
        return self._loop.time()

    def later(self, seconds: float, work: Callable[[], None], subject: bytes = b"") -> None:
        """Do `work` after so many seconds, or as soon as there is a subscriber for `subject`."""
        self.cancel()
        self._work = work
        self._timer = self._loop.call_later(seconds, work)
        if subject:
            self._awaited = subject
            self._router.awaited.add(subject, self._on_subscriber)

    def cancel(self) -> None:
        """Wait for nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._awaited:
            self._router.awaited.remove(self._awaited, self._on_subscriber)
            self._awaited = b""

    def _on_subscriber(self) -> None:
        """Called while the subscription is being made: the work is done behind that."""
        self._awaited = b""
        self.later(0, self._work)


def _nothing() -> None:
    """Before the first step."""
