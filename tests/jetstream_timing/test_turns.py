"""Turns of a consumer: one for all that happened, an alarm at the earliest time, nothing after the end."""

import asyncio

from headwater.jetstream_timing.turns import LONGEST_TIMER, Turns
from headwater.model.timestamps import SECOND


async def woken(event: asyncio.Event) -> None:
    async with asyncio.timeout(15):
        await event.wait()


def test_many_wakes_are_one_turn_and_none_comes_after_the_end() -> None:
    async def main() -> None:
        counted: list[str] = []
        turns = Turns(lambda: counted.append("turn"), lambda: None)
        for _ in range(3):
            turns.wake()
        await asyncio.sleep(0)
        assert counted == ["turn"]
        turns.wake()
        turns.close()
        turns.wake()
        await asyncio.sleep(0)
        assert counted == ["turn"]

    asyncio.run(main())


def test_the_alarm_rings_at_the_earliest_time_and_not_before() -> None:
    async def main() -> None:
        rang = asyncio.Event()
        turns = Turns(lambda: None, rang.set)
        now = turns.now()
        turns.set_alarm([0, now + 3600 * SECOND])
        turns.set_alarm([now + SECOND // 100, 0])
        turns.set_alarm([now + 60 * SECOND])  # later: the earlier one stays
        await woken(rang)
        assert now + SECOND // 100 <= turns.now() < now + 60 * SECOND

    asyncio.run(main())


def test_no_time_and_a_time_that_no_loop_can_count_to_are_no_errors() -> None:
    async def main() -> None:
        turns = Turns(lambda: None, lambda: None)
        turns.set_alarm([0])
        assert turns._timer is None
        turns.set_alarm([1 << 80])
        assert turns._timer is not None
        assert turns._timer.when() <= turns.loop.time() + LONGEST_TIMER / SECOND + 1
        turns.close()

    asyncio.run(main())
