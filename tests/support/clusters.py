"""Clusters for tests: brokers of ours in this process, and real nats-servers beside them; what is waited for is bounded."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from support.forwarding_bench import peers_want

from headwater import Broker
from headwater.cluster.service import Cluster
from headwater.options.cluster import ClusterOptions

PATIENCE = 15.0  # seconds; a mesh of three stands after some 15 ms, a machine under load has its own pace

# What a peer says of itself first, in both dialects.
HELLO = (
    b'CONNECT {"name":"X","cluster":"hw","headers":true}\r\nINFO {"server_id":"X","server_name":"x","headers":true}\r\n'
)
HELLO_V1 = b'CONNECT {"name":"X"}\r\nINFO {"server_id":"X"}\r\n'


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that no event tells of."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while not condition():
        if loop.time() > deadline:
            raise AssertionError(f"not within {PATIENCE:g} s: {what}")
        await asyncio.sleep(0.002)


def route_url(broker: Broker) -> str:
    return f"nats-route://127.0.0.1:{cluster_of(broker).port}"


def cluster_of(broker: Broker) -> Cluster:
    assert broker.cluster is not None
    return broker.cluster


async def start_node(stack: AsyncExitStack, name: str, routes: Iterable[str] = (), **fields: Any) -> Broker:
    """One broker of a cluster called "hw"."""
    of_the_broker = (
        "authorization",
        "accounts",
        "jetstream",
        "store_dir",
        "leafnodes",
        "max_pending",
        "lame_duck_grace_period",
        "lame_duck_duration",
        "websocket",
    )
    broker_fields = {key: fields.pop(key) for key in list(fields) if key in of_the_broker}
    broker_fields["port"] = fields.pop("client_port", 0)
    cluster_name = fields.pop("cluster_name", "hw")
    options = ClusterOptions(**{"name": cluster_name, "host": "127.0.0.1", "routes": tuple(routes), **fields})
    broker = Broker(server_name=name, cluster=options, **broker_fields)
    return await stack.enter_async_context(broker)


async def start_nodes(stack: AsyncExitStack, count: int, **fields: Any) -> list[Broker]:
    """So many brokers, of which all but the first know only the first; returns when everybody knows everybody."""
    first = await start_node(stack, "n0", **fields)
    others = [await start_node(stack, f"n{at}", [route_url(first)], **fields) for at in range(1, count)]
    await meshed([first, *others], count - 1)
    return [first, *others]


async def meshed(brokers: list[Broker], peers: int) -> None:
    """Every one of `brokers` has so many peers."""
    await until(
        lambda: all(len(cluster_of(broker).peers) == peers for broker in brokers),
        f"{peers} peers each, but {[[peer.name for peer in cluster_of(broker).peers] for broker in brokers]}",
    )


async def agreed(brokers: list[Broker], account: str = "$G") -> None:
    """What each knows of the others' wishes is what they have; for clusters of ours alone."""

    def known(broker: Broker) -> dict[tuple[bytes, bytes], int]:
        spaces = [cluster_of(other).space(account) for other in brokers if other is not broker]
        wanted: dict[tuple[bytes, bytes], int] = {}
        for space in spaces:
            for subject, queue, members in space.wanted.wanted():
                wanted[subject, queue] = wanted.get((subject, queue), 0) + members
        return wanted

    def received(broker: Broker) -> dict[tuple[bytes, bytes], int]:
        forwarding = cluster_of(broker).space(account).forwarding
        return {(subject, queue): members for subject, queue, members in peers_want(forwarding)}

    await until(lambda: all(received(broker) == known(broker) for broker in brokers), "equal interest tables")


def run(test: Callable[[AsyncExitStack], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60), AsyncExitStack() as stack:
            await test(stack)

    asyncio.run(bounded())


async def connect(stack: AsyncExitStack, url: str, **options: Any) -> Client:
    client = await nats.connect(url, allow_reconnect=False, **options)
    stack.push_async_callback(client.close)
    return client


class Inbox:
    """What one subscriber got, as (subject, data)."""

    def __init__(self) -> None:
        self.got: list[tuple[str, bytes]] = []
        self.headers: list[dict[str, str] | None] = []

    async def take(self, message: Msg) -> None:
        self.got.append((message.subject, message.data))
        self.headers.append(message.headers)


async def spread(subjects: set[bytes], brokers: list[Broker], count: int) -> None:
    """Each broker knows that `count` other brokers want each of `subjects`."""

    def received(broker: Broker) -> bool:
        known = {subject: n for subject, _, n in peers_want(cluster_of(broker).space("$G").forwarding)}
        return all(known.get(subject, 0) >= count for subject in subjects)

    await until(lambda: all(received(broker) for broker in brokers), f"interest in {subjects}")


async def received_by_all(publishers: list[Client], clients: list[Client]) -> None:
    """Servers that cannot be asked know of all interest that came before, once their clients' probes come everywhere."""
    for at, publisher in enumerate(publishers):
        probes = [Inbox() for _ in clients]
        for client, probe in zip(clients, probes, strict=True):
            await client.subscribe(f"probe.{at}", cb=probe.take)
            await client.flush()
        async with asyncio.timeout(15):
            while not all(probe.got for probe in probes):
                await publisher.publish(f"probe.{at}", b"")
                await publisher.flush()
                await asyncio.sleep(0.005)
