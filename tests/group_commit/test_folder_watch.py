"""A log whose files were removed while it is served refuses what comes after, although nothing fails, and is reported."""

import asyncio
import logging
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.iggy_service import Desk, S, T, at_desk
from support.monitored import Monitored, monitored

import headwater
from headwater.client.client import Client
from headwater.client.configurations import ConsumerConfig, StreamConfig
from headwater.durable_files.files import OsFiles
from headwater.errors import JetStreamError, NoResponders, StorageError, WriteFailed
from headwater.group_commit import folder_watch
from headwater.group_commit.folder_watch import FolderWatch, look_for
from headwater.iggy_wire import commands as c
from headwater.streams.log import Log, refuse_writes
from headwater.streams.options import LogOptions

UNREADY = "JetStream stream '$G > S' has lost its files: "


class Watched:
    """Two logs, and what was reported of them at each look."""

    def __init__(self, directory: Path) -> None:
        self.logs = {
            name: Log.open(OsFiles(), str(directory / name), LogOptions(sync="never"), 0) for name in ("S", "T")
        }
        self.reports: list[str] = []
        self.watch = FolderWatch(
            lambda: list(self.logs.values()), lambda log: self._say("lost", log), lambda log: self._say("back", log)
        )

    def _say(self, what: str, log: Log) -> None:
        self.reports.append(f"{what} {next(name for name, one in self.logs.items() if one is log)}")

    def look(self) -> list[str]:
        self.reports.clear()
        self.watch.note(look_for(self.watch.paths()))
        return list(self.reports)

    def takes(self, name: str) -> bool:
        try:
            self.logs[name].stage(b"s", b"", b"", 1)
        except WriteFailed:
            return False
        return True


def in_loop(directory: Path, then: Callable[[Watched], None]) -> None:
    async def main() -> None:
        watched = Watched(directory)
        then(watched)
        watched.watch.stop()
        for log in watched.logs.values():
            log.close(removing=True)

    asyncio.run(main())


def test_a_log_is_lost_when_its_files_are_missing_twice_and_takes_writes_when_they_are_back(tmp_path: Path) -> None:
    def then(watched: Watched) -> None:
        assert watched.look() == []
        os.rename(tmp_path / "S", tmp_path / "away")
        assert watched.look() == []
        assert watched.takes("S")
        assert watched.look() == ["lost S"]
        assert not watched.takes("S") and watched.takes("T")
        assert watched.look() == []
        os.rename(tmp_path / "away", tmp_path / "S")
        assert watched.look() == ["back S"]
        assert watched.takes("S")
        os.rename(tmp_path / "S", tmp_path / "away")
        assert [watched.look() for _ in range(3)] == [[], ["lost S"], []]

    in_loop(tmp_path, then)


def test_other_files_in_the_place_of_those_that_were_removed_are_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def then(watched: Watched) -> None:
        watched.look()
        shutil.copytree(tmp_path / "S", tmp_path / "backup")
        shutil.rmtree(tmp_path / "S")
        assert [watched.look() for _ in range(2)] == [[], ["lost S"]]
        shutil.copytree(tmp_path / "backup", tmp_path / "S")
        assert [watched.look() for _ in range(3)] == [[], [], []]
        assert not watched.takes("S")

    with caplog.at_level(logging.ERROR):
        in_loop(tmp_path, then)
    assert [record.getMessage().split()[0] for record in caplog.records] == ["log_files_replaced"]


def test_a_failure_of_the_disk_stays_when_the_files_are_back(tmp_path: Path) -> None:
    def then(watched: Watched) -> None:
        watched.look()
        first = refuse_writes(watched.logs["S"], "the disk has failed")
        os.rename(tmp_path / "S", tmp_path / "away")
        assert [watched.look() for _ in range(2)] == [[], ["lost S"]]
        os.rename(tmp_path / "away", tmp_path / "S")
        assert watched.look() == ["back S"]
        assert watched.logs["S"].failure is first

    in_loop(tmp_path, then)


def test_a_look_that_fails_is_logged_and_the_next_one_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(folder_watch, "LOOK", 0.001)
    looks = 0
    again = asyncio.Event()

    def logs() -> list[Log]:
        nonlocal looks
        looks += 1
        if looks > 2:
            again.set()
        raise StorageError("no list")

    async def main() -> None:
        watch = FolderWatch(logs, lambda log: None, lambda log: None)
        async with asyncio.timeout(10):
            await again.wait()
        watch.stop()

    asyncio.run(main())
    assert any(record.getMessage().startswith("folder_watch_failed") for record in caplog.records)


async def healthz(server: Monitored, status: int, beginning: str = "") -> None:
    """Wait until it has this status, and an error that begins so."""
    async with asyncio.timeout(20):
        while True:
            answer = await server.ask("/healthz")
            if answer.status == status and str(answer.document.get("error", "")).startswith(beginning):
                return


