"""Clusters whose routes fail. Every message is accounted for: it has its publisher's name and a number.

During every fault no message arrives twice, each publisher's messages arrive in order, and none is lost on the
publisher's own broker. Afterwards the mesh is full, interest tables are equal, and no message is lost.
"""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from support.clusters import agreed, cluster_of, meshed, start_node, until
from support.forwarding_bench import peers_want
from support.nats_py_flush import flushed
from support.raw_wire import RawLink
from support.route_proxy import INTO, OUT_OF, RouteProxy

from headwater import Broker
from headwater.testing.ports import free_port

pytestmark = pytest.mark.interop

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


async def start(stack: AsyncExitStack, count: int, **fields: Any) -> list[Node]:
    proxies = [await stack.enter_async_context(RouteProxy()) for _ in range(count)]
    seed = f"nats-route://127.0.0.1:{proxies[0].port}"
    nodes = []
    for at, proxy in enumerate(proxies):
        routes = [seed] if at else []
        broker = await start_node(
            stack, f"n{at}", routes, advertise=f"127.0.0.1:{proxy.port}", ping_interval=PING, ping_max=2, **fields
        )
        proxy.target = cluster_of(broker).port
        nodes.append(Node(f"n{at}", broker, proxy))
    await meshed([node.broker for node in nodes], count - 1)
    await subscribe(stack, nodes)
    await agreed([node.broker for node in nodes])
    return nodes


async def subscribe(stack: AsyncExitStack, nodes: list[Node]) -> None:
    for node in nodes:
        node.client = await nats.connect(node.broker.url, allow_reconnect=False)
        stack.push_async_callback(node.client.close)
        await node.client.subscribe("accounted", cb=node.take)
        await flushed(node.client)


def assert_invariants(nodes: list[Node]) -> None:
    for node in nodes:
        for publisher in nodes:
            numbers = node.numbers(publisher.name)
            assert numbers == sorted(set(numbers)), f"{publisher.name} at {node.name}: twice, or out of order"


Window = tuple[dict[str, int], dict[str, int]]
"""Each publisher's number when the cluster was last healthy, and when it was healthy again."""


def assert_lost_only_within(windows: list[Window], nodes: list[Node]) -> None:
    for node in nodes:
        assert node.numbers(node.name) == list(range(1, node.sent + 1)), "lost on its own broker"
        for other in nodes:
            for number in set(range(1, other.sent + 1)) - set(node.numbers(other.name)):
                assert any(good[other.name] < number <= healed[other.name] for good, healed in windows), (
                    f"{other.name}'s {number} was lost outside the outage"
                )


def progress(nodes: list[Node]) -> dict[str, int]:
    return {node.name: node.sent for node in nodes}


async def publish_until(nodes: list[Node], condition: Callable[[], bool]) -> None:
    """All nodes publish continuously until an event."""
    async with asyncio.timeout(30):
        while not condition():
            for node in nodes:
                await node.publish()
            await asyncio.sleep(0.005)


Noticed = Callable[[], bool]


def black_hole(nodes: list[Node], ways: set[str]) -> Noticed:
    for node in nodes:
        node.proxy.swallow = ways
    return lambda: len(cluster_of(nodes[1].broker).peers) == 0


def cut_all(nodes: list[Node]) -> Noticed:
    for node in nodes:
        node.proxy.closed = True
        node.proxy.cut()
    return lambda: len(cluster_of(nodes[1].broker).peers) == 0


