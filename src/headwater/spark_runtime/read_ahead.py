"""Take rows from Spark while earlier ones are published.

    JVM ─▶ this thread collects flight 2 ─▶ one place ─▶ the task's thread publishes flight 1, and waits for the disk

Without it a JVM stands still while its Python worker publishes, and the worker while the JVM makes rows, because the pipe
between them holds a few hundred KiB. Two flights are in memory, never more.
"""

import threading
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class _Ended(Generic[T]):
    """`problem`: what ended the source, None for its ordinary end."""

    def __init__(self, problem: BaseException | None) -> None:
        self.problem = problem


def read_ahead(source: Iterable[T]) -> Iterator[T]:
    """The items of `source`, the next of which is taken by another thread while the caller works on one. Raises what
    `source` raises, after the items before it. A caller that goes away early leaves a thread that ends with the item it
    waits for."""
    taken: SimpleQueue[T | _Ended[T]] = SimpleQueue()
    place = threading.Semaphore(1)
    abandoned = threading.Event()

    def collect() -> None:
        try:
            place.acquire()
            for item in source:
                taken.put(item)
                place.acquire()
                if abandoned.is_set():
                    return
        except BaseException as problem:  # noqa: BLE001 - it is raised in the task's thread
            taken.put(_Ended(problem))
        else:
            taken.put(_Ended(None))

    threading.Thread(target=collect, name="headwater-read-ahead", daemon=True).start()
    try:
        item = taken.get()
        while not isinstance(item, _Ended):
            place.release()
            yield item
            item = taken.get()
    finally:
        abandoned.set()
        place.release()
    if item.problem is not None:
        raise item.problem
