"""The primitives behave like the bytes methods they stand for, compiled and interpreted."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.memory import KEEP, OutputBuffer, drop_front, equals, find_byte, slice_bytes


@st.composite
def ranges(draw: st.DrawFn) -> tuple[bytearray, int, int]:
    data = bytearray(draw(st.binary(max_size=50)))
    start = draw(st.integers(0, len(data)))
    return data, start, draw(st.integers(start, len(data)))


@given(ranges(), st.integers(0, 255))
def test_find_byte_finds_what_bytearray_find_finds(where: tuple[bytearray, int, int], byte: int) -> None:
    data, start, end = where
    assert find_byte(data, byte, start, end) == data.find(byte, start, end)


@given(ranges(), st.binary(max_size=5))
def test_equals_and_slice_bytes_agree_with_slicing(where: tuple[bytearray, int, int], other: bytes) -> None:
    data, start, end = where
    assert slice_bytes(data, start, end) == bytes(data[start:end])
    assert equals(data, start, end, bytes(data[start:end]))
    assert equals(data, start, end, other) == (data[start:end] == other)


@given(ranges())
def test_drop_front_moves_the_rest_and_keeps_the_length(where: tuple[bytearray, int, int]) -> None:
    data, used, filled = where
    expected, length = bytes(data[used:filled]), len(data)
    assert drop_front(data, used, filled) == len(expected)
    assert data[: len(expected)] == expected
    assert len(data) == length


@given(st.lists(st.one_of(st.binary(max_size=3000), ranges()), max_size=20))
def test_an_output_buffer_is_the_pieces_in_order(pieces: list[bytes | tuple[bytearray, int, int]]) -> None:
    buffer, expected = OutputBuffer(), b""
    for piece in pieces:
        if isinstance(piece, bytes):
            buffer.append(piece)
            expected += piece
        else:
            buffer.append_slice(*piece)
            expected += bytes(piece[0][piece[1] : piece[2]])
    assert len(buffer) == buffer.size == len(expected)
    assert buffer.take() == expected
    assert buffer.take() == b""


def test_an_output_buffer_gives_a_burst_back() -> None:
    buffer = OutputBuffer()
    buffer.append(bytes(4 * KEEP))
    buffer.take()
    assert len(buffer.data) <= KEEP
