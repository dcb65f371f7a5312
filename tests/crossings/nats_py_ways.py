"""How messages come out through nats-py, the client that most Python programs have: one function for each of its rows.

Its headers are a map: of a name that comes twice the last value stays. `WayOut.is_map` says so for the comparison.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from crossings.errand import READY, Errand, Received
from crossings.messages import Got
from crossings.world import PATIENCE
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NothingCame
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.errors import NoKeysError, NotFoundError
from nats.js.kv import KeyValue
from support.nats_py_flush import flushed

T = TypeVar("T")

BATCH = 7
TRIES = 20  # to see keys that are there
SENT = ("Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp")  # in the answer to a direct get


async def context(errand: Errand) -> JetStreamContext:
    world = errand.world
    client = await world.nats_py(world.reader)
    return client.jetstream(prefix=world.prefix, timeout=PATIENCE)


async def bucket(errand: Errand) -> KeyValue:
    return await (await context(errand)).key_value("CROSS")


def pairs_of(headers: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple((headers or {}).items())


def core_got(message: Msg) -> Got:
    return Got(message.subject, message.data, pairs_of(message.headers), message.reply)


def stream_got(message: Msg, stream: str) -> Got:
    where = message.metadata
    assert where.stream == stream, where
    return Got(message.subject, message.data, pairs_of(message.headers), message.reply, where.sequence.stream)


async def core(errand: Errand) -> Received:
    client = await errand.world.nats_py(errand.world.reader)
    subscription = await client.subscribe(errand.subjects)
    await flushed(client)
    yield READY
    async for message in subscription.messages:
        yield core_got(message)


async def queue(errand: Errand) -> Received:
    """Two members; together they get everything once."""
    client = await errand.world.nats_py(errand.world.reader)
    found: asyncio.Queue[Msg] = asyncio.Queue()
    for _ in range(2):
        await client.subscribe(errand.subjects, queue="crossing-py", cb=found.put)
    await flushed(client)
    yield READY
    while True:
        yield core_got(await found.get())


async def fetch(errand: Errand) -> Received:
    stream = await context(errand)
    config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, inactive_threshold=60)
    made = await stream.add_consumer(errand.stream, config)
    subscription = await stream.pull_subscribe_bind(made.name, errand.stream)
    left = errand.last
    while left:
        for message in await subscription.fetch(min(left, BATCH), timeout=PATIENCE):
            yield stream_got(message, errand.stream)
            await message.ack_sync(timeout=PATIENCE)
            left -= 1
    try:
        assert await subscription.fetch(1, timeout=0.2) == [], "more than the stream holds"
    except NothingCame:
        pass
    await subscription.unsubscribe()


async def push(errand: Errand) -> Received:
    async for got in _pushed(errand, "py-push"):
        yield got


async def queue_push(errand: Errand) -> Received:
    """Two members of the consumer's group; each acknowledges what it gets, as `subscribe` with a callback does."""
    world = errand.world
    name = f"py-group-{errand.stream}"
    found: asyncio.Queue[Msg] = asyncio.Queue()
    stream = await context(errand)
    config = ConsumerConfig(
        durable_name=name,
        deliver_group="crossing-py",
        ack_policy=AckPolicy.EXPLICIT,
        deliver_subject=f"{world.deliver}.py-group.{errand.stream}" if world.deliver else f"py-group.{errand.stream}",
    )
    made = await stream.add_consumer(errand.stream, config)
    for _ in range(2):
        await stream.subscribe_bind(errand.stream, made.config, name, cb=found.put)
    await flushed(await world.nats_py(world.reader))
    yield READY
    while True:
        yield stream_got(await found.get(), errand.stream)


async def ordered(errand: Errand) -> Received:
    left = errand.last
    if not left:
        return
    async for got in _pushed(errand, "py-ordered", ordered_consumer=True):
        if isinstance(got, Got):
            yield got
            if got.sequence == errand.last:
                return


async def _pushed(errand: Errand, name: str, **options: Any) -> Received:
    world = errand.world
    stream = await context(errand)
    config = ConsumerConfig(ack_policy=AckPolicy.NONE)
    if world.deliver:
        config.deliver_subject = f"{world.deliver}.{name}.{errand.stream}"
    subscription = await stream.subscribe("", stream=errand.stream, config=config, **options)
    await flushed(await world.nats_py(world.reader))
    yield READY
    async for message in subscription.messages:
        yield stream_got(message, errand.stream)


async def kv_watch(errand: Errand) -> Received:
    watcher = await (await bucket(errand)).watchall(include_history=True)
    yield READY
    async for entry in watcher:
        if entry is not None:  # None: what was there has been delivered
            yield _entry_got(entry)


async def _watched(ask: Callable[[], Awaitable[list[T]]]) -> list[T]:
    """nats-py takes "nothing pending, nothing come" for an empty bucket or key: wrong when the answer to its question about
    the consumer overtakes what the consumer sent, as on two routes from one server or on a busy machine. It is repeated."""
    for _ in range(TRIES):
        try:
            return await ask()
        except NoKeysError:
            await asyncio.sleep(0)
    return []


async def kv_keys(errand: Errand) -> Received:
    for key in await _watched((await bucket(errand)).keys):
        yield Got(f"$KV.CROSS.{key}", None)


async def kv_history(errand: Errand) -> Received:
    found = await bucket(errand)
    entries = [entry for key in await _watched(found.keys) for entry in await _watched(partial(found.history, key))]
    for entry in sorted(entries, key=lambda one: one.revision or 0):
        yield _entry_got(entry)


def _entry_got(entry: KeyValue.Entry) -> Got:
    return Got(f"$KV.CROSS.{entry.key}", entry.value or b"", sequence=entry.revision)


async def object_get(errand: Errand) -> Received:
    store = await (await context(errand)).object_store("CROSS")
    for info in await store.list():
        found = await store.get(info.name)
        yield Got(None, found.data or b"")


async def direct_get(errand: Errand) -> Received:
    """nats-py leaves what the server says of a message among its headers."""
    async for got in _each(errand, direct=True):
        yield replace(got, headers=tuple(pair for pair in got.headers or () if pair[0] not in SENT))


async def msg_get(errand: Errand) -> Received:
    async for got in _each(errand, direct=False):
        yield got


async def _each(errand: Errand, *, direct: bool) -> AsyncIterator[Got]:
    stream = await context(errand)
    for sequence in range(1, errand.last + 1):
        try:
            found = await stream.get_msg(errand.stream, sequence, direct=direct)
        except NotFoundError:
            continue  # a roll-up or a purge took it
        yield Got(found.subject, found.data or b"", pairs_of(found.headers), sequence=found.seq)


FUNCTIONS: dict[str, Callable[[Errand], Received]] = {
    "py-core": core,
    "py-queue": queue,
    "py-fetch": fetch,
    "py-push": push,
    "py-queue-push": queue_push,
    "py-ordered": ordered,
    "py-kv-watch": kv_watch,
    "py-kv-keys": kv_keys,
    "py-kv-history": kv_history,
    "py-object-get": object_get,
    "py-direct-get": direct_get,
    "py-msg-get": msg_get,
}
