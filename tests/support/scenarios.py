"""Plays a scenario with a client of another project against the server at a URL, in bounded time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import nats
from nats.aio.client import Client

SCENARIO_TIMEOUT = 60.0  # seconds

# natsrpy blocks where an iterator's last reference goes. When that is on one of its runtime's own threads (Python let go
# of it first: one run in twelve) the whole process aborts. An iterator that stands here outlives its task.
ITERATORS: list[object] = []


def play_nats_py(url: str, scenario: Callable[[Client], Awaitable[None]]) -> None:
    """nats-py, connected."""

    async def run() -> None:
        async with asyncio.timeout(SCENARIO_TIMEOUT):
            client = await nats.connect(url, allow_reconnect=False)
            try:
                await scenario(client)
            finally:
                await client.close()

    asyncio.run(run())


def play_natsrpy(url: str, scenario: Callable[[Any], Awaitable[None]]) -> None:
    """async-nats by way of natsrpy: its JetStream."""
    import natsrpy

    async def run() -> None:
        async with asyncio.timeout(SCENARIO_TIMEOUT):
            client = natsrpy.Nats([url])
            await client.startup()
            try:
                await scenario(await client.jetstream())
            finally:
                await client.shutdown()

    asyncio.run(run())


async def listed(iterator: AsyncIterator[Any]) -> list[Any]:
    """All that an iterator of natsrpy gives, the iterator kept (ITERATORS)."""
    ITERATORS.append(iterator)
    return [one async for one in iterator]
