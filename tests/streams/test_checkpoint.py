"""A start after a crash reads what is newer than the last checkpoint, and finds what reading everything finds."""

import errno
from random import Random

import pytest
from support.recording_files import Disk, RecordingFiles

from headwater.errors import DiskFull, StorageError
from headwater.streams.end_file import END_FILE
from headwater.streams.log import Log
from headwater.streams.options import LogOptions
from headwater.streams.segment import segment_name
from headwater.streams.writer import CHECKPOINT_FILE

OPTIONS = LogOptions(segment_bytes=64 << 10, preallocate_bytes=2000)
PATH = f"log/{CHECKPOINT_FILE}"


def commit(log: Log) -> None:
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)


def upkeep(log: Log) -> None:
    while (plan := log.plan_upkeep()) is not None:
        log.maintain(plan)
        log.settle(plan)


def checkpoint(log: Log, document: bytes = b"") -> None:
    plan = log.plan_checkpoint(document)
    assert plan is not None
    log.maintain(plan)
    log.settle(plan)


def live(files: RecordingFiles, random: Random, steps: int) -> None:
    log = Log.open(files, "log", OPTIONS, 1)
    for _ in range(steps):
        for _ in range(random.choice((1, 3, 40))):
            log.stage(b"s", b"", random.randbytes(random.choice((5, 2000))), random.randrange(1 << 40))
        if random.random() < 0.4:
            at = random.randrange(log.start_offset, log.end_offset + 1)
            log.discard_range(at, at + random.choice((1, 5, 30)))
        if random.random() < 0.2:
            log.discard_range(0, random.randrange(log.start_offset, log.end_offset + 1))
        commit(log)
        if random.random() < 0.3:
            upkeep(log)
        if random.random() < 0.3:
            checkpoint(log)


def reported(log: Log) -> list[object]:
    """All that a log knows of itself."""
    plan = log.plan_upkeep()
    worth = None if plan is None else (plan.roll, [s.name for s in plan.dropped], plan.compact and plan.compact.name)
    return [
        (log.spans, worth, log.first_timestamp_ns, log.last_timestamp_ns),
        [log.offset_at(time) for time in range(0, 1 << 40, 1 << 37)],
        [[record.offset for record in log.read(offset, 1, 1)] for offset in range(0, log.end_offset, 7)],
        (log.start_offset, log.end_offset, log.next_offset, log.record_count, log.size_bytes),
        [log.is_absent(offset) for offset in range(log.end_offset)],
        [(record.offset, record.payload) for record in log.read(0, 1 << 30, 1 << 40)],
        log.recovery,
    ]


def opened(disk: Disk) -> Log:
    return Log.open(RecordingFiles(disk), "log", OPTIONS, 1)


def with_older_copy(files: RecordingFiles) -> bytes:
    """A log of six messages with a checkpoint; returns its segment as it was with one."""
    log = Log.open(files, "log", OPTIONS, 1)
    log.stage(b"s", b"", b"old", 1)
    commit(log)
    older = files.content(f"log/{segment_name(0)}")
    for _ in range(5):
        log.stage(b"s", b"", b"x", 1)
        commit(log)
    checkpoint(log)
    files.locks.clear()
    return older


@pytest.mark.parametrize("seed", range(60))
def test_a_start_from_a_checkpoint_finds_what_reading_everything_finds(seed: int) -> None:
    random = Random(seed)
    files = RecordingFiles(seed=seed)
    for _ in range(random.randrange(1, 3)):
        live(files, random, random.randrange(2, 15))
        files.locks.clear()
    disk = files.snapshot()
    without = Disk({path: inode for path, inode in disk.names.items() if path != PATH}, disk.contents, disk.directories)
    assert reported(opened(disk)) == reported(opened(without))


def test_only_what_is_newer_is_read() -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", OPTIONS, 1)
    for _ in range(20):
        log.stage(b"s", b"", bytes(20_000), 1)
        commit(log)
    checkpoint(log, b"a document")
    log.stage(b"s", b"", b"newer", 1)
    commit(log)
    files.locks.clear()
    content = bytearray(files.content(f"log/{segment_name(0)}"))
    content[10_000] ^= 1
    files.replace_content(f"log/{segment_name(0)}", bytes(content))
    log = Log.open(files, "log", OPTIONS, 1)
    assert log.recovery.damage == (), "it was not read"
    assert (log.document, log.known_end, log.record_count) == (b"a document", 20, 21)
    assert len(log.read(0, 100, 1 << 30)) == 20, "but it is told when it is"
    (damage,) = log.damage
    assert (damage.start, damage.end) == (0, 1)


