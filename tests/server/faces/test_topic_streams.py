"""What an Iggy client sends to a topic of its own, consumed through JetStream."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import headwater
from headwater import Broker, HeaderValue, TypedHeaders
from headwater.client.client import Client as NatsClient
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.cloudevents import CloudEvent, from_nats
from headwater.cloudevents.typed_mapping import event_to_typed
from headwater.errors import HeadwaterError, JetStreamError
from headwater.iggy.face import IggyOptions
from headwater.iggy.service_options import ServiceOptions
from headwater.iggy_client.client import Client, connect
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import Identifier, PollingStrategy
from headwater.jetstream.service import JetStream
from headwater.jetstream.view import ViewStream
from headwater.jetstream_state.consumer_journal import Journal
from headwater.jetstream_state.store import StreamDirectory, StreamRecord
from headwater.model.typed_headers import HeaderForm
from headwater.server.faces import topic_streams
from headwater.server.faces.topic_streams import TopicStreams

TYPED = TypedHeaders([("key 1", "value1"), ("n", HeaderValue.from_uint64(5)), ("blob", b"\0\xff")])
S, T = Identifier("orders"), Identifier("eu")
NAME, SUBJECT = "iggy-orders-eu-0", "iggy.orders.eu.0"


def with_both(tmp_path: Path, *works: Callable[[NatsClient, Client], Awaitable[None]]) -> None:
    """Each work with a server of its own over the same folder."""

    async def main(work: Callable[[NatsClient, Client], Awaitable[None]]) -> None:
        wanted = IggyOptions(tcp=("127.0.0.1", 0), service=ServiceOptions(housekeeping=3600))
        async with asyncio.timeout(40), Broker(jetstream=True, store_dir=tmp_path, iggy=wanted) as broker:
            async with await connect(f"iggy://iggy:iggy@127.0.0.1:{broker.iggy.tcp_port}") as client:
                nats = await headwater.connect(broker.url)
                await work(nats, client)
                await nats.close()

    for work in works:
        asyncio.run(main(work))


async def make_topic(nats: NatsClient, client: Client, partitions: int = 1) -> None:
    await client.create_stream("orders")
    await client.create_topic("orders", "eu", partitions)
    await until(nats, NAME)


async def until(nats: NatsClient, name: str, there: bool = True) -> None:
    """Until JetStream has a stream of this name, or has it no more."""
    while True:
        try:
            await nats.jetstream().stream_info(name)
            if there:
                return
        except JetStreamError:
            if not there:
                return


async def messages_in(nats: NatsClient, name: str) -> int:
    """-1 while there is no stream of this name: that of a purged topic is a new one."""
    try:
        return (await nats.jetstream().stream_info(name)).state.messages
    except JetStreamError:
        return -1


def test_a_message_comes_with_its_headers_and_its_id(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client) -> None:
        await make_topic(nats, client)
        event = CloudEvent(id="1", source="/s", type="t", data={"a": 1}, datacontenttype="application/json")
        headers, payload, _ = event_to_typed(event)
        await client.send("orders", "eu", [Message(b"one", TYPED, id=7), Message(b"two"), Message(payload, headers)], 0)
        jetstream = nats.jetstream()
        await jetstream.create_consumer(NAME, ConsumerConfig(durable_name="d", ack_policy="explicit"))
        one, two, three = await jetstream.pull_consumer(NAME, "d").fetch(3, timeout=10)
        assert (one.subject, one.data, two.data) == (SUBJECT, b"one", b"two")
        assert (one.headers["n"], one.headers["key%201"], one.headers["blob"]) == ("5", "value1", "AP8=")
        assert one.headers["Iggy-Message-Id"] == "7"
        assert from_nats(three) == event
        info = await jetstream.stream_info(NAME)
        assert (info.state.messages, info.state.first_seq, info.state.last_seq) == (3, 1, 3)
        assert info.config.subjects == [SUBJECT] and info.config.sealed

    with_both(tmp_path, work)


def test_a_consumer_that_waits_hears_of_what_is_sent(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client) -> None:
        await make_topic(nats, client)
        jetstream = nats.jetstream()
        for name, wanted in (("all", ""), ("own", SUBJECT), ("wild", "iggy.*.eu.>")):
            await jetstream.create_consumer(NAME, ConsumerConfig(durable_name=name, filter_subject=wanted))
        waiting = [
            asyncio.create_task(jetstream.pull_consumer(NAME, name).fetch(600, timeout=20))
            for name in ("all", "own", "wild")
        ]
        for start in range(0, 600, 200):
            await client.send("orders", "eu", [Message(b"%d" % number) for number in range(start, start + 200)], 0)
        for found in await asyncio.gather(*waiting):
            assert [message.data for message in found] == [b"%d" % number for number in range(600)]

    with_both(tmp_path, work)


def test_a_durable_consumer_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def first(nats: NatsClient, client: Client) -> None:
        await make_topic(nats, client)
        await client.send("orders", "eu", [Message(b"%d" % number) for number in range(10)], 0)
        jetstream = nats.jetstream()
        await jetstream.create_consumer(NAME, ConsumerConfig(durable_name="d", ack_policy="explicit"))
        for message in await jetstream.pull_consumer(NAME, "d").fetch(4, timeout=10):
            await message.ack(confirm=5)

    async def second(nats: NatsClient, client: Client) -> None:
        found = await nats.jetstream().pull_consumer(NAME, "d").fetch(6, timeout=10)
        assert [message.data for message in found] == [b"%d" % number for number in range(4, 10)]

    with_both(tmp_path, first, second)


def test_a_topic_is_a_stream_once_its_consumers_are_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, reading, may_end = StreamDirectory.load_journal, threading.Event(), threading.Event()

    def load_slowly(directory: StreamDirectory, record: StreamRecord) -> Journal:
        reading.set()
        assert may_end.wait(30)
        return load(directory, record)

    async def work(nats: NatsClient, client: Client) -> None:
        monkeypatch.setattr(StreamDirectory, "load_journal", load_slowly)
        await client.create_stream("orders")
        await client.create_topic("orders", "eu", 1)
        assert await asyncio.to_thread(reading.wait, 30)
        with pytest.raises(JetStreamError, match="stream not found"):
            await nats.jetstream().create_consumer(NAME, ConsumerConfig(durable_name="early"))
        may_end.set()
        await until(nats, NAME)

    with_both(tmp_path, work)


def test_a_topic_that_cannot_be_shown_is_tried_again_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    show, failures = JetStream.show, [JetStreamError(400, 10058, "in use"), ValueError("unforeseen")]

    async def fail_first(service: JetStream, view: ViewStream) -> None:
        if view.config.name == NAME and failures:
            raise failures.pop(0)
        await show(service, view)

    monkeypatch.setattr(JetStream, "show", fail_first)
    monkeypatch.setattr(topic_streams, "FIRST_PAUSE", 0.01)

    async def work(nats: NatsClient, client: Client) -> None:
        await client.create_stream("orders")
        await client.create_topic("orders", "eu", 1)
        await client.create_topic("orders", "us", 1)
        await until(nats, "iggy-orders-us-0")
        await until(nats, NAME)

    with_both(tmp_path, work)
    assert not failures
    shown = [one.getMessage() for one in caplog.records if "iggy_topic_not_in_step" in one.getMessage()]
    assert len(shown) == 2 and "in use" in shown[0] and NAME in shown[1]


def test_topics_are_shown_after_a_fault_in_finding_out_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = TopicStreams.refresh
    failures = [KeyError("a fault of ours")]

    async def fail_once(streams: TopicStreams) -> bool:
        if streams._task is not None and failures:
            raise failures.pop()
        return await real(streams)

    monkeypatch.setattr(TopicStreams, "refresh", fail_once)
    monkeypatch.setattr(topic_streams, "FIRST_PAUSE", 0.01)

    async def work(nats: NatsClient, client: Client) -> None:
        await make_topic(nats, client)

    with_both(tmp_path, work)
    assert not failures
    assert "iggy_topics_not_in_step" in caplog.messages


def test_every_partition_is_a_stream_and_goes_with_its_topic(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client) -> None:
        await make_topic(nats, client, 2)
        await until(nats, "iggy-orders-eu-1")
        jetstream = nats.jetstream()
        await jetstream.create_stream(StreamConfig(name="OTHER", subjects=["other"]))
        await client.send("orders", "eu", [Message(b"x")], 1)
        assert (await jetstream.stream_info("iggy-orders-eu-1")).state.messages == 1
        assert {info.config.name for info in await jetstream.streams()} == {NAME, "iggy-orders-eu-1", "OTHER"}
        topics = await client.execute(c.GetTopics(Identifier("nats")))
        assert [topic.name for topic in topics] == ["OTHER"]
        await client.execute(c.PurgeTopic(S, T))
        while await messages_in(nats, "iggy-orders-eu-1") != 0:
            pass
        await client.execute(c.DeletePartitions(S, T, 1))
        await until(nats, "iggy-orders-eu-1", there=False)
        await client.execute(c.UpdateTopic(S, T, "e u"))
        await until(nats, "iggy-orders-e_u-0")
        await until(nats, NAME, there=False)
        await client.delete_stream("orders")
        await until(nats, "iggy-orders-e_u-0", there=False)

    with_both(tmp_path, work)


def test_to_jetstream_it_is_sealed(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client) -> None:
        await make_topic(nats, client)
        await client.send("orders", "eu", [Message(b"x")], 0)
        jetstream = nats.jetstream()
        for attempt in (
            jetstream.delete_stream(NAME),
            jetstream.purge_stream(NAME),
            jetstream.delete_message(NAME, 1),
            jetstream.update_stream((await jetstream.stream_info(NAME)).config),
            jetstream.publish(SUBJECT, b"y"),
        ):
            with pytest.raises(HeadwaterError):
                await attempt
        assert (await jetstream.stream_info(NAME)).state.messages == 1

    with_both(tmp_path, work)


def test_what_expires_there_is_gone_here(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client) -> None:
        await client.create_stream("orders")
        size = TypedHeaders({"segment_size": HeaderValue.from_uint64(1 << 20)}).encode(HeaderForm.TYPED)
        await client.create_topic("orders", "eu", 1, size)
        await until(nats, NAME)
        jetstream = nats.jetstream()
        await jetstream.create_consumer(NAME, ConsumerConfig(durable_name="d"))
        for number in range(5):
            await client.send("orders", "eu", [Message(b"%d" % number + bytes(600_000))], 0)
        await client.execute(c.DeleteSegments(S, T, 0, 2))
        info = await jetstream.stream_info(NAME)
        assert (info.state.messages, info.state.first_seq) == (3, 3)
        found = await jetstream.pull_consumer(NAME, "d").fetch(3, timeout=10)
        assert [message.data[:1] for message in found] == [b"2", b"3", b"4"]

    with_both(tmp_path, work)


def test_what_reading_finds_damaged_is_no_longer_counted_or_waited_for(tmp_path: Path) -> None:
    async def write(nats: NatsClient, client: Client) -> None:
        await make_topic(nats, client)
        for number in range(4):
            await client.send("orders", "eu", [Message(b"payload %d" % number)], 0)

    async def read(nats: NatsClient, client: Client) -> None:
        jetstream = nats.jetstream()
        made = await jetstream.create_consumer(NAME, ConsumerConfig(durable_name="d", ack_policy="explicit"))
        assert made.num_pending == 4
        found = await client.poll("orders", "eu", strategy=PollingStrategy.offset(0), count=9)
        assert len(found) == 3
        assert (await jetstream.stream_info(NAME)).state.messages == 3
        assert (await jetstream.consumer_info(NAME, "d")).num_pending == 3

    with_both(tmp_path, write)
    (segment,) = (tmp_path / "iggy" / "logs").rglob("*.log")
    content = bytearray(segment.read_bytes())
    content[content.index(b"payload 2")] ^= 1
    segment.write_bytes(content)
    with_both(tmp_path, read)
