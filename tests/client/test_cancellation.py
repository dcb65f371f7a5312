"""A task that is cancelled at any of its awaits leaves a client that works, and nothing behind in it.

Each program is cancelled at each place where it gives way to the event loop, one after the other. Then the cancellation
has come through, the client answers, no request waits, and no subscription of the program is left.
"""

import asyncio
import secrets
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.scripted_server import finish

import headwater
from headwater.client.client import Client
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.client.key_value import BucketConfig
from headwater.client.object_store import StoreConfig
from headwater.client.service import add_service

Program = Callable[[Client, JetStream], Coroutine[Any, Any, object]]


async def requests(client: Client, jetstream: JetStream) -> None:
    await client.request("echo", b"1", timeout=30)
    async for _ in client.request_many("echo", b"2", 30, count=1):
        pass
    await client.flush(30)


async def subscribes(client: Client, jetstream: JetStream) -> None:
    async with await client.subscribe("news") as subscription:
        await client.publish("news", b"1")
        await subscription.next(30)


async def publishes(client: Client, jetstream: JetStream) -> None:
    await jetstream.publish("s.a", b"1")
    async with jetstream.publisher(window=2) as publisher:
        for _ in range(3):
            await publisher.publish("s.a", b"2")
    async with jetstream.atomic_batch() as batch:
        await batch.publish("s.a", b"3")
        await batch.publish("s.a", b"4")


async def fetches(client: Client, jetstream: JetStream) -> None:
    for message in await jetstream.pull_consumer("S", "C").fetch(2, timeout=30):
        await message.ack(confirm=30)


async def consumes(client: Client, jetstream: JetStream) -> None:
    async with jetstream.pull_consumer("S", "C").consume(batch=2) as messages:
        async for message in messages:
            await message.nak()
            break


async def reads_in_order(client: Client, jetstream: JetStream) -> None:
    async for _ in jetstream.ordered_consumer("S", stop_at_end=True):
        pass


async def is_pushed(client: Client, jetstream: JetStream) -> None:
    async with AsyncExitStack() as stack:
        pushed = await stack.enter_async_context(jetstream.push_consumer("S"))
        async for message in pushed:
            await message.ack()
            break


async def keeps_values(client: Client, jetstream: JetStream) -> None:
    bucket = await jetstream.key_value("B")
    await bucket.put("k", b"1")
    await bucket.get("k")
    await bucket.history("k")
    async for _ in bucket.watch("k"):
        break


async def watches(client: Client, jetstream: JetStream) -> None:
    async with (await jetstream.key_value("B")).watch("k") as entries:
        async for _ in entries:
            break
    store = await jetstream.object_store("O")
    await store.put("w", b"data")
    async with store.watch() as infos:
        async for _ in infos:
            break


async def keeps_objects(client: Client, jetstream: JetStream) -> None:
    store = await jetstream.object_store("O")
    await store.put("o", b"data")
    assert await store.get("o") == b"data"


async def serves(client: Client, jetstream: JetStream) -> None:
    async with await add_service(client, "sums", "1.0.0") as service:
        await service.endpoint("add", lambda request: b"3")
        await client.request("add", b"", timeout=30)


PROGRAMS: list[Program] = [
    requests,
    subscribes,
    publishes,
    fetches,
    consumes,
    reads_in_order,
    is_pushed,
    keeps_values,
    watches,
    keeps_objects,
    serves,
]


async def cancelled_at(program: Coroutine[Any, Any, object], place: int) -> int:
    """Run `program` in this task and cancel the task at the `place`-th await that waits; returns how many there were."""
    return await driven(program, place)


@types.coroutine
def driven(program: Coroutine[Any, Any, object], place: int) -> Generator[Any, Any, int]:
    """The loop of `cancelled_at`: a generator sees each value that is waited for, and no task takes one since 3.14."""
    task = asyncio.current_task()
    assert task is not None
    waits = 0
    value: Any = None
    failure: BaseException | None = None
    while True:
        try:
            waited_for = program.send(value) if failure is None else program.throw(failure)
        except StopIteration:
            return waits
        waits += 1
        if waits == place:
            asyncio.get_running_loop().call_soon(task.cancel)
        failure = None
        try:
            value = yield waited_for
        except BaseException as error:  # noqa: BLE001 - it belongs to the program
            failure = error


@asynccontextmanager
async def world(directory: Path) -> AsyncIterator[tuple[Client, JetStream]]:
    """A client, a responder, and a stream, a bucket and a store with something in them."""
    async with (
        headwater.Broker(jetstream=True, store_dir=directory) as broker,
        await headwater.connect(broker.url) as client,
    ):
        jetstream = client.jetstream(timeout=30)
        await client.subscribe("echo", callback=lambda message: message.respond(message.data))
        await jetstream.create_stream(StreamConfig(name="S", subjects=["s.>"], storage="memory", allow_atomic=True))
        await jetstream.create_consumer("S", ConsumerConfig(durable_name="C", ack_wait=0.1))
        await (await jetstream.create_key_value(BucketConfig(bucket="B", storage="memory"))).put("k", b"0")
        await jetstream.create_object_store(StoreConfig(bucket="O", storage="memory"))
        for _ in range(40):
            await jetstream.publish("s.x", b"0")
        await client.request("echo", b"", timeout=30)
        yield client, jetstream


async def tried(client: Client, jetstream: JetStream, program: Program, place: int) -> bool:
    """Cancel `program` there; returns whether it came to its end before."""
    before = set(client._connection.queues)
    task = asyncio.create_task(cancelled_at(program(client, jetstream), place))
    await asyncio.wait([task], timeout=60)
    assert task.done(), f"{program.__name__} hangs when it is cancelled at its await {place}"
    if not task.cancelled():
        assert task.result() < place, f"{program.__name__} swallows a cancellation at its await {place}"
    await asyncio.sleep(0)  # generators that were left behind are closed by the loop, in tasks of their own
    assert (await client.request("echo", b"alive", timeout=30)).data == b"alive"
    await client.flush(30)
    assert client._requests.outstanding == 0
    assert set(client._connection.queues) == before, f"{program.__name__}, cancelled at {place}, leaves a subscription"
    return not task.cancelled()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_cancelled_at_each_of_its_awaits_leaves_nothing_behind(program: Program, tmp_path: Path) -> None:
    async def main() -> int:
        async with world(tmp_path) as (client, jetstream):
            for place in range(1, 60):
                if await tried(client, jetstream, program, place):
                    return place - 1
        raise AssertionError(f"{program.__name__} never comes to its end")

    assert finish(main(), 120) >= 1


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from(PROGRAMS), st.integers(1, 12)), min_size=1, max_size=8))
def test_cancelled_programs_do_not_disturb_those_after_them(tmp_path: Path, steps: list[tuple[Program, int]]) -> None:
    async def main() -> None:
        async with world(tmp_path / secrets.token_hex(4)) as (client, jetstream):
            for program, place in steps:
                await tried(client, jetstream, program, place)

    finish(main(), 120)
