"""A stream whose folder was removed while it is served is reported, although nothing fails."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.monitored import monitored, work

from headwater.jetstream_room import folder_watch
from headwater.jetstream_room.folder_watch import FolderWatch, missing


def lay_out(folders: Mapping[str, str], there: str) -> None:
    """Those of `there` exist, and no others."""
    for name, folder in folders.items():
        shutil.rmtree(folder, ignore_errors=True)
        if name in there:
            Path(folder).mkdir()


def folder_of(stream: str, store: Path) -> Path:
    (folder,) = store.rglob(f"{stream}-*")
    return folder


def test_a_folder_is_reported_once_and_only_when_it_is_missing_twice(tmp_path: Path) -> None:
    folders = {name: str(tmp_path / name) for name in ("S", "T")}
    reported: list[tuple[str, str]] = []

    async def main() -> None:
        watch = FolderWatch(lambda: folders, lambda *what: reported.append(what))
        looks: list[Mapping[str, str]] = []
        for there in ("ST", "S", "ST", "S", "S", "S", "", "", "ST", "", ""):
            lay_out(folders, there)
            looks.append(missing(folders))
            watch.note(looks[-1])
        watch.stop()
        assert [sorted(look) for look in looks[:2]] == [[], ["T"]]

    asyncio.run(main())
    assert [name for name, _ in reported] == ["T", "S", "S", "T"]


def test_a_stream_without_its_files_makes_the_server_unready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watch, "LOOK", 0.01)

    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            link = await asyncio.to_thread(work, server.broker.port)
            assert (await server.ask("/healthz")).status == 200
            folder = folder_of("S", tmp_path)
            shutil.rmtree(folder)
            async with asyncio.timeout(20):
                while (answer := await server.ask("/healthz")).status == 200:
                    pass
            assert answer.document["error"].startswith("JetStream stream '$G > S' has lost its files: ")
            (finding,) = (await server.ask("/jsz")).document["findings"]
            assert (finding["stream"], finding["path"], finding["severity"]) == ("S", f"{folder}/log", "unavailable")
            assert len((await server.ask("/eventz?kind=damage_found")).document["events"]) == 1
            await asyncio.to_thread(link.close)

    asyncio.run(main())
