"""How messages come out: one function for each row of `table.WAYS_OUT`, by its key.

Each is an asynchronous generator of what it got from one stream. Those of `live` rows yield READY once they would receive a
message, and then go on for ever; the others read what is there, and end.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable

from crossings import iggy_ways, nats_py_ways, spark_ways
from crossings.errand import READY, Errand, Received
from crossings.messages import Got
from crossings.table import TOPIC
from crossings.world import PATIENCE, SUBJECTS, World

from headwater.client.jetstream_types import ConsumerConfig
from headwater.client.stream_message import StreamMessage
from headwater.errors import JetStreamError
from headwater.model.headers import Headers
from headwater.model.message import Message

HEARTBEAT = 0.5  # seconds
NONE_COMES = 15.0  # seconds of a heartbeat that is not waited for


def core_got(message: Message) -> Got:
    return Got(message.subject, message.data, pairs_of(message.headers), message.reply)


def stream_got(message: StreamMessage, stream: str) -> Got:
    where = message.metadata
    assert where.stream == stream, where
    return Got(message.subject, message.data, pairs_of(message.headers), message.reply, where.stream_seq)


def pairs_of(headers: Headers) -> tuple[tuple[str, str], ...]:
    return tuple(headers.multi_items())


async def core(errand: Errand) -> Received:
    client = await errand.world.client(errand.world.reader)
    subscription = await client.subscribe(errand.subjects)
    yield READY
    async for message in subscription:
        yield core_got(message)


async def queue(errand: Errand) -> Received:
    """Two members; together they get everything once."""
    client = await errand.world.client(errand.world.reader)
    members = [await client.subscribe(errand.subjects, queue="crossing") for _ in range(2)]
    yield READY
    async for message in merged(*members):
        yield core_got(message)


async def fetch(errand: Errand) -> Received:
    context = await errand.world.jetstream(errand.world.reader)
    info = await context.create_consumer(errand.stream, ConsumerConfig(ack_policy="explicit", inactive_threshold=60))
    consumer = context.pull_consumer(errand.stream, info.name)
    left = errand.last
    while left:
        found = await consumer.fetch(min(left, 7), timeout=PATIENCE)
        assert found, f"nothing came for {PATIENCE:g} s, {left} are missing"
        for message in found:
            yield stream_got(message, errand.stream)
            await message.ack(confirm=PATIENCE)
        left -= len(found)
    assert await consumer.fetch(1, no_wait=True) == [], "more than the stream holds"


async def consume(errand: Errand) -> Received:
    heartbeat = 1.0 if errand.world.place.carries_headers else NONE_COMES
    context = await errand.world.jetstream(errand.world.reader)
    info = await context.create_consumer(errand.stream, ConsumerConfig(ack_policy="none", inactive_threshold=60))
    async with context.pull_consumer(errand.stream, info.name).consume(
        10, expires=2 * heartbeat, heartbeat=heartbeat
    ) as messages:
        yield READY
        async for message in messages:
            yield stream_got(message, errand.stream)


async def push(errand: Errand) -> Received:
    context = await errand.world.jetstream(errand.world.reader)
    deliver = f"{errand.world.deliver}.push.{errand.stream}" if errand.world.deliver else ""
    config = ConsumerConfig(ack_policy="none", deliver_subject=deliver)
    if errand.world.place.carries_headers:
        config.idle_heartbeat, config.flow_control = HEARTBEAT, True
    async with context.push_consumer(errand.stream, config) as messages:
        yield READY
        async for message in messages:
            yield stream_got(message, errand.stream)


async def queue_push(errand: Errand) -> Received:
    """Two members of the consumer's group, each with an ack for what it gets."""
    client = await errand.world.client(errand.world.reader)
    context = await errand.world.jetstream(errand.world.reader)
    world = errand.world
    deliver = f"{world.deliver}.group.{errand.stream}" if world.deliver else client.new_inbox()
    members = [await client.subscribe(deliver, queue="crossing") for _ in range(2)]
    config = ConsumerConfig(
        durable_name=f"group-{errand.stream}", deliver_subject=deliver, deliver_group="crossing", ack_policy="explicit"
    )
    await context.create_consumer(errand.stream, config)
    yield READY
    async for message in merged(*members):
        found = StreamMessage(client, message)
        yield stream_got(found, errand.stream)
        await found.ack()


