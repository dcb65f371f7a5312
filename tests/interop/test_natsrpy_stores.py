"""async-nats (Rust), by way of natsrpy: its key-value and object stores on our broker and on the real nats-server."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.headwater_server import HeadwaterServer, start_headwater
from support.nats_server import NatsServer, start_nats_server

natsrpy = pytest.importorskip("natsrpy")
pytestmark = pytest.mark.interop

SCENARIO_TIMEOUT = 60.0  # seconds


@pytest.fixture(scope="module", params=["nats-server", "headwater"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory: Path = tmp_path_factory.mktemp("rust-stores")
    server: HeadwaterServer | NatsServer
    if request.param == "nats-server":
        server = start_nats_server(directory)
    else:
        server = start_headwater(directory, "-js", "-sd", str(directory / "js"))
    with server:
        yield server.url


def play(url: str, scenario: Callable[[Any], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(SCENARIO_TIMEOUT):
            client = natsrpy.Nats([url])
            await client.startup()
            try:
                await scenario(await client.jetstream())
            finally:
                await client.shutdown()

    asyncio.run(run())


def test_keys_are_put_got_updated_and_deleted(url: str) -> None:
    from natsrpy.js import KVConfig

    async def scenario(js: Any) -> None:
        kv = await js.kv.create(KVConfig(bucket="rust", history=3))
        assert [await kv.put("a", b"1"), await kv.put("b", b"2"), await kv.put("a", b"3")] == [1, 2, 3]
        assert await kv.get("a") == b"3"
        assert await kv.update("a", b"4", 3) == 4
        await kv.delete("b")
        assert await kv.get("b") is None
        assert await kv.get("nobody") is None

    play(url, scenario)


def test_objects_of_several_chunks_come_back(url: str, tmp_path: Path) -> None:
    from natsrpy.js import ObjectStoreConfig

    async def scenario(js: Any) -> None:
        store = await js.object_store.create(ObjectStoreConfig(bucket="rust"))
        content = bytes(range(256)) * 1500
        await store.put("blob", content)
        info = await store.get_info("blob")
        assert info.size == len(content)
        assert info.chunks > 1
        await store.put("blob", b"short")
        assert (await store.get_info("blob")).size == 5

    play(url, scenario)
