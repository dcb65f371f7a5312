"""What the permissions of a user do not allow reaches the task that tried it, from the real server and from ours."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.leafs import OURS, REAL, LeafServer, serve

import headwater
from headwater.client.client import Client
from headwater.client.events import Event, Refused
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.errors import AuthorizationError

pytestmark = pytest.mark.interop
CONFIG = """
accounts { A { jetstream: enabled, users: [
  { user: all, password: p },
  { user: some, password: p, permissions: {
      publish: { allow: ["open.>", "$JS.API.STREAM.>", "$JS.API.CONSUMER.CREATE.>"] }
      subscribe: { allow: ["open.>", "_INBOX.>"] }
  } } ] } }
"""
STORED = 'jetstream { store_dir: "%s" }'
BOUND = 20.0  # seconds; a refusal comes within a millisecond, and a missing one must fail the test


@pytest.fixture(params=[REAL, OURS])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LeafServer]:
    with serve(request.param, tmp_path, CONFIG + STORED % (tmp_path / "js")) as running:
        yield running


@asynccontextmanager
async def restricted(server: LeafServer, events: list[Event] | None = None) -> AsyncIterator[Client]:
    callback = events.append if events is not None else None
    connecting = headwater.connect(
        server.url, user="some", password="p", error_callback=lambda _: None, event_callback=callback
    )
    async with await connecting as client:
        yield client


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(BOUND):
            await test()

    asyncio.run(bounded())


def test_a_publish_that_is_refused_fails_the_next_flush_and_only_that_one(server: LeafServer) -> None:
    events: list[Event] = []

    async def test() -> None:
        async with restricted(server, events) as client:
            await client.publish("shut.x", b"1")
            with pytest.raises(AuthorizationError, match=r"""Publish to "shut\.x" \(connected as the user 'some'\)"""):
                await client.flush()
            await client.publish("open.x", b"2")
            await client.flush()

    run(test)
    [refused] = [event for event in events if isinstance(event, Refused)]
    assert (refused.subject, refused.queue, refused.publishing) == ("shut.x", "", True)


def test_a_drain_says_what_was_refused_and_closes(server: LeafServer) -> None:
    async def test() -> None:
        async with restricted(server) as client:
            await client.publish("shut.x", b"1")
            with pytest.raises(AuthorizationError):
                await client.drain()
            assert client.is_closed

    run(test)


@pytest.mark.parametrize("queue", ["", "workers"])
def test_an_iteration_over_a_subscription_that_is_refused_raises(server: LeafServer, queue: str) -> None:
    async def test() -> None:
        async with restricted(server) as client:
            allowed = await client.subscribe("open.x", queue=queue)
            refused = await client.subscribe("shut.x", queue=queue)
            with pytest.raises(AuthorizationError, match=r'Subscription to "shut\.x"'):
                async for _ in refused:
                    pass
            await client.publish("open.x", b"1")
            await client.flush()
            assert (await allowed.next()).data == b"1"

    run(test)


def test_a_request_that_is_refused_fails_at_once_and_leaves_nothing_for_a_flush(server: LeafServer) -> None:
    async def test() -> None:
        async with restricted(server) as client:
            with pytest.raises(AuthorizationError):
                await client.request("shut.service", b"", timeout=10 * BOUND)
            await client.flush()

    run(test)


def test_a_publish_into_a_stream_that_is_refused_fails_at_once(server: LeafServer) -> None:
    async def test() -> None:
        async with restricted(server) as client:
            stream = client.jetstream(timeout=10 * BOUND)
            with pytest.raises(AuthorizationError):
                await stream.publish("shut.x", b"1")
            with pytest.raises(AuthorizationError):
                async with stream.publisher() as publisher:
                    await publisher.publish("shut.x", b"1")
            await client.flush()

    run(test)


def test_a_consumer_that_may_not_be_asked_raises_in_fetch_and_consume(server: LeafServer) -> None:
    async def test() -> None:
        async with restricted(server) as client:
            stream = client.jetstream()
            await stream.create_stream(StreamConfig(name="S", subjects=["open.>"]))
            await stream.create_consumer("S", ConsumerConfig(durable_name="c", ack_policy="explicit"))
            consumer = stream.pull_consumer("S", "c")
            with pytest.raises(AuthorizationError):
                await consumer.fetch(1, timeout=10 * BOUND)
            with pytest.raises(AuthorizationError):
                async with consumer.consume() as messages:
                    async for _ in messages:
                        pass
            await client.flush()

    run(test)
