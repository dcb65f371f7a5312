# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Decides whether the event loop may wait for the disk, from the durations of recent writes.

While the disk is quick, small writes run in the loop: handing one to a thread and back costs more than an fdatasync of
60 us. After one slow write, or many in a row that are not quick, writes go to a thread until they are quick again; so a
slow disk delays the broker's other clients once, not with each write.
"""

import cython

QUICK: cython.double = 0.001  # seconds; the loop waits for writes while the pace is below this
SLOW: cython.double = 0.01  # seconds; one write that took longer sends the next ones to the thread
# Factor by which a slower write raises the pace: 0.1 ms becomes 1 ms after 13 slow writes in a row.
FORGIVING: cython.double = 1.2
QUICKEST: cython.double = 0.00002  # seconds; no disk is quicker


class Pace:
    """The pace of one log or journal. `seconds`: the duration of its quicker writes; the slower ones waited for a core,
    as a writing thread would."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def is_quick(self) -> cython.bint:
        """Whether the loop may wait for the next write."""
        return self.seconds <= QUICK

    def note(self, seconds: cython.double) -> cython.int:
        """A small write took `seconds`."""
        slower: cython.double = FORGIVING * max(self.seconds, QUICKEST)
        self.seconds = seconds if seconds > SLOW else min(seconds, slower)
        return 0
