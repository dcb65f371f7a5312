"""Plays a scenario with a client of another project against the server at a URL, in bounded time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import nats
from nats.aio.client import Client

SCENARIO_TIMEOUT = 60.0  # seconds


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
