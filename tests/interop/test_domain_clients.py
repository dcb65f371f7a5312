"""Clients that name a JetStream domain do on our broker what they do on the real nats-server: nats-py, ours, npm's."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
from interop.test_node_jetstream import PACKAGES, play
from support.headwater_server import HeadwaterServer, start_headwater
from support.nats_server import NatsServer, start_nats_server
from support.peers import install_node_package

from headwater.client.client import connect
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.client.key_value import BucketConfig
from headwater.client.object_store import StoreConfig
from headwater.errors import NoResponders

pytestmark = pytest.mark.interop

Server = NatsServer | HeadwaterServer
KINDS = ["nats-server", "headwater"]
BOUND = 20.0  # seconds


def start(kind: str, directory: Path) -> Server:
    directory.mkdir(exist_ok=True)
    (directory / "hub.conf").write_text(f"jetstream {{ store_dir: '{directory}/js', domain: hub }}")
    if kind == "nats-server":
        return start_nats_server(directory, "-c", str(directory / "hub.conf"), jetstream=False)
    return start_headwater(directory, "-c", str(directory / "hub.conf"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    directory = tmp_path_factory.mktemp("hub")
    with start(KINDS[0], directory / "real") as real, start(KINDS[1], directory / "ours") as ours:
        yield {KINDS[0]: real, KINDS[1]: ours}


@pytest.mark.parametrize("kind", KINDS)
def test_nats_py_with_a_domain(servers: dict[str, Server], kind: str) -> None:
    async def main(url: str) -> None:
        client = await nats.connect(url)
        assert client._server_info["domain"] == "hub"  # no public name
        stream = client.jetstream(domain="hub")
        await stream.add_stream(name="PY", subjects=["py.*"])
        ack = await stream.publish("py.1", b"one")
        assert (ack.stream, ack.domain, ack.seq) == ("PY", "hub", 1)
        assert (await stream.account_info()).domain == "hub"
        pull = await stream.pull_subscribe("py.*", "durable")
        (message,) = await pull.fetch(1, timeout=BOUND)
        await message.ack_sync()
        push = await stream.subscribe("py.*", ordered_consumer=True)
        assert (await push.next_msg(timeout=BOUND)).data == b"one"
        assert (await stream.consumer_info("PY", "durable")).ack_floor.stream_seq == 1
        store = await stream.create_key_value(bucket="py")
        await store.put("key", b"value")
        assert (await store.get("key")).value == b"value"
        assert await store.keys() == ["key"]
        objects = await stream.create_object_store("py")
        await objects.put("large", b"x" * 300_000)
        assert (await objects.get("large")).data == b"x" * 300_000
        with pytest.raises(nats.js.errors.ServiceUnavailableError):
            await client.jetstream(domain="spoke").account_info()
        await client.close()

    asyncio.run(main(servers[kind].url))


@pytest.mark.parametrize("kind", KINDS)
def test_our_client_with_a_domain(servers: dict[str, Server], kind: str) -> None:
    async def main(url: str) -> None:
        async with await connect(url) as client:
            stream = client.jetstream(domain="hub")
            await stream.create_stream(StreamConfig(name="OURS", subjects=["ours.*"]))
            assert (await stream.publish("ours.1", b"one")).domain == "hub"
            assert (await stream.account_info()).domain == "hub"
            await stream.create_consumer("OURS", ConsumerConfig(durable_name="durable", ack_policy="explicit"))
            (message,) = await stream.pull_consumer("OURS", "durable").fetch(1, timeout=BOUND)
            await message.ack_sync()
            assert (await stream.consumer_info("OURS", "durable")).ack_floor.stream_seq == 1
            store = await stream.create_key_value(BucketConfig(bucket="ours"))
            await store.put("key", b"value")
            await store.delete("key")
            assert await store.create("key", b"new") == 3
            assert (await store.get("key")).value == b"new"
            assert await store.keys() == ["key"]
            assert len(await store.history("key")) == 1
            objects = await stream.create_object_store(StoreConfig(bucket="ours"))
            await objects.put("large", b"x" * 300_000)
            assert await objects.get("large") == b"x" * 300_000
            with pytest.raises(NoResponders):
                await client.request("$JS.spoke.API.$KV.ours.key", b"")

    asyncio.run(main(servers[kind].url))


@pytest.mark.parametrize("scenario", ["consumers", "settling", "ordered", "push", "direct", "keys", "objects"])
def test_a_node_client_with_a_domain(servers: dict[str, Server], scenario: str) -> None:
    packages = install_node_package(PACKAGES)
    real, ours = (play(packages, servers[kind].url, scenario, "hub") for kind in KINDS)
    assert ours == real
