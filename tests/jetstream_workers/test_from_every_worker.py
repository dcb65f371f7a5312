"""`serve --workers 2 --spread_streams`: what a client wants of a stream, it gets at either worker, wherever the stream is.

What nats-py reads in all its ways is in tests/cluster/test_jetstream_from_every_node.py.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamConfig, StreamSource
from nats.js.errors import BadRequestError, NoStreamResponseError
from support.jetstream_clusters import StreamCluster, workers

import headwater
from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.jetstream_workers.placement import owner_of
from headwater.operations.backups import restore_stream, save_stream
from headwater.spark.options import parse_options
from headwater.spark.range_reader import read_range, stream_state
from headwater.spark.ranges import Range

pytestmark = pytest.mark.interop

PATIENCE = 30.0
Play = Callable[[list[Client], list[JetStreamContext]], Awaitable[None]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamCluster]:
    with workers(tmp_path_factory.mktemp("spread"), ("--spread_streams",)) as running:
        yield running


def play(server: StreamCluster, scenario: Play) -> None:
    """With a client of each worker."""

    async def run() -> None:
        async with asyncio.timeout(60), server.clients() as clients:
            await scenario(clients, [client.jetstream(timeout=PATIENCE) for client in clients])

    asyncio.run(run())


def name_at(worker: int, beginning: str) -> str:
    """A stream's name that belongs to a worker, from 1."""
    return next(name for name in (f"{beginning}{n}" for n in range(100)) if owner_of("", name, 2) == worker)


async def reported(what: Callable[[], Awaitable[object]]) -> None:
    """Publish again while this worker does not know the stream yet."""
    while True:
        with suppress(NoStreamResponseError):
            await what()
            return
        await asyncio.sleep(0.005)


async def api(client: Client, subject: str, document: object = None) -> Any:
    payload = b"" if document is None else json.dumps(document).encode()
    return json.loads((await client.request(f"$JS.API.{subject}", payload, timeout=PATIENCE)).data)


def test_lists_and_usage_are_those_of_all_workers(server: StreamCluster) -> None:
    async def scenario(clients: list[Client], streams: list[JetStreamContext]) -> None:
        names = sorted([name_at(1, "list-a"), name_at(2, "list-b"), name_at(1, "list-c"), name_at(2, "list-d")])
        before = (await streams[0].account_info()).streams
        for at, name in enumerate(names):
            await streams[at % 2].add_stream(name=name, subjects=[f"list.{name}.>"], max_bytes=1000)
        for client, stream in zip(clients, streams, strict=True):
            assert (await stream.account_info()).streams == before + 4
            listed = await api(client, "STREAM.NAMES", {"subject": "list.*.x"})
            assert listed["streams"] == names
            infos = await api(client, "STREAM.LIST", {"subject": f"list.{names[2]}.x"})
            assert [one["config"]["name"] for one in infos["streams"]] == [names[2]]
            page = await api(client, "STREAM.NAMES", {"subject": "list.>", "offset": 2})
            assert (page["total"], page["streams"]) == (4, names[2:])
            leaders = {name: (await api(client, f"STREAM.INFO.{name}"))["cluster"]["leader"] for name in names}
            assert leaders == {name: f"w-{owner_of('', name, 2)}" for name in names}
        for name in names:
            await streams[1].delete_stream(name)
        assert (await api(clients[0], f"STREAM.INFO.{names[0]}"))["error"]["err_code"] == 10059

    play(server, scenario)


def test_of_overlapping_streams_created_at_once_at_two_workers_one_is_made(server: StreamCluster) -> None:
    async def scenario(clients: list[Client], streams: list[JetStreamContext]) -> None:
        for turn in range(5):
            pair = [name_at(1, f"once-{turn}-a"), name_at(2, f"once-{turn}-b")]
            made = await asyncio.gather(
                *(
                    streams[at].add_stream(name=name, subjects=[f"once.{turn}.{'*' if at else 'x'}"])
                    for at, name in enumerate(pair)
                ),
                return_exceptions=True,
            )
            refused = [one for one in made if isinstance(one, BadRequestError)]
            assert [one.err_code for one in refused] == [10065], made
            await streams[0].delete_stream(pair[0 if isinstance(made[1], BadRequestError) else 1])
            await streams[1].add_stream(name=f"once-more-{turn}", subjects=[f"once.{turn}.>"])

    play(server, scenario)


def test_an_update_to_subjects_of_another_worker_is_refused(server: StreamCluster) -> None:
    async def scenario(clients: list[Client], streams: list[JetStreamContext]) -> None:
        here, there = name_at(1, "update-a"), name_at(2, "update-b")
        await streams[0].add_stream(name=here, subjects=["update.a"])
        await streams[0].add_stream(name=there, subjects=["update.b"])
        with pytest.raises(BadRequestError) as refused:
            await streams[1].update_stream(name=there, subjects=["update.*"])
        assert refused.value.err_code == 10065
        await streams[0].update_stream(name=there, subjects=["update.b", "update.c"])
        await reported(partial(streams[0].publish, "update.c", b""))

    play(server, scenario)