def cut_one(nodes: list[Node]) -> Noticed:
    """Cut the route between the last two nodes, which learned of each other from the first."""
    (route,) = [route for peer, route in cluster_of(nodes[1].broker).routes() if peer.name == nodes[2].name]
    assert route.link is not None
    route.link.abort()

    def reported() -> bool:
        """Both have lost that route."""
        return all(peer.link != route.number for node in nodes[1:] for peer in cluster_of(node.broker).peers)

    return reported


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "busy"),
    [
        pytest.param(cut_all, True, id="all routes are cut"),
        pytest.param(cut_one, True, id="one route is cut"),
        # A route that loses everything must be detected, busy or idle.
        pytest.param(lambda nodes: black_hole(nodes, {INTO, OUT_OF}), True, id="a black hole"),
        pytest.param(lambda nodes: black_hole(nodes, {INTO, OUT_OF}), False, id="a black hole without traffic"),
        pytest.param(lambda nodes: black_hole(nodes, {INTO}), True, id="one direction is lost"),
        pytest.param(lambda nodes: black_hole(nodes, {OUT_OF}), True, id="the other is"),
    ],
)
def test_cluster_heals_and_nothing_is_lost_where_it_was_published(
    fault: Callable[[list[Node]], Noticed], busy: bool
) -> None:
    async def test(stack: AsyncExitStack) -> None:
        nodes = await start(stack, 3)
        brokers = [node.broker for node in nodes]
        await publish_until(nodes, lambda: all(len(node.got) > 30 for node in nodes))
        good = progress(nodes)
        await arrived(nodes)
        noticed = fault(nodes)
        if busy:
            await publish_until(nodes, noticed)
        else:
            await until(noticed, "the fault to be noticed")
        for node in nodes:
            node.proxy.swallow = set()
            node.proxy.closed = False
            if fault is not cut_one:
                node.proxy.cut()
        await meshed(brokers, 2)
        await agreed(brokers)
        for node in nodes:
            await flushed(node.client)
        healed = progress(nodes)
        for _ in range(50):
            for node in nodes:
                await node.publish()
        await arrived(nodes)
        assert_invariants(nodes)
        assert_lost_only_within([(good, healed)], nodes)

    run(test)


def links_of(brokers: list[Broker]) -> set[tuple[str, int]]:
    """The numbers of all current routes; numbers are not reused."""
    return {(broker.server_id, peer.link) for broker in brokers for peer in cluster_of(broker).peers}


def gone(links: set[tuple[str, int]], brokers: list[Broker]) -> bool:
    return not links & links_of(brokers)


@pytest.mark.slow
def test_both_dial_at_once_repeatedly_and_no_message_arrives_twice() -> None:
    """Both publish from the start; then the routes are cut, and both dial each other at the same time."""

    async def test(stack: AsyncExitStack) -> None:
        proxies = [await stack.enter_async_context(RouteProxy()) for _ in range(2)]
        for proxy in proxies:
            proxy.target = free_port()
        brokers = await asyncio.gather(
            *(
                start_node(
                    stack,
                    f"n{at}",
                    [f"nats-route://127.0.0.1:{proxies[1 - at].port}"],
                    port=proxies[at].target,
                    advertise=f"127.0.0.1:{proxies[at].port}",
                )
                for at in range(2)
            )
        )
        nodes = [Node(f"n{at}", brokers[at], proxies[at]) for at in range(2)]
        await subscribe(stack, nodes)
        windows: list[Window] = []
        good = progress(nodes)
        for outage in range(3):
            if outage:
                lost = links_of(brokers)
                for proxy in proxies:
                    proxy.cut()
                await publish_until(nodes, partial(gone, lost, brokers))
            await publish_until(nodes, lambda: all(len(cluster_of(broker).peers) == 1 for broker in brokers))
            await meshed(brokers, 1)
            await agreed(brokers)
            windows.append((good, progress(nodes)))
            for _ in range(20):
                for node in nodes:
                    await node.publish()
            await arrived(nodes)
            good = progress(nodes)
        assert_invariants(nodes)
        assert_lost_only_within(windows, nodes)

    run(test)


async def arrived(nodes: list[Node]) -> None:
    await until(
        lambda: all(node.numbers(other.name)[-1:] == [other.sent] for node in nodes for other in nodes),
        "the last message of everybody everywhere",
    )


Intruder = Callable[[AsyncExitStack, list[Node]], Awaitable[None]]


async def claims_to_be_another(stack: AsyncExitStack, nodes: list[Node]) -> None:
    """A second server with the id of a member."""
    stolen = nodes[1].broker.server_id
    await talk(
        nodes[0], b'CONNECT {"name":"%b","cluster":"hw"}\r\nINFO {"server_id":"%b","server_name":"x"}\r\n', stolen
    )


