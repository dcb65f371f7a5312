"""Kill, cut and black hole between a hub and its leaf node, each real or ours; every message is counted."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.clusters import connect, run
from support.leafs import OURS, REAL, Inbox, LeafServer, both_cross, serve, spoke_config, until, websocket_port
from support.route_proxy import INTO, OUT_OF, RouteProxy

from headwater.testing.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]
PAIRS = [(REAL, OURS), (OURS, REAL), (OURS, OURS)]
pairs = pytest.mark.parametrize(("hub_kind", "leaf_kind"), PAIRS)
HUB = (
    'server_name: H, ping_interval: "300ms", leafnodes { listen: "127.0.0.1:-1", compression: off, no_advertise: true }'
)
WEBSOCKET = '\nwebsocket { listen: "127.0.0.1:-1", no_tls: true }'

Fault = Callable[[RouteProxy], Coroutine[Any, Any, None]]


async def cut(proxy: RouteProxy) -> None:
    proxy.cut()


async def refused_for_a_while(proxy: RouteProxy) -> None:
    proxy.closed = True
    proxy.cut()
    await asyncio.sleep(0.5)  # the outage itself
    proxy.closed = False


def swallowing(*ways: str) -> Fault:
    async def fault(proxy: RouteProxy) -> None:
        before = proxy.connections()
        proxy.swallow = set(ways)
        await until(lambda: not before & proxy.connections(), "pings find out")
        proxy.swallow = set()

    return fault


@contextmanager
def line(
    directory: Path, hub_kind: str, leaf_kind: str, scheme: str = "nats-leaf"
) -> Iterator[tuple[RouteProxy, LeafServer, LeafServer]]:
    """A hub and its leaf node, with a proxy in between that is not started yet; `scheme`: nats-leaf or ws."""
    port = free_port()
    with serve(hub_kind, directory / "hub", HUB + WEBSOCKET * (scheme == "ws")) as hub:
        proxy = RouteProxy(port)
        proxy.target = websocket_port(hub) if scheme == "ws" else hub.leaf_port
        config = spoke_config(hub, more='ping_interval: "300ms"')
        config = config.replace(hub.leaf_url, f"{scheme}://127.0.0.1:{port}")
        with serve(leaf_kind, directory / "leaf", config) as leaf:
            yield proxy, hub, leaf


@pairs
@pytest.mark.parametrize(
    "fault",
    [cut, refused_for_a_while, swallowing(INTO), swallowing(OUT_OF), swallowing(INTO, OUT_OF)],
    ids=["cut", "refused", "swallows what goes in", "swallows what comes out", "black hole"],
)
def test_no_message_arrives_twice_and_messages_are_lost_only_during_the_outage(
    tmp_path: Path, hub_kind: str, leaf_kind: str, fault: Fault
) -> None:
    with line(tmp_path, hub_kind, leaf_kind) as (proxy, *servers):
        count_all(proxy, servers, fault)


@pairs
def test_messages_over_websocket_are_lost_only_in_a_black_hole(tmp_path: Path, hub_kind: str, leaf_kind: str) -> None:
    with line(tmp_path, hub_kind, leaf_kind, "ws") as (proxy, *servers):
        count_all(proxy, servers, swallowing(INTO, OUT_OF))


def count_all(proxy: RouteProxy, servers: list[LeafServer], fault: Fault) -> None:
    """Send numbers both ways before, during and after a fault."""

    async def test(stack: AsyncExitStack) -> None:
        await stack.enter_async_context(proxy)
        clients = [await connect(stack, server.url) for server in servers]
        inboxes = [Inbox(), Inbox()]
        for client, inbox in zip(clients, inboxes, strict=True):
            await client.subscribe("numbers.*", cb=inbox.take)
        await both_cross(*clients)
        sent = 0

        async def publish(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                for side, client in enumerate(clients):
                    await client.publish(f"numbers.{side}", b"%d" % sent)
                    await client.flush()
                sent += 1
                await asyncio.sleep(0.002)

        await publish(50)
        await both_cross(*clients)
        before = sent
        outage = asyncio.create_task(fault(proxy))
        while not outage.done():
            await publish(10)
        await outage
        await both_cross(*clients)  # joined again, and interest is known again
        after = sent
        await publish(50)
        await both_cross(*clients)
        for side, inbox in enumerate(inboxes):
            for origin in (0, 1):
                got = [int(message.data) for message in inbox.got if message.subject == f"numbers.{origin}"]
                assert got == sorted(set(got)), "in order, and none twice"
                wanted = set(range(sent)) if origin == side else {*range(before), *range(after, sent)}
                assert not wanted - set(got), "lost outside the outage"

    run(test)


@pytest.mark.kill
@pytest.mark.parametrize("scheme", ["nats-leaf", "ws"])
def test_a_hub_that_is_killed_is_found_again(tmp_path: Path, scheme: str) -> None:
    async def test(stack: AsyncExitStack) -> None:
        await stack.enter_async_context(proxy)
        clients = [await connect(stack, server.url) for server in (hub, leaf)]
        await both_cross(*clients)
        assert hub.process is not None
        hub.process.kill()
        inbox = Inbox()
        await clients[1].subscribe("at.home", cb=inbox.take)
        await clients[1].publish("at.home", b"while it is down")
        await until(lambda: inbox.data == [b"while it is down"], "clients of the leaf node go on")
        config = HUB + WEBSOCKET * (scheme == "ws")
        again = await asyncio.to_thread(stack.enter_context, serve(REAL, tmp_path / "again", config))
        proxy.target = websocket_port(again) if scheme == "ws" else again.leaf_port
        there = await connect(stack, again.url)
        await both_cross(there, clients[1])
        await there.publish("at.home", b"from the hub")
        await until(lambda: inbox.data[1:] == [b"from the hub"], "it is joined again")

    with line(tmp_path, REAL, OURS, scheme) as (proxy, hub, leaf):
        run(test)


@pytest.mark.parametrize("hub_kind", [REAL, OURS])
def test_a_stopping_broker_has_delivered_its_clients_messages(tmp_path: Path, hub_kind: str) -> None:
    async def test(stack: AsyncExitStack) -> None:
        await stack.enter_async_context(proxy)
        clients = [await connect(stack, server.url) for server in (hub, leaf)]
        inbox = Inbox()
        await clients[0].subscribe("last.words", cb=inbox.take)
        await both_cross(*clients)
        for number in range(500):
            await clients[1].publish("last.words", b"%d" % number)
        await clients[1].flush()
        assert leaf.embedded is not None
        await asyncio.to_thread(leaf.embedded.run, leaf.embedded.broker.stop)
        await until(lambda: len(inbox.got) == 500, "all of it")
        assert inbox.data == [b"%d" % number for number in range(500)]

    with line(tmp_path, hub_kind, OURS) as (proxy, hub, leaf):
        run(test)
