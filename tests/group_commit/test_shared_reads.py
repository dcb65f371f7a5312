"""All logs that an event loop serves share one limit of open files, those of both faces; another loop has its own."""

import asyncio
from pathlib import Path

from support.iggy_service import Desk, at_desk
from support.jetstream_in_process import served

from headwater.durable_files.files import OsFiles
from headwater.group_commit.shared_reads import share_reads
from headwater.streams.log import Log, LogOptions
from headwater.streams.read_handles import ReadHandles


def shared_with(directory: Path) -> ReadHandles:
    """What a log of the running loop has, which is asserted to be what the loop's others have."""
    logs = [Log.open(OsFiles(), str(directory / name), LogOptions(sync="never"), 1) for name in ("one", "other")]
    for log in logs:
        share_reads(log)
    one, other = (log.reader.handles for log in logs)
    assert one is not None and one is other
    for log in logs:
        log.close()
    return one


def test_the_streams_of_jetstream_share_the_limit_of_their_loop(tmp_path: Path) -> None:
    found: list[ReadHandles] = []

    async def main(directory: Path) -> None:
        async with served(directory / "live") as desk:
            await desk.make("O")
            handles = shared_with(directory)
            assert desk.service.streams["O"].log.reader.handles is handles
            found.append(handles)

    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        asyncio.run(main(tmp_path / name))
    assert found[0] is not found[1]


def test_the_partitions_of_iggy_share_the_limit_of_their_loop(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(partitions=2)
        handles = shared_with(tmp_path / "others")
        (topic,) = desk.service.topics.values()
        assert [partition.log.reader.handles is handles for partition in topic.partitions] == [True, True]

    at_desk(tmp_path / "live", work)
