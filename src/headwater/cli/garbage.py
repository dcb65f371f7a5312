"""Keeps the garbage collections of a server short, however many clients and subjects it holds.

Python's collector walks all that has survived earlier collections again whenever a quarter as much has been added. With
10,000 clients and a million keys that is a quarter of a second of CPU in which no client is served (measured). Here a
collection of the oldest generation comes after some 20,000 new objects and takes a few milliseconds; what survives is
taken out of the collector's sight (`gc.freeze`). It is still freed when no reference is left; only cycles stay. For their
sake everything is collected again when there are GROWTH times as many objects, cycles among them, as after the last such
collection, or RARE_GROWTH times where that one found next to no garbage.
"""

import asyncio
import gc
import logging
from types import TracebackType
from typing import Self

logger = logging.getLogger(__name__)

THRESHOLDS = (700, 10, 3)  # the first two are Python's; the third counts collections of the second generation
FROZEN_AT_ONCE = 700 * 11 * 4  # objects between two collections of the oldest generation, at most
OLDEST = 2
GROWTH, RARE_GROWTH = 2, 4
NEXT_TO_NONE = 0.01  # of what is alive


class GarbagePolicy:
    """For the time in which it is entered, in the event loop; what is alive at the start is frozen, collections are on."""

    def __init__(self) -> None:
        self.full_collections = 0
        self._frozen = 0  # objects, at most: those that are freed one by one are not seen
        self._limit = 0  # at which everything is collected
        self._before = gc.get_threshold()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked = False  # a full collection is about to come

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
        """All that is alive. The collection of nothing behind it tells the collector that it holds nothing old: it would
        wait for a quarter of what was frozen. Returns how many objects there are."""
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
        if self._frozen > self._limit and not self._asked:
            self._frozen = gc.get_freeze_count()  # takes a few milliseconds
            if self._frozen > self._limit:  # not from in here: a collection cannot begin in another
                self._asked = True
                self._loop.call_soon_threadsafe(self.collect_all)

    def collect_all(self) -> None:
        """Also what was frozen."""
        self._asked = False
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
