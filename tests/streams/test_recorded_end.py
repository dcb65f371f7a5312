"""A newest segment that was replaced by its older copy is missed, without a checkpoint and without a clean stop."""

import errno

import pytest
from support.recording_files import RecordingFiles

from headwater.streams.end_file import END_FILE, encode_end
from headwater.streams.log import Log
from headwater.streams.options import LogOptions, SyncPolicy
from headwater.streams.recorded_end import read_recorded_end
from headwater.streams.segment import segment_name
from headwater.streams.writer import RESERVED

PATH = f"log/{END_FILE}"
NEWEST = f"log/{segment_name(0)}"


def append(log: Log, *payloads: bytes) -> None:
    for payload in payloads:
        log.stage(b"s", b"", payload, 1)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)


def killed(files: RecordingFiles) -> None:
    files.locks.clear()


def opened(files: RecordingFiles, sync: SyncPolicy = "always", known_end: int = 0) -> Log:
    return Log.open(files, "log", LogOptions(sync=sync, preallocate_bytes=0), 1, known_end=known_end)


def put_back(files: RecordingFiles, path: str, content: bytes) -> None:
    file = files.create(path)
    file.pwrite([content], 0)
    file.close()


def test_an_older_copy_of_the_newest_segment_is_missed_after_a_kill() -> None:
    files = RecordingFiles()
    log = opened(files)
    append(log, b"kept")
    older = files.content(NEWEST)
    append(log, b"lost", b"lost")
    killed(files)
    put_back(files, NEWEST, older)
    log = opened(files)
    (damage,) = log.recovery.lost
    assert (damage.kind, damage.start) == ("missing", 1) and damage.end >= 3
    assert log.next_offset >= 3, "no sequence is used again"
    assert [record.payload for record in log.read(0, 9, 99)] == [b"kept"]
    log.close()
    assert opened(files).recovery.lost == ()


def test_a_newest_segment_without_its_last_deletions_is_noticed() -> None:
    files = RecordingFiles()
    log = opened(files)
    append(log, b"deleted", b"kept")
    older = files.content(NEWEST)
    assert log.discard(0)
    append(log)
    killed(files)
    put_back(files, NEWEST, older)
    log = opened(files)
    assert log.recovery.damage == ()
    (note,) = log.recovery.notes
    assert "durable bytes are missing at its end" in note


@pytest.mark.parametrize("known", [4, 400], ids=["within a mark", "beyond it"])
def test_what_the_caller_knows_to_have_been_durable_is_a_loss_where_the_log_ends_below_it(known: int) -> None:
    files = RecordingFiles()
    log = opened(files)
    append(log, b"kept")
    killed(files)
    assert opened(files).recovery.lost == ()
    killed(files)
    assert read_recorded_end(files, "log", log.identity, known).end.offset == known
    log = opened(files, known_end=known)
    (damage,) = log.recovery.lost
    assert (damage.start, damage.kind) == (1, "missing") and log.next_offset >= known


def test_an_empty_directory_of_a_log_that_reached_further_is_a_loss() -> None:
    log = opened(RecordingFiles(), known_end=7)
    (damage,) = log.recovery.lost
    assert (damage.start, damage.end, log.next_offset) == (0, 7, 7)


@pytest.mark.parametrize("content", [encode_end(b"stranger", 9, 0, 0), b"garbage"])
def test_a_foreign_or_damaged_record_of_the_end_is_noted_and_not_believed(content: bytes) -> None:
    files = RecordingFiles()
    log = opened(files)
    append(log, b"kept")
    killed(files)
    put_back(files, PATH, content)
    log = opened(files)
    (note,) = log.recovery.notes
    assert END_FILE in note and log.recovery.lost == () and log.next_offset == 1 + RESERVED
    append(log, b"more")
    killed(files)
    assert opened(files).recovery.notes == ()
    assert read_recorded_end(files, "log", log.identity).end.offset == 2 + RESERVED


@pytest.mark.parametrize(("sync", "known"), [("always", 2), ("interval", 1), ("never", 0)])
def test_only_what_is_durable_is_recorded(sync: SyncPolicy, known: int) -> None:
    files = RecordingFiles()
    log = opened(files, sync)
    append(log, b"1")
    if sync == "interval":
        log.sync()
    append(log, b"2")
    assert read_recorded_end(files, "log", log.identity).end.offset == known


def test_a_disk_that_refuses_the_record_costs_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    files = RecordingFiles()
    log = opened(files)
    append(log, b"1")
    files.faults[files.attempts + 2] = errno.EIO  # batch, sync, log.end
    append(log, b"2")
    append(log, b"3")
    assert log.failure is None and log.end_offset == 3
    assert [record.getMessage().split()[0] for record in caplog.records] == ["log_end_not_noted"]
    assert read_recorded_end(files, "log", log.identity).end.offset <= 1, "never too high"
