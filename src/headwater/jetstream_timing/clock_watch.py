"""Detects steps of the system clock, so that timers for a time of day can be reset.

An age limit, a TTL and a pause end at a time of day, but the loop's timers count seconds. After a step of the clock (by an
operator, or in a resumed virtual machine) such a timer could fire an hour late. The two clocks are compared every LOOK
seconds, and a callback runs when they have drifted apart.

Durations (ack waits, expiries of pull requests, heartbeats) are not affected.
"""

import asyncio
import logging
from collections.abc import Callable

from headwater.model.timestamps import SECOND

logger = logging.getLogger(__name__)

LOOK = 0.5  # seconds between two comparisons
STEP = SECOND // 5  # ns; smaller differences come from NTP's slewing or a busy loop
WORTH_LOGGING = 2 * SECOND


class ClockWatch:
    """Calls `on_step()` soon after a clock step. Starts at once, in the running loop."""

    def __init__(self, clock_ns: Callable[[], int], on_step: Callable[[], None]) -> None:
        self._clock_ns = clock_ns
        self._on_step = on_step
        self._loop = asyncio.get_running_loop()
        self._distance = self._measure()
        self._timer = self._loop.call_later(LOOK, self._look)

    def stop(self) -> None:
        """Stop watching."""
        self._timer.cancel()

    def _measure(self) -> int:
        return self._clock_ns() - int(self._loop.time() * SECOND)

    def _look(self) -> None:
        self._timer = self._loop.call_later(LOOK, self._look)
        distance = self._measure()
        step = distance - self._distance
        if abs(step) < STEP:
            return
        self._distance = distance
        if abs(step) >= WORTH_LOGGING:
            logger.warning("clock_stepped seconds=%+.1f", step / SECOND)
        self._on_step()
