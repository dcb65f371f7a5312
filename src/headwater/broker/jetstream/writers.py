"""The threads that write: each piece of work is done in one of them, and its end is told in the event loop.

What a ThreadPoolExecutor does, for a third of the CPU time: no future, no lock of Python's own, one C queue each way. A
publish that waits for its fdatasync is handed over twice, so that is most of what one publish in flight costs.
"""

import asyncio
import logging
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Generic, NamedTuple, TypeVar

logger = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")


class _Work(NamedTuple, Generic[A, R]):
    """`function(argument)` in a thread, then `done(result, None)` or `done(None, error)` in the loop."""

    function: Callable[[A], R]
    argument: A
    done: Callable[[R | None, BaseException | None], None]


class Writers:
    """`count` threads, started with the first piece of work. Belongs to the running event loop."""

    def __init__(self, count: int, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[_Work[object, object] | None] = SimpleQueue()
        self._count = count
        self._name = name
        self._threads: list[Thread] = []

    def submit(
        self, function: Callable[[A], R], argument: A, done: Callable[[R | None, BaseException | None], None]
    ) -> None:
        """Have `function(argument)` done in a thread; `done` is called in the loop."""
        if not self._threads:
            self._start()
        self._queue.put(_Work(function, argument, done))  # type: ignore[arg-type]

    def shutdown(self) -> None:
        """No more work comes; the threads end when what there is is done."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _start(self) -> None:
        for number in range(self._count):
            thread = Thread(target=self._run, name=f"{self._name}-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            result: object = None
            failure: BaseException | None = None
            try:
                result = work.function(work.argument)
            except BaseException as error:  # noqa: BLE001  (whatever it is, whoever asked has to hear of it)
                failure = error
            try:
                self._loop.call_soon_threadsafe(work.done, result, failure)
            except RuntimeError:
                logger.error("writer_outlived_its_loop thread=%s", self._name)
                return
            del work, result, failure  # or the last batch stays in memory until the next one comes
