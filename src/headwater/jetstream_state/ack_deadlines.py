# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""What waits for an ack: by deadline, and in the order of first deliveries. Parts of `Consumer`, which has the rules.

Deadlines are in a queue as long as each is later than the one before, as those of deliveries are; the others are in a
heap. The messages of one run of deliveries have one deadline, so they are one entry of that queue.

All structures may hold stale entries, of messages that were settled or got another deadline. They are ignored unless
`unacked` agrees with them, and dropped when most are stale: an entry goes stale with its ack and would stay
for a whole ack wait, 30 s of 50,000 acks/s are 1.5 million.
"""

from collections import deque
from heapq import heappush

import cython

STALE_ENTRIES = 1024  # entries beyond twice the live ones, at which the stale ones are dropped
_STALE: cython.Py_ssize_t = STALE_ENTRIES


class Unsettled:
    """A message that waits for its ack: the consumer sequence of its first delivery, and the time at which it is due
    again."""

    first: int
    deadline: int

    def __init__(self, first: cython.longlong, deadline: cython.longlong) -> None:
        self.first = first
        self.deadline = deadline


def unsettled(first: cython.longlong, deadline: cython.longlong) -> Unsettled:
    """`Unsettled(first, deadline)`, in a third of the time."""
    if not cython.compiled:
        return Unsettled(first, deadline)
    made: Unsettled = Unsettled.__new__(Unsettled)
    made.first = first
    made.deadline = deadline
    return made


class Run:
    """Messages with one deadline, by ascending sequence; those before `at` are settled, or have another deadline."""

    deadline: int
    sequences: list[int]
    at: int

    def __init__(self, deadline: cython.longlong, sequences: list[int]) -> None:
        self.deadline = deadline
        self.sequences = sequences
        self.at = 0


class Deadlines:
    """The deadlines of `unacked`, the consumer's, of which those in `due` have passed. `heap`: (deadline, sequence) of those
    that are not in the queue."""

    def __init__(self, unacked: dict[int, Unsettled], due: set[int]) -> None:
        self._unacked = unacked
        self._due = due
        self.heap: list[tuple[int, int]] = []
        self._runs: deque[Run] = deque()
        self._in_runs = 0  # sequences in all of them

    def add(self, sequence: cython.longlong, deadline: cython.longlong) -> cython.int:
        """`sequence`, which is in `unacked`, is due at `deadline`."""
        run: Run | None = self._runs[len(self._runs) - 1] if self._runs else None
        if run is None or deadline > run.deadline:
            self._runs.append(Run(deadline, [sequence]))
            self._in_runs += 1
        elif deadline == run.deadline and sequence > run.sequences[len(run.sequences) - 1]:
            run.sequences.append(sequence)
            self._in_runs += 1
        else:
            heappush(self.heap, (deadline, sequence))
        return self._drop_stale()

    def add_run(self, sequences: list[int], deadline: int) -> None:
        """As `add`, for ascending sequences with one deadline."""
        run: Run | None = self._runs[len(self._runs) - 1] if self._runs else None
        if run is None or deadline > run.deadline:
            self._runs.append(Run(deadline, list(sequences)))
            self._in_runs += len(sequences)
        elif deadline == run.deadline and sequences[0] > run.sequences[len(run.sequences) - 1]:
            run.sequences.extend(sequences)
            self._in_runs += len(sequences)
        else:
            for sequence in sequences:
                heappush(self.heap, (deadline, sequence))
        self._drop_stale()

    def first_run(self) -> Run | None:
        """The run with the earliest deadline of those in the queue: its message at `at` waits, and is not due already.
        None: no message in the queue does."""
        run: Run
        entry: Unsettled | None
        unacked, due = self._unacked, self._due
        while self._runs:
            run = self._runs[0]
            while run.at < len(run.sequences):
                entry = unacked.get(run.sequences[run.at])
                if entry is not None and entry.deadline == run.deadline and not (due and run.sequences[run.at] in due):
                    return run
                self.step(run)
            self._runs.popleft()
        return None

    def step(self, run: Run) -> cython.int:
        """The message at `at` of the first run is done with."""
        run.at += 1
        self._in_runs -= 1
        return 0

    def _drop_stale(self) -> cython.int:
        unacked = self._unacked
        run: Run | None = None
        if self._in_runs + len(self.heap) > 2 * len(unacked) + _STALE:
            self.heap.clear()
            self._runs.clear()
            self._in_runs = len(unacked)
            for deadline, sequence in sorted([(entry.deadline, waiting) for waiting, entry in unacked.items()]):
                if run is None or deadline > run.deadline:
                    run = Run(deadline, [])
                    self._runs.append(run)
                run.sequences.append(sequence)
        return 0


class DeliveryOrder:
    """`sequences`: of the messages in the order of their first deliveries; the first ones are mostly settled."""

    def __init__(self, unacked: dict[int, Unsettled]) -> None:
        self._unacked = unacked
        self.sequences: list[int] = []
        self._settled = 0  # how many at the beginning are settled

    def first(self) -> cython.Py_ssize_t:
        """The unacked message that was delivered first; 0 when all are settled. Iterating over `unacked` would find it
        too, but a dict keeps the slots of entries deleted at its front, and each search would scan all of them."""
        order, unacked = self.sequences, self._unacked
        at: cython.Py_ssize_t = self._settled
        while at < len(order) and order[at] not in unacked:
            at += 1
        if len(order) - at > 2 * len(unacked) + _STALE:
            order = self.sequences = sorted(unacked)
            at = 0
        elif at > _STALE and 2 * at > len(order):
            del order[:at]
            at = 0
        self._settled = at
        return order[at] if at < len(order) else 0
