"""The order of calls that every durability argument rests on, and what a failure leaves usable."""

import errno

import pytest
from support.recording_files import RecordingFiles

from headwater.errors import DiskFull, WriteFailed
from headwater.streams.active_segment import HASTENED
from headwater.streams.head_page import SECTOR_SIZE, Mark, decode_marks
from headwater.streams.log import Log
from headwater.streams.log_state import RESERVATION
from headwater.streams.options import LogOptions, SyncPolicy
from headwater.streams.segment import segment_name
from headwater.streams.writer import RESERVED, StagedBatch

OPTIONS = LogOptions(segment_bytes=64 << 10, preallocate_bytes=0)


def open_log(options: LogOptions = OPTIONS) -> tuple[RecordingFiles, Log]:
    files = RecordingFiles()
    return files, Log.open(files, "log", options, 1)


def seal(log: Log, payload: bytes) -> StagedBatch:
    log.stage(b"s", b"", payload, 1)
    batch = log.seal()
    assert batch is not None
    return batch


def append(log: Log, payload: bytes) -> None:
    batch = seal(log, payload)
    log.write(batch)
    log.publish(batch)


SAVE = [*["create", "write"] * 2, "sync", "sync", "rename", "rename", "sync_directory"]  # the log's state, twice
APPEND = ["write", "sync", "write"]  # batch, fdatasync, log.end
MARKED = ["write", *APPEND]  # the first of RESERVED offsets, and the first in a segment


def verbs(files: RecordingFiles, since: int) -> list[str]:
    return [call[0] for call in files.calls[since:]]


def test_the_first_write_reserves_offsets_durably_before_it_uses_one() -> None:
    files, log = open_log()
    before = len(files.calls)
    append(log, b"one")
    assert verbs(files, before) == [*SAVE, *MARKED[:3], "create", "write"]


def test_a_mark_goes_out_before_its_batch_and_covers_those_after_it() -> None:
    files, log = open_log()
    append(log, b"one")
    marks = []
    for offset in range(1, 2 * RESERVED + 9):
        before = len(files.calls)
        append(log, b"more")
        places = [int(str(call[2])) for call in files.calls[before:] if call[0] == "write"]
        assert places[-1] == 0 and len(places) in (2, 3), "the batch, and log.end"
        if len(places) == 3:
            marks.append((offset, places[0]))
    assert marks == [(RESERVED + 1, SECTOR_SIZE), (2 * RESERVED + 2, 2 * SECTOR_SIZE)]


