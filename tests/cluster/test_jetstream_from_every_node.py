"""Streams on one node of a cluster, read from every node in all the ways that nats-py has.

Three real nats-servers prove the expectations; then three of ours, workers that share a port and the streams,
and mixed clusters.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, KeyValueConfig, ObjectStoreConfig
from nats.js.errors import NoStreamResponseError, ServiceUnavailableError
from support.clusters import connect, meshed, route_url, run, start_node, until
from support.jetstream_clusters import (
    PLACEMENT,
    StreamCluster,
    ours_before_real_ones,
    ours_behind_real_ones,
    three_nats_servers,
    three_of_ours,
    workers,
)

from headwater import Broker
from headwater.options.cluster import ClusterOptions

pytestmark = pytest.mark.interop

PATIENCE = 10.0  # seconds for one step; it takes milliseconds

CLUSTERS: dict[str, Callable[[Path], AbstractContextManager[StreamCluster]]] = {
    "real": three_nats_servers,
    "ours": three_of_ours,
    "workers": partial(workers, more=("--spread_streams",)),
    "real-before-ours": ours_behind_real_ones,
    "ours-before-real": ours_before_real_ones,
}


@pytest.fixture(scope="module", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamCluster]:
    with CLUSTERS[request.param](tmp_path_factory.mktemp("cluster")) as running:
        yield running


Way = Callable[[JetStreamContext, Client, str], Awaitable[None]]
"""Reads through the given client what is stored under the given name: that of the stream, and the first token of its
subjects.
"""


async def received(what: Callable[[], Awaitable[object]]) -> None:
    """Retry a publish while no stream listens: with nats-servers the answer to a creation may arrive before the stream
    exists.
    """
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(NoStreamResponseError):
                await what()
                return


async def fill(writer: JetStreamContext, name: str) -> None:
    await writer.add_stream(name=name, subjects=[f"{name}.>"], placement=PLACEMENT)
    for number in range(3):
        await received(partial(writer.publish, f"{name}.{number}", b"%d" % number, headers={"N": str(number)}))


def check(name: str, messages: list[Msg]) -> None:
    """All three messages, with their own subjects, their headers, and replies that contain their sequence."""
    assert [(each.subject, each.data, (each.headers or {}).get("N")) for each in messages] == [
        (f"{name}.{number}", b"%d" % number, str(number)) for number in range(3)
    ]
    assert [each.metadata.sequence.stream for each in messages] == [1, 2, 3]
    assert [each.metadata.num_pending for each in messages] == [2, 1, 0]


async def fetch(
    pull: JetStreamContext.PullSubscription, count: int, timeout: float = PATIENCE, **how: Any
) -> list[Msg]:
    """Retried while this node does not know the new consumer: with nats-servers the answer may arrive before it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(ServiceUnavailableError):
                return await pull.fetch(count, timeout=timeout, **how)


async def fetch_one_by_one(stream: JetStreamContext, _client: Client, name: str) -> None:
    pull = await stream.pull_subscribe(f"{name}.>", durable="one")
    messages = [message for _ in range(3) for message in await fetch(pull, 1)]
    check(name, messages)
    for message in messages:
        await message.ack_sync(timeout=PATIENCE)
    floor = (await pull.consumer_info()).ack_floor
    assert floor is not None and floor.stream_seq == 3


async def fetch_a_batch(stream: JetStreamContext, _client: Client, name: str) -> None:
    pull = await stream.pull_subscribe(f"{name}.>", durable="batch")
    check(name, await fetch(pull, 3))
    with pytest.raises(NatsTimeoutError):
        await pull.fetch(1, timeout=0.05)


async def fetch_less_than_requested(stream: JetStreamContext, _client: Client, name: str) -> None:
    pull = await stream.pull_subscribe(f"{name}.>", durable="less")
    check(name, await fetch(pull, 10, timeout=0.3, heartbeat=0.1))


async def push(stream: JetStreamContext, _client: Client, name: str) -> None:
    subscription = await stream.subscribe(f"{name}.>")
    messages = [await subscription.next_msg(timeout=PATIENCE) for _ in range(3)]
    check(name, messages)
    await messages[2].ack_sync(timeout=PATIENCE)
    await subscription.unsubscribe()


async def push_to_a_callback(stream: JetStreamContext, _client: Client, name: str) -> None:
    got: asyncio.Queue[Msg] = asyncio.Queue()
    await stream.subscribe(f"{name}.>", durable="called", cb=got.put, manual_ack=True)
    check(name, [await asyncio.wait_for(got.get(), PATIENCE) for _ in range(3)])


