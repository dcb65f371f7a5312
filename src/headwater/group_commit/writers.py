"""The writing threads: each job runs in one of them, its callback in the event loop.

This takes a third of the CPU time of a ThreadPoolExecutor: no future, no Python lock, one C queue in each direction. A
publish that waits for its fdatasync crosses threads twice, which is most of the cost with one publish in flight.

A log whose open batch grows while it waits calls `is_free` first and seals the batch only then: with a hundred logs on
four threads each seals once in twenty-five turns, with everything that arrived meanwhile, instead of at once with a
message or two. Jobs that end together return to the loop together, with one wake-up.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from time import monotonic_ns
from typing import Generic, NamedTuple, TypeVar

from headwater.group_commit.reserve import Reserve

logger = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")


class _Work(NamedTuple, Generic[A, R]):
    """`function(argument)` in a thread, then `done(result, None)` or `done(None, error)` in the loop."""

    function: Callable[[A], R]
    argument: A
    done: Callable[[R | None, BaseException | None], None]
    since: int  # ns, monotonic, of submission if other jobs were waiting; else 0


AHEAD = 2  # jobs per thread: the running one and the next, so that the thread need not wait for the loop


class Writers:
    """`count` threads, started with the first job; they belong to the event loop in which it was submitted. `reserve`: of
    the disk that they write to; None: there is none."""

    def __init__(self, count: int, name: str) -> None:
        self.reserve: Reserve | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: SimpleQueue[_Work[object, object] | None] = SimpleQueue()
        self._count = count
        self._name = name
        self._threads: list[Thread] = []
        self._given = 0  # jobs submitted and not returned yet
        self._turns: deque[tuple[Callable[[], None], int]] = deque()  # (begin, since when, ns) of `is_free`
        self._ended: deque[tuple[_Work[object, object], object, BaseException | None]] = deque()
        self._waking = False  # a wake-up for all of `_ended` is under way
        self.waits = 0  # jobs that found others waiting for a thread; shown by /varz
        self.waited_ns = 0  # total of these waits, and the longest
        self.longest_wait_ns = 0

    @property
    def waiting(self) -> int:
        """Jobs that no thread has taken yet, and callers of `is_free` that still wait."""
        return self._queue.qsize() + len(self._turns)

    def is_free(self, begin: Callable[[], None]) -> bool:
        """Whether a job submitted now would start soon. If not, `begin` is called in the loop once it would, in the
        order of the calls."""
        if self._given < AHEAD * self._count:
            return True
        self._turns.append((begin, monotonic_ns()))
        return False

    def submit(
        self, function: Callable[[A], R], argument: A, done: Callable[[R | None, BaseException | None], None]
    ) -> None:
        """Run `function(argument)` in a thread, then `done` in the loop."""
        if not self._threads:
            self._start()
        since = monotonic_ns() if self._queue.qsize() else 0
        self._given += 1
        self._queue.put(_Work(function, argument, done, since))  # type: ignore[arg-type]

    def shutdown(self) -> None:
        """Accept no more jobs; the threads end when the queued ones are done."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        for number in range(self._count):
            thread = Thread(target=self._run, name=f"{self._name}-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None
        while (work := self._queue.get()) is not None:
            if work.since:
                self._note_wait(monotonic_ns() - work.since)
            result: object = None
            failure: BaseException | None = None
            try:
                result = work.function(work.argument)
            except BaseException as error:  # noqa: BLE001  (whatever it is, the caller gets it)
                failure = error
            self._ended.append((work, result, failure))
            if not self._waking:
                self._waking = True
                try:
                    loop.call_soon_threadsafe(self._take_back)
                except RuntimeError:
                    logger.error("writer_outlived_its_loop thread=%s", self._name)
                    return
            del work, result, failure  # otherwise the last batch stays in memory until the next one arrives

    def _take_back(self) -> None:
        """In the loop: call the callbacks of jobs that ended, then the callers of `is_free` whose turn it is."""
        self._waking = False  # reset first: a job that ends after this line causes another wake-up
        try:
            while self._ended:
                work, result, failure = self._ended.popleft()
                self._given -= 1
                work.done(result, failure)
            while self._turns and self._given < AHEAD * self._count:
                begin, since = self._turns.popleft()
                self._note_wait(monotonic_ns() - since)
                begin()
        finally:
            if self._ended or (self._turns and self._given < AHEAD * self._count):  # one of them raised
                asyncio.get_running_loop().call_soon(self._take_back)

    def _note_wait(self, waited: int) -> None:
        """Two threads may overwrite each other's count: a figure for monitoring does not justify a lock."""
        self.waits += 1
        self.waited_ns += waited
        self.longest_wait_ns = max(self.longest_wait_ns, waited)
