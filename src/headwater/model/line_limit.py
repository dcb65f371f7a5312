"""How many lines of one kind a log gets: a flood of events neither fills the disk nor hides the other lines, and none of it
goes uncounted, because the next line has the number. Pure.
"""


class LineLimit:
    """At most `lines` in a `period`, which begins with the first of them and has the unit of `now`."""

    def __init__(self, period: float, lines: int = 1) -> None:
        self._period = period
        self._lines = lines
        self._until = float("-inf")
        self._left = 0  # lines that may still be written until then
        self._uncounted = 0  # events since the last line

    def due(self, now: float, events: int = 1) -> int:
        """Count these events. Returns how many a line that is due now is about, 0 if none is due; `now` never goes back."""
        self._uncounted += events
        if now >= self._until:
            self._until, self._left = now + self._period, self._lines
        if not self._left:
            return 0
        self._left -= 1
        counted, self._uncounted = self._uncounted, 0
        return counted
