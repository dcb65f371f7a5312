"""A new stream that has its first name yet: finished if its creation was answered, removed if not."""

import shutil
from pathlib import Path
from random import Random

import pytest
from support.recording_files import VARIANTS, Disk, RecordingFiles, Replay

from headwater.durable_files.files import OsFiles
from headwater.errors import StorageError
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.consumer import Consumer
from headwater.jetstream_state.store import ConsumerRecord, Store, StreamRecord, file_stem
from headwater.streams.log import Log, LogOptions

RECORD = StreamRecord(StreamConfig(name="S", subjects=["S"]), 7)
CONSUMER = ConsumerRecord("c", ConsumerConfig(name="c"), 8, Consumer(ConsumerConfig(), 1).snapshot())


def test_what_is_stored_in_a_new_stream_outlives_a_power_loss_that_undoes_its_name() -> None:
    """The name is not synced for itself: the next start gives it again."""
    files = RecordingFiles(Disk(directories={"", "store", "store/streams"}))
    store = Store(files, "store")
    directory = store.create(RECORD)
    options, calls = LogOptions(preallocate_bytes=0), {len(files.calls): 0}
    log = Log.open(files, directory.log_path, options, 8, 0, directory.identity)
    for count in range(1, 4):
        log.stage(b"S", b"", b"x", 9)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)
        calls[len(files.calls)] = count
    directory.save_consumer(CONSUMER)
    calls[len(files.calls)] = -1
    names = set()
    for moment, durable in calls.items():
        for variant in VARIANTS:
            replay = Replay(files)
            replay.advance(moment)
            crashed = replay.crash(variant, Random(moment))
            names.update(crashed.listdir("store/streams"))
            (found,) = Store(crashed, "store").streams()
            assert found.path == directory.path
            assert found.load() == RECORD
            assert [one.name for one in found.load_consumers()] == (["c"] if durable < 0 else [])
            log = Log.open(crashed, found.log_path, options, 8, 0, found.identity)
            assert log.record_count >= (durable if durable >= 0 else 3)
            assert not log.recovery.lost
            assert found.findings == []
            log.close()
    assert names == {file_stem("S"), file_stem("S") + ".begun"}


def test_a_damaged_stream_without_its_final_name_is_removed_only_while_it_is_new(tmp_path: Path) -> None:
    """One that holds a message or a consumer was answered: its damage is reported like that of any other stream."""
    for number, holds in enumerate(["nothing", "a message", "a consumer"]):
        store = Store(OsFiles(), str(tmp_path / str(number)))
        directory = store.create(RECORD)
        if holds == "a message":
            log = Log.open(OsFiles(), directory.log_path, LogOptions(), 8, 0, directory.identity)
            log.stage(b"S", b"", b"x", 9)
            batch = log.seal()
            assert batch is not None
            log.write(batch)
            log.close()
        if holds == "a consumer":
            directory.save_consumer(CONSUMER)
        Path(directory.path).rename(directory.path + ".begun")
        damaged = Path(directory.path + ".begun/stream.a")
        damaged.write_bytes(damaged.read_bytes()[:-1])
        found = store.streams()
        assert [one.path for one in found] == ([] if holds == "nothing" else [directory.path])
        for one in found:
            assert one.load() == RECORD
            (finding,) = one.findings
            assert "stream.a is damaged" in finding.what
        store.close()


def test_a_directory_beside_the_stream_of_its_name_takes_nothing_from_it(tmp_path: Path) -> None:
    store = Store(OsFiles(), str(tmp_path))
    directory = store.create(RECORD)
    shutil.copytree(directory.path, directory.path + ".begun")
    served, copied = store.streams()
    assert served.load() == RECORD
    with pytest.raises(StorageError, match="is not its own"):
        copied.load()
    store.close()
