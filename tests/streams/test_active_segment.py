"""The file that is written to: marks that take turns, room that is reserved once, and writes that are undone."""

import errno

import pytest
from support.recording_files import RecordingFiles

from headwater.streams.active_segment import MOST_AHEAD, ActiveSegment, create_segment
from headwater.streams.head_page import HEAD_PAGE_SIZE, Mark, SegmentHead, decode_marks
from headwater.streams.segment import Segment

IDENTITY = b"identity"
MOST = 1 << 20


def make() -> tuple[RecordingFiles, Segment]:
    files = RecordingFiles()
    files.mkdir("log")
    return files, create_segment(files, "log", SegmentHead(IDENTITY, 7, 7, 1), Mark(7, 7))


def test_a_new_segment_is_durable_under_its_name_before_it_is_used() -> None:
    files, segment = make()
    assert [call[0] for call in files.calls[-5:]] == ["create", "write", "sync", "rename", "sync_directory"]
    assert (segment.base_offset, segment.end_offset, segment.end_position) == (7, 7, HEAD_PAGE_SIZE)
    assert segment.path == f"log/{segment.facts.name}"
    assert files.open_files == 0


def test_the_newest_mark_wins_and_the_one_before_it_stays() -> None:
    files, segment = make()
    active = ActiveSegment(files, segment, IDENTITY, 0)
    for end in (8, 9):
        active.mark(end - 1, end)
    page = files.content(segment.path)
    assert decode_marks(page, IDENTITY) == (Mark(8, 9), 0, True)
    active.mark(9, 10)
    damaged = bytearray(files.content(segment.path))
    damaged[2 * 512 + 20] ^= 1  # the third mark went to the second slot
    assert decode_marks(bytes(damaged), IDENTITY)[0] == Mark(8, 9)


def test_what_is_written_does_not_move_the_position_and_is_written_over() -> None:
    files, segment = make()
    active = ActiveSegment(files, segment, IDENTITY, 0)
    active.write([b"lost ", b"batch"], 10)
    assert (active.position, active.written_position) == (HEAD_PAGE_SIZE, HEAD_PAGE_SIZE + 10)
    active.write([b"other"], 5)
    assert files.content(segment.path)[HEAD_PAGE_SIZE:] == b"otherbatch"


def test_room_is_reserved_once_for_many_writes_up_to_the_segment_s_size() -> None:
    files, segment = make()
    active = ActiveSegment(files, segment, IDENTITY, 0)
    active.make_room(100, 5000, MOST)
    assert len(files.content(segment.path)) == HEAD_PAGE_SIZE + 5100
    before = files.attempts
    active.position += 100
    active.make_room(5000, 5000, MOST)
    assert files.attempts == before, "there is room for it"
    active.position += 5000
    active.make_room(1000, 5000, HEAD_PAGE_SIZE + 7000)
    assert len(files.content(segment.path)) == HEAD_PAGE_SIZE + 7000
    active.trim()
    assert len(files.content(segment.path)) == active.position


def test_as_much_room_is_reserved_as_is_there_and_a_stop_gives_it_back_but_for_a_little() -> None:
    files, segment = make()
    active = ActiveSegment(files, segment, IDENTITY, 0)
    active.position = 10_000
    active.make_room(5000, 3000, 1 << 30)
    assert len(files.content(segment.path)) == 25_000
    active.position = 2 * MOST_AHEAD
    active.make_room(5000, 3000, 1 << 30)
    assert len(files.content(segment.path)) == 3 * MOST_AHEAD + 5000
    active.trim(3000)
    assert len(files.content(segment.path)) == 2 * MOST_AHEAD + 3000
    active.make_room(3000, 3000, MOST)
    active.trim(3000)
    assert len(files.content(segment.path)) == 2 * MOST_AHEAD + 3000


def test_a_batch_larger_than_the_room_ahead_reserves_none() -> None:
    files, segment = make()
    active = ActiveSegment(files, segment, IDENTITY, 0)
    active.make_room(5000, 3000, MOST)
    assert len(files.content(segment.path)) == HEAD_PAGE_SIZE
    active.write([bytes(4000)], 4000)
    active.position += 4000
    active.trim()
    assert len(files.content(segment.path)) == HEAD_PAGE_SIZE + 4000


def test_room_that_cannot_be_reserved_is_no_error() -> None:
    files, segment = make()
    active = ActiveSegment(files, segment, IDENTITY, 0)
    files.faults[files.attempts] = errno.ENOSPC
    active.make_room(100, 3000, MOST)
    assert len(files.content(segment.path)) == HEAD_PAGE_SIZE
    active.write([b"batch"], 5)
    assert files.content(segment.path)[HEAD_PAGE_SIZE:] == b"batch"


def test_a_cut_is_durable_and_an_error_of_it_is_raised() -> None:
    files, segment = make()
    active = ActiveSegment(files, segment, IDENTITY, 0)
    active.write([b"half a batch"], 12)
    active.cut()
    assert len(files.content(segment.path)) == HEAD_PAGE_SIZE
    assert files.calls[-1][0] == "sync"
    files.faults[files.attempts] = errno.EIO
    with pytest.raises(OSError, match=r"\[Errno 5\]"):
        active.cut()
    active.close()
    assert files.open_files == 0


def test_the_next_bytes_are_filled_with_zeros_as_far_as_room_is_reserved() -> None:
    files, segment = make()
    active = ActiveSegment(files, segment, IDENTITY, 0)
    before = files.attempts
    active.fill_ahead(100)
    assert files.attempts == before, "a file that ends here is not made longer"
    active.make_room(1000, 200_000, MOST)
    size = len(files.content(segment.path))
    active.write([b"batch"], 5)
    active.position += 5
    active.fill_ahead(150_000)
    assert files.calls[-1][2:] == (HEAD_PAGE_SIZE + 5, bytes(150_000))
    active.fill_ahead(1 << 20)
    assert len(files.content(segment.path)) == size
    assert files.content(segment.path)[HEAD_PAGE_SIZE:].rstrip(b"\0") == b"batch"
    files.faults[files.attempts] = errno.EIO
    active.fill_ahead(100)