async def claims_to_be_us(stack: AsyncExitStack, nodes: list[Node]) -> None:
    own = nodes[0].broker.server_id
    await talk(nodes[0], b'CONNECT {"name":"%b","cluster":"hw"}\r\nINFO {"server_id":"%b","server_name":"x"}\r\n', own)


async def comes_from_another_cluster(stack: AsyncExitStack, nodes: list[Node]) -> None:
    await start_node(stack, "stranger", [f"nats-route://127.0.0.1:{nodes[0].proxy.port}"], cluster_name="other")
    await talk(nodes[0], b'CONNECT {"name":"X","cluster":"other"}\r\nINFO {"server_id":"X"}\r\n', "")


async def has_its_own_address_among_its_routes(stack: AsyncExitStack, nodes: list[Node]) -> None:
    port = free_port()
    routes = [f"nats-route://localhost:{port}", f"nats-route://127.0.0.1:{nodes[0].proxy.port}"]
    async with AsyncExitStack() as visit:
        broker = await start_node(visit, "n9", routes, port=port)
        await meshed([broker], len(nodes))
        assert {peer.name for peer in cluster_of(broker).peers} == {node.name for node in nodes}
    await meshed([node.broker for node in nodes], len(nodes) - 1)


CREDENTIALS = {"username": "route", "password": "s3cret"}


async def does_not_know_the_password(stack: AsyncExitStack, nodes: list[Node]) -> None:
    """Repeated attempts are refused; a peer with the password is accepted, and may leave again."""
    address = f"127.0.0.1:{nodes[0].proxy.port}"
    await start_node(stack, "wrong", [f"nats-route://route:guess@{address}"], username="route", password="guess")
    for shown in (b"", b',"user":"route","pass":"guess"', b',"user":"root","pass":"s3cret"'):
        output = b'CONNECT {"name":"X","cluster":"hw"%b}\r\nINFO {"server_id":"X"}\r\nRS+ $G accounted\r\n' % shown
        await talk(nodes[0], output + b"RMSG $G accounted 6\r\nn0 999\r\n", "")
    async with AsyncExitStack() as visit:
        broker = await start_node(visit, "n9", [f"nats-route://route:s3cret@{address}"], **CREDENTIALS)
        await meshed([broker], len(nodes))
    await meshed([node.broker for node in nodes], len(nodes) - 1)


async def talk(node: Node, output: bytes, server_id: str) -> None:
    """Send bytes to the route port, and read until the end."""

    def converse() -> None:
        with RawLink(cluster_of(node.broker).port) as link:
            link.send(output.replace(b"%b", server_id.encode()))
            link.receive_end()

    await asyncio.to_thread(converse)


@pytest.mark.parametrize(
    "intrude",
    [
        claims_to_be_another,
        claims_to_be_us,
        comes_from_another_cluster,
        has_its_own_address_among_its_routes,
        does_not_know_the_password,
    ],
)
def test_strangers_are_refused_and_no_message_is_lost(intrude: Intruder) -> None:
    async def test(stack: AsyncExitStack) -> None:
        nodes = await start(stack, 2, **(CREDENTIALS if intrude is does_not_know_the_password else {}))
        routes = {peer.link for node in nodes for peer in cluster_of(node.broker).peers}
        intruding = asyncio.ensure_future(intrude(stack, nodes))
        await publish_until(nodes, intruding.done)
        await intruding
        await arrived(nodes)
        assert_invariants(nodes)
        for node in nodes:
            for other in nodes:
                assert node.numbers(other.name) == list(range(1, other.sent + 1))
        assert {peer.link for node in nodes for peer in cluster_of(node.broker).peers} == routes
        await agreed([node.broker for node in nodes])

    run(test)


