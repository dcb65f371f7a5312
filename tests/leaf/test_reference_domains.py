"""JetStream domains across a leaf node, each side real or ours: which server answers which request."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError
from support.clusters import connect, run
from support.leafs import HUB, PAIR_NAMES, PAIRS, LeafServer, both_cross, serve, spoke_config

pytestmark = pytest.mark.interop
Pair = tuple[LeafServer, LeafServer]


@pytest.fixture(scope="module", params=PAIRS, ids=PAIR_NAMES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    hub_kind, leaf_kind = request.param
    directory = tmp_path_factory.mktemp("domains")
    hub_config = (
        f'server_name: H, jetstream {{ domain: hub, store_dir: "{directory}/hubjs" }}\n'
        'leafnodes { listen: "127.0.0.1:-1", compression: off }'
    )
    streams = f'jetstream {{ domain: leafy, store_dir: "{directory}/leafjs" }}'
    with serve(hub_kind, directory / "hub", hub_config) as hub:
        with serve(leaf_kind, directory / "leaf", spoke_config(hub, more=streams)) as leaf:
            yield hub, leaf


async def joined(stack: AsyncExitStack, pair: Pair) -> list[Client]:
    clients = [await connect(stack, server.url) for server in pair]
    await both_cross(*clients)
    return clients


async def domain_of(client: Client, subject: str) -> str:
    """The domain of the streams that answer; "" if none does. Interest in a domain may still be in flight."""
    for _ in range(200):
        try:
            answer = json.loads((await client.request(subject, b"", timeout=10)).data)
        except NoRespondersError:
            await asyncio.sleep(0.01)
            continue
        return str(answer["domain"])
    return ""


def test_each_side_reaches_its_own_streams_and_the_others_through_the_domain(pair: Pair) -> None:
    async def test(stack: AsyncExitStack) -> None:
        hub, leaf = await joined(stack, pair)
        for client, own, other in ((hub, "hub", "leafy"), (leaf, "leafy", "hub")):
            assert await domain_of(client, "$JS.API.INFO") == own
            assert await domain_of(client, f"$JS.{own}.API.INFO") == own
            assert await domain_of(client, f"$JS.{other}.API.INFO") == other

    run(test)


def test_a_stream_of_the_hub_is_used_from_the_leaf_node(pair: Pair) -> None:
    async def test(stack: AsyncExitStack) -> None:
        hub, leaf = await joined(stack, pair)
        await domain_of(leaf, "$JS.hub.API.INFO")
        there = leaf.jetstream(domain="hub")
        await there.add_stream(name="ORD", subjects=["ord.>"])
        await both_cross(hub, leaf)
        for number in range(20):
            answer = await leaf.request(f"ord.{number}", b"%d" % number, headers={"N": str(number)}, timeout=10)
            assert json.loads(answer.data) == {"stream": "ORD", "domain": "hub", "seq": number + 1}
        consumer = await there.pull_subscribe("ord.>", "puller")
        got = await consumer.fetch(20, timeout=10)
        assert [(message.subject, message.data) for message in got] == [(f"ord.{n}", b"%d" % n) for n in range(20)]
        assert got[7].headers == {"N": "7"}
        for message in got:
            await message.ack_sync(timeout=10)
        assert (await there.consumer_info("ORD", "puller")).num_ack_pending == 0
        pushed = await there.subscribe("ord.>", ordered_consumer=True)
        assert [(await pushed.next_msg(10)).subject for _ in range(20)] == [f"ord.{n}" for n in range(20)]
        await pushed.unsubscribe()
        with pytest.raises(Exception, match="stream not found"):
            await leaf.jetstream().stream_info("ORD")
        await there.delete_stream("ORD")

    run(test)


def test_a_stream_of_the_leaf_node_is_used_from_the_hub(pair: Pair) -> None:
    async def test(stack: AsyncExitStack) -> None:
        hub, leaf = await joined(stack, pair)
        await domain_of(hub, "$JS.leafy.API.INFO")
        there = hub.jetstream(domain="leafy")
        await there.add_stream(name="EDGE", subjects=["edge.>"])
        await both_cross(hub, leaf)
        assert json.loads((await hub.request("edge.1", b"x", timeout=10)).data)["domain"] == "leafy"
        consumer = await there.pull_subscribe("edge.>", "puller")
        (message,) = await consumer.fetch(1, timeout=10)
        assert (message.subject, message.data) == ("edge.1", b"x")
        await message.ack_sync(timeout=10)
        await there.delete_stream("EDGE")

    run(test)


def test_a_bucket_of_the_hub_is_used_from_the_leaf_node(pair: Pair) -> None:
    async def test(stack: AsyncExitStack) -> None:
        _, leaf = await joined(stack, pair)
        await domain_of(leaf, "$JS.hub.API.INFO")
        there = leaf.jetstream(domain="hub")
        bucket = await there.create_key_value(bucket="kv")
        # nats-py puts to `$KV.kv.key` in every domain, and that subject does not cross.
        with pytest.raises(NoRespondersError):
            await leaf.request("$KV.kv.key", b"lost", timeout=10)
        answer = await leaf.request("$JS.hub.API.$KV.kv.key", b"value", timeout=10)
        assert json.loads(answer.data)["domain"] == "hub"
        assert (await bucket.get("key")).value == b"value"
        await there.delete_key_value("kv")

    run(test)


@pytest.mark.parametrize(("hub_kind", "leaf_kind"), PAIRS, ids=PAIR_NAMES)
def test_clients_of_an_account_without_streams_are_given_those_of_the_default_domain(
    tmp_path: Path, hub_kind: str, leaf_kind: str
) -> None:
    streams = f'jetstream {{ domain: hub, store_dir: "{tmp_path}/js" }}'
    default = 'default_js_domain { "$G": hub }'
    with serve(hub_kind, tmp_path / "hub", f"{HUB}\n{streams}") as hub:
        with serve(leaf_kind, tmp_path / "leaf", spoke_config(hub, more=default)) as leaf:

            async def test(stack: AsyncExitStack) -> None:
                _, client = await joined(stack, (hub, leaf))
                assert await domain_of(client, "$JS.API.INFO") == "hub"
                stream = client.jetstream(timeout=10)
                await stream.add_stream(name="ORD", subjects=["ord.>"])
                assert (await stream.stream_info("ORD")).config.name == "ORD"

            run(test)


@pytest.mark.parametrize(("hub_kind", "leaf_kind"), PAIRS, ids=PAIR_NAMES)
def test_two_sides_with_the_same_domain_never_reach_each_others_streams(
    tmp_path: Path, hub_kind: str, leaf_kind: str
) -> None:
    def streams(side: str) -> str:
        return f'jetstream {{ domain: same, store_dir: "{tmp_path}/{side}js" }}'

    with serve(hub_kind, tmp_path / "hub", f"{HUB}\n{streams('hub')}") as hub:
        with serve(leaf_kind, tmp_path / "leaf", spoke_config(hub, more=streams("leaf"))) as leaf:

            async def test(stack: AsyncExitStack) -> None:
                clients = await joined(stack, (hub, leaf))
                for client, name in zip(clients, ("HUB", "LEAF"), strict=True):
                    await client.jetstream(domain="same", timeout=10).add_stream(name=name, subjects=[f"{name}.>"])
                for client, name in zip(clients, ("HUB", "LEAF"), strict=True):
                    for _ in range(5):
                        answer = await client.request("$JS.same.API.STREAM.NAMES", b"", timeout=10)
                        assert json.loads(answer.data)["streams"] == [name]

            run(test)
