"""`log.end`: what is written is read, and nothing else is."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.durable_files.documents import NO_IDENTITY
from headwater.streams.end_file import END_FILE_SIZE, RecordedEnd, decode_end, encode_end

OFFSETS = st.integers(0, (1 << 63) - 1)


@given(st.binary(min_size=8, max_size=8), OFFSETS, OFFSETS, OFFSETS)
def test_what_is_written_is_read(identity: bytes, end: int, base: int, size: int) -> None:
    content = encode_end(identity, end, base, size)
    assert len(content) == END_FILE_SIZE
    assert decode_end(content) == (identity, RecordedEnd(end, base, size))


@given(st.integers(0, END_FILE_SIZE * 8 - 1), st.integers(1, END_FILE_SIZE - 1))
def test_a_flipped_bit_and_a_cut_are_noticed(bit: int, size: int) -> None:
    content = encode_end(b"identity", 7, 0, 4096)
    flipped = bytearray(content)
    flipped[bit // 8] ^= 1 << bit % 8
    assert decode_end(bytes(flipped)) == (NO_IDENTITY, RecordedEnd())
    assert decode_end(content[:size]) == (NO_IDENTITY, RecordedEnd())


def test_a_file_that_was_made_and_not_written_says_nothing() -> None:
    assert decode_end(b"") is None
    assert decode_end(bytes(END_FILE_SIZE)) is None
