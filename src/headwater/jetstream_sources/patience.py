"""When a copy tries again, and when an origin counts as silent. Pure; times are seconds of a clock that never steps back.

A heartbeat comes each second, so five seconds of silence are a dead line, or an origin that was restarted. The first try
after a failure comes at once where something can have been lost on the way only, else after FIRST seconds, then ever more
seldom: a thousand edges must not come back in one moment, so some of it is chance.
"""

from collections.abc import Callable

SILENCE = 5.0
ANSWER = 5.0  # for a request that reached a subscriber
LOOK = 1.0  # how often the silence is measured
FIRST = 0.25
LONGEST = 10.0


class Patience:
    """Of one copy. `chance()` gives a number from 0 to 1."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._failures = 0
        self._chance = chance
        self._heard: float | None = None
        self._quiet_since = 0.0

    def note_life(self, now: float) -> None:
        """A sign of life."""
        self._heard = self._quiet_since = now

    def begin(self, now: float) -> None:
        """A consumer is ready: the silence is measured from here."""
        self._quiet_since = now

    def succeeded(self) -> None:
        """The next failure is the first again."""
        self._failures = 0

    def is_silent(self, now: float) -> bool:
        """Whether there was no sign of life for too long."""
        return now - self._quiet_since > SILENCE

    def next_try(self) -> float:
        """Seconds until the next try, after one more failure."""
        wait = min(LONGEST, FIRST * 2.0**self._failures)
        self._failures = min(self._failures + 1, 16)
        return wait * (0.75 + self._chance() / 2)

    def active_ns(self, now: float) -> int:
        """Nanoseconds since the last sign of life, -1 for never."""
        return int((now - self._heard) * 1e9) if self._heard is not None else -1
