"""Store directories that servers of each format left when they were killed: streams, consumers and Iggy's topics are there.

`tests/vectors/stores/server_N.tar.xz` is the store directory of a server of format N after a kill -9: streams ORDERS (30
messages, one deleted), KV_bucket (two of each key) and WORK (a work queue), a durable consumer of two of them with
confirmed acknowledgements, and an Iggy topic of two partitions with a committed offset.
"""

import asyncio
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import headwater
from headwater.client.client import Client
from headwater.iggy.face import IggyOptions
from headwater.iggy_client.client import connect
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import Consumer, PollingStrategy
from headwater.server.broker import Broker
from headwater.streams.log_format import VERSION

STORES = Path(__file__).parents[1] / "vectors" / "stores"
IGGY = IggyOptions(tcp=("127.0.0.1", 0))
Work = Callable[[Broker, Client], Awaitable[None]]


@pytest.fixture(params=range(1, VERSION + 1))
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def store(version: int, tmp_path: Path) -> Path:
    with tarfile.open(STORES / f"server_{version}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "store"


def run(store: Path, *works: Work) -> None:
    async def main(work: Work) -> None:
        async with asyncio.timeout(40), Broker(jetstream=True, store_dir=store, iggy=IGGY) as broker:
            assert [finding for service in broker.jetstreams.values() for finding in service.findings()] == []
            assert broker.findings() == []
            async with await headwater.connect(broker.url) as client:
                await work(broker, client)

    for work in works:
        asyncio.run(main(work))


def test_streams_and_consumers_of_every_version_go_on(store: Path) -> None:
    async def first(broker: Broker, client: Client) -> None:
        jetstream = client.jetstream()
        orders = (await jetstream.stream_info("ORDERS")).state
        assert (orders.messages, orders.first_seq, orders.last_seq, orders.num_deleted) == (29, 1, 30, 1)
        assert (await jetstream.get_message("ORDERS", 30)).data == b"order 29"
        assert (await jetstream.publish("orders.0", b"again", msg_id="new")).seq == 31
        assert (await jetstream.stream_info("KV_bucket")).state.messages == 4
        work = (await jetstream.stream_info("WORK")).state
        assert (work.messages, work.last_seq) == (4, 6)
        reader = await jetstream.consumer_info("ORDERS", "reader")
        assert (reader.ack_floor.stream_seq, reader.num_pending) == (11, 20)
        (message,) = await jetstream.pull_consumer("WORK", "worker").fetch(1, timeout=5)
        assert message.data == b"task 2"
        await message.ack(confirm=5)

    async def second(broker: Broker, client: Client) -> None:
        jetstream = client.jetstream()
        assert (await jetstream.stream_info("ORDERS")).state.messages == 30
        assert (await jetstream.stream_info("WORK")).state.messages == 3

    run(store, first, second)


def test_topics_of_every_version_go_on(store: Path) -> None:
    async def first(broker: Broker, _: Client) -> None:
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{broker.iggy.tcp_port}") as client:
            for partition in range(2):
                found = await client.poll("s", "t", partition, strategy=PollingStrategy.offset(0), count=9)
                assert [message.payload for message in found] == [b"message %d" % n for n in range(partition, 8, 2)]
            stored = await client.offset("s", "t", 0, Consumer.single("me"))
            assert stored is not None and stored.stored_offset == 2
            assert (await client.send("s", "t", [Message(b"more")], 1)).base_offset == 4

    async def second(broker: Broker, _: Client) -> None:
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{broker.iggy.tcp_port}") as client:
            topic = await client.topic("s", "t")
            assert topic is not None and topic.messages == 9

    run(store, first, second)
