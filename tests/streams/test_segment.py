"""Names of segment files, reading one of them up to what is published, and handing out large batches unread."""

import os
import sys
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recording_files import RecordingFiles

from headwater.durable_files.files import File, OsFiles
from headwater.errors import StorageError
from headwater.jetstream_state.memory_files import MemoryFiles
from headwater.streams.head_page import HEAD_PAGE_SIZE
from headwater.streams.log import Log, LogOptions
from headwater.streams.log_format import BatchBuilder, BatchHeader
from headwater.streams.segment import (
    LARGE_BATCH,
    MOST_KNOWN,
    SEARCHED_BATCH,
    Segment,
    base_offset_of,
    segment_name,
)
from headwater.streams.window import FoundBatch

IDENTITY = b"identity"


@given(st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 63) - 1))
def test_names_sort_like_offsets_and_give_them_back(first: int, second: int) -> None:
    assert base_offset_of(segment_name(first)) == first
    assert (segment_name(first) < segment_name(second)) == (first < second)


@pytest.mark.parametrize("name", ["", "1.log", "00000000000000000001.log.new", "0000000000000000000x.log", "lock"])
def test_other_files_are_no_segments(name: str) -> None:
    assert base_offset_of(name) is None


def test_only_published_batches_are_read_and_the_handle_is_given_back() -> None:
    files = RecordingFiles()
    files.mkdir("log")
    segment = Segment.empty(files, "log", IDENTITY, 5)
    file = files.create(segment.path)
    headers: list[tuple[int, BatchHeader]] = []
    position = HEAD_PAGE_SIZE
    for base in (5, 7, 9):
        builder = BatchBuilder(base)
        for _ in range(2):
            builder.append(b"s", b"", b"p", base)
        header, head, body = builder.encode(IDENTITY)
        file.pwrite([head, body], position)
        headers.append((position, header))
        position += header.size
    file.close()
    assert list(segment.batches(0, 1)) == []
    for published, (at, header) in enumerate(headers, 1):
        segment.publish(at, header)
        pieces = list(segment.batches(7, 1))
        assert all(isinstance(piece, FoundBatch) for piece in pieces)
        assert [piece.position for piece in pieces] == [at for at, _ in headers[1:published]]
    assert (segment.record_count, segment.end_offset, segment.end_position) == (6, 11, position)
    assert (segment.first_timestamp_ns, segment.last_timestamp_ns) == (5, 9)
    assert segment.is_open
    segment.release()
    segment.release()
    assert not segment.is_open
    assert files.open_files == 0
    assert len(list(segment.batches(5, 1))) == 3


class CountedFile:
    """Adds the size of each read to `sizes`."""

    def __init__(self, file: File, sizes: list[int]) -> None:
        self._file = file
        self._sizes = sizes

    def pread(self, size: int, position: int) -> bytes:
        self._sizes.append(size)
        return self._file.pread(size, position)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


class CountedFiles(OsFiles):
    def __init__(self) -> None:
        self.sizes: list[int] = []

    def open(self, path: str) -> File:
        return cast(File, CountedFile(super().open(path), self.sizes))


def large_log(folder: Path, files: OsFiles | None = None, **options: int) -> Log:
    settings = LogOptions(cache_bytes=0, preallocate_bytes=0, **options)  # type: ignore[arg-type]
    return Log.open(files or OsFiles(), str(folder), settings, 1)


def write_staged(log: Log) -> None:
    """All that is staged, as one batch."""
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)


def store(log: Log, *sizes: int) -> None:
    """A batch of one record for each size."""
    for size in sizes:
        log.stage(b"s", b"", bytes([log.next_offset % 251]) * size, 1)
        write_staged(log)


def ranged(log: Log, offset: int) -> bytes | None:
    found = log.range_at(offset)
    return None if found is None else found.body.read()


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="ranges are for Linux")
BIG = LARGE_BATCH + 5


