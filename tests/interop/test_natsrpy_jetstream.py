"""async-nats (Rust), by way of natsrpy: streams and consumers on our broker and on the real nats-server."""

from datetime import timedelta
from typing import Any

import pytest
from support.scenarios import ITERATORS, listed
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
        assert await listed(await stream.consumers.list_names()) == ["p"]
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
            ITERATORS.append(messages)
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


def test_messages_are_put_off_kept_and_given_up(url: str) -> None:
    from natsrpy.js import AckPolicy, PullConsumerConfig, StreamConfig

    async def scenario(js: Any) -> None:
        stream = await js.streams.create(StreamConfig(name="SETTLED", subjects=["settled.>"]))
        for n in range(6):
            await js.publish(f"settled.{n % 3}", b"%d" % n, wait=True)
        config = PullConsumerConfig(
            name="s",
            durable_name="s",
            ack_policy=AckPolicy.EXPLICIT,
            filter_subjects=["settled.0", "settled.1"],
            max_deliver=3,
            max_ack_pending=4,
            backoff=[timedelta(minutes=1), timedelta(minutes=2)],
        )
        consumer = await stream.consumers.create(config)
        first = await consumer.fetch(max_messages=4, timeout=SOON)
        assert [(m.stream_sequence, m.pending) for m in first] == [(1, 3), (2, 2), (4, 1), (5, 0)]
        await first[0].nack(delay=0.01, double=True)
        await first[1].term(double=True)
        await first[2].progress(double=True)
        await first[3].ack(double=True)
        (again,) = await consumer.fetch(max_messages=1, expires=5.0, timeout=SOON)
        assert (again.stream_sequence, again.delivered) == (1, 2)
        await again.nack(double=True)
        (last,) = await consumer.fetch(max_messages=1, expires=5.0, timeout=SOON)
        assert (last.stream_sequence, last.delivered) == (1, 3)
        await last.ack(double=True)
        await first[2].ack(double=True)
        await js.publish("settled.2", b"not wanted", wait=True)
        await js.publish("settled.1", b"wanted", wait=True)
        (new,) = await consumer.fetch(max_messages=1, expires=5.0, timeout=SOON)
        assert bytes(new.payload) == b"wanted"

    play(url, scenario)


def test_every_deliver_policy_begins_where_it_says(url: str) -> None:
    from natsrpy.js import AckPolicy, DeliverPolicy, PullConsumerConfig, StreamConfig

    async def scenario(js: Any) -> None:
        stream = await js.streams.create(StreamConfig(name="POLICIES", subjects=["policies.*"]))
        for n in range(9):
            await js.publish(f"policies.{n % 3}", b"%d" % n, wait=True)
        for name, policy, more, expected in (
            ("all", DeliverPolicy.ALL, {}, list(range(1, 10))),
            ("last", DeliverPolicy.LAST, {}, [9]),
            ("lasts", DeliverPolicy.LAST_PER_SUBJECT, {"filter_subject": "policies.*"}, [7, 8, 9]),
            ("from", DeliverPolicy.BY_START_SEQUENCE, {"delivery_start_sequence": 7}, [7, 8, 9]),
            ("headers", DeliverPolicy.ALL, {"headers_only": True}, list(range(1, 10))),
        ):
            config = PullConsumerConfig(name=name, ack_policy=AckPolicy.NONE, deliver_policy=policy, **more)
            consumer = await stream.consumers.create(config)
            found = await consumer.fetch(max_messages=len(expected), timeout=SOON)
            assert [message.stream_sequence for message in found] == expected, name
            assert all(bool(message.payload) is (name != "headers") for message in found)

    play(url, scenario)


def test_a_stream_is_changed_bounded_purged_and_closed(url: str) -> None:
    from natsrpy.js import DiscardPolicy, StreamConfig

    async def scenario(js: Any) -> None:
        plain: dict[str, Any] = {"name": "BOUNDED", "subjects": ["bounded.>"]}
        stream = await js.streams.create(StreamConfig(**plain, max_messages_per_subject=2, allow_rollup=True))
        for n in range(6):
            await js.publish(f"bounded.{n % 2}", b"%d" % n, wait=True)
        assert (await stream.get_info()).state.messages == 4
        await js.publish("bounded.0", b"all", headers={"Nats-Rollup": "sub"}, wait=True)
        assert (await stream.get_info()).state.messages == 3
        for header, wrong in (("Sequence", "99"), ("Subject-Sequence", "99"), ("Msg-Id", "x")):
            name = "Nats-Expected-Last-" + header
            with pytest.raises(Exception, match="wrong last"):
                await js.publish("bounded.0", b"no", headers={name: wrong}, wait=True)
        full = StreamConfig(
            **plain,
            max_messages_per_subject=1,
            discard=DiscardPolicy.NEW,
            discard_new_per_subject=True,
            allow_rollup=True,
        )
        await js.streams.update(full)
        with pytest.raises(Exception, match="maximum messages per subject exceeded"):
            await js.publish("bounded.0", b"one too many", wait=True)
        assert await stream.purge(keep=1) == 1
        assert (await stream.get_info()).state.messages == 1

    play(url, scenario)
