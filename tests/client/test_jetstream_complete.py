"""Streams, consumers and direct reads in full, on the real nats-server and on our broker with the same tests."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator

import pytest
from support.both_servers import Serve
from support.scripted_server import finish
from support.unruly_proxy import UnrulyProxy

import headwater
from headwater.client.consume import ConsumerGone
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.errors import JetStreamError, LocalProtocolError


@contextlib.asynccontextmanager
async def stream(serve: Serve, messages: int = 0, **fields: object) -> AsyncIterator[tuple[JetStream, str]]:
    """A JetStream and the name of a stream that captures `<name>.>` and holds `messages` messages."""
    name = f"S{secrets.token_hex(4)}"
    async with serve() as url, await headwater.connect(url) as client:
        jetstream = client.jetstream()
        await jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **fields))  # type: ignore[arg-type]
        for number in range(messages):
            await jetstream.publish(f"{name}.{number % 2}", b"%d" % number)
        try:
            yield jetstream, name
        finally:
            await jetstream.delete_stream(name)


def test_streams_are_listed_updated_and_purged(serve: Serve) -> None:
    async def main() -> None:
        async with stream(serve, 6) as (jetstream, name):
            assert name in [info.config.name for info in await jetstream.streams()]
            assert await jetstream.find_stream(f"{name}.x") == name
            with pytest.raises(JetStreamError, match="no stream captures"):
                await jetstream.find_stream("nobody.x")
            info = await jetstream.stream_info(name, subjects=">")
            assert info.state.subjects == {f"{name}.0": 3, f"{name}.1": 3}
            info.config.max_msgs = 5
            assert (await jetstream.update_stream(info.config)).config.max_msgs == 5
            assert (await jetstream.stream_info(name)).state.messages == 5
            assert await jetstream.purge_stream(name, subject=f"{name}.1") == 3
            assert await jetstream.purge_stream(name, keep=1) == 1
            assert await jetstream.purge_stream(name) == 1
            assert (await jetstream.stream_info(name)).state.last_seq == 6
            assert (await jetstream.account_info()).streams >= 1

    finish(main())


def test_a_message_is_read_by_sequence_and_by_subject_directly_and_not(serve: Serve) -> None:
    async def main() -> None:
        async with stream(serve, 4, allow_direct=True) as (jetstream, name):
            await jetstream.publish(f"{name}.h", b"with headers", headers={"K": ["1", "2"], "Nats-Own": "x"})
            for direct in (False, True):
                by_sequence = await jetstream.get_message(name, 2, direct=direct)
                assert (by_sequence.subject, by_sequence.seq, by_sequence.data) == (f"{name}.1", 2, b"1")
                assert (await jetstream.get_message(name, last_on=f"{name}.0", direct=direct)).seq == 3
                assert (await jetstream.get_message(name, 2, next_on=f"{name}.0", direct=direct)).seq == 3
                headed = await jetstream.get_message(name, last_on=f"{name}.h", direct=direct)
                assert headed.headers.multi_items() == [("K", "1"), ("K", "2"), ("Nats-Own", "x")]
                with pytest.raises(JetStreamError) as missing:
                    await jetstream.get_message(name, 99, direct=direct)
                assert (missing.value.code, missing.value.err_code) == (404, 10037)
            assert await jetstream.delete_message(name, 2)
            with pytest.raises(JetStreamError):
                await jetstream.get_message(name, 2)
            assert (await jetstream.stream_info(name, deleted=True)).state.deleted == [2]

    finish(main())


def test_expectations_of_a_publish_are_kept(serve: Serve) -> None:
    async def main() -> None:
        async with stream(serve, 2) as (jetstream, name):
            await jetstream.publish(f"{name}.a", expect_stream=name, expect_last_sequence=2, msg_id="one")
            await jetstream.publish(f"{name}.a", expect_last_msg_id="one", expect_last_subject_sequence=3)
            for wrong in (
                {"expect_stream": "other"},
                {"expect_last_sequence": 9},
                {"expect_last_subject_sequence": 9},
                {"expect_last_msg_id": "nine"},
            ):
                with pytest.raises(JetStreamError):
                    await jetstream.publish(f"{name}.a", **wrong)
            assert (await jetstream.stream_info(name)).state.last_seq == 4

    finish(main())


def test_consumers_are_listed_updated_paused_and_deleted(serve: Serve) -> None:
    async def main() -> None:
        async with stream(serve, 2) as (jetstream, name):
            await jetstream.create_consumer(name, ConsumerConfig(durable_name="D", description="first"))
            await jetstream.create_consumer(name, ConsumerConfig(durable_name="E"))
            assert sorted(await jetstream.consumer_names(name)) == ["D", "E"]
            assert {info.name for info in await jetstream.consumers(name)} == {"D", "E"}
            changed = await jetstream.update_consumer(name, ConsumerConfig(durable_name="D", description="second"))
            assert changed.config.description == "second"
            assert await jetstream.pause_consumer(name, "D", "2999-01-01T00:00:00Z")
            assert (await jetstream.consumer_info(name, "D")).paused
            assert await jetstream.pull_consumer(name, "D").fetch(1, timeout=0.2) == []
            assert not await jetstream.pause_consumer(name, "D", "")
            assert len(await jetstream.pull_consumer(name, "D").fetch(1)) == 1
            assert await jetstream.delete_consumer(name, "D")
            assert not await jetstream.delete_consumer(name, "D")

    finish(main())


def test_every_kind_of_acknowledgement(serve: Serve) -> None:
    async def main() -> None:
        async with stream(serve, 4) as (jetstream, name):
            await jetstream.create_consumer(name, ConsumerConfig(durable_name="D", ack_wait=30, max_deliver=5))
            consumer = jetstream.pull_consumer(name, "D")
            one, two, three, four = await consumer.fetch(4)
            await one.ack(confirm=5)
            await two.nak()
            await three.term("unreadable")
            await four.in_progress()
            (again,) = await consumer.fetch(1, timeout=5)
            assert (again.data, again.metadata.delivered) == (b"1", 2)
            await again.nak(delay=0.05)
            (once_more,) = await consumer.fetch(1, timeout=5)
            assert once_more.metadata.delivered == 3
            await once_more.ack(confirm=5)
            await four.ack(confirm=5)
            assert (await jetstream.consumer_info(name, "D")).num_ack_pending == 0

    finish(main())


def test_consuming_goes_on_from_request_to_request(serve: Serve) -> None:
    async def main() -> None:
        async with stream(serve, 50) as (jetstream, name):
            await jetstream.create_consumer(name, ConsumerConfig(durable_name="D"))
            received: list[bytes] = []
            async with jetstream.pull_consumer(name, "D").consume(batch=7) as messages:
                async for message in messages:
                    received.append(message.data)
                    await message.ack()
                    if len(received) == 50:
                        await jetstream.publish(f"{name}.late", b"late")
                    if message.data == b"late":
                        messages.stop()
            assert received == [*(b"%d" % number for number in range(50)), b"late"]

    finish(main(), 30)


def test_consuming_ends_when_the_consumer_is_deleted_and_asks_again_after_it_expired(serve: Serve) -> None:
    async def main() -> None:
        async with stream(serve) as (jetstream, name):
            await jetstream.create_consumer(name, ConsumerConfig(durable_name="D"))
            consumer = jetstream.pull_consumer(name, "D")
            with pytest.raises(LocalProtocolError):
                consumer.consume(0)
            async with consumer.consume(expires=1.0, heartbeat=0.5) as messages:
                reading = asyncio.ensure_future(anext(aiter(messages)))
                await asyncio.sleep(1.2)  # the first request is over by now
                await jetstream.publish(f"{name}.a", b"1")
                assert (await reading).data == b"1"
                reading = asyncio.ensure_future(anext(aiter(messages)))
                await asyncio.sleep(0)
                await jetstream.delete_consumer(name, "D")
                with pytest.raises(ConsumerGone):
                    await reading

    finish(main(), 30)


def test_an_ordered_consumer_gives_each_message_once_through_lost_connections(serve: Serve) -> None:
    async def main() -> None:
        async with stream(serve, 40) as (jetstream, name), UnrulyProxy(_url_of(jetstream)) as proxy:
            client = await headwater.connect(
                proxy.url, error_callback=lambda _: None, reconnect_wait=0.0, reconnect_jitter=0.0
            )
            ordered = client.jetstream().ordered_consumer(name, ConsumerConfig(filter_subject=f"{name}.>"))
            received = []
            async for message in ordered:
                received.append(int(message.data))
                if len(received) in (5, 17):
                    client.jetstream().forget_consumer(name, message.metadata.consumer)
                    await client.flush()
                if len(received) == 30:
                    await client.reconnect()
                if len(received) == 40:
                    break
            assert received == list(range(40))
            await client.close()

    finish(main(), 60)


def _url_of(jetstream: JetStream) -> str:
    return jetstream.client.server


def test_an_ordered_consumer_does_not_skip_the_beginning_of_a_stream_that_was_made_anew(serve: Serve) -> None:
    """It waited for the sequence after the last one, which the new stream had much later."""
    name = f"S{secrets.token_hex(4)}"

    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            jetstream = client.jetstream()
            await jetstream.create_stream(StreamConfig(name=name, subjects=[name], storage="memory"))
            for _ in range(3):
                await jetstream.publish(name, b"old")
            seen = 0
            with pytest.raises(JetStreamError, match="ends at 1, and 3 was read: it was deleted and made anew"):
                async for _ in jetstream.ordered_consumer(name):
                    seen += 1
                    if seen == 3:
                        await jetstream.delete_stream(name)
                        await jetstream.create_stream(StreamConfig(name=name, subjects=[name], storage="memory"))
                        await jetstream.publish(name, b"new")
            assert seen == 3
            await jetstream.delete_stream(name)

    finish(main(), 30)


def test_an_ordered_consumer_may_end_with_what_there_is(serve: Serve) -> None:
    async def main() -> None:
        async with stream(serve, 9) as (jetstream, name):
            config = ConsumerConfig(filter_subject=f"{name}.1")
            assert [message.data async for message in jetstream.ordered_consumer(name, config, stop_at_end=True)] == [
                b"1",
                b"3",
                b"5",
                b"7",
            ]
            nothing = ConsumerConfig(filter_subject=f"{name}.none")
            assert [message async for message in jetstream.ordered_consumer(name, nothing, stop_at_end=True)] == []

    finish(main(), 30)


def test_a_push_consumer_sends_heartbeats_and_minds_flow_control(serve: Serve) -> None:
    async def main() -> None:
        async with stream(serve, 100) as (jetstream, name):
            config = ConsumerConfig(flow_control=True, idle_heartbeat=1, ack_policy="explicit")
            received = []
            async with jetstream.push_consumer(name, config) as messages:
                async for message in messages:
                    received.append(message.data)
                    await message.ack()
                    if len(received) == 100:
                        break
            assert received == [b"%d" % number for number in range(100)]

    finish(main(), 30)