async def ordered(errand: Errand) -> Received:
    context = await errand.world.jetstream(errand.world.reader)
    async for message in context.ordered_consumer(errand.stream, stop_at_end=True):
        yield stream_got(message, errand.stream)


async def kv_watch(errand: Errand) -> Received:
    bucket = await (await errand.world.jetstream(errand.world.reader)).key_value("CROSS")
    yield READY
    async for entry in bucket.watch(history=True):
        yield Got(f"$KV.CROSS.{entry.key}", entry.value, sequence=entry.revision)


async def kv_keys(errand: Errand) -> Received:
    bucket = await (await errand.world.jetstream(errand.world.reader)).key_value("CROSS")
    for key in await bucket.keys():
        yield Got(f"$KV.CROSS.{key}", None)


async def kv_history(errand: Errand) -> Received:
    bucket = await (await errand.world.jetstream(errand.world.reader)).key_value("CROSS")
    for entry in await bucket.history():
        yield Got(f"$KV.CROSS.{entry.key}", entry.value, sequence=entry.revision)


async def object_get(errand: Errand) -> Received:
    store = await (await errand.world.jetstream(errand.world.reader)).object_store("CROSS")
    for info in await store.objects():
        yield Got(None, await store.get(info.name))


async def direct_get(errand: Errand) -> Received:
    async for got in _each(errand, direct=True):
        yield got


async def msg_get(errand: Errand) -> Received:
    async for got in _each(errand, direct=False):
        yield got


async def _each(errand: Errand, *, direct: bool) -> AsyncIterator[Got]:
    async for got in stored(errand.world, errand.world.reader, errand.stream, errand.last, direct=direct):
        yield got


async def stored(
    world: World, seat: str, stream: str, last: int, *, first: int = 1, direct: bool = False
) -> AsyncIterator[Got]:
    """Message by message, by sequence."""
    context = await world.jetstream(seat)
    for sequence in range(first, last + 1):
        try:
            found = await context.get_message(stream, sequence, direct=direct)
        except JetStreamError as error:
            if error.code == 404:
                continue  # a roll-up or a purge took it
            raise
        yield Got(found.subject, found.data, pairs_of(found.headers), sequence=found.seq)


async def iggy_poll(errand: Errand) -> Received:
    async for message in iggy_ways.poll(errand.world, *iggy_ways.place_of(errand.stream, TOPIC)):
        yield iggy_ways.got_of(message, SUBJECTS[TOPIC])


async def iggy_group(errand: Errand) -> Received:
    async for message in iggy_ways.group(errand.world, *iggy_ways.place_of(errand.stream, TOPIC)):
        yield READY if message is None else iggy_ways.got_of(message, SUBJECTS[TOPIC])


async def spark_batch(errand: Errand) -> Received:
    for got in await spark_ways.read(errand.world, errand.stream, streaming=False):
        yield got


async def spark_stream(errand: Errand) -> Received:
    for got in await spark_ways.read(errand.world, errand.stream, streaming=True):
        yield got


async def merged(*sources: AsyncIterable[Message]) -> AsyncIterator[Message]:
    """What comes from any of them."""
    found: asyncio.Queue[Message] = asyncio.Queue()

    async def pass_on(source: AsyncIterable[Message]) -> None:
        async for message in source:
            found.put_nowait(message)

    tasks = [asyncio.ensure_future(pass_on(source)) for source in sources]
    try:
        while True:
            yield await found.get()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


FUNCTIONS: dict[str, Callable[[Errand], Received]] = {
    "core": core,
    "queue": queue,
    "fetch": fetch,
    "consume": consume,
    "push": push,
    "queue-push": queue_push,
    "ordered": ordered,
    "kv-watch": kv_watch,
    "kv-keys": kv_keys,
    "kv-history": kv_history,
    "object-get": object_get,
    "direct-get": direct_get,
    "msg-get": msg_get,
    "iggy-poll": iggy_poll,
    "iggy-group": iggy_group,
    "spark-batch": spark_batch,
    "spark-stream": spark_stream,
} | nats_py_ways.FUNCTIONS
