"""One event, all faces: NATS to Iggy and Iggy to NATS, through one stream."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.iggy_peers import talk

import headwater
from headwater import Broker, HeaderValue, TypedHeaders
from headwater.broker.options import GLOBAL_ACCOUNT
from headwater.cli.iggy_bridge import CapturedStreams
from headwater.client.client import Client as NatsClient
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.client.pull import PullConsumer
from headwater.cloudevents import CloudEvent, from_nats, to_binary
from headwater.cloudevents.typed_mapping import event_from_typed, event_to_typed
from headwater.errors import IggyError
from headwater.iggy.client import Client, connect
from headwater.iggy.commands import Message
from headwater.iggy.face import Iggy, IggyOptions

TYPED = TypedHeaders([("key 1", "value1"), ("n", HeaderValue.from_uint64(5)), ("blob", b"\0\xff")])


def with_both(tmp_path: Path, work: Callable[[NatsClient, Client, Iggy], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(40), Broker(jetstream=True, store_dir=tmp_path / "js") as broker:
            assert broker.router is not None
            foreign = CapturedStreams(broker.jetstreams, GLOBAL_ACCOUNT, broker.router)
            async with Iggy(IggyOptions(tcp=("127.0.0.1", 0)), tmp_path / "iggy", foreign) as iggy:
                nats = await headwater.connect(broker.url)
                await nats.jetstream().create_stream(StreamConfig(name="ORDERS", subjects=["orders.>"]))
                async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
                    await work(nats, client, iggy)
                await nats.close()

    asyncio.run(main())


async def consumer_of(nats: NatsClient) -> PullConsumer:
    jetstream = nats.jetstream()
    await jetstream.create_consumer("ORDERS", ConsumerConfig(durable_name="d", ack_policy="none"))
    return jetstream.pull_consumer("ORDERS", "d")


def test_what_nats_published_is_polled_with_its_headers_typed(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        jetstream = nats.jetstream()
        await jetstream.publish("orders.eu", b"one", headers={"A": ["1", "2"], "Empty": ""})
        await jetstream.publish("orders.us", b"two")
        stream = await client.stream("nats")
        assert stream is not None and [topic.name for topic in stream.details] == ["ORDERS"]
        first, second = await client.poll("nats", "ORDERS", auto_commit=True)
        assert (first.payload, first.offset, second.payload, second.offset) == (b"one", 0, b"two", 1)
        assert first.headers is not None and second.headers is not None
        assert first.headers["A"].as_str() == "1" and first.headers["A#2"].as_str() == "2"
        assert first.headers["Nats-Subject"].as_str() == "orders.eu"
        assert second.headers.to_python() == {"Nats-Subject": "orders.us"}
        assert await client.poll("nats", "ORDERS") == []

    with_both(tmp_path, work)


def test_what_iggy_sent_is_consumed_through_jetstream_and_comes_back_typed(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        named = TypedHeaders([*TYPED.items(), ("Nats-Subject", "orders.eu.de")])
        await client.send("nats", "ORDERS", [Message(b"one", named, id=7), Message(b"two")], 0)
        consumer = await consumer_of(nats)
        one, two = await consumer.fetch(2, timeout=5)
        assert (one.subject, one.data, two.subject, two.data) == ("orders.eu.de", b"one", "orders.iggy", b"two")
        assert (one.headers["n"], one.headers["key%201"], one.headers["blob"]) == ("5", "value1", "AP8=")
        found = (await client.poll("nats", "ORDERS"))[0]
        assert found.headers == named and found.id == 7

    with_both(tmp_path, work)


def test_an_event_is_the_same_through_both_faces(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        event = CloudEvent(
            id="1", source="/s", type="t", data={"a": 1}, subject="é", datacontenttype="application/json"
        )
        message = to_binary(event)
        await nats.jetstream().publish("orders.x", message.data, headers=message.headers)
        polled = (await client.poll("nats", "ORDERS", auto_commit=True))[0]
        assert polled.headers is not None
        assert event_from_typed(polled.headers, polled.payload) == event
        headers, payload, _ = event_to_typed(event)
        await client.send("nats", "ORDERS", [Message(payload, headers)], 0)
        consumer = await consumer_of(nats)
        assert [from_nats(found) for found in await consumer.fetch(2, timeout=5)] == [event, event]

    with_both(tmp_path, work)


def test_what_belongs_to_nats_is_not_altered_here(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        for refused in (client.create_topic("nats", "MORE"), client.delete_stream("nats")):
            with pytest.raises(IggyError, match="feature_unavailable"):
                await refused
        wrong = TypedHeaders({"Nats-Subject": "invoices"})
        with pytest.raises(IggyError, match="cannot_append_message"):
            await client.send("nats", "ORDERS", [Message(b"x", wrong)], 0)
        await client.create_group("nats", "ORDERS", "g")
        assert (await client.join_group("nats", "ORDERS", "g")).partitions == [0]

    with_both(tmp_path, work)


@pytest.mark.interop
def test_a_stream_of_nats_does_not_disturb_a_released_client(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        steps = await talk(None, "apache_iggy", f"127.0.0.1:{iggy.tcp_port}", 0, "x")
        assert {name for name, value in steps.items() if str(value).startswith("error")} == {"poll_nowhere"}

    with_both(tmp_path, work)