@pytest.mark.slow
def test_killed_process_loses_only_its_own_messages_and_its_successor_joins() -> None:
    """kill -9 while all nodes publish; then another process, with a new id, on the same ports."""

    async def test(stack: AsyncExitStack) -> None:
        nodes = await start(stack, 2)
        brokers = [node.broker for node in nodes]
        ports = [free_port(), free_port()]
        flags = ["-p", str(ports[0]), "--cluster", f"nats://127.0.0.1:{ports[1]}", "--cluster_name", "hw"]
        command = [sys.executable, "-m", "headwater", "serve", "-a", "127.0.0.1", *flags, "--routes"]
        command.append(f"nats-route://127.0.0.1:{nodes[0].proxy.port}")
        ids = set()
        for _ in range(2):
            process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
            try:
                await publish_until(nodes, lambda: all(len(cluster_of(broker).peers) == 2 for broker in brokers))
                client = await nats.connect(f"nats://127.0.0.1:{ports[0]}", allow_reconnect=False)
                ids.add(client._server_info["server_id"])
                received = asyncio.Event()
                await client.subscribe("accounted", cb=partial(set_event, received))
                await flushed(client)
                await publish_until(nodes, received.is_set)
                await client.close()
            finally:
                process.kill()
                await process.wait()
            await publish_until(nodes, lambda: all(len(cluster_of(broker).peers) == 1 for broker in brokers))
        assert len(ids) == 2
        await arrived(nodes)
        for node in nodes:
            for other in nodes:
                assert node.numbers(other.name) == list(range(1, other.sent + 1)), "the others lost nothing"

    run(test)


@pytest.mark.slow
def test_rolling_restart_under_lame_duck_moves_the_clients_and_ends_with_a_whole_cluster() -> None:
    """Each broker in turn sends its clients away, stops, and restarts on its ports."""

    async def test(stack: AsyncExitStack) -> None:
        route_ports, client_ports = [free_port() for _ in range(3)], [free_port() for _ in range(3)]
        routes = [f"nats-route://127.0.0.1:{port}" for port in route_ports]

        async def launch(at: int) -> tuple[Broker, AsyncExitStack]:
            life = await stack.enter_async_context(AsyncExitStack())
            times = {"lame_duck_grace_period": 0.01, "lame_duck_duration": 0.02}
            broker = await start_node(
                life, f"n{at}", routes, port=route_ports[at], client_port=client_ports[at], **times
            )
            return broker, life

        brokers = [await launch(at) for at in range(3)]
        await meshed([broker for broker, _ in brokers], 2)
        got: list[list[int]] = [[], []]
        clients = []
        for inbox in got:  # both start at the first broker, and know the others only from it
            # With a timeout: nats-py misses its cancellation if a dial fails in the same turn, and then never ends.
            client = await nats.connect(brokers[0][0].url, reconnect_time_wait=0.01, max_reconnect_attempts=200)
            stack.push_async_callback(client.close)
            await client.subscribe("rolled", cb=partial(take_number, inbox))
            await flushed(client)
            clients.append(client)
        sent = 0
        for at in range(3):
            broker, life = brokers[at]
            old = broker.server_id
            await broker.lame_duck()
            await life.aclose()
            brokers[at] = await launch(at)
            assert brokers[at][0].server_id != old
            await meshed([broker for broker, _ in brokers], 2)
            await until(lambda: all(client.is_connected for client in clients), "the clients at another broker")
            for client in clients:
                await flushed(client)
            await agreed([broker for broker, _ in brokers])
            for client in clients:
                for _ in range(20):
                    sent += 1
                    await client.publish("rolled", b"%d" % sent)
                await flushed(client)
                await all_have(got, sent)
        for (
            client
        ) in clients:  # before the brokers that were started last: its end raises what a broker's end left there
            await client.close()
        assert got == [list(range(1, sent + 1))] * 2

    run(test)


async def all_have(inboxes: list[list[int]], last: int) -> None:
    await until(lambda: all(inbox[-1:] == [last] for inbox in inboxes), "the last message at all")


async def take_number(inbox: list[int], message: Msg) -> None:
    inbox.append(int(message.data))


async def set_event(event: asyncio.Event, message: Msg) -> None:
    event.set()


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
                route.link.abort()  # what the others observe of kill -9
        await meshed([first], 0)
        again = await start_node(stack, "n1", [address], port=port)
        await meshed([first, again], 1)
        await agreed([first, again])

    run(test)


