"""The watchdog over event loops tells a call of the product that computes for too long, and nothing else."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from support.loop_watchdog import Watchdog

from headwater.monitoring.steps import Steps, drive, in_turns
from headwater.net.link import Link

pytestmark = pytest.mark.busy_loop


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    made = Watchdog(0.02)
    made.install()
    yield made
    made.remove()


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def computing(seconds: float) -> Steps:
    yield
    burn(seconds)
    return None


class Owner:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def attach(self, link: Link) -> None:
        self.link = link

    def receive(self, buffer: bytearray, filled: int) -> int:
        burn(self.seconds)
        self.link.close()
        return filled

    def lost(self, error: Exception | None) -> None:
        pass


def test_a_task_of_the_product_that_computes_is_told(watchdog: Watchdog) -> None:
    async def main() -> None:
        await asyncio.ensure_future(in_turns(computing(0.05)))

    asyncio.run(main())
    (stall,) = watchdog.stalls
    assert "in_turns" in stall.call and 0.04 < stall.seconds < 1
    assert "50 ms" in str(stall) or stall.seconds > 0.05


def test_a_callback_of_the_product_that_computes_is_told(watchdog: Watchdog) -> None:
    async def main() -> None:
        drive(computing(0.05), lambda _: None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert ["drive" in stall.call for stall in watchdog.stalls] == [True]


def test_what_is_read_for_a_protocol_of_the_product_is_told(watchdog: Watchdog) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(lambda: Link(Owner(0.05)), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"x")
        assert await reader.read() == b""
        writer.close()
        server.close()

    asyncio.run(main())
    assert any("Link" in stall.call for stall in watchdog.stalls)


def test_waiting_and_what_a_test_computes_itself_is_not(watchdog: Watchdog) -> None:
    async def main() -> None:
        burn(0.05)
        asyncio.get_running_loop().call_soon(burn, 0.05)
        await asyncio.ensure_future(in_turns(computing(0.0)))
        asyncio.get_running_loop().call_soon(time.sleep, 0.05)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert watchdog.stalls == []
    assert watchdog.calls > 5
