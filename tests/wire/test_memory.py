"""The primitives behave like the bytes methods that they replace, compiled and interpreted."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.memory import (
    KEEP,
    OutputBuffer,
    count_run,
    drop_front,
    ends_line,
    equals,
    find_byte,
    has_empty_token,
    hash_slice,
    joined,
    part_of,
    slice_bytes,
    unset_array,
)


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
    assert slice_bytes(data, start, end) == part_of(bytes(data), start, end) == bytes(data[start:end])
    assert equals(data, start, end, bytes(data[start:end]))
    assert equals(data, start, end, other) == (data[start:end] == other)


@given(st.lists(st.binary(max_size=20), min_size=5, max_size=5))
def test_five_pieces_are_joined_in_order(pieces: list[bytes]) -> None:
    assert joined(*pieces) == b"".join(pieces)


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


@given(st.lists(st.sampled_from([b"a", b"", b"bc"]), min_size=1, max_size=5), st.binary(max_size=3))
def test_an_empty_token_is_found_anywhere(tokens: list[bytes], around: bytes) -> None:
    subject = b".".join(tokens)
    buffer = bytearray(around + subject + around)
    assert has_empty_token(buffer, len(around), len(around) + len(subject)) == (b"" in tokens)


@given(st.binary(max_size=40), st.binary(max_size=9), st.binary(max_size=9))
def test_a_hash_depends_on_the_slice_alone(text: bytes, before: bytes, after: bytes) -> None:
    one, other = bytearray(text), bytearray(before + text + after)
    assert hash_slice(one, 0, len(text)) == hash_slice(other, len(before), len(before) + len(text)) >= 0


def test_hashes_spread_subjects_that_differ_in_any_byte() -> None:
    for size in range(1, 30):
        for position in range(size):
            texts = [bytearray(b"x" * size) for _ in range(256)]
            for value, text in enumerate(texts):
                text[position] = value
            slots = {hash_slice(text, 0, size) & 8191 for text in texts}
            assert len(slots) > 200, (size, position)


@given(
    st.integers(1, 6), st.integers(0, 4), st.integers(0, 12), st.binary(max_size=3), st.sampled_from([b"\r\n", b"\n\n"])
)
def test_a_run_is_counted_up_to_the_first_op_that_differs_or_is_not_whole(
    size: int, same: int, cut: int, before: bytes, ending: bytes
) -> None:
    op, other = b"A" * size + b"x\r\n", b"A" * size + b"x" + ending
    data = before + op * (1 + same) + other + b"B" * len(op)
    filled = max(len(before) + len(op), len(data) - cut)
    stride, start = len(op), len(before)
    ops = [data[at : at + stride] for at in range(start, filled - stride + 1, stride)]
    expected = next((count for count, found in enumerate(ops) if found != op), len(ops))
    assert count_run(bytearray(data), start, filled, size, stride) == expected


@given(ranges(), st.binary(max_size=5), st.integers(1, 4), st.integers(0, 3))
def test_pairs_and_runs_are_pieces_and_slices_in_turn(
    where: tuple[bytearray, int, int], piece: bytes, count: int, stride: int
) -> None:
    data, start, end = where
    source = data + bytes(count * stride)
    buffer = OutputBuffer()
    buffer.append_pair(piece, source, start, end)
    buffer.append_run(piece, source, start, end, stride, count) if stride else None
    expected = piece + source[start:end]
    if stride:
        expected += b"".join(piece + source[start + at : end + at] for at in range(0, count * stride, stride))
    assert buffer.take() == expected


@given(st.binary(min_size=2, max_size=6), st.data())
def test_ends_line_sees_cr_lf_and_nothing_else(data: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(0, len(data) - 2))
    assert ends_line(bytearray(data), at) == (data[at : at + 2] == b"\r\n")


@given(st.lists(st.one_of(st.binary(max_size=3000), st.integers(0, 4000)), max_size=30))
def test_partial_writes_leave_the_rest_in_order(steps: list[bytes | int]) -> None:
    buffer, expected = OutputBuffer(), b""
    for step in steps:
        if isinstance(step, bytes):
            buffer.append(step)
            expected += step
        else:
            count = min(step, len(expected))
            buffer.skip(count)
            expected = expected[count:]
        assert len(buffer) == len(expected)
        assert bytes(buffer.data[buffer.head : buffer.size]) == expected
    assert buffer.take() == expected
    assert (buffer.head, buffer.size) == (0, 0)


def test_an_output_that_never_empties_does_not_grow_with_what_it_has_written() -> None:
    buffer = OutputBuffer()
    for _ in range(1000):
        buffer.append(bytes(3000))
        if len(buffer) > 6000:
            buffer.skip(3000)
    assert len(buffer.data) <= 1 << 15


@given(st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=2000)), max_size=8))
def test_a_framed_payload_is_line_payload_and_crlf(pairs: list[tuple[bytes, bytes]]) -> None:
    buffer = OutputBuffer()
    for line, payload in pairs:
        buffer.append_framed(line, payload)
    assert buffer.take() == b"".join(line + payload + b"\r\n" for line, payload in pairs)


def test_an_unset_array_has_the_requested_size() -> None:
    assert [len(unset_array(size)) for size in (0, 1, 100_000)] == [0, 1, 100_000]
