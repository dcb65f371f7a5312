"""Whatever waits takes seconds or a timedelta, and means the same by both."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from support.scripted_server import finish

import headwater
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.client.key_value import BucketConfig
from headwater.client_connection.options import ClientOptions
from headwater.client_connection.timeouts import seconds_of
from headwater.errors import ConfigError, RequestTimeout

LONG, SHORT = timedelta(seconds=30), timedelta(milliseconds=1)


def test_a_timedelta_is_its_seconds() -> None:
    assert [seconds_of(each) for each in (2, 0.5, timedelta(minutes=1), SHORT)] == [2, 0.5, 60.0, 0.001]


def test_options_of_a_connection_take_both() -> None:
    options = ClientOptions(connect_timeout=LONG, ping_interval=timedelta(minutes=2), reconnect_wait=SHORT)  # type: ignore[arg-type]
    assert (options.connect_timeout, options.ping_interval, options.reconnect_wait) == (30.0, 120.0, 0.001)
    with pytest.raises(ConfigError, match="connect_timeout is more than 0"):
        ClientOptions(connect_timeout=timedelta(0))  # type: ignore[arg-type]


def test_every_wait_of_a_client_takes_a_timedelta(tmp_path: Path) -> None:
    async def main() -> None:
        async with headwater.Broker(jetstream=True, store_dir=tmp_path) as broker:
            client = await headwater.connect(broker.url, connect_timeout=LONG, reconnect_wait=SHORT)
            async with client:
                await client.subscribe("echo", callback=lambda message: message.respond(message.data))
                updates = await client.subscribe("news")
                assert (await client.request("echo", b"1", timeout=LONG)).data == b"1"
                answers = client.request_many("echo", b"2", LONG, stall=LONG, count=1)
                assert [message.data async for message in answers] == [b"2"]
                with pytest.raises(RequestTimeout):
                    await updates.next(SHORT)
                await client.flush(LONG)
                jetstream = client.jetstream(timeout=LONG)
                await jetstream.create_stream(StreamConfig(name="S", subjects=["s"]))
                await jetstream.create_consumer("S", ConsumerConfig(durable_name="C"))
                await jetstream.publish("s", b"3")
                consumer = jetstream.pull_consumer("S", "C")
                for message in await consumer.fetch(1, timeout=LONG):
                    await message.ack(confirm=LONG)
                await jetstream.publish("s", b"4")
                async with consumer.consume(expires=LONG, heartbeat=timedelta(seconds=5)) as messages:
                    async for message in messages:
                        await message.ack_sync(timeout=LONG)
                        break
                await updates.drain(LONG)
                await client.drain(LONG)

    finish(main(), 60)


def test_a_watch_that_is_left_has_ended(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            headwater.Broker(jetstream=True, store_dir=tmp_path) as broker,
            await headwater.connect(broker.url) as client,
        ):
            bucket = await client.jetstream().create_key_value(BucketConfig(bucket="B"))
            await bucket.put("k", b"1")
            before = set(client._connection.queues)
            async with bucket.watch() as entries:
                async for entry in entries:
                    assert entry.value == b"1"
                    assert set(client._connection.queues) > before
                    break
            assert set(client._connection.queues) == before
            async with asyncio.timeout(30), bucket.watch() as never_iterated:
                assert not never_iterated.caught_up

    finish(main(), 60)
