# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Whether the event loop may wait for the disk, judged by how long its quicker writes took lately.

A small write is done in the loop while the disk is quick: the way to a thread and back costs more than an fdatasync of
60 us. As soon as one took long, or many in a row were not quick, writes go to a thread until they are quick again; so a
slow disk delays the broker's other clients once, not every time.
"""

import cython

QUICK: cython.double = 0.001  # seconds; the loop waits for writes as long as the recent quicker ones took less
SLOW: cython.double = 0.01  # seconds; one write that took longer sends the next ones to the thread
FORGIVING: cython.double = (
    1.2  # by so much a slower write raises the pace: 13 in a row of 1 ms and more after one of 0.1 ms
)
QUICKEST: cython.double = 0.00002  # seconds; no disk is quicker


class Pace:
    """Of one log or journal. `seconds`: what the quicker writes took; the others waited for a core, as a writing thread
    would."""

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
