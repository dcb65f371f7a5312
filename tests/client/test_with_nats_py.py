"""Our client and nats-py talk to each other, in both directions, over the real nats-server and over our broker."""

import asyncio
import secrets

import nats
import nats.aio.msg
from nats.aio.msg import Msg
from support.both_servers import Serve
from support.nats_py_flush import flushed
from support.scripted_server import finish

import headwater
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig


def test_messages_with_headers_both_ways(serve: Serve) -> None:
    async def main() -> None:
        subject = f"test.{secrets.token_hex(4)}"
        async with serve() as url, await headwater.connect(url) as ours:
            theirs = await nats.connect(url, allow_reconnect=False)
            from_them, from_us = await ours.subscribe(f"{subject}.them"), await theirs.subscribe(f"{subject}.us")
            await ours.flush()
            await flushed(theirs)
            await theirs.publish(f"{subject}.them", b"1", headers={"K": "v"}, reply="r")
            await ours.publish(f"{subject}.us", b"2", headers={"K": "v"}, reply="r")
            received = await from_them.next(5)
            assert (received.data, received.reply, dict(received.headers)) == (b"1", "r", {"K": "v"})
            theirs_received = await from_us.next_msg(5)
            assert (theirs_received.data, theirs_received.reply, theirs_received.headers) == (b"2", "r", {"K": "v"})
            await theirs.close()

    finish(main(), 30)


def test_requests_both_ways_and_a_shared_queue_group(serve: Serve) -> None:
    async def main() -> None:
        subject = f"test.{secrets.token_hex(4)}"
        async with serve() as url, await headwater.connect(url) as ours:
            theirs = await nats.connect(url, allow_reconnect=False)

            async def answer(message: nats.aio.msg.Msg) -> None:
                await message.respond(b"theirs")

            await theirs.subscribe(subject, queue="q", cb=answer)
            await flushed(theirs)
            assert (await ours.request(subject, timeout=5)).data == b"theirs"
            await ours.subscribe(subject, queue="q", callback=lambda message: message.respond(b"ours"))
            await ours.flush()
            answers = {(await theirs.request(subject, timeout=5)).data for _ in range(60)}
            assert answers == {b"ours", b"theirs"}
            await theirs.close()

    finish(main(), 30)


def test_what_one_stores_the_other_fetches(serve: Serve) -> None:
    async def main() -> None:
        name = f"S{secrets.token_hex(4)}"
        async with serve() as url, await headwater.connect(url) as ours:
            theirs = await nats.connect(url, allow_reconnect=False)
            jetstream = ours.jetstream()
            await jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
            await theirs.jetstream().publish(f"{name}.a", b"theirs", headers={"Nats-Msg-Id": "1"})
            assert (await jetstream.publish(f"{name}.a", b"again", msg_id="1")).duplicate
            await jetstream.publish(f"{name}.a", b"ours", headers={"K": "v"})
            consumer = await jetstream.create_consumer(name, ConsumerConfig(durable_name="D"))
            fetched = await jetstream.pull_consumer(name, consumer.name).fetch(2)
            assert [message.data for message in fetched] == [b"theirs", b"ours"]
            for message in fetched:
                await message.nak()
            pull = await theirs.jetstream().pull_subscribe_bind("D", stream=name)
            again: list[Msg] = []
            while len(again) < 2:  # nats-py may give what is there already
                again += await pull.fetch(2 - len(again), timeout=5)
            assert [message.data for message in again] == [b"theirs", b"ours"]
            await asyncio.gather(*(message.ack() for message in again))
            await theirs.close()

    finish(main(), 30)
