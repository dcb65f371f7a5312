"""Backups between the real nats-server 2.15 and ours, both ways, through the files of the `nats` tool."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.headwater_server import start_headwater
from support.nats_server import start_nats_server
from support.raw_wire import dial

from headwater.client.client import Client, connect
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.errors import ConfigError, JetStreamError, RemoteProtocolError
from headwater.operations.backups import ARCHIVE, DOCUMENT, Saved, restore_stream, save_stream, saved_streams

pytestmark = pytest.mark.interop
COUNT = 300


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    directory = tmp_path_factory.mktemp("backups")
    with (
        start_nats_server(directory / "real") as real,
        start_headwater(directory / "ours", "-js", "-sd", str(directory / "ours" / "js")) as ours,
    ):
        yield {"real": real.url, "ours": ours.url}


def no_progress(done: int, of: int) -> None:
    """Nobody looks."""


async def fill(client: Client, name: str) -> None:
    """Messages with and without headers, two of them deleted; consumers in the middle, before the start, and ephemeral."""
    js = client.jetstream()
    await js.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    async with js.publisher() as publisher:
        for number in range(COUNT):
            headers = [("A", "b"), ("A", "c")] if number % 7 == 0 else None
            await publisher.publish(f"{name}.{number % 5}", b"%d" % number * 999, headers=headers)
    await js.delete_message(name, 3)
    await js.delete_message(name, COUNT)
    await js.create_consumer(name, ConsumerConfig(durable_name="middle", ack_policy="explicit"))
    messages = await js.pull_consumer(name, "middle").fetch(10, timeout=20)
    for message in [*messages[:6], messages[8]]:
        await message.ack_sync()
    await js.create_consumer(name, ConsumerConfig(durable_name="fresh", filter_subject=f"{name}.2"))
    await js.create_consumer(name, ConsumerConfig(name="short", ack_policy="none", inactive_threshold=600))


async def contents(client: Client, name: str) -> list[object]:
    """What both sides of a backup have to agree on."""
    js = client.jetstream()
    state = (await js.stream_info(name)).state
    found: list[object] = [
        (state.messages, state.bytes, state.first_seq, state.first_ts, state.last_seq, state.num_deleted)
    ]
    for consumer in ("fresh", "middle", "short"):
        info = await js.consumer_info(name, consumer)
        places = [(place.stream_seq, place.consumer_seq) for place in (info.delivered, info.ack_floor)]
        found.append((consumer, places, info.num_ack_pending, info.num_pending, info.num_redelivered))
    for sequence in (1, 2, 8, COUNT - 1):
        message = await js.get_message(name, sequence)
        found.append((message.seq, message.subject, message.hdrs, message.data, message.time))
    return found


@pytest.mark.parametrize(("source", "target"), [("real", "ours"), ("ours", "real"), ("ours", "ours")])
def test_a_stream_moves_with_its_consumers(urls: dict[str, str], tmp_path: Path, source: str, target: str) -> None:
    name = f"{source}{target}"

    async def scenario() -> None:
        async with await connect(urls[source]) as there, await connect(urls[target]) as here:
            await fill(there, name)
            before = await contents(there, name)
            seen: list[tuple[int, int]] = []
            saved = await save_stream(
                there, there.jetstream(), name, tmp_path / name, lambda count, size: seen.append((count, size))
            )
            assert saved == Saved(name, COUNT - 2, (tmp_path / name / ARCHIVE).stat().st_size)
            assert seen[-1] == (saved.messages, saved.bytes)
            assert saved_streams(tmp_path) == [tmp_path / name]
            if source == target:
                await there.jetstream().delete_stream(name)
            info = await restore_stream(here, here.jetstream(), tmp_path / name, no_progress)
            assert info.config.subjects == [f"{name}.>"]
            assert await contents(here, name) == before
            assert (await here.jetstream().publish(f"{name}.new", b"")).seq == COUNT + 1
            again = await here.jetstream().pull_consumer(name, "middle").fetch(1, timeout=20)
            assert again[0].metadata.stream_seq == 12  # ten were delivered, and the third is deleted
            with pytest.raises(JetStreamError, match="already in use"):
                await restore_stream(here, here.jetstream(), tmp_path / name, no_progress)

    asyncio.run(scenario())


def test_what_came_back_is_there_after_a_restart(tmp_path: Path) -> None:
    async def first(url: str) -> list[object]:
        async with await connect(url) as client:
            await fill(client, "S")
            await save_stream(client, client.jetstream(), "S", tmp_path / "b", no_progress)
            await client.jetstream().delete_stream("S")
            await restore_stream(client, client.jetstream(), tmp_path / "b", no_progress)
            return await contents(client, "S")

    async def second(url: str) -> list[object]:
        async with await connect(url) as client:
            return await contents(client, "S")

    arguments = ("-js", "-sd", str(tmp_path / "js"))
    with start_headwater(tmp_path / "one", *arguments) as server:
        before = asyncio.run(first(server.url))
    with start_headwater(tmp_path / "two", *arguments) as server:
        assert asyncio.run(second(server.url)) == before


@pytest.mark.parametrize("side", ["real", "ours"])
def test_what_is_damaged_makes_no_whole_stream_and_is_refused(urls: dict[str, str], tmp_path: Path, side: str) -> None:
    async def scenario() -> None:
        async with await connect(urls[side]) as client:
            js, folder = client.jetstream(), tmp_path / "D"
            await js.create_stream(StreamConfig(name="D", subjects=["d"]))
            await js.publish("d", b"x" * 9999)
            await save_stream(client, js, "D", folder, no_progress)
            await js.delete_stream("D")
            whole = (folder / ARCHIVE).read_bytes()
            for damaged, why in (
                (b"", "EOF"),
                (b"nonsense" * 9, "s2: corrupt input"),
                (whole[:-1], "s2: corrupt input"),
                (whole[:15] + bytes([whole[15] ^ 1]) + whole[16:], "crc mismatch"),
            ):
                (folder / ARCHIVE).write_bytes(damaged)
                with pytest.raises(JetStreamError, match=f"restore failed: .*{why}") as refused:
                    await restore_stream(client, js, folder, no_progress)
                assert refused.value.err_code == 10062
                assert "D" not in await js.stream_names()
            (folder / ARCHIVE).write_bytes(whole)
            assert (await restore_stream(client, js, folder, no_progress)).state.messages == 1
            await js.delete_stream("D")
            assert (await restore_stream(client, js, folder, no_progress, name="E")).config.name == "E"
            await js.delete_stream("E")

    asyncio.run(scenario())


def test_a_backup_is_not_written_over_and_a_missing_one_is_named(urls: dict[str, str], tmp_path: Path) -> None:
    async def scenario() -> None:
        async with await connect(urls["ours"]) as client:
            js = client.jetstream()
            await js.create_stream(StreamConfig(name="W", subjects=["w"], storage="memory"))
            await save_stream(client, js, "W", tmp_path / "W", no_progress)
            with pytest.raises(ConfigError, match="holds a backup already"):
                await save_stream(client, js, "W", tmp_path / "W", no_progress)
            with pytest.raises(JetStreamError, match="stream not found"):
                await save_stream(client, js, "NONE", tmp_path / "N", no_progress)
            assert not (tmp_path / "N" / DOCUMENT).exists()
            with pytest.raises(ConfigError, match="is no backup"):
                await restore_stream(client, js, tmp_path / "N", no_progress)
            (tmp_path / "W" / DOCUMENT).write_text("[]")
            with pytest.raises(ConfigError, match="not what a backup writes"):
                await restore_stream(client, js, tmp_path / "W", no_progress)
            with pytest.raises(ConfigError, match="no backup in"):
                saved_streams(tmp_path / "N")

    asyncio.run(scenario())


def test_a_backup_that_its_server_breaks_off_is_not_kept(urls: dict[str, str], tmp_path: Path) -> None:
    """No real server breaks off at will: one that answers as ours would, and then sends a status."""

    async def scenario() -> None:
        async with await connect(urls["ours"]) as server, await connect(urls["ours"]) as client:
            requests = await server.subscribe("fake.STREAM.SNAPSHOT.X")
            await server.flush()
            js = client.jetstream(prefix="fake")
            saving = asyncio.create_task(save_stream(client, js, "X", tmp_path / "X", no_progress))
            request = await requests.next(20)
            await server.publish(request.reply, b'{"type":"x","config":{},"state":{}}')
            inbox, status = (
                json.loads(request.data)["deliver_subject"].encode(),
                b"NATS/1.0 408 No Flow Response\r\n\r\n",
            )
            with dial(int(urls["ours"].rpartition(":")[2]), headers=True) as raw:
                raw.send(b"HPUB %b %d %d\r\n%b\r\n" % (inbox, len(status), len(status), status))
                with pytest.raises(RemoteProtocolError, match="No Flow Response"):
                    await saving
            assert not (tmp_path / "X" / DOCUMENT).exists()

    asyncio.run(scenario())
