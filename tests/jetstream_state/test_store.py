"""Where streams are kept: names of any kind, two copies of every document, and nothing left of unfinished business."""

import asyncio
import errno
import os
from pathlib import Path
from random import Random

import pytest
from support.jetstream_in_process import served
from support.recording_files import VARIANTS, Disk, RecordingFiles, Replay

from headwater.durable_files.files import File, OsFile, OsFiles
from headwater.errors import EnvironmentProblem, StorageError
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.consumer import Consumer
from headwater.jetstream_state.store import ConsumerRecord, Store, StreamRecord, file_stem, first_offset
from headwater.streams.log import Log, LogOptions


def record(name: str) -> StreamRecord:
    return StreamRecord(StreamConfig(name=name, subjects=[name]), 7)


def consumer(name: str) -> ConsumerRecord:
    return ConsumerRecord(name, ConsumerConfig(name=name), 8, Consumer(ConsumerConfig(), 1).snapshot())


def test_streams_and_consumers_are_found_again(tmp_path: Path) -> None:
    store = Store(OsFiles(), str(tmp_path))
    directory = store.create(record("ORDERS"))
    for name in ("b", "a"):
        directory.save_consumer(consumer(name))
    directory.remove_consumer("b")
    directory.remove_consumer("never was")
    store.close()
    store = Store(OsFiles(), str(tmp_path))
    (found,) = store.streams()
    assert found.load() == record("ORDERS")
    assert found.load_consumers() == [consumer("a")]
    store.remove(found)
    assert store.streams() == []
    store.close()


def test_a_file_in_the_place_of_a_stream_is_refused_as_another_stream_would_be(tmp_path: Path) -> None:
    store = Store(OsFiles(), str(tmp_path))
    store.remove(store.create(record("other")))
    (streams,) = tmp_path.rglob("streams")
    (streams / file_stem("S")).write_bytes(b"not ours")
    with pytest.raises(StorageError, match="of this name in the store already"):
        store.create(record("S"))
    store.close()


def test_names_that_differ_in_case_or_only_in_odd_characters_have_files_of_their_own() -> None:
    names = ["a", "A", "a b", "a_b", "ä", "x" * 300, "x" * 301, "..", "con"]
    assert len({file_stem(name).lower() for name in names}) == len(names)
    assert all(
        set(file_stem(name)) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
        for name in names
    )


def test_a_flipped_bit_in_one_copy_of_a_document_costs_nothing(tmp_path: Path) -> None:
    store = Store(OsFiles(), str(tmp_path))
    directory = store.create(record("S"))
    directory.save_consumer(consumer("c"))
    for path in [path for path in tmp_path.rglob("*.a") if path.is_file()]:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    assert directory.load() == record("S")
    assert directory.load_consumers() == [consumer("c")]
    store.close()


def test_what_a_crash_left_half_made_or_half_deleted_is_removed(tmp_path: Path) -> None:
    store = Store(OsFiles(), str(tmp_path))
    store.create(record("S"))
    for ending in (".new", ".begun", ".deleted"):
        leftover = tmp_path / "streams" / f"x{ending}" / "log"
        leftover.mkdir(parents=True)
        (leftover / "log.state.a").write_bytes(b"")
    assert len(store.streams()) == 1
    assert len(list((tmp_path / "streams").iterdir())) == 1
    store.close()


class CountingFile(OsFile):
    def __init__(self, descriptor: int, synced: list[str], path: str) -> None:
        super().__init__(descriptor)
        self.synced, self.path = synced, path

    def fdatasync(self) -> None:
        self.synced.append(Path(self.path).name)
        super().fdatasync()


class CountingFiles(OsFiles):
    """Remembers what was synced, and what was opened to be read or written again."""

    def __init__(self) -> None:
        self.synced: list[str] = []
        self.opened: list[str] = []

    def create(self, path: str) -> File:
        return CountingFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), self.synced, path)

    def open(self, path: str) -> File:
        self.opened.append(Path(path).name)
        return CountingFile(os.open(path, os.O_RDWR), self.synced, path)

    def sync_directory(self, path: str) -> None:
        self.synced.append(f"{Path(path).name}/")
        super().sync_directory(path)


def test_creating_a_stream_syncs_each_of_its_files_and_directories_once_and_reads_none_back(tmp_path: Path) -> None:
    files = CountingFiles()

    async def main() -> None:
        async with served(tmp_path, files=files) as desk:
            files.synced.clear()
            files.opened.clear()
            await desk.make("S")
            assert files.opened == ["00000000000000000000.log"]  # by the writer
            stem = file_stem("S")
            assert sorted(files.synced) == sorted(
                [
                    "stream.a", "stream.b", "log.state.a", "log.state.b", "00000000000000000000.log",
                    f"{stem}.begun/", "log/", "streams/",
                ]
            )  # fmt: skip

    asyncio.run(main())


@pytest.mark.parametrize("first_seq", [0, 7])
def test_a_power_loss_at_any_call_of_a_creation_leaves_the_whole_stream_or_none(first_seq: int) -> None:
    """And once `create` has returned, the stream, with an empty log in which nothing is missed."""
    wanted = StreamRecord(StreamConfig(name="S", subjects=["s"], first_seq=first_seq), 7)
    files = RecordingFiles(Disk(directories={"", "store", "store/streams"}))
    store = Store(files, "store")
    store.create(wanted)
    for calls in range(len(files.calls) + 1):
        for variant in VARIANTS:
            for seed in range(1 if variant != "torn" else 12):
                replay = Replay(files)
                replay.advance(calls)
                crashed = replay.crash(variant, Random(f"{calls} {seed}"))
                streams = Store(crashed, "store").streams()
                if calls == len(files.calls):
                    assert len(streams) == 1
                for directory in streams:
                    assert directory.load() == wanted
                    directory.check_log()
                    options = LogOptions(preallocate_bytes=0)
                    log = Log.open(crashed, directory.log_path, options, 8, first_offset(wanted), directory.identity)
                    assert (log.next_offset, log.record_count) == (first_offset(wanted), 0)
                    assert not log.recovery.damage
                    assert not log.recovery.notes
                    assert directory.findings == []
                    log.close()


def test_what_a_failed_creation_left_is_no_part_of_the_next() -> None:
    files = RecordingFiles(Disk(directories={"", "store", "store/streams"}))
    store = Store(files, "store")
    files.faults = {files.attempts + 14: errno.EIO}
    with pytest.raises(OSError, match="Input/output"):
        store.create(StreamRecord(StreamConfig(name="S", subjects=["s"], first_seq=7), 7))
    assert files.listdir("store/streams") == []
    directory = store.create(record("S"))
    segments = [name for name in files.listdir(directory.log_path) if name.endswith(".log")]
    assert segments == ["00000000000000000000.log"]


def test_a_directory_is_one_brokers(tmp_path: Path) -> None:
    store = Store(OsFiles(), str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="another server"):
        Store(OsFiles(), str(tmp_path))
    store.close()
    Store(OsFiles(), str(tmp_path)).close()
