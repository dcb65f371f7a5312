"""Large records read one by one: always a beginning of what a walk over batches finds, and never one that is damaged."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recording_files import RecordingFiles

from headwater.durable_files.files import OsFiles
from headwater.errors import StorageError
from headwater.jetstream_ranges.large_records import AT_ONCE, LEAST, LargeRecords
from headwater.jetstream_state.memory_files import MemoryFiles
from headwater.streams.log import Log
from headwater.streams.options import LogOptions

LARGE = 2 * LEAST
SIZES = st.lists(st.lists(st.sampled_from([0, 100, LEAST, LARGE, AT_ONCE + 1]), min_size=1, max_size=4), max_size=6)


def memory_log() -> Log:
    return Log.open(MemoryFiles(os.urandom), "log", LogOptions(cache_bytes=0), 1)


def file_log(directory: Path) -> Log:
    return Log.open(OsFiles(), str(directory), LogOptions(sync="never", cache_bytes=0, preallocate_bytes=0), 1)


def fill(log: Log, *batches: list[int]) -> None:
    """Each list is a batch of payloads of so many bytes, on subjects and with header blocks by number."""
    for sizes in batches:
        for size in sizes:
            number = log.next_offset
            log.stage(b"s.%d" % (number % 3), b"NATS/1.0\r\n\r\n" * (number % 2), bytes(size), number)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)


@given(
    SIZES, st.sets(st.integers(0, 20)), st.sampled_from([None, b"s.1", lambda subject: subject != b"s.2"]), st.data()
)
def test_what_is_read_is_the_beginning_of_what_a_walk_finds(
    batches: list[list[int]], deleted: set[int], wanted: object, data: st.DataObject
) -> None:
    log = memory_log()
    fill(log, *batches)
    for offset in deleted:
        if offset < log.end_offset:
            log.discard(offset)
    reader = LargeRecords(log)
    for _ in range(3):
        start = data.draw(st.integers(log.start_offset, log.end_offset))
        walked, _ = log.read_matching(start, wanted, 100, 1 << 30, 1 << 30)  # type: ignore[arg-type]
        found = reader.read(start, wanted)  # type: ignore[arg-type]
        assert found == walked[: len(found)]
        assert [record.offset for record in found] == list(range(start, start + len(found)))
    log.close()


def test_chunks_are_read_together_and_in_turn_whatever_their_batches() -> None:
    log = memory_log()
    chunk = AT_ONCE // 2
    fill(log, [chunk], [chunk, chunk, chunk], [chunk], [10])
    reader = LargeRecords(log)
    assert [[record.offset for record in reader.read(start, None)] for start in (0, 2, 4, 5)] == [
        [0, 1],
        [2, 3],
        [4],
        [],
    ]
    log.close()


def test_a_damaged_record_ends_the_list_and_is_reported_by_the_reader_that_checks_all(tmp_path: Path) -> None:
    log = file_log(tmp_path)
    for number in range(4):
        log.stage(b"s", b"", b"%d" % number * LARGE, 1)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)
    (path,) = tmp_path.glob("*.log")
    content = bytearray(path.read_bytes())
    content[content.index(b"2" * LARGE) + 5] ^= 1
    path.write_bytes(content)
    reader = LargeRecords(log)
    assert [record.offset for record in reader.read(0, None)] == [0, 1]
    assert reader.read(2, None) == []
    assert log.read_matching(2, None, 10, 1 << 20, 1 << 20)[0][0].offset == 3
    assert [(damage.start, damage.end) for damage in log.damage] == [(2, 3)]
    assert [record.offset for record in reader.read(3, None)] == [3]
    log.close()


@pytest.mark.parametrize("byte", range(28))
def test_a_damaged_head_hides_no_record(tmp_path: Path, byte: int) -> None:
    log = file_log(tmp_path)
    fill(log, [LARGE] * 4)
    (path,) = tmp_path.glob("*.log")
    content = bytearray(path.read_bytes())
    second = content.index(b"s.1") - 28
    content[second + byte] ^= 1 << byte % 8
    path.write_bytes(content)
    found = LargeRecords(log).read(1, None)
    assert found == [], "the tag is in the checksum, too"
    for start in (2, 3):
        found = LargeRecords(log).read(start, None)
        assert [record.offset for record in found] in ([], list(range(start, 4)))
    log.close()


def test_a_file_that_cannot_be_read_is_a_storage_error() -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", LogOptions(cache_bytes=0, preallocate_bytes=0), 1)
    fill(log, [LARGE])
    files.read_error = errno.EIO
    with pytest.raises(StorageError):
        LargeRecords(log).read(0, None)
    files.read_error = 0
    log.close()


def test_a_log_that_was_compacted_is_read_from_its_new_file(tmp_path: Path) -> None:
    log = file_log(tmp_path)
    together = AT_ONCE // LARGE
    fill(log, [100] * 3, *[[LARGE]] * (together + 2))
    reader = LargeRecords(log)
    assert [record.offset for record in reader.read(3, None)] == list(range(3, 3 + together))
    log.discard_range(0, 1 + together)
    upkeep = log.plan_upkeep()
    while upkeep is not None:
        log.maintain(upkeep)
        log.settle(upkeep)
        upkeep = log.plan_upkeep()
    assert [record.offset for record in reader.read(3 + together, None)] == [3 + together, 4 + together]
    log.close()
