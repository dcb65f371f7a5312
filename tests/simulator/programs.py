"""The client programs of the simulated cluster, which use the real client and record what they observe in the ledger.

They continue through every failure, as an application would: an error means an answer that did not arrive, and the
operation is repeated under the same message id, or on the newest revision.
"""

import asyncio
import random
import time
from contextlib import suppress
from datetime import UTC, datetime

from simulator.ledger import Ledger

from headwater.client.client import Client, connect
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig, StreamSource
from headwater.client.key_value import BucketConfig, KeyNotFound, KeyValue
from headwater.client.schedules import Schedule
from headwater.errors import HeadwaterError, JetStreamError
from headwater.model.message import Message

STREAM = "EVENTS"
CONSUMER = "work"
BUCKET = "kv"
COPY, BATCHES, SUMS, LATER = "COPY", "BATCHES", "SUMS", "LATER"
FAILURES = (HeadwaterError, TimeoutError, OSError)
HOUR = 3_600
NEWER = (
    StreamConfig(name=COPY, mirror=StreamSource(name=STREAM)),
    StreamConfig(name=BATCHES, subjects=["batches.>"], allow_atomic=True),
    StreamConfig(name=SUMS, subjects=["sums.>"], allow_msg_counter=True, allow_direct=True, duplicate_window=HOUR),
    StreamConfig(name=LATER, subjects=["later.>"], allow_msg_schedules=True, duplicate_window=HOUR),
)


async def pause(seconds: float) -> None:
    """Sleep for about `seconds`."""
    await asyncio.sleep(random.expovariate(1 / seconds))


def now() -> float:
    return asyncio.get_running_loop().time()


async def connected(urls: list[str]) -> Client:
    """A client connected to one of the URLs; some servers may not be up yet."""
    while True:
        try:
            return await connect(urls, ping_interval=4.0, reconnect_wait=1.0, connect_timeout=3.0)
        except FAILURES:
            await asyncio.sleep(0.5)


async def set_up(urls: list[str]) -> None:
    """Create the stream, the consumer and the bucket."""
    client = await connected(urls)
    jetstream = client.jetstream(timeout=3.0)
    while True:
        try:
            await jetstream.create_stream(
                StreamConfig(name=STREAM, subjects=["events.>"], duplicate_window=HOUR, allow_direct=True)
            )
            consumer = ConsumerConfig(durable_name=CONSUMER, ack_wait=4, max_ack_pending=200)
            await jetstream.create_consumer(STREAM, consumer)
            await jetstream.create_key_value(BucketConfig(bucket=BUCKET, history=5))
            for config in NEWER:
                await jetstream.create_stream(config)
            break
        except FAILURES:
            await asyncio.sleep(0.2)
    await client.close()


async def publish_in_order(ledger: Ledger, urls: list[str], name: str) -> None:
    """Publish one message at a time, each until it is acknowledged."""
    client = await connected(urls)
    jetstream, number = client.jetstream(timeout=2.0), 0
    while True:
        payload = f"{name}:{number}".encode()
        try:
            ack = await jetstream.publish(f"events.{name}", payload, msg_id=f"{name}-{number}")
        except FAILURES:
            await asyncio.sleep(0.05)
            continue
        ledger.ack_came(STREAM, ack.seq, payload)
        number += 1
        await pause(0.05)


async def publish_many(ledger: Ledger, urls: list[str], name: str, window: int) -> None:
    """Publish up to `window` at a time; failures are repeated under the same id, before the next ones."""
    client = await connected(urls)
    jetstream, number = client.jetstream(timeout=2.0), 0

    async def one(number: int) -> None:
        payload = f"{name}.{number}:0".encode()
        while True:
            try:
                ack = await jetstream.publish(f"events.{name}", payload, msg_id=f"{name}-{number}")
            except FAILURES:
                await asyncio.sleep(0.05)
                continue
            ledger.ack_came(STREAM, ack.seq, payload)
            return

    while True:
        async with asyncio.TaskGroup() as group:
            for at in range(window):
                group.create_task(one(number + at))
        number += window
        await pause(0.3)


async def publish_batches(ledger: Ledger, urls: list[str], name: str) -> None:
    """Atomic batches; one that was not answered may be there or not, and is not tried again."""
    client = await connected(urls)
    jetstream, number = client.jetstream(timeout=2.0), 0
    while True:
        await pause(0.4)
        number, size = number + 1, random.randint(1, 5)
        with suppress(*FAILURES):
            async with jetstream.atomic_batch() as batch:
                for part in range(size):
                    await batch.publish(f"batches.{name}", f"{name}.{number}/{size}:{part}".encode())
            ledger.batch_came(f"{name}.{number}/{size}")