def test_a_mark_reserves_no_more_than_the_state() -> None:
    """Else the state would be taken for one of an older time."""
    files = RecordingFiles()
    log = Log.open(files, "log", OPTIONS, 1)
    append(log, b"one")
    log.staging.skip_to(RESERVATION - RESERVED // 2)
    append(log, b"one of the last that are reserved")
    mark, _, _ = decode_marks(files.content(f"log/{segment_name(0)}"), log.identity)
    assert mark is not None and mark.assigned_end == 1 + RESERVATION


def test_where_the_start_of_the_system_is_not_known_each_batch_has_its_mark_and_they_take_turns() -> None:
    files = RecordingFiles(boot_id=b"")
    log = Log.open(files, "log", OPTIONS, 1)
    append(log, b"one")
    places = []
    for _ in range(4):
        before = len(files.calls)
        append(log, b"more")
        places.append([int(str(call[2])) for call in files.calls[before:] if call[0] == "write"])
    assert [mark for mark, _, _ in places] == [SECTOR_SIZE, 2 * SECTOR_SIZE] * 2
    assert [batch for _, batch, _ in places] == sorted(batch for _, batch, _ in places)
    files.locks.clear()
    assert Log.open(files, "log", OPTIONS, 1).next_offset == 5


def test_a_clean_stop_s_marks_reserve_nothing_also_where_the_last_batch_was_refused() -> None:
    files, log = open_log()
    append(log, b"one")
    files.capacity = files.used
    refused = seal(log, b"two")
    with pytest.raises(DiskFull):
        log.write(refused)
    log.abandon(refused)
    files.capacity = None
    log.close()
    mark, _, in_order = decode_marks(files.content(f"log/{segment_name(0)}"), log.identity)
    assert (mark, in_order) == (Mark(1, 2), True)
    log = Log.open(files, "log", OPTIONS, 1)
    assert (log.next_offset, log.recovery.damage, log.recovery.notes) == (2, (), ())


def test_a_new_segment_is_durable_and_named_by_the_state_before_its_first_batch() -> None:
    files, log = open_log()
    append(log, b"x" * 40_000)
    before = len(files.calls)
    append(log, b"y" * 40_000)
    create = ["create", "write", "sync", "rename", "sync_directory"]
    assert verbs(files, before) == [*create, *SAVE, *MARKED]


def test_never_means_no_sync_of_batches_but_the_reservation_is_durable() -> None:
    files, log = open_log(LogOptions(sync="never", preallocate_bytes=0))
    append(log, b"one")
    before = len(files.calls)
    append(log, b"two")
    assert verbs(files, before) == ["write"]
    log.sync()
    assert verbs(files, before) == ["write", "sync", "create", "write"]


def test_never_means_no_sync_of_a_new_segment_either_but_the_old_index_is_taken_back() -> None:
    files, log = open_log(LogOptions(segment_bytes=64 << 10, sync="never", preallocate_bytes=0))
    append(log, b"x" * 40_000)
    before = len(files.calls)
    append(log, b"y" * 40_000)
    assert verbs(files, before) == ["create", "write", "rename", "write", "write"]
    log.close()
    again = Log.open(files, "log", LogOptions(segment_bytes=64 << 10, sync="never", preallocate_bytes=0), 1)
    assert [span.start for span in again.spans] == [0, 1] and again.recovery.lost == ()
    before = len(files.calls)
    append(again, b"z" * 40_000)
    assert verbs(files, before) == ["create", "write", "rename", *SAVE, "write", "write"]


def test_what_is_likely_to_be_next_is_prepared_unless_it_opens_a_segment_or_the_log_has_failed() -> None:
    files, log = open_log(LogOptions(segment_bytes=64 << 10, preallocate_bytes=16 << 10))
    append(log, b"x" * 18_000)
    before = len(files.calls)
    log.staging.prepare(14_000)
    assert verbs(files, before) == ["truncate", "write"]
    append(log, b"y" * 9_000)
    assert verbs(files, before) == ["truncate", "write", *APPEND]
    log.staging.prepare(64 << 10)
    files.faults[files.attempts] = errno.EIO
    with pytest.raises(WriteFailed):
        append(log, b"z")
    before = len(files.calls)
    log.staging.prepare(1000)
    assert verbs(files, before) == []


@pytest.mark.parametrize("attempt", range(14))
def test_no_room_at_any_call_of_a_roll_leaves_the_log_usable_or_read_only_and_never_wrong(attempt: int) -> None:
    files, log = open_log()
    append(log, b"x" * 40_000)
    files.faults[files.attempts + attempt] = errno.ENOSPC
    batch = seal(log, b"y" * 40_000)
    try:
        log.write(batch)
    except DiskFull:
        assert log.failure is None
        log.write(batch)
        log.publish(batch)
    except WriteFailed:
        assert log.failure is not None
        log.abandon(batch)
    else:
        log.publish(batch)
    expected = [record.payload for record in log.read(0, 9, 1 << 20)]
    assert len(expected) == (1 if log.failure else 2)
    failed = log.failure is not None
    log.close()
    again = Log.open(files, "log", OPTIONS, 1)
    found = [record.payload for record in again.read(0, 9, 1 << 20)]
    assert found == expected or (failed and found[:1] == expected)
    assert again.recovery.lost == ()


def test_an_undo_that_fails_makes_the_log_read_only() -> None:
    files, log = open_log()
    append(log, b"one")
    files.faults |= {files.attempts: errno.ENOSPC, files.attempts + 1: errno.EIO}  # the batch, the truncation
    with pytest.raises(WriteFailed, match="undo"):
        log.write(seal(log, b"two"))
    assert log.failure is not None


def test_a_close_that_fails_says_so_and_gives_the_files_back() -> None:
    files, log = open_log()
    append(log, b"one")
    files.faults[files.attempts + 1] = errno.EIO
    with pytest.raises(WriteFailed):
        log.close()
    assert files.open_files == 0
    assert [record.payload for record in Log.open(files, "log", OPTIONS, 1).read(0, 9, 99)] == [b"one"]


@pytest.mark.parametrize(("sync", "pieces"), [("interval", 2), ("always", 0), ("never", 0)])
def test_what_a_later_sync_is_to_write_begins_to_be_written_before(sync: SyncPolicy, pieces: int) -> None:
    """With `always` no write is left to a later sync; with `never` there is none."""
    options = LogOptions(sync=sync, sync_interval_ns=1 << 60)
    files, log = open_log(options)
    append(log, b"synced with its write, the first")
    size = HASTENED // 4
    for _ in range(8):
        append(log, bytes(size))
    assert len(files.hastened) == pieces
    ends = [position + length for position, length in files.hastened]
    assert [position for position, _ in files.hastened][1:] == ends[:-1], "each byte once"
    assert sum(length for _, length in files.hastened) >= pieces * HASTENED
