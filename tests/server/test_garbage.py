"""Collections stay short while the number of objects grows, and garbage in cycles goes in the end."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from headwater.server.garbage import FROZEN_AT_ONCE, GarbagePolicy


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """The collector of this process as it was."""
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    assert (gc.get_threshold(), gc.callbacks) == (thresholds, callbacks)
    gc.unfreeze()


class Node:
    """Refers to itself."""

    def __init__(self) -> None:
        self.me = self


def test_a_collection_walks_what_is_new_and_not_what_is_old() -> None:
    async def main() -> None:
        walked: list[int] = []

        def note(phase: str, info: dict[str, int]) -> None:
            if phase == "start" and info["generation"] == 2:
                walked.append(len(gc.get_objects()))

        with GarbagePolicy() as policy:
            policy._limit = 1 << 40  # no full one
            gc.callbacks.append(note)
            try:
                held = [[number] for number in range(10 * FROZEN_AT_ONCE)]
            finally:
                gc.callbacks.remove(note)
            assert len(walked) >= 5
            assert max(walked) < 3 * FROZEN_AT_ONCE
            assert len(held) == 10 * FROZEN_AT_ONCE

    asyncio.run(main())


@pytest.mark.busy_loop  # all objects of the test process are collected, a broker's are fewer
def test_what_was_frozen_and_has_become_garbage_is_collected_when_as_much_has_come() -> None:
    async def main() -> None:
        with GarbagePolicy() as policy:
            node = Node()
            gone = weakref.ref(node)
            for _ in range(3):
                gc.collect()
            del node
            gc.collect()
            assert gone() is not None, "it is frozen"
            policy._limit = gc.get_freeze_count() + 2 * FROZEN_AT_ONCE
            for _ in range(20):  # what comes and goes does not count
                assert len([[number] for number in range(FROZEN_AT_ONCE)]) == FROZEN_AT_ONCE
                await asyncio.sleep(0)
            assert policy.full_collections == 0
            held = [[number] for number in range(6 * FROZEN_AT_ONCE)]
            await asyncio.sleep(0)
            assert policy.full_collections == 1
            assert gone() is None
            assert policy._limit > 2 * len(held)

    asyncio.run(main())


def test_nothing_is_collected_for_a_loop_that_has_ended() -> None:
    async def main() -> GarbagePolicy:
        with GarbagePolicy() as policy:
            pass
        return policy

    policy = asyncio.run(main())
    policy.collect_all()
    assert policy.full_collections == 0