@linux_only
def test_large_batches_written_here_are_handed_out_unread(tmp_path: Path) -> None:
    log = large_log(tmp_path, segment_bytes=4 * BIG)
    store(log, BIG, 10, BIG, BIG, BIG, BIG, BIG)
    bodies = {batch.header.base_offset: batch.body for batch in log.batches(0)}
    assert len(log.spans) > 1
    for offset in (0, 3, 4, 5, 6):
        found = log.range_at(offset)
        assert found is not None and found.body.read() == bodies[offset]
        assert (found.header.base_offset, len(found.body)) == (offset, found.header.body_size)
    assert [ranged(log, offset) for offset in (1, 7, 100)] == [None] * 3, "small, and behind the end"
    log.discard_range(0, 4)
    assert ranged(log, 0) is None and ranged(log, 4) == bodies[4], "in front of the start"
    log.close()


@linux_only
def test_after_a_clean_stop_a_batch_is_read_and_checked_before_it_is_handed_out(tmp_path: Path) -> None:
    log = large_log(tmp_path)
    store(log, BIG, BIG, BIG)
    bodies = [batch.body for batch in log.batches(0)]
    log.close()
    (path,) = tmp_path.glob("*.log")
    content = bytearray(path.read_bytes())
    content[content.index(bodies[1]) + 99] ^= 1
    path.write_bytes(content)
    log = large_log(tmp_path)
    assert log.document is not None, "the index was believed, so nothing was read"
    assert [ranged(log, offset) for offset in range(3)] == [None] * 3
    assert [batch.body for batch in log.batches(0)] == [bodies[0], bodies[2]]
    assert [ranged(log, offset) for offset in range(3)] == [bodies[0], None, bodies[2]]
    store(log, BIG)
    assert ranged(log, 3) is not None
    log.close()


