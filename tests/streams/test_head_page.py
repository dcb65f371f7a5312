"""The first page of a segment."""

import struct

import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import CorruptLog
from headwater.streams import head_page as f
from headwater.streams.log_format import VERSION

IDENTITY = b"identity"


@given(st.binary(max_size=200))
def test_garbage_is_no_head_and_no_mark(garbage: bytes) -> None:
    assert f.decode_segment_head(garbage) is None
    assert f.decode_marks(garbage.ljust(f.HEAD_PAGE_SIZE, b"x"), IDENTITY) == (None, 0, False)


def test_the_head_page_holds_the_segment_and_the_newest_mark() -> None:
    head = f.SegmentHead(IDENTITY, 10, 9, 123)
    page = f.encode_head_page(head, f.Mark(9, 10))
    assert len(page) == f.HEAD_PAGE_SIZE
    assert f.decode_segment_head(page) == head
    assert f.decode_marks(page, IDENTITY) == (f.Mark(9, 10), 0, True)
    for turn in range(1, 6):
        at = f.mark_position(turn)
        page = page[:at] + f.encode_mark(f.Mark(10, 10 + turn), IDENTITY) + page[at + f.SECTOR_SIZE :]
        assert f.decode_marks(page, IDENTITY) == (f.Mark(10, 10 + turn), turn % 2, True)
    torn = page[: at + 10] + bytes(100) + page[at + 110 :]
    assert f.decode_marks(torn, IDENTITY) == (f.Mark(10, 14), 0, False)
    assert f.decode_marks(page, b"stranger") == (None, 0, False)


def test_a_segment_of_a_newer_version_is_refused() -> None:
    fields = struct.pack("<HH8sQQq", VERSION + 1, 0, IDENTITY, 0, 0, 0).ljust(f.SECTOR_SIZE - 8, b"\0")
    with pytest.raises(CorruptLog, match="version 3"):
        f.decode_segment_head(f.SEGMENT_MAGIC + struct.pack("<I", crc32c(fields)) + fields)
