"""One event, all faces: NATS to Iggy and Iggy to NATS, through one stream."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.iggy_peers import talk, with_released_client

import headwater
from headwater import Broker, HeaderValue, TypedHeaders
from headwater.client.client import Client as NatsClient
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.client.pull import PullConsumer
from headwater.cloudevents import CloudEvent, from_nats, to_binary
from headwater.cloudevents.typed_mapping import event_from_typed, event_to_typed
from headwater.errors import IggyError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.client import Client, connect
from headwater.iggy_wire.commands import Message
from headwater.server.faces import captured_streams

TYPED = TypedHeaders([("key 1", "value1"), ("n", HeaderValue.from_uint64(5)), ("blob", b"\0\xff")])


def with_both(tmp_path: Path, work: Callable[[NatsClient, Client, Iggy], Awaitable[None]]) -> None:
    async def main() -> None:
        wanted = IggyOptions(tcp=("127.0.0.1", 0))
        async with asyncio.timeout(40), Broker(jetstream=True, store_dir=tmp_path, iggy=wanted) as broker:
            nats = await headwater.connect(broker.url)
            await nats.jetstream().create_stream(StreamConfig(name="ORDERS", subjects=["orders.>"]))
            async with await connect(f"iggy://iggy:iggy@127.0.0.1:{broker.iggy.tcp_port}") as client:
                await work(nats, client, broker.iggy)
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


def test_no_client_can_forge_the_answer_to_a_send(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full stream refuses the send, whatever a NATS client publishes meanwhile: there is no subject to publish it on."""
    monkeypatch.setattr(captured_streams, "PERIOD", 60.0)

    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        caplog.set_level("INFO")
        full = StreamConfig(name="FULL", subjects=["full"], max_msgs=1, discard="new")
        await nats.jetstream().create_stream(full)
        seen = await nats.subscribe(">")
        await nats.flush()
        await client.send("nats", "FULL", [Message(b"first")], 0)
        for number in range(9):
            await nats.publish(f"_INBOX.headwater-iggy.{number}", b'{"stream":"FULL","seq":2}')
        await nats.flush()
        for _ in range(12):
            with pytest.raises(IggyError, match="cannot_append_message"):
                await client.send("nats", "FULL", [Message(b"second")], 0)
        lines = [record for record in caplog.records if "iggy_send_refused" in record.getMessage()]
        assert [line.levelname for line in lines] == ["WARNING"] * 10
        assert lines[0].getMessage() == "iggy_send_refused sends=1 stream=FULL reason=maximum messages exceeded"
        await nats.publish("end")
        found = []
        async for message in seen:
            if message.subject == "end":
                break
            found.append(message)
        assert [(m.subject, m.reply, m.data) for m in found if not m.subject.startswith("_INBOX.headwater-iggy")] == [
            ("full", "", b"first"),
            *[("full", "", b"second")] * 12,
        ]

    with_both(tmp_path, work)


