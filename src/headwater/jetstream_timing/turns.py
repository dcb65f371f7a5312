"""Schedules a consumer: once per turn of the event loop in which something happened, and at the next due time.

Times are nanoseconds of the loop's monotonic clock.
"""

import asyncio
from collections.abc import Callable

from headwater.model.timestamps import SECOND

LONGEST_TIMER = 3600 * SECOND  # a client may request an expiry beyond an event loop's range
LATENESS = 0.0005  # seconds; a timer that fires slightly early would find nothing due and be set again, over and over


class Turns:
    """`turn()` runs soon after `wake`, once for all calls until then; `alarm()` at the time given to `set_alarm`. Bound to
    the running loop. `closed`: neither runs any more."""

    def __init__(self, turn: Callable[[], None], alarm: Callable[[], None]) -> None:
        self.closed = False
        self._turn = turn
        self._alarm = alarm
        self.loop = asyncio.get_running_loop()
        self._awake = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0

    def now(self) -> int:
        """Nanoseconds of the loop's clock."""
        return int(self.loop.time() * SECOND)

    def wake(self) -> None:
        """Run `turn` in the next iteration of the loop."""
        if not self._awake and not self.closed:
            self._awake = True
            self.loop.call_soon(self._run)

    def set_alarm(self, deadlines: list[int]) -> None:
        """Run `alarm` at the earliest of these times, or earlier if it is already set so; 0 means no time."""
        at = min((deadline for deadline in deadlines if deadline), default=0)
        at = min(at, self.now() + LONGEST_TIMER)
        if self.closed or not at or (self._timer is not None and self._timer_at <= at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self.loop.call_at(at / SECOND + LATENESS, self._on_timer)

    def close(self) -> None:
        """Stop: neither callback runs any more."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _run(self) -> None:
        self._awake = False
        if not self.closed:
            self._turn()

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_at = 0
        if not self.closed:
            self._alarm()