async def push_to_a_queue_group(stream: JetStreamContext, _client: Client, name: str) -> None:
    got: asyncio.Queue[Msg] = asyncio.Queue()
    for _ in range(2):
        await stream.subscribe(f"{name}.>", queue="group", cb=got.put, manual_ack=True)
    messages = [await asyncio.wait_for(got.get(), PATIENCE) for _ in range(3)]
    check(name, sorted(messages, key=lambda message: message.subject))


async def push_with_flow_control(stream: JetStreamContext, _client: Client, name: str) -> None:
    subscription = await stream.subscribe(f"{name}.>", flow_control=True, idle_heartbeat=1.0)
    check(name, [await subscription.next_msg(timeout=PATIENCE) for _ in range(3)])


async def ordered_consumer(stream: JetStreamContext, _client: Client, name: str) -> None:
    subscription = await stream.subscribe(f"{name}.>", ordered_consumer=True)
    check(name, [await subscription.next_msg(timeout=PATIENCE) for _ in range(3)])


async def bound_push_consumer(stream: JetStreamContext, client: Client, name: str) -> None:
    inbox = client.new_inbox()
    config = ConsumerConfig(durable_name="bound", deliver_subject=inbox, ack_policy=AckPolicy.NONE)
    await stream.add_consumer(name, config)
    subscription = await client.subscribe(inbox)  # after the consumer, which must detect the new subscriber
    check(name, [await subscription.next_msg(timeout=PATIENCE) for _ in range(3)])


async def messages_by_sequence(stream: JetStreamContext, _client: Client, name: str) -> None:
    message = await stream.get_msg(name, 2)
    assert (message.subject, message.data) == (f"{name}.1", b"1")
    message = await stream.get_last_msg(name, f"{name}.2")
    assert (message.seq, message.data, message.headers) == (3, b"2", {"N": "2"})


READS: list[Way] = [
    fetch_one_by_one,
    fetch_a_batch,
    fetch_less_than_requested,
    push,
    push_to_a_callback,
    push_to_a_queue_group,
    push_with_flow_control,
    ordered_consumer,
    bound_push_consumer,
    messages_by_sequence,
]


async def key_value_get(stream: JetStreamContext, _client: Client, name: str) -> None:
    bucket = await stream.key_value(name)
    entry = await bucket.get("a")
    assert (entry.key, entry.value, entry.revision) == ("a", b"2", 2)


async def key_value_keys(stream: JetStreamContext, _client: Client, name: str) -> None:
    bucket = await stream.key_value(name)
    assert sorted(await asyncio.wait_for(bucket.keys(), PATIENCE)) == ["a", "b"]


async def key_value_history(stream: JetStreamContext, _client: Client, name: str) -> None:
    bucket = await stream.key_value(name)
    entries = await asyncio.wait_for(bucket.history("a"), PATIENCE)
    assert [(entry.value, entry.revision) for entry in entries] == [(b"1", 1), (b"2", 2)]


async def key_value_watch(stream: JetStreamContext, _client: Client, name: str) -> None:
    bucket = await stream.key_value(name)
    watcher: Any = await bucket.watchall()  # its methods have no types
    entries = [await watcher.updates(timeout=PATIENCE) for _ in range(4)]
    assert [(entry.key, entry.operation) if entry else None for entry in entries] == [
        ("a", None),
        ("b", None),
        ("c", "DEL"),
        None,
    ]
    await bucket.put("d", b"4")
    entry = await watcher.updates(timeout=PATIENCE)
    assert entry is not None and (entry.key, entry.value) == ("d", b"4")
    await bucket.delete("d")
    await watcher.stop()


KEY_VALUE: list[Way] = [key_value_get, key_value_keys, key_value_history, key_value_watch]


async def object_get(stream: JetStreamContext, _client: Client, name: str) -> None:
    store = await stream.object_store(name)
    found = await asyncio.wait_for(store.get("thing"), PATIENCE)
    assert (found.info.name, found.data) == ("thing", bytes(range(256)) * 1024)


async def object_list(stream: JetStreamContext, _client: Client, name: str) -> None:
    store = await stream.object_store(name)
    assert [info.name for info in await asyncio.wait_for(store.list(), PATIENCE)] == ["thing"]


OBJECTS: list[Way] = [object_get, object_list]


_numbers = count()


