import asyncio
import threading

import pytest

from headwater.errors import ConnectionClosed
from headwater.net.loop_thread import LoopThread, SyncProxy, iterate


def test_a_coroutine_runs_in_the_thread_and_its_error_is_raised_here() -> None:
    loop = LoopThread()

    async def where() -> str:
        return threading.current_thread().name

    async def broken() -> None:
        raise ValueError("broken")

    try:
        assert loop.run(where()) != threading.current_thread().name
        assert loop.call(divmod, 7, 2) == (3, 1)
        with pytest.raises(ValueError, match="broken"):
            loop.run(broken())
    finally:
        loop.stop()
    loop.stop()
    with pytest.raises(ConnectionClosed):
        loop.run(where())


def test_what_is_asynchronous_is_plain_through_a_proxy() -> None:
    class Counting:
        limit = 3

        async def double(self, number: int) -> int:
            await asyncio.sleep(0)
            return 2 * number

        async def __aiter__(self):  # type: ignore[no-untyped-def]
            for number in range(self.limit):
                yield number

    loop = LoopThread()
    try:
        proxy = SyncProxy(loop, Counting())
        assert (proxy.double(4), proxy.limit, list(proxy)) == (8, 3, [0, 1, 2])
        assert list(iterate(loop, Counting())) == [0, 1, 2]
        assert "blocking" in repr(proxy)
    finally:
        loop.stop()
