"""async-nats (Rust), by way of natsrpy: streams and consumers on our broker and on the real nats-server."""

from datetime import timedelta
from typing import Any

import pytest
from support.scenarios import play_natsrpy as play

natsrpy = pytest.importorskip("natsrpy")
pytestmark = pytest.mark.interop

SOON = timedelta(seconds=5)


def test_a_stream_is_published_to_looked_into_purged_and_deleted(url: str) -> None:
    from natsrpy.js import StreamConfig

    async def scenario(js: Any) -> None:
        config = StreamConfig(name="RUST", subjects=["rust.>"], allow_direct=True)
        stream = await js.streams.create(config)
        acks = [await js.publish(f"rust.{n % 2}", b"%d" % n, wait=True) for n in range(6)]
        assert [ack.sequence for ack in acks] == list(range(1, 7))
        again = [await js.publish("rust.id", b"x", headers={"Nats-Msg-Id": "one"}, wait=True) for _ in range(2)]
        assert [(ack.sequence, ack.duplicate) for ack in again] == [(7, False), (7, True)]
        got = await stream.direct_get(3)
        assert (got.subject, bytes(got.payload)) == ("rust.0", b"2")
        last = await stream.direct_get_last_for_subject("rust.1")
        assert bytes(last.payload) == b"5"
        await stream.delete_message(2)
        assert (await stream.get_info()).state.messages == 6
        assert await stream.purge(filter="rust.0") == 3
        assert (await stream.get_info()).state.messages == 3
        assert await js.streams.delete("RUST")
        with pytest.raises(Exception, match=r"(?i)not found"):
            await js.streams.get("RUST")

    play(url, scenario)


def test_a_pull_consumer_fetches_refuses_and_settles(url: str) -> None:
    from natsrpy.js import AckPolicy, PullConsumerConfig, StreamConfig

    async def scenario(js: Any) -> None:
        stream = await js.streams.create(StreamConfig(name="PULLED", subjects=["pulled.>"]))
        for n in range(10):
            await js.publish("pulled.x", b"%d" % n, wait=True)
        config = PullConsumerConfig(name="p", durable_name="p", ack_policy=AckPolicy.EXPLICIT)
        consumer = await stream.consumers.create(config)
        first = await consumer.fetch(max_messages=4, timeout=SOON)
        assert [(m.stream_sequence, m.delivered) for m in first] == [(n, 1) for n in range(1, 5)]
        await first[0].nack(double=True)
        for message in first[1:]:
            await message.ack(double=True)
        second = await consumer.fetch(max_messages=7, timeout=SOON)
        assert [(m.stream_sequence, m.delivered) for m in second] == [(1, 2)] + [(n, 1) for n in range(5, 11)]
        for message in second:
            await message.ack(double=True)
        assert [name async for name in await stream.consumers.list_names()] == ["p"]
        assert await stream.consumers.delete("p")

    play(url, scenario)


def test_a_push_consumer_delivers_everything_in_order(url: str) -> None:
    from natsrpy.js import AckPolicy, PushConsumerConfig, StreamConfig

    async def scenario(js: Any) -> None:
        stream = await js.streams.create(StreamConfig(name="PUSHED", subjects=["pushed.>"]))
        for n in range(300):
            await js.publish(f"pushed.{n % 3}", b"%d" % n)
        config = PushConsumerConfig(
            deliver_subject="to.rust",
            name="push",
            ack_policy=AckPolicy.NONE,
            flow_control=True,
            idle_heartbeat=timedelta(seconds=2),
        )
        consumer = await stream.consumers.create(config)
        seen: list[int] = []
        async with consumer.consume() as messages:
            async for message in messages:
                seen.append(message.stream_sequence)
                if len(seen) == 300:
                    break
        assert seen == list(range(1, 301))

    play(url, scenario)


def test_a_paused_consumer_rests_until_it_is_resumed(url: str) -> None:
    from natsrpy.js import AckPolicy, PullConsumerConfig, StreamConfig

    async def scenario(js: Any) -> None:
        stream = await js.streams.create(StreamConfig(name="PAUSED", subjects=["paused.>"]))
        await js.publish("paused.x", b"x", wait=True)
        consumer = await stream.consumers.create(PullConsumerConfig(name="p", ack_policy=AckPolicy.EXPLICIT))
        await stream.consumers.pause("p", 60.0)
        # One request after the other: nats-server does not wake one that waits when the consumer is resumed.
        assert await consumer.fetch(max_messages=1, expires=0.2, timeout=SOON) == []
        await stream.consumers.resume("p")
        fetched = await consumer.fetch(max_messages=1, expires=5.0, timeout=SOON)
        assert [message.stream_sequence for message in fetched] == [1]

    play(url, scenario)
