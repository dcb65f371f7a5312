# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Decides whether the event loop may wait for the disk, from the durations of recent writes.

While the disk is quick, small writes run in the loop: handing one to a thread and back costs more than an fdatasync of
60 us. After one slow write, or many in a row that are not quick, writes go to a thread until they are quick again; so a
slow disk delays the broker's other clients once, not with each write.

For a client that waits for each ack while no other link is ready, the loop goes on waiting: on a busy machine each
hand-over to a thread and back waits for a turn of the processor, and no other client has work meanwhile. One that sends
something just then waits for one write, for `PATIENCE` at most unless it is the first slow one.
"""

from collections.abc import Callable

import cython

QUICK: cython.double = 0.001  # seconds; the loop waits for writes while the pace is below this
SLOW: cython.double = 0.01  # seconds; one write that took longer sends the next ones to the thread
# Factor by which a slower write raises the pace: 0.1 ms becomes 1 ms after 13 slow writes in a row.
FORGIVING: cython.double = 1.2
QUICKEST: cython.double = 0.00002  # seconds; no disk is quicker
PATIENCE = 0.02  # seconds; after a write that took longer, the loop does not wait for the next one
_PATIENCE: cython.double = PATIENCE


class Pace:
    """The pace of one log or journal. `seconds`: the duration of its quicker writes; the slower ones waited for a core,
    as a writing thread would. `count_events()`: how often links were ready so far; None where that is not counted."""

    def __init__(self, count_events: Callable[[], int] | None = None) -> None:
        self.seconds = 0.0
        self._count_events = count_events
        self._events = 0  # when the last write began

    def lets_wait(self) -> cython.bint:
        """Whether the loop may wait for the next write: while writes are quick, and where at most one link was ready since
        the last one began and that took no longer than PATIENCE."""
        alone: cython.bint = False
        if self._count_events is not None:
            events: cython.longlong = self._count_events()
            alone = events - self._events <= 1 and self.seconds <= _PATIENCE
        return alone or self.is_quick()

    def begin(self) -> cython.int:
        """A write begins; what is ready from here on counts for the next one."""
        if self._count_events is not None:
            self._events = self._count_events()
        return 0

    def is_quick(self) -> cython.bint:
        """Whether the loop may wait for the next write."""
        return self.seconds <= QUICK

    def note(self, seconds: cython.double) -> cython.int:
        """A small write took `seconds`."""
        slower: cython.double = FORGIVING * max(self.seconds, QUICKEST)
        self.seconds = seconds if seconds > SLOW else min(seconds, slower)
        return 0