@linux_only
def test_after_a_crash_everything_was_checked(tmp_path: Path) -> None:
    log = large_log(tmp_path)
    store(log, BIG, BIG)
    bodies = [batch.body for batch in log.batches(0)]
    (tmp_path / "copy").mkdir()
    for path in tmp_path.glob("*.*"):
        (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    copy = large_log(tmp_path / "copy")
    assert [ranged(copy, offset) for offset in range(2)] == bodies
    copy.close()
    log.close()


@linux_only
def test_ranges_of_a_segment_that_is_compacted_stay_and_new_ones_are_of_the_new_file(tmp_path: Path) -> None:
    log = large_log(tmp_path, segment_bytes=6 * BIG)
    store(log, *[BIG] * 12)
    before = log.range_at(3)
    assert before is not None
    body = before.body.read()
    log.discard_range(0, 1)
    store(log, 1)
    log.discard_range(1, 3)
    log.discard_range(4, 5)
    upkeep = log.plan_upkeep()
    while upkeep is not None:
        log.maintain(upkeep)
        log.settle(upkeep)
        upkeep = log.plan_upkeep()
    assert before.body.read() == body
    assert ranged(log, 3) == body
    log.delete()
    assert before.body.read() == body, "removed, and still open"


def test_one_record_is_read_without_the_rest_of_its_batch(tmp_path: Path) -> None:
    files = CountedFiles()
    log = large_log(tmp_path, files)
    store(log, *[10] * 20)
    for number in range(2000):
        log.stage(b"s", b"", b"%08d" % number * 20, 1)
    write_staged(log)
    store(log, 10)
    sizes = files.sizes
    for offset in (0, 19, 20, 1000, 2019, 2020):
        sizes.clear()
        found = log.reader.record(offset)
        assert found is not None and found.offset == offset
        assert sum(sizes) <= 4 * 4096, "the batch has 400 KiB"
    for offset in (21, 1500, 20):
        sizes.clear()
        found = log.reader.record(offset)
        assert found is not None and found.offset == offset
        assert len(sizes) == 1, "where the batch is, and how large, is known"
    log.close()


def test_a_few_batches_more_than_have_a_place_leave_the_others_known(tmp_path: Path) -> None:
    files = CountedFiles()
    log = large_log(tmp_path, files)
    store(log, *[SEARCHED_BATCH] * (MOST_KNOWN + 20), 10)
    looked_for = []
    for again in (False, True):
        for offset in (*range(60), *range(MOST_KNOWN, MOST_KNOWN + 20)):
            files.sizes.clear()
            found = log.reader.record(offset)
            assert found is not None and found.offset == offset
            if again and len(files.sizes) > 1:
                looked_for.append(offset)
    assert looked_for == [*range(20), *range(MOST_KNOWN, MOST_KNOWN + 20)], "two that share a place, and no others"
    log.close()


@linux_only
def test_damage_to_a_record_of_a_batch_that_is_known_is_found(tmp_path: Path) -> None:
    log = large_log(tmp_path)
    for number in range(200):
        log.stage(b"s", b"", b"%08d." % number * 20, 1)
    write_staged(log)
    store(log, 10)
    assert log.reader.record(100) is not None
    (path,) = tmp_path.glob("*.log")
    content = bytearray(path.read_bytes())
    content[content.index(b"%08d." % 150)] ^= 1
    path.write_bytes(content)
    found = {offset: log.reader.record(offset) for offset in range(200)}
    assert [offset for offset, record in found.items() if record is None] == [150]
    assert [(damage.start, damage.end) for damage in log.damage] == [(150, 151)]


def test_a_few_records_are_read_without_the_rest_of_their_batch(tmp_path: Path) -> None:
    files = CountedFiles()
    log = large_log(tmp_path, files)
    for number in range(4000):
        log.stage(b"s", b"", b"%08d" % number * 20, 1)
        if number % 2000 == 1999:
            write_staged(log)
    store(log, 10)
    for offset in (5, 3000):
        assert log.reader.record(offset) is not None
    for offset in range(1200, 1280, 3):
        log.discard(offset)
    left = [offset for offset in range(4000) if not (1200 <= offset < 1280 and offset % 3 == 0)]
    for start, count in ((0, 100), (1000, 300), (1950, 100), (3950, 40)):
        files.sizes.clear()
        found = log.read(start, count, 1 << 30)
        assert [record.offset for record in found] == [offset for offset in left if offset >= start][:count]
        assert all(record.payload == b"%08d" % record.offset * 20 for record in found)
        assert sum(files.sizes) <= count * 220 + 4096, "a batch has 400 KiB"
    log.close()


@linux_only
def test_damage_to_one_of_a_few_records_is_found(tmp_path: Path) -> None:
    log = large_log(tmp_path)
    for number in range(200):
        log.stage(b"s", b"", b"%08d." % number * 20, 1)
    write_staged(log)
    store(log, 10)
    assert log.reader.record(100) is not None
    (path,) = tmp_path.glob("*.log")
    content = bytearray(path.read_bytes())
    content[content.index(b"%08d." % 150)] ^= 1
    path.write_bytes(content)
    found: list[int] = []
    while some := log.read(found[-1] + 1 if found else 120, 30, 1 << 30):
        found += [record.offset for record in some]
    assert found == [*range(120, 150), *range(151, 201)]
    assert [(damage.start, damage.end) for damage in log.damage] == [(150, 151)]


@linux_only
def test_a_header_that_was_damaged_meanwhile_is_left_to_the_reader_that_checks(tmp_path: Path) -> None:
    log = large_log(tmp_path)
    store(log, BIG, BIG)
    (path,) = tmp_path.glob("*.log")
    content = bytearray(path.read_bytes())
    content[HEAD_PAGE_SIZE + 20] ^= 1
    path.write_bytes(content)
    assert ranged(log, 0) is None and ranged(log, 1) is not None
    assert [batch.header.base_offset for batch in log.batches(0)] == [0, 1], "a flipped bit in a header is mended"
    (damage,) = log.damage
    assert (damage.start, damage.end) == (0, 0)
    assert ranged(log, 0) is None, "known damage is not handed out unread"
    log.close()


def test_logs_in_memory_have_no_ranges() -> None:
    log = Log.open(MemoryFiles(os.urandom), "log", LogOptions(cache_bytes=0), 1)
    store(log, BIG, BIG)
    assert [ranged(log, offset) for offset in range(2)] == [None, None]
    assert len(list(log.batches(0))) == 2


@linux_only
def test_a_file_that_cannot_be_opened_is_a_storage_error(tmp_path: Path) -> None:
    log = large_log(tmp_path)
    store(log, BIG)
    (path,) = tmp_path.glob("*.log")
    path.rename(tmp_path / "away")
    with pytest.raises(StorageError):
        log.range_at(0)
    (tmp_path / "away").rename(path)
    log.close()
