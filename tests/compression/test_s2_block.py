"""Blocks of S2, written out by hand where no library makes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.compression.s2_block import decode_block
from headwater.errors import RemoteProtocolError


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (b"\x00", b""),
        (b"\x03\x08abc", b"abc"),
        (b"\x08\x08abc" + bytes([0b000_001_01, 3]), b"abcabcab"),  # five of what is three behind: they overlap
        (b"\x0a\x08abc" + bytes([0b000_000_01, 3]) + bytes([(2 << 2) | 2, 7, 0]), b"abcabcaabc"),
        (b"\x0b\x08abc" + bytes([0b000_000_01, 3, 0b000_000_01, 0]), b"abcabcabcab"),  # the last offset again, four
        (bytes([3 + 4 + 9]) + b"\x08abc" + bytes([1, 3, 0b000_101_01, 0, 1]), b"abc" * 5 + b"a"),  # five more and one
        (bytes([0xD2, 2]) + b"\x04ab" + bytes([1, 2, 0b000_110_01, 0, 64, 0]), None),  # longer than it says
        (bytes([0x46]) + bytes([60 << 2, 69]) + b"x" * 70, b"x" * 70),  # a length of its own byte
    ],
)
def test_each_kind_of_op(block: bytes, content: bytes | None) -> None:
    if content is None:
        with pytest.raises(RemoteProtocolError, match="corrupt input"):
            decode_block(block, 1 << 20)
    else:
        assert decode_block(block, 1 << 20) == content


@pytest.mark.parametrize(
    "block",
    [
        b"", b"\x80", b"\xff\xff\xff\xff\xff\x01", b"\x04\x08abc", b"\x03\x08ab", b"\x05\x08abc\x01", b"\x07\x01\x03",
        b"\x07\x08abc\x01\x00", b"\x07\x08abc\x01\x04", b"\x03\x0cabcd", b"\x05\xf4", b"\x20\x04ab\x01\x02\x15\x00",
    ],
)  # fmt: skip
def test_what_is_cut_or_points_nowhere_is_refused(block: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="corrupt input"):
        decode_block(block, 1 << 20)


def test_a_block_that_claims_too_much_is_refused_before_it_takes_memory() -> None:
    with pytest.raises(RemoteProtocolError):
        decode_block(b"\x80\x80\x80\x80\x04" + b"\x00x", 1 << 20)


@given(st.binary(max_size=64))
def test_any_bytes_are_content_or_an_error(block: bytes) -> None:
    try:
        content = decode_block(block, 1 << 12)
    except RemoteProtocolError:
        return
    assert len(content) <= 1 << 12


def test_of_a_damaged_block_the_content_before_the_damage_is_given() -> None:
    assert decode_block(b"\x09\x08abc\x08def\x01\x20", 100, False) == b"abcdef"
    assert decode_block(b"\x03\x08abc\x08def", 100, False) == b"abc"
    with pytest.raises(RemoteProtocolError, match="corrupt input"):
        decode_block(b"\x03\x08abc\x08def", 100)