def play(cluster: StreamCluster, way: Way, prepare: Callable[[JetStreamContext, str], Awaitable[None]]) -> None:
    """Create and fill streams at the first node; then a client of every node reads."""

    async def scenario() -> None:
        async with asyncio.timeout(60), cluster.clients() as clients:
            for at, client in enumerate(clients):
                name = f"{way.__name__}-{at}-{next(_numbers)}"  # a second try shares nothing with the first
                await prepare(clients[0].jetstream(timeout=PATIENCE), name)
                await way(client.jetstream(timeout=PATIENCE), client, name)

    asyncio.run(scenario())


@pytest.mark.parametrize("way", READS)
def test_a_stream_is_read_from_every_node(cluster: StreamCluster, way: Way) -> None:
    play(cluster, way, fill)


@pytest.mark.parametrize("way", KEY_VALUE)
def test_a_bucket_is_read_from_every_node(cluster: StreamCluster, way: Way) -> None:
    async def prepare(writer: JetStreamContext, name: str) -> None:
        config = KeyValueConfig(bucket=name, history=5, placement=PLACEMENT)
        bucket = await writer.create_key_value(config)
        for key, value in [("a", b"1"), ("a", b"2"), ("b", b"3"), ("c", b"4")]:
            await received(partial(bucket.put, key, value))
        await bucket.delete("c")

    play(cluster, way, prepare)


@pytest.mark.parametrize("way", OBJECTS)
def test_objects_are_read_from_every_node(cluster: StreamCluster, way: Way) -> None:
    async def prepare(writer: JetStreamContext, name: str) -> None:
        store = await writer.create_object_store(name, ObjectStoreConfig(placement=PLACEMENT))
        await store.put("thing", bytes(range(256)) * 1024)

    play(cluster, way, prepare)


def test_messages_cross_routes_of_the_older_protocol_without_their_headers(tmp_path: Path) -> None:
    """v1 has none: fetches, pushes and acks work, but statuses and features that use headers (key-value stores) do not."""

    async def scenario(cluster: StreamCluster) -> None:
        async with asyncio.timeout(30), cluster.clients() as clients:
            here, there = (client.jetstream(timeout=PATIENCE) for client in clients[:2])
            await fill(here, "s")
            pull = await there.pull_subscribe("s.>", durable="pull")
            push = await there.subscribe("s.>", durable="push")
            for messages in (
                await pull.fetch(3, timeout=PATIENCE),
                [await push.next_msg(timeout=PATIENCE) for _ in "012"],
            ):
                assert [(each.subject, each.data) for each in messages] == [(f"s.{n}", b"%d" % n) for n in range(3)]
                assert not any(each.headers for each in messages)
                for each in messages:
                    await each.ack_sync(timeout=PATIENCE)
            for name in ("pull", "push"):
                info = await there.consumer_info("s", name)
                assert (info.num_ack_pending, info.ack_floor and info.ack_floor.stream_seq) == (0, 3)

    with three_of_ours(tmp_path, "v1") as cluster:
        asyncio.run(scenario(cluster))


def test_pull_whose_requester_is_gone_with_its_node_loses_no_message(tmp_path: Path) -> None:
    async def scenario(stack: AsyncExitStack) -> None:
        first = await start_node(stack, "n0", jetstream=True, store_dir=tmp_path)
        second = Broker(cluster=ClusterOptions(name="hw", host="127.0.0.1", routes=(route_url(first),)))
        await second.start()
        await meshed([first, second], 1)
        here, there = await connect(stack, first.url), await connect(stack, second.url)
        stream = here.jetstream(timeout=PATIENCE)
        await stream.add_stream(name="s", subjects=["s.>"])
        await there.jetstream(timeout=PATIENCE).pull_subscribe("s.>", durable="d")
        inbox = there.new_inbox()
        await there.subscribe(inbox)
        await there.publish("$JS.API.CONSUMER.MSG.NEXT.s.d", b'{"batch":5,"expires":60000000000}', reply=inbox)
        await there.flush()
        kept = first.jetstreams["$G"].streams["s"]
        await until(lambda: kept.consumers["d"].info().num_waiting == 1, "the request")
        await second.stop()
        await meshed([first], 0)
        await stream.publish("s.x", b"kept")
        await until(lambda: kept.requests_dropped == 1, "the request is found to be nobody's")
        pull = await stream.pull_subscribe_bind("d", "s")
        (message,) = await pull.fetch(1, timeout=PATIENCE)
        assert (message.data, message.metadata.num_delivered) == (b"kept", 1)

    run(scenario)
