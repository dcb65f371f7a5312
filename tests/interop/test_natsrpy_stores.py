"""async-nats (Rust), by way of natsrpy: its key-value and object stores on our broker and on the real nats-server."""

from pathlib import Path
from typing import Any

import pytest
from support.scenarios import play_natsrpy as play

natsrpy = pytest.importorskip("natsrpy")
pytestmark = pytest.mark.interop


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
