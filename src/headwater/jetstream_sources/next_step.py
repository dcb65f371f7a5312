"""The timer of a copy: runs its next step after a delay, or as soon as its requests have a subscriber."""

import asyncio
from collections.abc import Callable

from headwater.exchange.router import Router


class NextStep:
    """The next step of one copy; setting a new one replaces it."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._awaited = b""
        self._work: Callable[[], None] = _nothing

    def now(self) -> float:
        """The time of the loop's clock, in seconds."""
        return self._loop.time()

    def later(self, seconds: float, work: Callable[[], None], subject: bytes = b"") -> None:
        """Call `work` after this many seconds, or as soon as `subject` has a subscriber."""
        self.cancel()
        self._work = work
        self._timer = self._loop.call_later(seconds, work)
        if subject:
            self._awaited = subject
            self._router.awaited.add(subject, self._on_subscriber)

    def cancel(self) -> None:
        """Cancel the next step."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._awaited:
            self._router.awaited.remove(self._awaited, self._on_subscriber)
            self._awaited = b""

    def _on_subscriber(self) -> None:
        """Called while the subscription is being registered: do the work after that."""
        self._awaited = b""
        self.later(0, self._work)


def _nothing() -> None:
    """The step of a copy that has none."""
