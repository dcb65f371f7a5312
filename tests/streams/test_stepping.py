"""A walk over small batches ends where one that makes an object of each header ends."""

from hypothesis import given
from hypothesis import strategies as st

import headwater
from headwater.streams.log_format import (
    BATCH_HEADER_SIZE,
    DIALECT_TOMBSTONES,
    BatchBuilder,
    BatchHeader,
    decode_batch_header,
    encode_batch_header,
)
from headwater.streams.stepping import step_over

IDENTITY = b"identity"


def batches(sizes: list[int]) -> bytes:
    """Batches of so many records; 0 stands for one of tombstones."""
    pieces: list[bytes] = []
    base = (3 << 32) - 5
    for size in sizes:
        if size == 0:
            header = BatchHeader(DIALECT_TOMBSTONES, 0, 1, 0, 16, base, 0, 0, 0, 2)
            pieces += [encode_batch_header(header, IDENTITY), bytes(16)]
            continue
        builder = BatchBuilder(base)
        for number in range(size):
            builder.append(b"a.b", b"", b"x" * number, number)
        pieces += builder.encode(IDENTITY)[1:]
        base += size
    return b"".join(pieces)


def walked(data: bytes, at: int, identity: bytes, offset: int) -> int:
    start = at
    while (header := decode_batch_header(data, at, identity)) is not None and header.end_offset <= offset:
        at += header.size
    return at - start


def expected(data: bytes, at: int, identity: bytes, offset: int) -> int:
    return walked(data, at, identity, offset) if headwater.__compiled__ else 0


@given(st.lists(st.integers(0, 4), max_size=8), st.integers(-8, 20), st.integers(0, 200))
def test_it_steps_over_what_ends_before_the_offset(sizes: list[int], offset: int, missing: int) -> None:
    data = batches(sizes)
    data = data[: max(0, len(data) - missing)]
    offset += 3 << 32
    assert step_over(data, 0, IDENTITY, offset) == expected(data, 0, IDENTITY, offset)


@given(st.integers(0, 3 * (BATCH_HEADER_SIZE + 28 + 3) - 1), st.integers(1, 255))
def test_it_steps_over_no_header_that_is_damaged(place: int, change: int) -> None:
    data = bytearray(batches([1, 1, 1]))
    data[place] ^= change
    assert step_over(bytes(data), 0, IDENTITY, 5 << 32) <= walked(bytes(data), 0, IDENTITY, 5 << 32)


def test_it_steps_over_no_batch_of_another_log() -> None:
    data = batches([1, 1])
    assert step_over(data, 0, b"another!", 5 << 32) == 0
    first = step_over(data, 0, IDENTITY, (3 << 32) - 4)
    assert first == (BATCH_HEADER_SIZE + 28 + 3 if headwater.__compiled__ else 0)
    assert step_over(data, len(data), IDENTITY, 5 << 32) == 0
