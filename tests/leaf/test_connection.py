import asyncio
from types import SimpleNamespace
from typing import Any

from support.fake_link import FakeLink

from headwater.exchange.sublist import Outlet
from headwater.leaf.connection import LeafConnection
from headwater.wire.memory import OutputBuffer


def test_the_pong_of_a_keep_alive_does_not_settle_a_wait() -> None:
    async def test() -> None:
        nodes: Any = SimpleNamespace(clock=lambda: 7.0)
        leaf = LeafConnection(nodes, 1, 1 << 20)
        leaf.joined = True
        assert leaf.ping(2, 6.0)
        settled = leaf.settled()
        pong = bytearray(b"PONG\r\n")
        leaf.parser.parse(pong, 0, len(pong))
        assert not settled.done()
        leaf.parser.parse(pong, 0, len(pong))
        assert settled.done()

    asyncio.run(test())


def test_a_neighbour_that_the_router_cut_off_has_not_closed_the_connection_itself() -> None:
    async def test() -> None:
        reasons: list[str] = []
        watch = SimpleNamespace(slow=0)
        nodes: Any = SimpleNamespace(
            clock=lambda: 7.0, lost=lambda leaf, error: reasons.append(leaf.end_reason), watch=watch
        )
        for closed in (True, False):
            leaf = LeafConnection(nodes, 1, 1 << 20)
            leaf.outlet = Outlet(FakeLink(), OutputBuffer())
            leaf.outlet.closed = closed
            leaf.lost(None)
        assert reasons == ["more than max_pending waits for it", ""]
        assert watch.slow == 1

    asyncio.run(test())
