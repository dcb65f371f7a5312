"""Names of segment files, and reading one of them up to what is published."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recording_files import RecordingFiles

from headwater.streams.log_format import HEAD_PAGE_SIZE, BatchBuilder, BatchHeader
from headwater.streams.recovery import FoundBatch
from headwater.streams.segment import Segment, base_offset_of, segment_name

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
