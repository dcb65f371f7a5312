"""The progress of a copy: which messages of the origin are durable here, and which are being written. Pure.

take ─▶ staged, (sequence here, sequence there) ─▶ the log of the copy reaches it ─▶ safe
            └─ could not be written: forgotten, and fetched again
"""

from collections import deque

from headwater.jetstream_sources.stamp import Position


class Progress:
    """`safe`: the origin's sequence of the last message that is known to be durable, 0 for none; `identity`: that of
    the origin."""

    def __init__(self, position: Position | None) -> None:
        self.safe, self.identity = position if position is not None else (0, "")
        self._staged: deque[tuple[int, int]] = deque()

    @property
    def taken(self) -> int:
        """The origin's sequence of the last message copied, durable or not."""
        return self._staged[-1][1] if self._staged else self.safe

    @property
    def last_here(self) -> int:
        """The copy's sequence of the last message not known to be durable; 0 if there is none."""
        return self._staged[-1][0] if self._staged else 0

    def note(self, here: int, there: int) -> None:
        """A message was staged in the copy: its sequence here, and at the origin."""
        self._staged.append((here, there))

    def position(self, end: int) -> Position | None:
        """The last durable message, given that the copy is durable up to `end`; None for none."""
        staged = self._staged
        while staged and staged[0][0] <= end:
            self.safe = staged.popleft()[1]
        return Position(self.safe, self.identity) if self.safe else None

    def after(self) -> Position | None:
        """The message after which a new consumer starts."""
        return Position(self.taken, self.identity) if self.taken else None

    def forget_staged(self, end: int) -> None:
        """Discard staged messages that could not be written."""
        self.position(end)
        self._staged.clear()

    def begin_anew(self) -> None:
        """The origin was replaced by another stream of the same name."""
        self._staged.clear()
        self.safe, self.identity = 0, ""
