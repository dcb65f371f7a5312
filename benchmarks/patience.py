"""Waiting for a quiet machine: when a record may begin a block, and which blocks it takes once more.

A machine is quiet while its median speed is within a quarter of the fastest sample that this run has seen: neighbours of a
virtual machine cost up to 1.8 times, its own clock less than a tenth. What is chosen is chosen by the speed alone, never by
the figures of a block, so that patience makes a record quieter, not better.
Time is bounded: what is spent on waiting and on second runs comes out of one budget, and once that is gone blocks are taken
as the machine is, with their speed in their headings.
"""

import statistics
import time
from collections.abc import Callable

import machine_speed

QUIET = 1.25
"""A machine is quiet up to this multiple of the fastest sample."""
LOOKS = 7
"""Samples of one look at the machine, of which the median counts."""
SECONDS_BETWEEN = 1.0
SECONDS_BETWEEN_LOOKS = 15.0


class Patience:
    """A budget of `seconds` for waiting and for taking blocks again. `now` is in seconds; `sample` in nanoseconds."""

    def __init__(
        self,
        seconds: float,
        *,
        sample: Callable[[], float] = machine_speed.sample,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.left = seconds
        self._sample = sample
        self._now = now
        self._sleep = sleep
        self._fastest = float("inf")

    def is_quiet(self, *samples: float) -> bool:
        """Whether the median of `samples` is that of a quiet machine; each of them counts for what the fastest is."""
        self._fastest = min(self._fastest, *samples)
        return statistics.median(samples) <= QUIET * self._fastest

    def await_quiet(self) -> bool:
        """Return when the machine is quiet, or with False once the budget is spent. Without one it does not look at all."""
        while self.left > 0:
            begun = self._now()
            quiet = self.is_quiet(*self._look())
            if not quiet:
                self._sleep(min(SECONDS_BETWEEN_LOOKS, max(self.left, 0.0)))
            self.spend(self._now() - begun)
            if quiet:
                return True
        return False

    def spend(self, seconds: float) -> None:
        """Take `seconds` out of the budget."""
        self.left -= seconds

    def _look(self) -> list[float]:
        samples = [self._sample()]
        for _ in range(LOOKS - 1):
            self._sleep(SECONDS_BETWEEN)
            samples.append(self._sample())
        return samples