async def with_streams(
    store: Path, monkeypatch: pytest.MonkeyPatch, then: Callable[[Monitored, Client], Awaitable[None]]
) -> None:
    """With streams S and W (a work queue), two messages and a consumer D each."""
    monkeypatch.setattr(folder_watch, "LOOK", 0.01)
    async with (
        monitored(jetstream=True, store_dir=store) as server,
        await headwater.connect(server.broker.url) as client,
    ):
        streams = client.jetstream()
        for name in ("S", "W"):
            config = StreamConfig(name=name, subjects=[f"{name}.>"])
            if name == "W":
                config.retention = "workqueue"
            await streams.create_stream(config)
            await streams.create_consumer(name, ConsumerConfig(durable_name="D", ack_policy="explicit"))
            for _ in range(2):
                await streams.publish(f"{name}.a", b"")
        await healthz(server, 200)
        await then(server, client)


def folder_of(stream: str, store: Path) -> Path:
    (folder,) = store.rglob(f"{stream}-*")
    return folder


def test_a_stream_without_its_files_refuses_and_makes_the_server_unready_until_it_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def then(server: Monitored, client: Client) -> None:
        streams = client.jetstream()
        messages = [(await streams.pull_consumer(name, "D").fetch(1))[0] for name in ("S", "W")]
        second = (await streams.pull_consumer("W", "D").fetch(1))[0]
        folders = [folder_of(name, tmp_path) for name in ("S", "W")]
        for folder in folders:
            shutil.rmtree(folder)
        await healthz(server, 503, UNREADY)
        findings = (await server.ask("/jsz")).document["findings"]
        assert {(one["stream"], one["path"], one["severity"]) for one in findings} == {
            (name, f"{folder}/log", "unavailable") for name, folder in zip(("S", "W"), folders, strict=True)
        }
        for name, message in zip(("S", "W"), messages, strict=True):
            with pytest.raises(JetStreamError, match="its files were removed") as refused:
                await streams.publish(f"{name}.a", b"")
            assert refused.value.err_code == 10077
            with pytest.raises(NoResponders):
                await message.ack(confirm=10)
            with pytest.raises(JetStreamError):
                await streams.create_consumer(name, ConsumerConfig(durable_name="E", ack_policy="explicit"))
        box = await client.subscribe("box")
        await client.publish(second.reply, b"+NXT", reply="box")
        refused_next = await box.next(timeout=10)
        assert (
            refused_next.header_block.startswith(b"NATS/1.0 503 ")
            and b"files were removed" in refused_next.header_block
        )
        assert not any(folder.exists() for folder in folders)
        for name in ("S", "W"):
            assert await streams.delete_stream(name)
        await healthz(server, 200)
        await streams.create_stream(StreamConfig(name="S", subjects=["S.>"]))
        assert (await streams.publish("S.a", b"")).seq == 1

    asyncio.run(with_streams(tmp_path, monkeypatch, then))


def test_a_stream_whose_folder_was_moved_back_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def then(server: Monitored, client: Client) -> None:
        streams = client.jetstream()
        (message,) = await streams.pull_consumer("S", "D").fetch(1)
        folder = folder_of("S", tmp_path)
        os.rename(folder, tmp_path / "away")
        await healthz(server, 503, UNREADY)
        os.rename(tmp_path / "away", folder)
        await healthz(server, 200)
        assert (await streams.publish("S.a", b"")).seq == 3
        await message.ack(confirm=10)
        assert "findings" not in (await server.ask("/jsz")).document

    asyncio.run(with_streams(tmp_path, monkeypatch, then))


def test_a_store_that_was_removed_is_not_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def then(server: Monitored, client: Client) -> None:
        shutil.rmtree(tmp_path)
        with pytest.raises(JetStreamError, match="No such file"):
            await client.jetstream().create_stream(StreamConfig(name="T", subjects=["T.>"]))
        await healthz(server, 503, UNREADY)

    asyncio.run(with_streams(tmp_path, monkeypatch, then))
    assert not tmp_path.exists()


def test_a_topic_without_its_files_refuses_until_it_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watch, "LOOK", 0.01)

    async def work(desk: Desk) -> None:
        await desk.make(partitions=2)
        await desk.send(b"one")
        files = desk.service.files
        (first, _) = next(iter(desk.service.topics.values())).partitions
        found = asyncio.Event()
        files.on_finding = lambda finding: found.set()
        await asyncio.to_thread(shutil.rmtree, first.log.directory)
        await found.wait()
        (finding,) = files.findings
        assert (finding.stream, finding.path, finding.severity) == ("t", first.log.directory, "unavailable")
        with pytest.raises(StorageError, match="its files were removed"):
            await desk.send(b"two")
        await desk.send(b"two", to=1)
        await desk.do(c.DeleteTopic(S, T))
        assert not files.findings

    at_desk(tmp_path, work)
