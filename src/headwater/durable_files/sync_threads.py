"""Syncs side by side: a few threads that wait for the disk, one call each, for as long as the process lives.

Seven syncs of new files while the disk and two cores are busy (p50, ext4): 31-40 ms one after the other, 12-14 in threads
that are started for them, 8 in threads that wait for work. They start with the first use, hold nothing between two calls,
and a child of a fork starts its own.
"""

from _thread import start_new_thread
from collections.abc import Callable, Sequence
from queue import SimpleQueue

THREADS = 8  # a new stream needs six beside its caller's

Work = Callable[[], None]
Results = SimpleQueue[BaseException | None]


class SyncThreads:
    """`run` may be called from several threads at a time: their work shares the threads."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Work, Results]] = SimpleQueue()
        self._started = False

    def run(self, work: Sequence[Work]) -> list[BaseException]:
        """Call each of them, the first in the caller's own thread; returns what they raised, once all are done.

        While other work waits for a thread, the caller does all of its own: so many callers share each commit already."""
        self._start()
        results: Results = SimpleQueue()
        here = work if not self._started or self._queue.qsize() else work[:1]
        for other in work[len(here) :]:
            self._queue.put((other, results))
        for own in here:
            _call(own, results)
        return [error for _ in work if (error := results.get()) is not None]

    def forget(self) -> None:
        """In the child of a fork, where the threads are not."""
        self._queue, self._started = SimpleQueue(), False

    def _start(self) -> None:
        if self._started:
            return
        try:
            for _ in range(THREADS):
                start_new_thread(self._serve, ())
                self._started = True
        except RuntimeError:
            return  # the system gives no more: those that there are do it, or the caller

    def _serve(self) -> None:
        while True:
            _call(*self._queue.get())


def _call(work: Work, results: Results) -> None:
    try:
        work()
    except BaseException as error:  # noqa: BLE001  (whatever it is, its caller gets it)
        results.put(error)
    else:
        results.put(None)
