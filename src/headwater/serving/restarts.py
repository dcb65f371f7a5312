"""When a worker that has ended by itself is started again: at once, but for one that ends again and again.

That one waits until no more than MOST_ENDS of its ends are of the last ENDS_WITHIN seconds. It is never given up: what ends
it, as a lack of memory or a full disk, may pass, and half of the streams may be its own.
"""

MOST_ENDS = 5
ENDS_WITHIN = 60.0


class Restarts:
    """Of all workers. `waiting`: number -> when it is started again, in seconds of a clock that only goes forward."""

    def __init__(self) -> None:
        self.waiting: dict[int, float] = {}
        self._ends: dict[int, list[float]] = {}

    def ended(self, number: int, now: float) -> float:
        """Record that a worker has ended; returns the seconds until it may be started, 0 for at once."""
        ends = self._ends[number] = [*self._ends.get(number, ())[-MOST_ENDS:], now]
        due = ends[0] + ENDS_WITHIN if len(ends) > MOST_ENDS else now
        if due <= now:
            return 0.0
        self.waiting[number] = due
        return due - now

    def take_due(self, now: float) -> list[int]:
        """The workers whose time has come; they do not wait any more."""
        due = [number for number, when in self.waiting.items() if when <= now]
        for number in due:
            del self.waiting[number]
        return due