async def count_up(ledger: Ledger, urls: list[str], name: str) -> None:
    """Nobody else adds to this sum."""
    client = await connected(urls)
    sums, number = client.jetstream(timeout=2.0).counters(SUMS), 1
    while True:
        try:
            total = await sums.add(f"sums.{name}", 1, msg_id=f"{name}-{number}")
        except FAILURES:
            await asyncio.sleep(0.05)
            continue
        ledger.sum_came(name, total, number)
        number += 1
        await pause(0.4)


async def plan(ledger: Ledger, urls: list[str], name: str) -> None:
    """Messages for a little later."""
    client = await connected(urls)
    jetstream, number = client.jetstream(timeout=2.0), 0
    while True:
        number += 1
        moment = datetime.fromtimestamp(time.time() + random.uniform(0.3, 4.0), UTC)
        schedule, where = Schedule(target=f"later.due.{name}.{number}", at=moment), f"later.plan.{name}.{number}"
        for _ in range(1000):
            try:
                await jetstream.publish(where, f"{name}.{number}:0".encode(), schedule=schedule, msg_id=where)
            except FAILURES:
                await asyncio.sleep(0.05)
                continue
            ledger.planned.add(f"{name}.{number}:0".encode())
            break
        await pause(0.8)


async def work(ledger: Ledger, urls: list[str]) -> None:
    """Fetch messages, and have every acknowledgement confirmed."""
    client = await connected(urls)
    consumer = client.jetstream(timeout=2.0).pull_consumer(STREAM, CONSUMER)
    while True:
        await pause(0.2)
        requested_at = now()
        try:
            messages = await consumer.fetch(20, timeout=1.0)
        except FAILURES:
            await asyncio.sleep(0.2)
            continue
        for message in messages:
            sequence = message.metadata.stream_seq
            ledger.fetched(sequence, requested_at)
            ledger.saw(STREAM, sequence, message.data)
            with suppress(*FAILURES):
                await message.ack(confirm=1.0)
                ledger.confirm(sequence, now())


async def serve_queue(ledger: Ledger, urls: list[str], member: str) -> None:
    """A member of the queue group."""
    client = await connected(urls)
    async for message in await client.subscribe("queue.>", queue="g"):
        ledger.member_got(member, message.data)


async def listen(ledger: Ledger, urls: list[str], name: str) -> None:
    """Run a plain subscriber."""
    client = await connected(urls)

    def got(message: Message) -> None:
        ledger.subscriber_got(name, client.reconnects, message.data)

    client.deliver_directly("core.>", got)
    await client.wait_closed()


async def talk(urls: list[str], name: str) -> None:
    """Publish to the queue group and to the subscribers, without acknowledgements."""
    client = await connected(urls)
    number = 0
    while True:
        with suppress(*FAILURES):
            await client.publish("queue.a", f"{name}:{number}".encode())
            await client.publish("core.a", f"{name}:{number}".encode())
        number += 1
        await pause(0.05)


async def write_keys(ledger: Ledger, urls: list[str], name: str, keys: int) -> None:
    """Read a key, then replace the value that was read."""
    client = await connected(urls)
    bucket, number = await opened(client.jetstream(timeout=2.0)), 0
    while True:
        key = f"k{number % keys}"
        number += 1
        with suppress(*FAILURES):
            promised = ledger.revisions.get(key, 0)
            try:
                last = (await bucket.get(key)).revision
            except KeyNotFound:
                last = 0
            ledger.key_read(key, last, promised)
            try:
                revision = await bucket.update(key, f"{name}:{number}", last)
            except JetStreamError:  # another writer was faster
                continue
            ledger.key_written(key, last, revision)
        await pause(0.1)


async def watch_keys(ledger: Ledger, urls: list[str], name: str) -> None:
    """Watch all keys, which must come in the order of their revisions whatever happens to connections and servers."""
    client = await connected(urls)
    bucket = await opened(client.jetstream(timeout=2.0))
    while True:
        with suppress(*FAILURES):
            seen = f"{name} {now()}"
            async for entry in bucket.watch():
                ledger.watcher_saw(seen, entry.revision)
        await asyncio.sleep(0.1)


async def opened(jetstream: JetStream) -> KeyValue:
    while True:
        try:
            return await jetstream.key_value(BUCKET)
        except FAILURES:
            await asyncio.sleep(0.2)


async def read_all(urls: list[str], stream: str) -> dict[int, bytes]:
    """The contents of the stream, as read by a client."""
    client = await connected(urls)
    while True:
        contents: dict[int, bytes] = {}
        try:
            async for message in client.jetstream(timeout=2.0).ordered_consumer(stream, stop_at_end=True):
                contents[message.metadata.stream_seq] = message.data
        except FAILURES:
            await asyncio.sleep(0.2)
            continue
        await client.close()
        return contents
