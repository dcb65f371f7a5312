"""The parent's watch over its workers: one that hangs neither ends nor says so, and its clients wait without a word.

Each worker writes its line of the board every two seconds. One whose line has been the same for MOST_SAME looks is named in
the log, once, and once more when it goes on. Looks are counted, and no clock is asked: after a minute in which the whole
machine stood still no worker is silent. It is not ended, for it may only be slow. The others
close their routes to it after its PINGs (`workers.PING_MAX`), and from then on what is for its streams is refused.
"""

import logging
import time
from collections.abc import Mapping

from headwater.monitoring.board import Board

logger = logging.getLogger("headwater")

EVERY = 2.0  # seconds between two looks, as between two lines of a worker
MOST_SAME = 10  # so twenty seconds; a worker that is slow because its machine is has hardly ever reached five


class WorkerWatch:
    """See the head of this module."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.silent: set[int] = set()
        self._look_at = 0.0  # by the monotonic clock
        self._last: dict[int, tuple[float, int]] = {}  # what a line was, and at how many looks since

    def look(self, running: Mapping[int, int]) -> float:
        """Look at the lines of those that run (process id -> number), if that is due; returns the seconds until the next
        look."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + EVERY
            for number in self.note(self.board.beats()):
                for process in (one for one, runs in running.items() if runs == number):
                    self._report(number, process)
        return self._look_at - now

    def note(self, beats: Mapping[int, float]) -> set[int]:
        """Record one look. Returns those that have become silent, or go on."""
        found = {}
        for number, beat in beats.items():
            last, same = self._last.get(number, (0.0, 0))
            found[number] = (beat, same + 1 if beat == last else 0)
        before = self.silent
        self._last, self.silent = found, {number for number, (_, same) in found.items() if same >= MOST_SAME}
        return before ^ self.silent

    def _report(self, number: int, process: int) -> None:
        if number in self.silent:
            what = "its clients and requests about its streams wait or are refused; to have it replaced, kill it"
            logger.error(
                "worker %d (process %d) has done nothing for %g s: %s", number, process, EVERY * MOST_SAME, what
            )
        else:
            logger.warning("worker %d (process %d) goes on", number, process)
