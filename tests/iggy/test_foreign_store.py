"""The directory of Apache Iggy's server in the place of ours: refused in words that help, and left as it is.

The layout is written by hand: no server of Apache Iggy's is installed here.
"""

import asyncio
from pathlib import Path

import pytest

from headwater.durable_files.files import OsFiles
from headwater.errors import EnvironmentProblem
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy.foreign_store import refuse_foreign_store


def apache_iggy(directory: Path, *streams: int) -> None:
    (directory / "state").mkdir(parents=True)
    (directory / "state" / "log").write_bytes(b"catalog")
    (directory / "streams").mkdir()
    for stream in streams:
        partition = directory / "streams" / str(stream) / "topics" / "0" / "partitions" / "0"
        partition.mkdir(parents=True)
        (partition / "00000000000000000000.log").write_bytes(b"messages")


async def start(directory: Path) -> None:
    async with Iggy(IggyOptions(tcp=("127.0.0.1", 0)), directory):
        pass


@pytest.mark.parametrize("folder", ["", "iggy"])
def test_a_start_on_a_directory_of_apache_iggy_is_refused_and_touches_nothing(tmp_path: Path, folder: str) -> None:
    apache_iggy(tmp_path, 0, 2, 10)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(EnvironmentProblem, match=r"3 streams of Apache Iggy's server \(numbers 0, 2, 10\)") as refused:
        asyncio.run(start(tmp_path / folder))
    assert "another store directory" in refused.value.hint
    assert sorted(tmp_path.rglob("*")) == before


def test_a_directory_in_which_apache_iggy_left_no_stream_is_nothing_to_refuse(tmp_path: Path) -> None:
    apache_iggy(tmp_path)
    asyncio.run(start(tmp_path))


def test_our_own_directory_is_nothing_to_refuse(tmp_path: Path) -> None:
    asyncio.run(start(tmp_path / "iggy"))
    refuse_foreign_store(OsFiles(), str(tmp_path / "iggy"))
    asyncio.run(start(tmp_path / "iggy"))