def test_its_document_counts_for_nothing_once_a_record_was_deleted_that_it_knows() -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", OPTIONS, 1)
    for _ in range(5):
        log.stage(b"s", b"", b"x", 1)
    commit(log)
    checkpoint(log, b"a document")
    log.stage(b"s", b"", b"x", 1)
    log.discard(2)
    commit(log)
    files.locks.clear()
    log = Log.open(files, "log", OPTIONS, 1)
    assert log.document is None
    assert log.record_count == 5


@pytest.mark.parametrize("sync", ["interval", "never"])
def test_it_never_knows_more_than_is_durable(sync: str) -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", LogOptions(sync=sync, sync_interval_ns=1 << 60), 1)  # type: ignore[arg-type]
    log.stage(b"s", b"", b"x", 1)
    commit(log)
    plan = log.plan_checkpoint()
    if sync == "never":
        assert plan is None
        return
    assert plan is not None
    log.maintain(plan)
    verbs = [call[0] for call in files.calls]
    assert verbs.index("sync", verbs.index("write", 10)) < verbs.index("rename", len(verbs) - 2)


def test_a_flipped_bit_in_it_costs_time_only() -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", OPTIONS, 1)
    for _ in range(5):
        log.stage(b"s", b"", b"x", 1)
        commit(log)
    checkpoint(log, b"a document")
    expected = reported(log)[:-1]
    content = files.content(PATH)
    for at in range(len(content)):
        disk = files.snapshot()
        disk.contents[disk.names[PATH]] = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        again = opened(disk)
        assert again.document is None
        assert reported(again)[:-1] == expected


def test_a_newest_segment_that_ends_before_it_is_a_loss() -> None:
    files = RecordingFiles()
    older = with_older_copy(files)
    files.replace_content(f"log/{segment_name(0)}", older)
    log = Log.open(files, "log", OPTIONS, 1)
    (damage,) = log.recovery.lost
    assert damage.start == 1
    assert log.next_offset >= 6


def test_an_older_copy_of_the_newest_segment_with_its_size_and_reservation_is_a_loss() -> None:
    files = RecordingFiles()
    older = with_older_copy(files)
    assert len(files.content(f"log/{segment_name(0)}")) == len(older), "room was reserved"
    files.replace_content(f"log/{segment_name(0)}", older)
    files.unlink(f"log/{END_FILE}")
    files.boot_id = b"a start after it"
    log = Log.open(files, "log", OPTIONS, 1)
    assert [record.payload for record in log.read(0, 9, 99)] == [b"old"]
    (damage,) = log.recovery.lost
    assert damage.start == 1 and log.next_offset >= 6


def test_a_checkpoint_whose_mark_cannot_be_written_is_none_and_the_log_goes_on() -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", OPTIONS, 1)
    log.stage(b"s", b"", b"x", 1)
    commit(log)
    plan = log.plan_checkpoint()
    assert plan is not None
    files.faults[files.attempts] = errno.EIO
    with pytest.raises(StorageError):
        log.maintain(plan)
    log.stage(b"s", b"", b"x", 1)
    commit(log)
    files.locks.clear()
    assert opened(files.snapshot()).next_offset == 2


def test_offsets_that_a_refused_batch_used_up_at_the_end_stay_gaps_over_a_clean_stop_and_a_crash() -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", OPTIONS, 1)
    for _ in range(3):
        log.stage(b"s", b"", b"kept", 1)
    commit(log)
    files.capacity = files.used
    for _ in range(5):
        log.stage(b"s", b"", bytes(4000), 1)
    refused = log.seal()
    assert refused is not None
    with pytest.raises(DiskFull):
        log.write(refused)
    log.abandon(refused)
    files.capacity = None
    log.close()
    files = RecordingFiles(files.snapshot())
    log = Log.open(files, "log", OPTIONS, 1)
    assert (log.record_count, log.end_offset) == (3, 8)
    assert log.recovery.notes == (), "the stop was a clean one"
    assert [log.is_absent(offset) for offset in range(8)] == [False] * 3 + [True] * 5
    log.stage(b"s", b"", b"new", 1)
    commit(log)
    checkpoint(log)
    again = opened(files.snapshot())
    assert (again.record_count, again.count(0, 9)) == (4, 4)