def test_mirrors_and_sources_copy_streams_of_other_workers(server: StreamCluster) -> None:
    async def scenario(clients: list[Client], streams: list[JetStreamContext]) -> None:
        origin, mirror, both = name_at(1, "copy-o"), name_at(2, "copy-m"), name_at(2, "copy-s")
        # The source comes first: it starts when the other worker says that its origin was made.
        await streams[0].add_stream(StreamConfig(name=both, sources=[StreamSource(name=origin)]))
        await streams[1].add_stream(StreamConfig(name=origin, subjects=["copy.>"], allow_direct=True))
        await streams[1].add_stream(StreamConfig(name=mirror, mirror=StreamSource(name=origin), mirror_direct=True))
        assert (await api(clients[0], f"STREAM.INFO.{mirror}"))["config"]["mirror_direct"] is True
        for number in range(3):
            await reported(partial(streams[number % 2].publish, "copy.x", b"%d" % number))
        for name in (mirror, both):
            copied = await streams[0].subscribe("copy.>", stream=name, ordered_consumer=True)
            assert [(await copied.next_msg(timeout=PATIENCE)).data for _ in range(3)] == [b"0", b"1", b"2"]
            await copied.unsubscribe()
        wanted = {"name": origin, "subjects": ["copy.>"], "allow_direct": True, "sources": [{"name": both}]}
        ring = await api(clients[0], f"STREAM.UPDATE.{origin}", wanted)
        assert "cycle" in ring["error"]["description"]
        await streams[0].delete_stream(origin)
        for client in clients:  # the mirror answers for it, as nats-server's does
            answer = await client.request(f"$JS.API.DIRECT.GET.{origin}.copy.x", b"", timeout=PATIENCE)
            assert answer.data == b"2"

    play(server, scenario)


def test_a_batch_is_stored_whole_from_either_worker(server: StreamCluster) -> None:
    async def scenario(clients: list[Client], streams: list[JetStreamContext]) -> None:
        name = name_at(2, "batch-")
        wanted = {"name": name, "subjects": ["batch.*"], "allow_atomic": True}
        assert "error" not in await api(clients[0], f"STREAM.CREATE.{name}", wanted)
        for at, client in enumerate(clients):
            await reported(partial(streams[at].publish, "batch.first", b""))
            batch = {"Nats-Batch-Id": f"b{at}"}
            for number in (1, 2):
                await client.publish("batch.x", b"", headers={**batch, "Nats-Batch-Sequence": str(number)})
            last = {**batch, "Nats-Batch-Sequence": "3", "Nats-Batch-Commit": "1"}
            done = await client.request("batch.x", b"", headers=last, timeout=PATIENCE)
            assert json.loads(done.data)["count"] == 3
        assert (await streams[0].stream_info(name)).state.messages == 8

    play(server, scenario)


def test_a_backup_is_taken_and_restored_by_any_client(server: StreamCluster, tmp_path: Path) -> None:
    async def scenario(clients: list[Client], streams: list[JetStreamContext]) -> None:
        at_one, at_two = name_at(1, "back-a"), name_at(2, "back-b")
        await streams[0].add_stream(name=at_two, subjects=["back.*"])
        for number in range(10):
            await reported(partial(streams[0].publish, "back.x", b"%d" % number))
        async with await headwater.connect(server.urls[0]) as client:
            jetstream = client.jetstream(timeout=PATIENCE)
            await save_stream(client, jetstream, at_two, tmp_path / "saved", lambda *_: None)
            with pytest.raises(headwater.HeadwaterError, match="overlap"):  # with the stream at the other worker
                await restore_stream(client, jetstream, tmp_path / "saved", lambda *_: None, name=at_one)
            await jetstream.delete_stream(at_two)
            info = await restore_stream(client, jetstream, tmp_path / "saved", lambda *_: None, name=at_one)
            assert info.state.messages == 10
        assert (await streams[1].get_msg(at_one, 10)).data == b"9"

    play(server, scenario)


def test_spark_reads_streams_of_both_workers(server: StreamCluster) -> None:
    names = [name_at(1, "spark-a"), name_at(2, "spark-b")]

    async def scenario(clients: list[Client], streams: list[JetStreamContext]) -> None:
        for name in names:
            await streams[0].add_stream(name=name, subjects=[f"spark.{name}"])
            for number in range(5):
                await reported(partial(streams[0].publish, f"spark.{name}", b"%d" % number))

    play(server, scenario)
    for name in names:
        client = BlockingClient.connect(ClientOptions(servers=[server.urls[0]]))
        state = stream_state(client, name)
        client.close()
        options = parse_options({"servers": server.urls[0], "stream": name, "readTimeout": "20"})
        read = [list(columns.sequences) for columns in read_range(Range(name, state.created, 1, 6), options)]
        assert [sequence for some in read for sequence in some] == [1, 2, 3, 4, 5]
