"""Servers on a full disk: refusals give the reason, what was acknowledged stays, and deletions make room."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.headwater_server import HeadwaterServer, start_headwater
from support.small_disk import SmallDisk, small_disk
from support.stream_filling import fill, numbered, stored

import headwater
from headwater.client.jetstream_types import StreamConfig
from headwater.errors import JetStreamError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEBIBYTES = 16
PAYLOAD = 10_000  # bytes
ROWS = 900  # of some 5 KB


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", MEBIBYTES) as made:
        yield made


def start(disk: SmallDisk, folder: Path, *args: str) -> HeadwaterServer:
    """A server that stores on the disk, and may fill it."""
    configuration = folder / "server.conf"
    configuration.write_text(f'jetstream {{ store_dir: "{disk.path}/store", max_file_store: 1GB }}')
    return start_headwater(folder, "-c", str(configuration), *args)


def test_a_purge_makes_room_on_a_full_disk_and_is_not_undone_by_a_kill(disk: SmallDisk, tmp_path: Path) -> None:
    async def fill_and_purge(url: str) -> None:
        async with await headwater.connect(url) as client:
            jetstream = client.jetstream()
            for name in ("FULL", "OTHER"):
                await jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"]))
            stored = 0
            with pytest.raises(JetStreamError, match="no room on the server's disk"):
                for stored in range((MEBIBYTES << 20) // PAYLOAD):
                    await jetstream.publish(f"FULL.{stored % 2}", bytes(PAYLOAD))
            disk.fill()
            assert (await jetstream.stream_info("FULL")).state.messages == stored
            assert await jetstream.delete_message("FULL", 1)
            with pytest.raises(JetStreamError, match="no room on the server's disk"):
                await jetstream.publish("OTHER.1", b"")  # what is left is for deletions
            assert await jetstream.purge_stream("FULL", subject="FULL.1") == stored // 2
            assert await jetstream.purge_stream("FULL") == (stored + 1) // 2 - 1

            async def fits(subject: str) -> bool:
                try:
                    await jetstream.publish(subject, bytes(PAYLOAD))
                except JetStreamError:
                    return False
                return True

            async with asyncio.timeout(30):  # the segments are removed after the answer
                while not await fits("OTHER.1"):
                    pass
            await jetstream.publish("FULL.1", b"after")

    async def look(url: str) -> tuple[int, int]:
        async with await headwater.connect(url) as client:
            jetstream = client.jetstream()
            return tuple([(await jetstream.stream_info(name)).state.messages for name in ("FULL", "OTHER")])  # type: ignore[return-value]

    with start(disk, tmp_path) as server:
        asyncio.run(fill_and_purge(server.url))
        server.kill()
    with start(disk, tmp_path) as server:
        assert asyncio.run(look(server.url)) == (1, 1)


def test_a_limit_on_age_makes_room_on_a_full_disk(disk: SmallDisk, tmp_path: Path) -> None:
    async def main(url: str) -> None:
        async with await headwater.connect(url) as client:
            jetstream = client.jetstream()
            await jetstream.create_stream(StreamConfig(name="AGED", subjects=["aged"], max_age=2))
            with pytest.raises(JetStreamError, match="no room on the server's disk"):
                for _ in range((MEBIBYTES << 20) // PAYLOAD):
                    await jetstream.publish("aged", bytes(PAYLOAD))
            disk.fill()
            async with asyncio.timeout(30):
                while True:
                    try:
                        await jetstream.publish("aged", bytes(PAYLOAD))
                        break
                    except JetStreamError as error:
                        assert "no room" in str(error)

    with start(disk, tmp_path) as server:
        asyncio.run(main(server.url))


@pytest.mark.spark
@pytest.mark.interop
def test_a_query_into_a_full_stream_says_so_and_goes_on_later(
    disk: SmallDisk, tmp_path: Path, spark: "SparkSession"
) -> None:
    with (
        start(disk, tmp_path) as target,
        start_headwater(tmp_path / "source", "-js", "-sd", str(tmp_path / "s")) as source,
    ):
        fill(source.url, "IN", ["in.*"], numbered("in", ROWS))
        fill(target.url, "OUT", ["out"], [])

        def run() -> None:
            rows = spark.readStream.format("nats").options(
                servers=source.url, stream="IN", startingOffsets="earliest", minPartitions=1
            )
            frame = rows.load().selectExpr("concat(cast(data AS string), repeat(' ', 5000)) AS data")
            sink = frame.writeStream.format("nats").options(
                servers=target.url, stream="OUT", subject="out", writeTimeout="1"
            )
            query = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
            query.awaitTermination()

        disk.fill(but=2 << 20)
        with pytest.raises(Exception, match="no room on the server's disk"):
            run()
        partly = len(stored(target.url, "OUT"))
        assert 0 < partly < ROWS
        disk.make_room()
        run()
        assert sorted(int(data) for _, _, data in stored(target.url, "OUT")) == list(range(ROWS))