def test_route_whose_peer_reads_nothing_is_closed_and_the_others_are_unaffected() -> None:
    async def test(stack: AsyncExitStack) -> None:
        first = await start_node(stack, "n0", write_deadline=0.5)
        other = await start_node(stack, "n1", [f"nats-route://127.0.0.1:{cluster_of(first).port}"])
        await meshed([first, other], 1)
        stuck = socket.create_connection(("127.0.0.1", cluster_of(first).port), 5.0)
        stack.callback(stuck.close)
        stuck.sendall(b'CONNECT {"name":"STUCK","cluster":"hw","headers":true}\r\n')
        stuck.sendall(
            b'INFO {"server_id":"STUCK","headers":true,"cluster":"hw"}\r\nRS+ $G flood\r\n'
        )  # it reads nothing
        await meshed([first], 2)
        here, there = await nats.connect(first.url), await nats.connect(other.url)
        stack.push_async_callback(here.close)
        stack.push_async_callback(there.close)
        got = 0

        async def take(message: Msg) -> None:
            nonlocal got
            got += 1

        await there.subscribe("flood", cb=take)
        await flushed(there)
        await agreed_on(first, b"flood", 2)
        sent = 0
        async with asyncio.timeout(30):
            while len(cluster_of(first).peers) == 2:
                with suppress(nats.errors.TimeoutError):
                    await here.publish("flood", b"x" * 100_000)
                sent += 1
                await asyncio.sleep(0.001)
        await flushed(here)
        await until(lambda: got == sent, "every message at the peer that reads")

    run(test)


FLOOD_BYTES = 16 << 20  # more than the broker's limit and the kernel's buffers together
FLOOD_PAYLOAD = 32 << 10


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_flood_over_a_slow_route_loses_no_message_and_little_is_buffered(protocol: str) -> None:
    async def test(stack: AsyncExitStack) -> None:
        proxy = await stack.enter_async_context(RouteProxy())
        proxy.pace = 1 << 15
        first = await start_node(stack, "n0", protocol=protocol, max_pending=3 << 20)
        proxy.target = cluster_of(first).port
        listener = cluster_of(first).connections.listener
        assert listener is not None
        listener.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)  # the kernel buffers little too
        second = await start_node(stack, "n1", [f"nats-route://127.0.0.1:{proxy.port}"], protocol=protocol)
        await meshed([first, second], 1)
        publisher, subscriber = await open_raw(stack, first), await open_raw(stack, second)
        subscriber[1].write(b"SUB flood 1\r\nPING\r\n")
        await subscriber[0].readuntil(b"PONG\r\n")
        await agreed_on(first, b"flood", 1)
        (_, route), count = cluster_of(first).routes()[0], FLOOD_BYTES // FLOOD_PAYLOAD
        most = 0

        async def publish() -> None:
            nonlocal most
            for number in range(count):
                head = b"PUB flood %d\r\n%08d" % (FLOOD_PAYLOAD, number)
                publisher[1].write(head + b"x" * (FLOOD_PAYLOAD - 8) + b"\r\n")
                await publisher[1].drain()
                assert route.link is not None
                most = max(most, route.link.pending)

        publishing = asyncio.ensure_future(publish())
        for number in range(count):
            while (head := await subscriber[0].readuntil(b"\r\n")) == b"PING\r\n":
                subscriber[1].write(b"PONG\r\n")
            assert head == b"MSG flood 1 %d\r\n" % FLOOD_PAYLOAD
            payload = await subscriber[0].readexactly(FLOOD_PAYLOAD + 2)
            assert int(payload[:8]) == number
        await publishing
        assert 1 << 18 < most < 3 << 20
        assert [peer.server_id for peer in cluster_of(first).peers] == [second.server_id]

    run(test)


async def open_raw(stack: AsyncExitStack, broker: Broker) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port, limit=1 << 20)
    stack.push_async_callback(writer.wait_closed)
    stack.callback(writer.close)
    await reader.readuntil(b"\r\n")
    writer.write(b'CONNECT {"verbose":false,"pedantic":false}\r\n')
    return reader, writer


async def agreed_on(broker: Broker, subject: bytes, peers: int) -> None:
    forwarding = cluster_of(broker).space("$G").forwarding
    await until(lambda: (subject, b"", peers) in peers_want(forwarding), f"{peers} peers that want {subject!r}")


def run(test: Callable[[AsyncExitStack], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(90), AsyncExitStack() as stack:
            await test(stack)

    asyncio.run(bounded())
