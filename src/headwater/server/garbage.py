"""Keeps a server's garbage collections short, however many clients and subjects it holds.

Python's collector traverses all long-lived objects again whenever their number has grown by a quarter. With 10,000 clients
and a million keys this takes a quarter of a second of CPU, during which no client is served (measured). Under this policy a
collection of the oldest generation follows about 20,000 new objects and takes a few milliseconds; the survivors are then
hidden from the collector (`gc.freeze`). They are still freed when their last reference goes; only cycles stay. To free
those, everything is collected again once there are GROWTH times as many objects as after the last such collection, or
RARE_GROWTH times as many if that one found next to no garbage.
"""

import asyncio
import gc
import logging
from types import TracebackType
from typing import Self

logger = logging.getLogger(__name__)

THRESHOLDS = (700, 10, 3)  # the first two are Python's defaults; the third counts collections of the second generation
FROZEN_AT_ONCE = 700 * 11 * 4  # the most objects between two collections of the oldest generation
OLDEST = 2
GROWTH, RARE_GROWTH = 2, 4
NEXT_TO_NONE = 0.01  # of the objects that are alive


class GarbagePolicy:
    """Applies while it is entered, in the event loop; on entry, all live objects are frozen and collection is enabled."""

    def __init__(self) -> None:
        self.full_collections = 0
        self._frozen = 0  # an upper bound of frozen objects: those freed one by one are not subtracted
        self._limit = 0  # number of frozen objects at which everything is collected
        self._before = gc.get_threshold()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scheduled = False  # whether a full collection is scheduled

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._freeze(GROWTH)
        gc.set_threshold(*THRESHOLDS)
        gc.callbacks.append(self._on_collection)
        gc.enable()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop = None
        gc.callbacks.remove(self._on_collection)
        gc.set_threshold(*self._before)

    def _freeze(self, growth: int) -> int:
        """Freeze all live objects, and return their number. The empty collection afterwards makes the collector count no
        long-lived objects; otherwise it would wait until their number has grown by a quarter."""
        gc.freeze()
        gc.collect()
        self._frozen = gc.get_freeze_count()
        self._limit = growth * self._frozen
        return self._frozen

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase != "stop" or info["generation"] != OLDEST or self._loop is None:
            return
        gc.freeze()
        self._frozen += FROZEN_AT_ONCE
        if self._frozen > self._limit and not self._scheduled:
            self._frozen = gc.get_freeze_count()  # takes a few milliseconds
            if self._frozen > self._limit:  # scheduled, because a collection cannot start within another
                self._scheduled = True
                self._loop.call_soon_threadsafe(self.collect_all)

    def collect_all(self) -> None:
        """Collect everything, including frozen objects."""
        self._scheduled = False
        if self._loop is None:
            return
        gc.callbacks.remove(self._on_collection)
        gc.unfreeze()
        collected = gc.collect()
        alive = self._freeze(GROWTH)
        if collected < NEXT_TO_NONE * alive:
            self._limit = RARE_GROWTH * alive
        gc.callbacks.append(self._on_collection)
        self.full_collections += 1
        logger.debug("garbage_collected objects=%d alive=%d", collected, alive)
