"""Object stores on the real nats-server and on our broker."""

import contextlib
import io
import secrets
from collections.abc import AsyncIterator

import nats
import pytest
from support.both_servers import Serve
from support.scripted_server import finish

import headwater
from headwater.client.object_store import ObjectNotFound, ObjectStore, StoreConfig
from headwater.errors import DataLossError, JetStreamError, LocalProtocolError, SubjectError


@contextlib.asynccontextmanager
async def store(serve: Serve) -> AsyncIterator[ObjectStore]:
    name = f"O{secrets.token_hex(4)}"
    async with serve() as url, await headwater.connect(url) as client:
        jetstream = client.jetstream()
        try:
            yield await jetstream.create_object_store(StoreConfig(bucket=name))
        finally:
            await jetstream.delete_object_store(name)


def test_an_object_comes_back_as_it_went_in_whatever_its_size(serve: Serve) -> None:
    async def main() -> None:
        async with store(serve) as objects:
            for size in (0, 1, 128 * 1024, 300_001):
                data = secrets.token_bytes(size)
                info = await objects.put(f"n {size}", data, description="some bytes", metadata={"k": "v"})
                assert (info.size, info.chunks) == (size, -(-size // (128 * 1024)))
                assert await objects.get(f"n {size}") == data
                known = await objects.info(f"n {size}")
                assert (known.digest, known.description, known.metadata) == (info.digest, "some bytes", {"k": "v"})
            assert len(await objects.objects()) == 4

    finish(main(), 30)


def test_a_new_version_takes_the_place_of_the_old_and_nothing_of_it_stays(serve: Serve) -> None:
    async def main() -> None:
        async with store(serve) as objects:
            await objects.put("a", io.BytesIO(bytes(1000)), chunk_size=100)
            await objects.put("a", b"short")
            assert await objects.get("a") == b"short"
            assert (await objects.status()).state.messages == 2
            with pytest.raises(LocalProtocolError):
                await objects.put("a", b"x", chunk_size=0)
            with pytest.raises(SubjectError):
                await objects.put("", b"x")

    finish(main(), 30)


def test_deleted_objects_and_links(serve: Serve) -> None:
    async def main() -> None:
        async with store(serve) as objects:
            info = await objects.put("a", b"data")
            await objects.link("l", info)
            assert await objects.get("l") == b"data"
            await objects.update("a", description="new words")
            assert (await objects.info("a")).description == "new words"
            await objects.delete("a")
            with pytest.raises(ObjectNotFound):
                await objects.get("a")
            assert (await objects.info("a", deleted=True)).deleted
            assert [each.name for each in await objects.objects()] == ["l"]
            assert len(await objects.objects(deleted=True)) == 2

    finish(main(), 30)


def test_a_damaged_object_is_reported(serve: Serve) -> None:
    async def main() -> None:
        async with store(serve) as objects:
            info = await objects.put("a", bytes(1000), chunk_size=100)
            await objects._jetstream.publish(f"$O.{objects.bucket}.C.{info.nuid}", b"one too many")
            with pytest.raises(DataLossError, match="damaged"):
                await objects.get("a")

    finish(main(), 30)


def test_a_sealed_store_takes_nothing(serve: Serve) -> None:
    async def main() -> None:
        async with store(serve) as objects:
            await objects.put("a", b"1")
            await objects.seal()
            with pytest.raises(JetStreamError):
                await objects.put("b", b"2")
            assert await objects.get("a") == b"1"

    finish(main(), 30)


def test_nats_py_reads_what_we_store_and_we_what_it_stores(serve: Serve) -> None:
    async def main() -> None:
        async with store(serve) as objects:
            theirs = await nats.connect(objects._jetstream.client.server, allow_reconnect=False)
            their_store = await theirs.jetstream().object_store(objects.bucket)
            await their_store.put("theirs", b"t" * 200_000)
            await objects.put("ours", b"o" * 200_000)
            assert await objects.get("theirs") == b"t" * 200_000
            assert (await their_store.get("ours")).data == b"o" * 200_000
            await theirs.close()

    finish(main(), 30)
