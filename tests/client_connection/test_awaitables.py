"""NOTHING, Later and Bell: what they cost, and what a cancelled wait leaves behind."""

import asyncio

import pytest
from support.scripted_server import finish

from headwater.client_connection.awaitables import NOTHING, Bell, Later


def test_later_begins_when_it_is_awaited_and_only_then() -> None:
    async def main() -> list[int]:
        begun: list[int] = []

        async def begin() -> int:
            begun.append(1)
            return 7

        Later(begin)
        assert begun == []
        assert await Later(begin) == 7
        return begun

    assert finish(main()) == [1]


def test_a_bell_wakes_everybody_who_waits_and_nobody_who_comes_later() -> None:
    async def main() -> None:
        bell = Bell()
        waiting = [asyncio.create_task(bell.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        bell.ring()
        await asyncio.gather(*waiting)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await bell.wait()

    finish(main())


def test_a_cancelled_wait_at_a_bell_leaves_nothing_behind() -> None:
    async def main() -> None:
        bell = Bell()
        waiting = asyncio.create_task(bell.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not bell._waiters
        bell.ring()

    finish(main())


def test_nothing_is_there_at_once_and_again_whoever_awaits_it() -> None:
    async def main() -> list[str]:
        order: list[str] = []
        asyncio.get_running_loop().call_soon(order.append, "turn")
        await NOTHING
        await NOTHING
        order.append("there")
        await asyncio.sleep(0)
        assert len(await asyncio.gather(NOTHING, NOTHING)) == 2
        assert await asyncio.wait_for(NOTHING, 1) is None  # type: ignore[func-returns-value]
        await NOTHING
        return order

    assert finish(main()) == ["there", "turn"]
