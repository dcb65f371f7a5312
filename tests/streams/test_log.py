"""The log as its users see it: offsets, two-phase append, reading, limits, errors, and the real file system."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recording_files import RecordingFiles

from headwater.durable_files.files import Files, OsFiles
from headwater.errors import DiskFull, StorageError, WriteFailed
from headwater.streams.log import Log, LogOptions, StoredRecord, begin_at
from headwater.streams.log_reader import Wanted
from headwater.streams.writer import StagedBatch

ROOT = Path(__file__).parents[2]


def open_log(files: Files | None = None, options: LogOptions | None = None) -> Log:
    return Log.open(files or RecordingFiles(), "log", options or LogOptions(preallocate_bytes=0), 1)


def stage(log: Log, *payloads: bytes) -> StagedBatch:
    for payload in payloads:
        log.stage(b"orders.new", b"", payload, 1)
    batch = log.seal()
    assert batch is not None
    return batch


def append(log: Log, *payloads: bytes) -> None:
    batch = stage(log, *payloads)
    log.write(batch)
    log.publish(batch)


def payloads(log: Log, offset: int = 0, records: int = 1 << 30, size: int = 1 << 40) -> list[bytes]:
    return [record.payload for record in log.read(offset, records, size)]


def test_a_new_log_is_empty_and_starts_at_offset_zero() -> None:
    log = open_log()
    assert (log.start_offset, log.end_offset, log.next_offset, log.record_count) == (0, 0, 0, 0)
    assert (log.first_timestamp_ns, log.last_timestamp_ns, log.seal()) == (None, None, None)
    assert log.read(0, 10, 10) == []
    assert log.recovery.damage == ()
    assert log.recovery.notes == ()


def test_a_log_without_records_may_begin_at_a_later_offset_and_keeps_it_with_its_first_record() -> None:
    files = RecordingFiles()
    log = open_log(files)
    begin_at(log, 7)
    assert (log.start_offset, log.end_offset, log.next_offset, log.record_count) == (7, 7, 7, 0)
    append(log, b"first")
    assert (log.start_offset, log.end_offset, log.count(0, 8)) == (7, 8, 1)
    log.close()
    again = open_log(files)
    assert (again.start_offset, again.end_offset, payloads(again)) == (7, 8, [b"first"])


def test_a_record_comes_back_as_it_was_staged() -> None:
    log = open_log()
    assert log.stage(b"a.b", b"NATS/1.0\r\nA: 1\r\n\r\n", b"payload", 123) == 0
    assert log.stage(b"c", b"", b"", -5) == 1
    batch = log.seal()
    assert batch is not None
    assert (batch.base_offset, batch.end_offset, batch.record_count) == (0, 2, 2)
    log.write(batch)
    log.publish(batch)
    first, second = log.read(0, 10, 1000)
    assert (first.offset, first.timestamp_ns, first.subject) == (0, 123, b"a.b")
    assert (first.header_block, first.payload) == (b"NATS/1.0\r\nA: 1\r\n\r\n", b"payload")
    assert (second.offset, second.timestamp_ns, second.subject) == (1, -5, b"c")
    assert (second.header_block, second.payload) == (b"", b"")
    assert (log.first_timestamp_ns, log.last_timestamp_ns) == (123, -5)


@given(
    batches=st.lists(st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=5), max_size=8),
    gone=st.sets(st.integers(0, 20)),
    step=st.tuples(st.integers(1, 4), st.integers(1, 30), st.integers(1, 9)),
    wanted=st.sampled_from([b"a", lambda subject: subject != b"b", None]),
)
def test_matching_records_come_as_if_all_had_been_read_however_few_at_a_time(
    batches: list[list[bytes]], gone: set[int], step: tuple[int, int, int], wanted: Wanted | None
) -> None:
    log = open_log()
    for subjects in batches:
        for subject in subjects:
            log.stage(subject, b"", b"x" * (log.next_offset % 7), 1)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)
    for offset in gone:
        log.discard(offset)
    everything = log.read(0, 1000, 1 << 20)
    if isinstance(wanted, bytes):
        expected = [record for record in everything if record.subject == wanted]
    else:
        expected = [record for record in everything if wanted is None or wanted(record.subject)]
    found: list[StoredRecord] = []
    offset = turns = 0
    while offset < log.end_offset:
        records, after = log.read_matching(offset, wanted, *step)
        assert offset < after <= log.end_offset
        assert len(records) <= step[0]
        found, offset, turns = found + records, after, turns + 1
    assert found == expected
    assert turns <= len(expected) + len(batches) + 1


@given(
    batches=st.lists(st.integers(1, 200), min_size=1, max_size=5),
    gone=st.sets(st.integers(0, 600), max_size=50),
    reads=st.lists(st.tuples(st.integers(0, 800), st.integers(1, 60), st.integers(0, 9000)), max_size=20),
    cache_bytes=st.sampled_from([0, 30_000]),
)
def test_few_records_of_large_batches_come_as_if_all_had_been_read(
    batches: list[int], gone: set[int], reads: list[tuple[int, int, int]], cache_bytes: int
) -> None:
    log = open_log(options=LogOptions(cache_bytes=cache_bytes, preallocate_bytes=0))
    for count in batches:
        append(log, *(b"%d." % number * (20 + number % 5) for number in range(count)))
    everything = {record.offset: record for record in log.read(0, 10_000, 1 << 30)}
    for offset in gone:
        log.discard(offset)
        everything.pop(offset, None)
    for offset, most, size in reads:
        log.reader.record(offset)  # so that the batch is known, and it may be mapped
        found = log.read(offset, most, size)
        expected = [everything[at] for at in sorted(everything) if at >= offset]
        assert found == expected[: len(found)]
        assert found or not expected
        assert len(found) <= most
        assert len(found) <= 1 or sum(len(record.subject) + len(record.payload) for record in found) <= size


def test_what_is_staged_or_only_written_cannot_be_read() -> None:
    log = open_log()
    batch = stage(log, b"one")
    assert (log.end_offset, log.next_offset, payloads(log)) == (0, 1, [])
    log.write(batch)
    assert (log.end_offset, payloads(log)) == (0, [])
    log.publish(batch)
    assert (log.end_offset, payloads(log)) == (1, [b"one"])


def test_staging_goes_on_while_a_batch_is_written() -> None:
    log = open_log()
    first = stage(log, b"one")
    assert log.stage(b"s", b"", b"two", 1) == 1
    log.write(first)
    second = log.seal()
    log.publish(first)
    assert second is not None
    assert payloads(log) == [b"one"]
    log.write(second)
    log.publish(second)
    assert payloads(log) == [b"one", b"two"]


def test_several_batches_may_be_written_before_the_first_is_published() -> None:
    log = open_log()
    batches = [stage(log, b"%d" % number) for number in range(3)]
    for batch in batches:
        log.write(batch)
    for number, batch in enumerate(batches):
        log.publish(batch)
        assert log.end_offset == number + 1
    assert payloads(log) == [b"0", b"1", b"2"]


def test_batches_out_of_order_or_twice_are_refused() -> None:
    log = open_log()
    first, second = stage(log, b"one"), stage(log, b"two")
    with pytest.raises(StorageError, match="only a written batch"):
        log.publish(first)
    log.write(second)
    with pytest.raises(StorageError, match="in the order they were sealed"):
        log.write(first)
    log.abandon(first)
    log.publish(second)
    with pytest.raises(StorageError, match="only a written batch"):
        log.publish(second)
    with pytest.raises(StorageError, match="in the order they were sealed"):
        log.write(second)
    assert [record.offset for record in log.read(0, 9, 99)] == [1]


def test_an_abandoned_batch_leaves_a_gap_that_survives_reopening() -> None:
    files = RecordingFiles()
    log = open_log(files)
    append(log, b"one")
    refused = stage(log, b"refused", b"too")
    log.abandon(refused)
    append(log, b"two")
    assert [(record.offset, record.payload) for record in log.read(0, 9, 99)] == [(0, b"one"), (3, b"two")]
    assert (log.record_count, log.end_offset) == (2, 4)
    assert payloads(log, 1) == [b"two"]
    log.close()
    log = open_log(files)
    assert [(record.offset, record.payload) for record in log.read(0, 9, 99)] == [(0, b"one"), (3, b"two")]
    assert log.recovery.damage == ()


def test_reading_stops_at_either_limit_but_gives_at_least_one_record() -> None:
    for cache_bytes in (0, 1 << 20):
        log = open_log(options=LogOptions(batch_bytes=100, cache_bytes=cache_bytes, preallocate_bytes=0))
        append(log, *(b"%010d" % number for number in range(50)))  # 20 bytes each with the subject
        assert payloads(log, 10, 3) == [b"%010d" % number for number in (10, 11, 12)]
        assert payloads(log, 10, 100, 60) == [b"%010d" % number for number in (10, 11, 12)]
        assert payloads(log, 10, 100, 59) == [b"%010d" % number for number in (10, 11)]
        assert payloads(log, 10, 100, 0) == [b"%010d" % 10]
        assert payloads(log, 10, 0, 100) == []
        assert payloads(log, 50) == payloads(log, 1 << 40) == []
        assert len(payloads(log, -5)) == 50


def test_reads_are_the_same_from_the_cache_and_from_every_segment() -> None:
    expected = [b"%05d" % number * 100 for number in range(2000)]
    cached = open_log(options=LogOptions(cache_bytes=1 << 30, preallocate_bytes=0))
    stored = open_log(options=LogOptions(cache_bytes=0, segment_bytes=64 << 10, preallocate_bytes=0))
    mixed = open_log(options=LogOptions(cache_bytes=100_000, segment_bytes=64 << 10, preallocate_bytes=0))
    for log in (cached, stored, mixed):
        for start in range(0, 2000, 40):
            append(log, *expected[start : start + 40])
        for offset in (0, 1, 39, 40, 777, 1800, 1999):
            assert payloads(log, offset) == expected[offset:]
            assert payloads(log, offset, 90) == expected[offset : offset + 90]
    assert cached.size_bytes < stored.size_bytes


@pytest.mark.parametrize("cache_bytes", [0, 20_000, 1 << 20])
def test_one_record_is_read_alone_wherever_it_is(cache_bytes: int) -> None:
    log = open_log(options=LogOptions(cache_bytes=cache_bytes, segment_bytes=64 << 10, preallocate_bytes=0))
    expected: dict[int, bytes] = {}
    for count in (1, 7, 1, 30, 2, 1):
        some = [b"%d of %d" % (number, count) * 200 for number in range(count)]
        expected |= dict(enumerate(some, log.next_offset))
        append(log, *some)
    for offset in (0, 3, 41):
        log.discard(offset)
        del expected[offset]
    for offset in range(-1, log.end_offset + 2):
        following = min((at for at in expected if at >= offset), default=None)
        assert payloads(log, offset, 1, 1) == ([] if following is None else [expected[following]])
        alone = log.reader.record(offset)
        assert (alone.payload if alone is not None else None) == expected.get(offset)


def test_records_can_be_walked_without_copying_their_payloads() -> None:
    log = open_log(options=LogOptions(batch_bytes=500, preallocate_bytes=0))
    append(log, *(b"%d" % number for number in range(100)))
    found = []
    for batch in log.batches(40):
        cursor = batch.cursor()
        while cursor.advance():
            if cursor.offset >= 40 and cursor.offset % 10 == 0:
                found.append((cursor.offset, cursor.subject(), cursor.record().payload))
    assert found == [(number, b"orders.new", b"%d" % number) for number in range(40, 100, 10)]


def test_large_records_get_segments_of_their_own_and_come_back() -> None:
    files = RecordingFiles()
    log = open_log(files, LogOptions(segment_bytes=64 << 10, cache_bytes=1 << 20, preallocate_bytes=0))
    large = [bytes([number]) * (1 << 20) for number in range(3)]
    for payload in large:
        append(log, payload)
    append(log, b"small")
    assert payloads(log) == [*large, b"small"]
    log.close()
    log = open_log(files)
    assert payloads(log) == [*large, b"small"]
    assert sum(name.endswith(".log") for name in files.names) == 4


def test_one_staged_batch_is_one_sync_however_many_records_it_has() -> None:
    files = RecordingFiles()
    log = open_log(files, LogOptions(batch_bytes=1000, preallocate_bytes=0))
    append(log, b"first")
    before = len(files.calls)
    append(log, *(b"%d" % number for number in range(500)))
    assert [call[0] for call in files.calls[before:]] == ["write", "write", "sync", "write"]  # the last: log.end


def test_the_interval_policy_syncs_when_the_interval_has_passed_and_when_told() -> None:
    files = RecordingFiles()
    log = open_log(files, LogOptions(sync="interval", sync_interval_ns=100, preallocate_bytes=0))

    def syncs(timestamp_ns: int) -> int:
        before = len(files.calls)
        log.stage(b"s", b"", b"", timestamp_ns)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        return sum(call[0] == "sync" for call in files.calls[before:])

    syncs(1000)
    assert [syncs(now) for now in (1050, 1099, 1100, 1150, 900)] == [0, 0, 1, 0, 1]
    assert syncs(950) == 0
    before = len(files.calls)
    log.sync()
    log.sync()
    assert [call[0] for call in files.calls[before:]] == ["sync", "write"]


def test_a_full_disk_refuses_the_batch_and_the_log_goes_on_when_room_returns() -> None:
    files = RecordingFiles()
    log = open_log(files)
    append(log, b"one")
    size = len(files.content("log/00000000000000000000.log"))
    files.capacity = files.used + 100
    refused = stage(log, b"x" * 1000)
    waiting = stage(log, b"next")
    with pytest.raises(DiskFull) as caught:
        log.write(refused)
    assert caught.value.retriable
    log.abandon(refused)
    assert len(files.content("log/00000000000000000000.log")) == size
    assert log.failure is None
    files.capacity = None
    log.write(waiting)
    log.publish(waiting)
    assert payloads(log) == [b"one", b"next"]
    log.close()
    assert payloads(open_log(files)) == [b"one", b"next"]


def test_a_batch_that_a_full_disk_refused_may_be_written_again() -> None:
    files = RecordingFiles()
    log = open_log(files)
    files.capacity = 0
    batch = stage(log, b"one")
    for _ in range(3):
        with pytest.raises(DiskFull):
            log.write(batch)
    files.capacity = None
    log.write(batch)
    log.publish(batch)
    assert [record.offset for record in log.read(0, 1, 1)] == [0]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_failed_sync_makes_the_log_read_only_for_good(number: int) -> None:
    files = RecordingFiles()
    log = open_log(files)
    append(log, b"one")
    batch = stage(log, b"two")
    files.faults[files.attempts + 1] = number  # batch, sync
    with pytest.raises(WriteFailed, match="make the log durable"):
        log.write(batch)
    log.abandon(batch)
    calls = len(files.calls)
    with pytest.raises(WriteFailed):
        log.write(batch)
    with pytest.raises(WriteFailed):
        log.stage(b"s", b"", b"three", 1)
    with pytest.raises(WriteFailed):
        log.sync()
    assert isinstance(log.failure, WriteFailed)
    assert payloads(log) == [b"one"]
    log.close()
    assert len(files.calls) == calls, "the disk was touched after the failure"
    assert files.open_files == 0


def test_a_read_error_is_a_storage_error_and_costs_nothing_else() -> None:
    files = RecordingFiles()
    log = open_log(files, LogOptions(cache_bytes=0, preallocate_bytes=0))
    append(log, b"one")
    files.read_error = errno.EIO
    with pytest.raises(StorageError, match="cannot read"):
        log.read(0, 1, 1)
    files.read_error = 0
    assert payloads(log) == [b"one"]


def test_records_that_the_format_cannot_hold_are_refused_and_the_batch_goes_on() -> None:
    log = open_log()
    log.stage(b"s", b"", b"one", 1)
    with pytest.raises(StorageError, match="subject too long"):
        log.stage(b"s" * 65536, b"", b"", 1)
    assert log.stage(b"s", b"", b"two", 1) == 1


def test_few_files_are_held_open_however_many_segments_there_are() -> None:
    files = RecordingFiles()
    log = open_log(files, LogOptions(segment_bytes=64 << 10, cache_bytes=0, preallocate_bytes=0))
    for number in range(60):
        append(log, b"%d" % number * 30_000)
    assert len(payloads(log)) == 60
    assert files.open_files <= 20
    log.close()
    assert files.open_files == 0


def test_a_log_can_be_open_only_once() -> None:
    files = RecordingFiles()
    log = open_log(files)
    with pytest.raises(StorageError, match="open already"):
        open_log(files)
    log.close()
    log.close()
    open_log(files).close()


def test_delete_removes_all_of_the_log_and_nothing_else() -> None:
    files = RecordingFiles()
    log = open_log(files)
    append(log, b"one")
    files.create("log/notes.txt").close()
    log.delete()
    assert list(files.names) == ["log/notes.txt"]
    assert files.open_files == 0
    log = open_log(files)
    files.unlink("log/notes.txt")
    log.delete()
    assert not files.names
    assert "log" not in files.directories


def test_reopening_many_times_changes_nothing() -> None:
    files = RecordingFiles()
    for number in range(30):
        log = open_log(files)
        append(log, b"%d" % number)
        if number % 3:
            log.close()
        else:
            files.locks.clear()  # as a killed process
    assert payloads(open_log(files)) == [b"%d" % number for number in range(30)]
    assert log.end_offset == 30


def test_the_real_file_system_keeps_the_log_private_and_whole(tmp_path: Path) -> None:
    directory = tmp_path / "with a space" / "log"
    options = LogOptions(segment_bytes=64 << 10, cache_bytes=0)
    log = Log.open(OsFiles(), str(directory), options, 1)
    expected = [b"%d" % number * 3000 for number in range(100)]
    for start in range(0, 100, 10):
        append(log, *expected[start : start + 10])
    assert payloads(log) == expected
    with pytest.raises(StorageError, match="open already"):
        Log.open(OsFiles(), str(directory), options, 1)
    log.close()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    log = Log.open(OsFiles(), str(directory), options, 1)
    assert payloads(log) == expected
    log.delete()
    assert not directory.exists()


def test_a_worker_thread_writes_while_the_loop_thread_stages_publishes_and_reads(tmp_path: Path) -> None:
    log = Log.open(OsFiles(), str(tmp_path / "log"), LogOptions(segment_bytes=64 << 10, cache_bytes=3000), 1)
    to_write: Queue[StagedBatch | None] = Queue()
    written: Queue[StagedBatch] = Queue()

    def worker() -> None:
        while (batch := to_write.get()) is not None:
            log.write(batch)
            written.put(batch)

    thread = threading.Thread(target=worker)
    thread.start()
    for number in range(300):
        to_write.put(stage(log, *(b"%d.%d" % (number, record) * 20 for record in range(10))))
        if number >= 5:
            log.publish(written.get(timeout=30))
        found = log.read(max(0, log.end_offset - 15), 100, 1 << 20)
        assert [record.offset for record in found] == list(range(max(0, log.end_offset - 15), log.end_offset))
    to_write.put(None)
    for _ in range(5):
        log.publish(written.get(timeout=30))
    thread.join(30)
    expected = [b"%d.%d" % (number, record) * 20 for number in range(300) for record in range(10)]
    assert payloads(log) == expected
    log.close()


CHILD = """
import sys
from headwater.durable_files.files import OsFiles
from headwater.streams.log import Log, LogOptions
from headwater.streams.writer import StagedBatch
log = Log.open(OsFiles(), sys.argv[1], LogOptions(segment_bytes=64 << 10), 1)
print("open", log.end_offset, flush=True)
while True:
    for _ in range(7):
        offset = log.next_offset
        log.stage(b"s", b"", b"payload of %d" % offset, 1)
    batch = log.seal()
    log.write(batch)
    log.publish(batch)
    print(log.end_offset, flush=True)
"""


@pytest.mark.kill
def test_everything_acknowledged_before_kill_9_is_there_after_it(tmp_path: Path) -> None:
    directory = str(tmp_path / "log")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    acknowledged = 0
    for acks in (1, 20, 50, 3):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, directory], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        with child:
            began = int(child.stdout.readline().split()[1])
            assert began >= acknowledged
            for _ in range(acks):
                acknowledged = int(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
            rest = [line for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
            acknowledged = int(rest[-1]) if rest else acknowledged
        log = Log.open(OsFiles(), directory, LogOptions(), 1)
        assert log.recovery.lost == ()
        assert log.end_offset >= acknowledged
        records = log.read(0, 1 << 30, 1 << 40)
        assert all(record.payload == b"payload of %d" % record.offset for record in records)
        assert {record.offset for record in records} >= set(range(began, acknowledged))
        log.close()
