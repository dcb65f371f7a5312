"""async-nats (Rust), by way of natsrpy: its key-value and object stores on our broker and on the real nats-server."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.scenarios import listed
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


def test_keys_have_a_history_and_are_purged(url: str) -> None:
    from natsrpy.js import KVConfig, KVOperation

    async def scenario(js: Any) -> None:
        config = KVConfig(bucket="kept", history=4, max_age=60.0, max_value_size=1000, description="d")
        kv = await js.kv.create(config)
        for key, value in (("a", b"1"), ("b", b"2"), ("a", b"3")):
            await kv.put(key, value)
        with pytest.raises(Exception, match=r"(?i)exist"):
            await kv.create("a", b"4")
        with pytest.raises(Exception, match=r"(?i)wrong last sequence|revision"):
            await kv.update("a", b"5", 1)
        await kv.delete("b", expect_revision=2)
        assert await kv.create("b", b"6") == 5
        await kv.purge("b")
        history = [(entry.revision, bytes(entry.value)) for entry in await listed(await kv.history("a"))]
        assert history == [(1, b"1"), (3, b"3")]
        assert [entry.operation for entry in await listed(await kv.history("b"))] == [KVOperation.Purge]
        assert await listed(await kv.keys()) == ["a"]
        assert (await kv.entry("a", 1)).value == b"1"
        # No watch: natsrpy's iterator panics now and then when it is let go before its end.

    play(url, scenario)


def test_a_key_with_a_time_to_live_leaves_a_marker(url: str) -> None:
    from natsrpy.js import KVConfig, KVOperation

    async def scenario(js: Any) -> None:
        kv = await js.kv.create(KVConfig(bucket="marked", history=2, limit_markers=timedelta(seconds=5)))
        await kv.create("k", b"v", ttl=timedelta(seconds=5))
        assert await kv.get("k") == b"v"
        await kv.purge("k", ttl=timedelta(seconds=5))
        assert (await kv.entry("k")).operation == KVOperation.Purge

    play(url, scenario)


def test_objects_are_linked_listed_renamed_and_sealed(url: str) -> None:
    from natsrpy.js import ObjectStoreConfig

    async def scenario(js: Any) -> None:
        store = await js.object_store.create(ObjectStoreConfig(bucket="linked", description="d"))
        await store.put("a", b"hello")
        await store.link_object("a", "to-a")
        assert (await store.get_info("to-a")).link.name == "a"
        await store.update_metadata("a", new_name="b", description="renamed")
        info = await store.get_info("b")
        assert (info.description, info.size) == ("renamed", 5)
        await store.put("c", b"x" * 300_000)
        await store.delete("c")
        assert sorted(one.name for one in await listed(await store.list())) == ["b", "to-a"]
        await store.seal()
        with pytest.raises(Exception, match=r"(?i)seal"):
            await store.put("d", b"late")

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
