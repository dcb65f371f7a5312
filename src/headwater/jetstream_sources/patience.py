"""Decides when a copy tries again and when an origin counts as silent. Pure; times are seconds of a monotonic clock.

A heartbeat comes each second, so five seconds of silence mean a dead link or a restarted origin. The first retry
follows at once if only messages in transit can have been lost, else after FIRST seconds; further retries back off with
jitter, so that a thousand edges do not reconnect at one moment.
"""

from collections.abc import Callable

SILENCE = 5.0
ANSWER = 5.0  # for a request that reached a subscriber
LOOK = 1.0  # seconds between checks for silence
FIRST = 0.25
LONGEST = 10.0


class Patience:
    """The timing of one copy. `chance()` returns a random number from 0 to 1."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._failures = 0
        self._chance = chance
        self._received_at: float | None = None
        self._quiet_since = 0.0

    def note_life(self, now: float) -> None:
        """The origin has sent something."""
        self._received_at = self._quiet_since = now

    def begin(self, now: float) -> None:
        """A consumer is ready: silence is measured from this time."""
        self._quiet_since = now

    def succeeded(self) -> None:
        """Reset the back-off."""
        self._failures = 0

    def is_silent(self, now: float) -> bool:
        """Whether the origin has sent nothing for too long."""
        return now - self._quiet_since > SILENCE

    def next_try(self) -> float:
        """Seconds until the next try, after one more failure."""
        wait = min(LONGEST, FIRST * 2.0**self._failures)
        self._failures = min(self._failures + 1, 16)
        return wait * (0.75 + self._chance() / 2)

    def active_ns(self, now: float) -> int:
        """Nanoseconds since the origin last sent something, -1 for never."""
        return int((now - self._received_at) * 1e9) if self._received_at is not None else -1
