"""Opening a directory: leftovers are swept, strangers are left alone, a crash while opening is harmless."""

from random import Random

import pytest
from support.recording_files import VARIANTS, RecordingFiles, Replay

from headwater.durable_files.sync_group import SyncGroup
from headwater.streams.log import Log
from headwater.streams.opening import first_state, open_directory, opened_new_log, write_new_log
from headwater.streams.options import LogOptions
from headwater.streams.segment import segment_name

OPTIONS = LogOptions(segment_bytes=64 << 10, preallocate_bytes=0)
SEGMENT = f"log/{segment_name(0)}"


def append(log: Log, payload: bytes) -> None:
    log.stage(b"s", b"", payload, 1)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)


def payloads(log: Log) -> list[bytes]:
    return [record.payload for record in log.read(0, 1 << 30, 1 << 40)]


def test_an_unfinished_segment_is_swept_away_and_other_files_are_left_alone() -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", OPTIONS, 1)
    append(log, b"one")
    log.close()
    for name in (f"{segment_name(7)}.new", "notes.log.new", "7.log"):
        files.create(f"log/{name}").close()
    assert payloads(Log.open(files, "log", OPTIONS, 1)) == [b"one"]
    assert f"log/{segment_name(7)}.new" not in files.names
    assert {"log/notes.log.new", "log/7.log"} <= files.names.keys()


def test_two_cuts_at_the_same_place_keep_both_pieces() -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", OPTIONS, 1)
    append(log, b"one")
    kept = []
    for junk in (b"first piece", b"second piece"):
        log.close()
        files.replace_content(SEGMENT, files.content(SEGMENT) + junk)
        log = Log.open(files, "log", OPTIONS, 1)
        kept.append(files.content(f"log/{log.recovery.damage[0].kept}"))
    assert kept == [b"first piece", b"second piece"]
    log.delete()
    assert not files.names


def test_a_power_loss_at_every_call_of_a_recovery_is_recovered_from() -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", OPTIONS, 1)
    for payload in (b"one", b"two", b"three"):
        append(log, payload)
    files.replace_content(SEGMENT, files.content(SEGMENT)[:-1])
    damaged = files.snapshot()
    recovering = RecordingFiles(damaged)
    Log.open(recovering, "log", OPTIONS, 1)
    replay = Replay(recovering)
    random = Random(4)
    for calls in range(len(recovering.calls) + 1):
        replay.advance(calls)
        for variant in (*VARIANTS, *VARIANTS[2:] * 5):
            log = Log.open(replay.crash(variant, random), "log", OPTIONS, 1)
            assert payloads(log) == [b"one", b"two"]
            assert log.next_offset >= 3


def test_the_work_of_a_clean_reopening_is_to_read() -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", OPTIONS, 1)
    append(log, b"one")
    log.close()
    before = len(files.calls)
    Log.open(files, "log", OPTIONS, 1)
    assert len(files.calls) == before


@pytest.mark.parametrize("synced", [True, False])
@pytest.mark.parametrize("first", [0, 7])
def test_a_log_that_was_just_written_begins_as_one_that_was_read(first: int, synced: bool) -> None:
    files = RecordingFiles()
    files.mkdir("log")
    state = first_state(b"identity", first, synced=synced)
    with SyncGroup(files) as group:
        write_new_log(group, "log", state, 1)
        group.commit("log")
    begun = opened_new_log(files, "log", state)
    begun.lock.close()
    files.locks.clear()
    read = open_directory(files, "log", 2, first, b"identity")
    assert (begun.state, begun.turn, begun.report) == (read.state, read.turn, read.report)
    assert (begun.document, begun.known_end) == (read.document, read.known_end)
    assert begun.absent.count(0, 1 << 20) == read.absent.count(0, 1 << 20) == 0
    ours, theirs = begun.segments[0], read.segments[0]
    assert len(begun.segments) == len(read.segments) == 1
    for name in ("path", "name", "base_offset", "end_offset", "end_position", "record_count", "dead"):
        assert getattr(ours, name) == getattr(theirs, name), name