def test_a_stream_without_acks_answers_a_send_all_the_same(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        await nats.jetstream().create_stream(StreamConfig(name="QUIET", subjects=["quiet"], no_ack=True))
        await client.send("nats", "QUIET", [Message(b"one"), Message(b"two")], 0)
        info = await nats.jetstream().stream_info("QUIET")
        assert info.state.messages == 2

    with_both(tmp_path, work)


def test_a_message_with_an_id_that_is_known_is_answered_and_stored_once(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        again = TypedHeaders({"Nats-Msg-Id": "7"})
        await client.send("nats", "ORDERS", [Message(b"one", again), Message(b"one", again)], 0)
        await client.send("nats", "ORDERS", [Message(b"one", again), Message(b"two")], 0)
        info = await nats.jetstream().stream_info("ORDERS")
        assert info.state.messages == 2

    with_both(tmp_path, work)


def test_a_send_that_is_known_is_confirmed_with_the_offset_of_the_original(tmp_path: Path) -> None:
    """It was confirmed with the next offset, at which its producer found nothing, or the message of another."""

    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        async def sent(*ids: str) -> int:
            messages = [Message(b"x", TypedHeaders({"Nats-Msg-Id": each} if each else {"n": "1"})) for each in ids]
            return (await client.send("nats", "ORDERS", messages, 0)).base_offset

        assert [await sent(""), await sent("a"), await sent("b"), await sent("")] == [0, 1, 2, 3]
        assert [await sent("a"), await sent("b"), await sent("b", "a")] == [1, 2, 2]
        assert [await sent("a", "c"), await sent("", "a"), await sent("c")] == [4, 5, 4]

    with_both(tmp_path, work)


def test_a_message_of_an_atomic_batch_is_refused_with_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The reason was that the stream takes no atomic batches, also where it does."""

    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        caplog.set_level("INFO")
        await nats.jetstream().create_stream(StreamConfig(name="WHOLE", subjects=["whole"], allow_atomic=True))
        part = TypedHeaders({"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1"})
        for messages in ([Message(b"x", part)], [Message(b"x"), Message(b"y", part)]):
            with pytest.raises(IggyError, match="cannot_append_message"):
                await client.send("nats", "WHOLE", messages, 0)
        assert caplog.text.count("stream=WHOLE reason=a message has Nats-Batch-Id") == 2
        assert await client.poll("nats", "WHOLE") == [] and iggy.service.clients.refused_sends == 2

    with_both(tmp_path, work)


def test_a_message_above_max_payload_is_refused_and_none_of_its_batch_is_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        caplog.set_level("INFO")
        with pytest.raises(IggyError, match="cannot_append_message"):
            await client.send("nats", "ORDERS", [Message(b"one"), Message(bytes(1 << 20), TYPED)], 0)
        assert "above the broker's max_payload of 1048576" in caplog.text
        info = await nats.jetstream().stream_info("ORDERS")
        assert info.state.messages == 0
        await client.send("nats", "ORDERS", [Message(bytes(1 << 20))], 0)

    with_both(tmp_path, work)


def test_a_send_of_which_one_message_is_refused_is_refused_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The others were stored, though the client got an error, and stood there twice when it had sent all again."""

    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        caplog.set_level("INFO")
        await nats.jetstream().create_stream(StreamConfig(name="FULL", subjects=["full"], max_msgs=3, discard="new"))
        await client.send("nats", "FULL", [Message(b"first")], 0)
        for wrong in (
            {"Nats-Expected-Last-Sequence": "999"},
            {"Nats-Expected-Stream": "OTHER"},
            {"Nats-TTL": "1s"},
            {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1"},
        ):
            with pytest.raises(IggyError, match="cannot_append_message"):
                await client.send("nats", "FULL", [Message(b"second"), Message(b"third", TypedHeaders(wrong))], 0)
        with pytest.raises(IggyError, match="cannot_append_message"):
            await client.send("nats", "FULL", [Message(b"%d" % number) for number in range(3)], 0)
        assert "stream=FULL reason=maximum messages exceeded" in caplog.text
        assert [message.payload for message in await client.poll("nats", "FULL")] == [b"first"]
        await client.send("nats", "FULL", [Message(b"second"), Message(b"third")], 0)
        again = TypedHeaders({"Nats-Msg-Id": "7", "Nats-Expected-Stream": "ORDERS"})
        for _ in range(2):
            await client.send("nats", "ORDERS", [Message(b"one", again), Message(b"one", again)], 0)
        assert [message.payload for message in await client.poll("nats", "ORDERS")] == [b"one"]

    with_both(tmp_path, work)


def test_a_subject_that_is_a_pattern_is_refused(tmp_path: Path) -> None:
    """NATS clients get an error for a publish to a pattern."""

    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        for pattern in ("orders.*", "orders.>"):
            with pytest.raises(IggyError, match="cannot_append_message"):
                await client.send("nats", "ORDERS", [Message(b"x", TypedHeaders({"Nats-Subject": pattern}))], 0)

    with_both(tmp_path, work)


def test_every_send_in_flight_is_answered_when_the_broker_stops(tmp_path: Path) -> None:
    async def main() -> None:
        wanted = IggyOptions(tcp=("127.0.0.1", 0))
        async with asyncio.timeout(40):
            broker = Broker(jetstream=True, store_dir=tmp_path, iggy=wanted)
            await broker.start()
            nats = await headwater.connect(broker.url)
            await nats.jetstream().create_stream(StreamConfig(name="ORDERS", subjects=["orders.>"]))
            await nats.close()
            client = await connect(f"iggy://iggy:iggy@127.0.0.1:{broker.iggy.tcp_port}")
            published, payloads = asyncio.Event(), list[bytes]()

            def note(subject: bytes, reply: bytes, block: bytes, payload: bytes) -> None:
                payloads.append(payload)
                if len(payloads) == 20:
                    published.set()

            assert broker.router is not None
            broker.router.subscribe_internal(b"orders.>", note)
            sends = [asyncio.create_task(client.send("nats", "ORDERS", [Message(b"x")], 0)) for _ in range(20)]
            await published.wait()
            await broker.stop()
            await asyncio.gather(*sends)
            await client.close()

    asyncio.run(main())


@pytest.mark.interop
@with_released_client
def test_a_stream_of_nats_does_not_disturb_a_released_client(tmp_path: Path) -> None:
    async def work(nats: NatsClient, client: Client, iggy: Iggy) -> None:
        steps = await talk(None, "apache_iggy", f"127.0.0.1:{iggy.tcp_port}", 0, "x")
        assert {name for name, value in steps.items() if str(value).startswith("error")} == {"poll_nowhere"}

    with_both(tmp_path, work)
