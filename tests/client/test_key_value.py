"""Key-value buckets on the real nats-server and on our broker; nats-py reads what we write and the other way round."""

import asyncio
import contextlib
import re
import secrets
from collections.abc import AsyncIterator

import nats
import pytest
from nats.js.api import KeyValueConfig
from support.both_servers import Serve
from support.scripted_server import finish

import headwater
from headwater.client.jetstream import JetStream
from headwater.client.key_value import BucketConfig, KeyExists, KeyNotFound, KeyValue
from headwater.errors import JetStreamError, SubjectError


@contextlib.asynccontextmanager
async def bucket(serve: Serve, **fields: object) -> AsyncIterator[KeyValue]:
    name = f"B{secrets.token_hex(4)}"
    async with serve() as url, await headwater.connect(url) as client:
        jetstream = client.jetstream()
        made = await jetstream.create_key_value(BucketConfig(bucket=name, **fields))  # type: ignore[arg-type]
        try:
            yield made
        finally:
            await jetstream.delete_key_value(name)


def test_values_are_put_read_and_deleted(serve: Serve) -> None:
    async def main() -> None:
        async with bucket(serve, history=5) as values:
            assert await values.put("a.b", b"1") == 1
            assert await values.put("a.b", "2") == 2
            entry = await values.get("a.b")
            assert (entry.key, entry.value, entry.revision, entry.operation) == ("a.b", b"2", 2, "PUT")
            assert (await values.get("a.b", revision=1)).value == b"1"
            await values.delete("a.b")
            with pytest.raises(KeyNotFound):
                await values.get("a.b")
            with pytest.raises(KeyNotFound):
                await values.get("never")
            with pytest.raises(KeyNotFound):
                await values.get("other", revision=1)
            revisions = await values.history("a.b")
            assert [entry.operation for entry in revisions] == ["PUT", "PUT", "DEL"]
            assert revisions[0].created == (await values.get("a.b", revision=1)).created
            assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:.]+Z", entry.created) for entry in revisions)
            await values.purge("a.b")
            assert [entry.operation for entry in await values.history("a.b")] == ["PURGE"]

    finish(main(), 30)


def test_create_and_update_mind_what_was_written_meanwhile(serve: Serve) -> None:
    async def main() -> None:
        async with bucket(serve) as values:
            first = await values.create("k", b"1")
            with pytest.raises(KeyExists):
                await values.create("k", b"2")
            second = await values.update("k", b"2", first)
            with pytest.raises(KeyExists):
                await values.update("k", b"3", first)
            with pytest.raises(KeyExists):
                await values.delete("k", last=first)
            await values.delete("k", last=second)
            assert await values.create("k", b"4") > second

    finish(main(), 30)


def test_keys_are_listed_and_markers_swept_away(serve: Serve) -> None:
    async def main() -> None:
        async with bucket(serve) as values:
            assert await values.keys() == []
            for key in ("a.1", "a.2", "b.1"):
                await values.put(key, key)
            await values.delete("a.2")
            assert sorted(await values.keys()) == ["a.1", "b.1"]
            assert await values.keys("a.*") == ["a.1"]
            assert sorted(await values.keys("a.*", "b.>")) == ["a.1", "b.1"]
            assert await values.purge_deleted() == 1
            assert (await values.status()).state.messages == 2

    finish(main(), 30)


def test_a_watch_tells_what_is_there_and_what_comes(serve: Serve) -> None:
    async def main() -> None:
        async with bucket(serve) as values:
            await values.put("a", b"1")
            await values.put("b", b"1")
            watch = values.watch("a", "b")
            seen: list[tuple[str, bytes, str]] = []
            async for entry in watch:
                seen.append((entry.key, entry.value, entry.operation))
                if watch.caught_up and len(seen) == 2:
                    await values.put("c", b"unseen")
                    await values.put("a", b"2")
                    await values.delete("b")
                if len(seen) == 4:
                    break
            assert seen == [("a", b"1", "PUT"), ("b", b"1", "PUT"), ("a", b"2", "PUT"), ("b", b"", "DEL")]

    finish(main(), 30)


def test_names_that_are_none_are_refused(serve: Serve) -> None:
    async def main() -> None:
        async with bucket(serve) as values:
            for key in ("", "a b", ".a", "a.", "a..b", "a*", ">", "ä"):
                with pytest.raises(SubjectError):
                    await values.put(key, b"")
            jetstream = JetStream(values._jetstream.client, 5.0)
            for name in ("", "a.b", "a b"):
                with pytest.raises(SubjectError):
                    await jetstream.key_value(name)
            with pytest.raises(SubjectError):
                await jetstream.create_key_value(BucketConfig(bucket="b", history=65))
            with pytest.raises(JetStreamError):
                await jetstream.key_value("missing")

    finish(main(), 30)


def test_nats_py_and_we_read_each_others_buckets(serve: Serve) -> None:
    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            theirs = await nats.connect(url, allow_reconnect=False)
            name = f"B{secrets.token_hex(4)}"
            their_bucket = await theirs.jetstream().create_key_value(KeyValueConfig(bucket=name, history=3))
            ours = await client.jetstream().key_value(name)
            await their_bucket.put("theirs", b"1")
            await ours.put("ours", b"2")
            assert (await ours.get("theirs")).value == b"1"
            assert (await their_bucket.get("ours")).value == b"2"
            await their_bucket.delete("theirs")
            with pytest.raises(KeyNotFound):
                await ours.get("theirs")
            await theirs.close()
            await asyncio.sleep(0)
            await client.jetstream().delete_key_value(name)

    finish(main(), 30)


def test_a_store_that_is_not_there_is_named(serve: Serve) -> None:
    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            with pytest.raises(JetStreamError, match="there is no bucket 'nobody'") as missing:
                await client.jetstream().key_value("nobody")
            assert missing.value.err_code == 10059
            with pytest.raises(JetStreamError, match="there is no object store 'nobody'"):
                await client.jetstream().object_store("nobody")

    finish(main(), 30)


def test_a_value_whose_headers_cannot_be_read_is_a_value(serve: Serve) -> None:
    """Any writer ended every watch of the bucket, and the key could not be got."""
    name, block = f"B{secrets.token_hex(4)}", b"NATS/1.0\r\nno colon\r\n\r\n"

    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            values = await client.jetstream().create_key_value(BucketConfig(bucket=name))
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            head = b'CONNECT {"headers":true,"verbose":false}\r\nHPUB $KV.%b.k %d %d\r\n'
            writer.write(head % (name.encode(), len(block), len(block) + 1) + block + b"v\r\nPING\r\n")
            await reader.readuntil(b"PONG\r\n")
            writer.close()
            async for entry in values.watch():
                assert (entry.key, entry.value, entry.operation) == ("k", b"v", "PUT")
                break
            assert (await values.get("k")).value == b"v"
            await client.jetstream().delete_key_value(name)

    finish(main(), 30)
