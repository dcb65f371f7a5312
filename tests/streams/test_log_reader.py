"""Of a log whose records are read all over it, as many segments stay open as the process can spare."""

from pathlib import Path

import pytest

from headwater.durable_files.files import File, OsFiles
from headwater.streams.log import Log, LogOptions
from headwater.streams.log_reader import MOST_OPEN, OPEN_SEGMENTS, SHARE_OF_A_LOG

BIG = 40_000  # bytes of a record: two do not fit into the smallest segment


class NotedFiles(OsFiles):
    """Notes what is opened."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, path: str) -> File:
        self.opened.append(path)
        return super().open(path)


def opened_again(folder: Path, segments: int, monkeypatch: pytest.MonkeyPatch, descriptors: int) -> int:
    """How many files are opened by reading one record of each of so many segments, one after the other, a second time."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (descriptors, descriptors))
    files = NotedFiles()
    log = Log.open(files, str(folder), LogOptions(cache_bytes=0, preallocate_bytes=0, segment_bytes=1 << 16), 1)
    for number in range(segments):
        log.stage(b"s", b"", bytes([number]) * BIG, 1)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)
    assert len(log.spans) == segments
    for _ in range(2):
        files.opened.clear()
        for number in range(segments):
            record = log.reader.record(number)
            assert record is not None and record.payload == bytes([number]) * BIG
    count = len(files.opened)
    log.close()
    return count


def test_gets_all_over_a_log_open_no_file_twice_where_there_are_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = 2 * OPEN_SEGMENTS
    assert opened_again(tmp_path, segments, monkeypatch, SHARE_OF_A_LOG * segments) == 0


def test_where_there_are_few_descriptors_a_log_keeps_few_segments_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opened_again(tmp_path, OPEN_SEGMENTS + 1, monkeypatch, 200) == OPEN_SEGMENTS + 1


@pytest.mark.parametrize(("descriptors", "most"), [(200, OPEN_SEGMENTS), (1 << 20, MOST_OPEN), (-1, MOST_OPEN)])
def test_a_log_keeps_neither_too_few_open_nor_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, descriptors: int, most: int
) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (descriptors, descriptors))
    log = Log.open(OsFiles(), str(tmp_path), LogOptions(), 1)
    assert log.reader.most_open == most
    log.close()
