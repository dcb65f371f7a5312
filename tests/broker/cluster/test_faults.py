"""Clusters whose routes fail, by accounting: each message has its publisher's name and a number.

Whatever happens: nothing twice, every publisher's messages in order, nothing lost on the publisher's own broker. When it
is over: a full mesh, equal interest tables, and nothing lost from then on.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from support.clusters import agreed, cluster_of, meshed, start_node, until
from support.route_proxy import INTO, OUT_OF, RouteProxy

from headwater import Broker

PING = 0.3  # seconds between pings of a route; with two unanswered, a dead one is noticed within a second or two


class Node:
    """A broker behind a proxy, a publisher and a subscriber at it."""

    def __init__(self, name: str, broker: Broker, proxy: RouteProxy) -> None:
        self.name = name
        self.broker = broker
        self.proxy = proxy
        self.got: list[tuple[str, int]] = []
        self.sent = 0
        self.client: Client

    async def take(self, message: Msg) -> None:
        publisher, number = message.data.split()
        self.got.append((publisher.decode(), int(number)))

    async def publish(self) -> None:
        self.sent += 1
        await self.client.publish("accounted", b"%b %d" % (self.name.encode(), self.sent))

    def numbers(self, publisher: str) -> list[int]:
        return [number for name, number in self.got if name == publisher]


async def start(stack: AsyncExitStack, count: int) -> list[Node]:
    proxies = [await stack.enter_async_context(RouteProxy()) for _ in range(count)]
    seed = f"nats-route://127.0.0.1:{proxies[0].port}"
    nodes = []
    for at, proxy in enumerate(proxies):
        routes = [seed] if at else []
        broker = await start_node(
            stack, f"n{at}", routes, advertise=f"127.0.0.1:{proxy.port}", ping_interval=PING, ping_max=2
        )
        proxy.target = cluster_of(broker).port
        nodes.append(Node(f"n{at}", broker, proxy))
    await meshed([node.broker for node in nodes], count - 1)
    for node in nodes:
        node.client = await nats.connect(node.broker.url, allow_reconnect=False)
        stack.push_async_callback(node.client.close)
        await node.client.subscribe("accounted", cb=node.take)
        await node.client.flush()
    await agreed([node.broker for node in nodes])
    return nodes


def assert_invariants(nodes: list[Node]) -> None:
    for node in nodes:
        for publisher in nodes:
            numbers = node.numbers(publisher.name)
            assert numbers == sorted(set(numbers)), f"{publisher.name} at {node.name}: twice, or out of order"


async def publish_until(nodes: list[Node], condition: Callable[[], bool]) -> None:
    """Every node publishes, all the time, until something has happened."""
    async with asyncio.timeout(30):
        while not condition():
            for node in nodes:
                await node.publish()
            await asyncio.sleep(0.005)


def black_hole(nodes: list[Node], ways: set[str]) -> None:
    for node in nodes:
        node.proxy.swallow = ways


def cut(nodes: list[Node]) -> None:
    for node in nodes:
        node.proxy.closed = True
        node.proxy.cut()


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(cut, id="all routes are cut"),
        pytest.param(lambda nodes: black_hole(nodes, {INTO, OUT_OF}), id="a black hole"),
        pytest.param(lambda nodes: black_hole(nodes, {INTO}), id="one direction is lost"),
        pytest.param(lambda nodes: black_hole(nodes, {OUT_OF}), id="the other is"),
    ],
)
def test_cluster_heals_and_nothing_is_lost_where_it_was_published(fault: Callable[[list[Node]], None]) -> None:
    async def test(stack: AsyncExitStack) -> None:
        nodes = await start(stack, 3)
        brokers = [node.broker for node in nodes]
        await publish_until(nodes, lambda: all(len(node.got) > 30 for node in nodes))
        fault(nodes)
        # A busy route that swallows everything has to be noticed too: all of them go on publishing.
        await publish_until(nodes, lambda: len(cluster_of(brokers[1]).peers) == 0)
        for node in nodes:
            node.proxy.swallow = set()
            node.proxy.closed = False
            node.proxy.cut()
        await meshed(brokers, 2)
        await agreed(brokers)
        for node in nodes:
            await node.client.flush()
        healed = {node.name: node.sent for node in nodes}
        for _ in range(50):
            for node in nodes:
                await node.publish()
        await until(
            lambda: all(node.numbers(other.name)[-1:] == [other.sent] for node in nodes for other in nodes),
            "the last message of everybody everywhere",
        )
        assert_invariants(nodes)
        for node in nodes:
            assert node.numbers(node.name) == list(range(1, node.sent + 1)), "lost on its own broker"
            for other in nodes:
                after = [number for number in node.numbers(other.name) if number > healed[other.name]]
                assert after == list(range(healed[other.name] + 1, other.sent + 1)), "lost after the mesh had healed"

    run(test)


def test_killed_broker_takes_only_itself_away_and_its_successor_on_the_same_port_is_taken_in() -> None:
    async def test(stack: AsyncExitStack) -> None:
        first = await start_node(stack, "n0")
        address = f"nats-route://127.0.0.1:{cluster_of(first).port}"
        async with AsyncExitStack() as doomed:
            second = await start_node(doomed, "n1", [address])
            port = cluster_of(second).port
            await meshed([first, second], 1)
            for _, route in cluster_of(second).routes():
                assert route.link is not None
                route.link.abort()  # what the others see of kill -9
        await meshed([first], 0)
        again = await start_node(stack, "n1", [address], port=port)
        await meshed([first, again], 1)
        await agreed([first, again])

    run(test)


def test_route_whose_peer_takes_nothing_is_closed_and_the_others_do_not_feel_it() -> None:
    async def test(stack: AsyncExitStack) -> None:
        first = await start_node(stack, "n0", write_deadline=0.5)
        other = await start_node(stack, "n1", [f"nats-route://127.0.0.1:{cluster_of(first).port}"])
        await meshed([first, other], 1)
        stuck = socket.create_connection(("127.0.0.1", cluster_of(first).port), 5.0)
        stack.callback(stuck.close)
        stuck.sendall(b'CONNECT {"name":"STUCK","cluster":"hw","headers":true}\r\n')
        stuck.sendall(
            b'INFO {"server_id":"STUCK","headers":true,"cluster":"hw"}\r\nRS+ $G flood\r\n'
        )  # and reads nothing
        await meshed([first], 2)
        here, there = await nats.connect(first.url), await nats.connect(other.url)
        stack.push_async_callback(here.close)
        stack.push_async_callback(there.close)
        got = 0

        async def take(message: Msg) -> None:
            nonlocal got
            got += 1

        await there.subscribe("flood", cb=take)
        await there.flush()
        await agreed_on(first, b"flood", 2)
        sent = 0
        async with asyncio.timeout(30):
            while len(cluster_of(first).peers) == 2:
                with suppress(nats.errors.TimeoutError):
                    await here.publish("flood", b"x" * 100_000)
                sent += 1
                await asyncio.sleep(0.001)
        await here.flush()
        await until(lambda: got == sent, "every message at the peer that reads")

    run(test)


async def agreed_on(broker: Broker, subject: bytes, peers: int) -> None:
    forwarding = cluster_of(broker).space("$G").forwarding
    await until(lambda: (subject, b"", peers) in forwarding.peers_want(), f"{peers} peers that want {subject!r}")


def run(test: Callable[[AsyncExitStack], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(90), AsyncExitStack() as stack:
            await test(stack)

    asyncio.run(bounded())
