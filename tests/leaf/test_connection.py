import asyncio
from types import SimpleNamespace
from typing import Any

from headwater.leaf.connection import LeafConnection


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
