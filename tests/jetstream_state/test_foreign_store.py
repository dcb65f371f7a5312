"""nats-server's store in the place of ours: refused in words that help, and left as it is."""

import asyncio
from pathlib import Path

import pytest
from support.monitored import monitored_nats_server, work
from support.nats_server import start_nats_server

from headwater.durable_files.files import OsFiles
from headwater.errors import EnvironmentProblem
from headwater.jetstream_state.foreign_store import refuse_foreign_store
from headwater.server.broker import Broker


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


async def start(directory: Path) -> None:
    async with Broker(jetstream=True, store_dir=directory):
        pass


@pytest.mark.interop
def test_a_start_on_a_store_of_nats_server_is_refused_and_touches_nothing(tmp_path: Path) -> None:
    with monitored_nats_server(tmp_path) as (port, _):
        work(port).close()
    (store,) = {path.parents[4] for path in tmp_path.rglob("meta.inf") if path.parents[1].name == "streams"}
    for directory in (store, store / "jetstream"):
        before = contents(tmp_path)
        with pytest.raises(EnvironmentProblem, match=r"1 streams of nats-server \(\$G > S\)") as refused:
            asyncio.run(start(directory))
        assert "headwater store import" in refused.value.hint
        assert contents(tmp_path) == before


@pytest.mark.interop
def test_a_store_in_which_nats_server_left_no_stream_is_nothing_to_refuse(tmp_path: Path) -> None:
    with start_nats_server(tmp_path):
        pass
    asyncio.run(start(tmp_path / "js"))


def test_our_own_store_and_an_empty_place_are_nothing_to_refuse(tmp_path: Path) -> None:
    refuse_foreign_store(OsFiles(), str(tmp_path / "nowhere"))
    asyncio.run(start(tmp_path))
    refuse_foreign_store(OsFiles(), str(tmp_path))
