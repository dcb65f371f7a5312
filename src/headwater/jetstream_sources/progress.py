# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The progress of a copy: which messages of the origin are durable here, and which are being written. Pure.

take ─▶ staged, (sequence here, sequence there) ─▶ the log of the copy reaches it ─▶ safe
            └─ could not be written: forgotten, and fetched again

Compiled, because it counts every message. What is on its way is kept as runs, in which both sequences go up by one.
"""

from collections import deque

import cython

from headwater.jetstream_sources.stamp import Position


class Progress:
    """`safe`: the origin's sequence of the last message that is known to be durable, 0 for none; `identity`: that of
    the origin."""

    def __init__(self, position: Position | None) -> None:
        self.safe, self.identity = position if position is not None else (0, "")
        self._staged: deque[tuple[int, int, int]] = deque()  # the runs: first here, first there, how many
        self._here = self._there = 0  # the last run
        self._count = 0  # 0: there is none

    @property
    def taken(self) -> int:
        """The origin's sequence of the last message that was taken, durable or not."""
        return self._there + self._count - 1 if self._count else self.safe

    @property
    def last_here(self) -> int:
        """The sequence that the last of what is not known to be durable has in the copy; 0 when all is."""
        return self._here + self._count - 1 if self._count else 0

    def note(self, here: cython.longlong, there: cython.longlong) -> cython.int:
        """A message has got its sequence in the copy."""
        if self._count and here == self._here + self._count and there == self._there + self._count:
            self._count += 1
            return 0
        if self._count:
            self._staged.append((self._here, self._there, self._count))
        self._here, self._there, self._count = here, there, 1
        return 0

    def position(self, end: int) -> Position | None:
        """The last message that is durable, where the copy is durable up to `end`; None for none."""
        while self._staged:
            here, there, count = self._staged[0]
            durable = min(count, end + 1 - here)
            if durable <= 0:
                return self._safe()
            self._staged.popleft()
            self.safe = there + durable - 1
            if durable < count:
                self._staged.appendleft((here + durable, there + durable, count - durable))
                return self._safe()
        durable = min(self._count, end + 1 - self._here)
        if self._count and durable > 0:
            self.safe = self._there + durable - 1
            self._here, self._there, self._count = self._here + durable, self._there + durable, self._count - durable
        return self._safe()

    def _safe(self) -> Position | None:
        return Position(self.safe, self.identity) if self.safe else None

    def after(self) -> Position | None:
        """The message after which a new consumer starts."""
        return Position(self.taken, self.identity) if self.taken else None

    def forget_staged(self, end: int) -> None:
        """Discard staged messages that could not be written."""
        self.position(end)
        self._forget()

    def begin_anew(self) -> None:
        """The origin was replaced by another stream of the same name."""
        self._forget()
        self.safe, self.identity = 0, ""

    def _forget(self) -> None:
        self._staged.clear()
        self._count = 0
