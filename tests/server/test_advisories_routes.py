"""GHSA-qrcv-3558-gj4f: what a client says never becomes an op of a route, whatever bytes its subjects have."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from support.clusters import agreed, cluster_of, connect, run, start_nodes
from support.raw_wire import RawLink, connect_op, dial

from headwater.cluster.mesh import Protocol

ODD = [b"a\rb", b"a\x00b", b"a\x0bb", b"a\x0cb", b"a\x1fb", b"a\x7fb", b"a\xffb", b"\xe2\x80\xa8", b"RMSG", b"-ERR"]
INJECTIONS = [
    b"a\rRMSG $G target 1\rx",
    b"a\nRMSG $G target 1\nx\n",
    b"a\r\nRMSG $G target 1\r\nx",
    b"a MSG target RSID:1:1 1\r\nx",
    b"a\tRMSG\t$G\ttarget\t1",
]


@pytest.mark.parametrize("protocol", ["v2", "v1"])
def test_no_bytes_of_a_client_become_an_op_of_a_route(protocol: Protocol) -> None:
    async def test(stack: AsyncExitStack) -> None:
        brokers = await start_nodes(stack, 2, protocol=protocol)
        listener = await asyncio.to_thread(dial, brokers[1].port)
        stack.callback(listener.close)
        listener.send(b"SUB target 1\r\nSUB still 2\r\n")
        await asyncio.to_thread(listener.settle)
        await agreed(brokers)
        routes = [id(peer) for peer in cluster_of(brokers[0]).peers]

        def misbehave() -> None:
            for token in [*ODD, *INJECTIONS]:
                for op in (
                    b"SUB %b 1\r\n" % token,
                    b"SUB x %b 1\r\n" % token,
                    b"PUB %b 1\r\nx\r\n" % token,
                    b"PUB still %b 1\r\nx\r\n" % token,
                    b"PUB still 1\r\nx\r\nUNSUB 1\r\n",
                ):
                    with RawLink(brokers[0].port) as link:
                        link.send(connect_op() + op + b"PING\r\n")
                        link.end_sending()
                        link.receive_end()

        await asyncio.to_thread(misbehave)
        client = await connect(stack, brokers[0].url)
        await client.publish("target", b"real")
        await client.flush()
        received = await asyncio.to_thread(listener.receive_until, b"real\r\n")
        assert received.count(b"MSG target ") == 1
        assert received.count(b"MSG still ") == received.count(b"1\r\nx\r\n")
        assert [id(peer) for peer in cluster_of(brokers[0]).peers] == routes

    run(test)
