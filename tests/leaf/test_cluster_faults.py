"""A cluster of hubs and a spoke that is also a cluster: links are cut, hubs stop. Each message is counted."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from support.clusters import received_by_all, run
from support.leaf_clusters import PLACES, clients_of, clusters
from support.leafs import OURS, REAL, Inbox, until
from support.route_proxy import INTO, OUT_OF, RouteProxy

from headwater.testing.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]
FAULTS = [
    ((OURS, OURS, REAL, REAL), ()),
    ((REAL, REAL, OURS, OURS), ()),
    ((REAL, OURS, OURS, REAL), (INTO, OUT_OF)),
]
IDS = ["our hubs, cut", "our spokes, cut", "mixed, black hole"]
PINGS = 'ping_interval: "300ms"'


@pytest.mark.parametrize(("kinds", "ways"), FAULTS, ids=IDS)
def test_only_messages_that_need_the_lost_link_are_lost_and_none_arrives_twice(
    tmp_path: Path, kinds: tuple[str, ...], ways: tuple[str, ...]
) -> None:
    ports = (free_port(), free_port())

    async def test(stack: AsyncExitStack) -> None:
        proxies = [RouteProxy(port) for port in ports]
        for proxy, hub in zip(proxies, servers, strict=False):
            proxy.target = hub.leaf_port
            await stack.enter_async_context(proxy)
        clients = await clients_of(stack, servers)
        inboxes = [Inbox() for _ in PLACES]
        for client, inbox in zip(clients, inboxes, strict=True):
            await client.subscribe("numbers.*", cb=inbox.take)
        await received_by_all(clients, clients)
        sent = 0

        async def publish(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                for place, client in enumerate(clients):
                    await client.publish(f"numbers.{place}", b"%d" % sent)
                    await client.flush()
                sent += 1
                await asyncio.sleep(0.002)

        async def lose() -> None:
            standing = proxies[0].connections()
            proxies[0].closed = True
            proxies[0].swallow = set(ways)
            if not ways:
                proxies[0].cut()
            await until(lambda: not standing & proxies[0].connections(), "the link is lost")
            await asyncio.sleep(0.3)  # the outage itself
            proxies[0].swallow = set()
            proxies[0].closed = False

        await publish(30)
        await received_by_all(clients, clients)
        before = sent
        outage = asyncio.create_task(lose())
        while not outage.done():
            await publish(5)
        await outage
        await received_by_all(clients, clients)  # joined again, and interest is known again
        after = sent
        await publish(30)
        await received_by_all(clients, clients)
        for place, inbox in enumerate(inboxes):
            for origin in range(len(PLACES)):
                got = [int(message.data) for message in inbox.got if message.subject == f"numbers.{origin}"]
                assert got == sorted(set(got)), "in order, and none twice"
                needs_link = 2 in (place, origin) and place // 2 != origin // 2
                wanted = {*range(before), *range(after, sent)} if needs_link else set(range(sent))
                assert not wanted - set(got), f"lost from {PLACES[origin]} to {PLACES[place]}"

    with clusters(tmp_path, kinds, more=[PINGS] * 4, links=ports) as servers:
        run(test)


@pytest.mark.kill
@pytest.mark.parametrize("kinds", [(REAL, OURS, OURS, REAL), (OURS, REAL, REAL, OURS)], ids=["real", "ours"])
def test_a_spoke_joins_the_other_hub_when_its_own_stops(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    """S1 knows H2 only from H1."""

    async def test(stack: AsyncExitStack) -> None:
        clients = await clients_of(stack, servers)
        inboxes = [Inbox() for _ in PLACES]
        for client, inbox in zip(clients, inboxes, strict=True):
            await client.subscribe("numbers.*", cb=inbox.take)
        await received_by_all(clients, clients)
        ended = servers[0]
        if ended.process is not None:
            ended.process.kill()
        elif ended.embedded is not None:
            await asyncio.to_thread(ended.embedded.run, ended.embedded.broker.stop)
        left = clients[1:]
        await received_by_all(left, left)
        for place, client in enumerate(left):
            for number in range(20):
                await client.publish(f"numbers.{place}", b"%d" % number)
            await client.flush()
        await until(lambda: all(len(inbox.got) >= 60 for inbox in inboxes[1:]), "all at all that are left")
        await received_by_all(left, left)
        for inbox in inboxes[1:]:
            for place in range(3):
                got = [int(message.data) for message in inbox.got if message.subject == f"numbers.{place}"]
                assert got == list(range(20))

    with clusters(tmp_path, kinds, advertise=True) as servers:
        run(test)
