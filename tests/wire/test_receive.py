"""The receive buffer never loses a byte, never resizes an array with a view, and releases the memory of bursts."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater
from headwater.wire.receive import (
    FREE_MINIMUM,
    FULL_READ,
    LARGEST_READ,
    SHARED_SIZE,
    START_SIZE,
    STEPPED_SIZE,
    UNHEARD_MESSAGES,
    ReceiveBuffer,
)


@given(st.lists(st.tuples(st.binary(max_size=9000), st.integers(0, 9000)), max_size=20))
def test_unconsumed_bytes_stay_in_front(steps: list[tuple[bytes, int]]) -> None:
    buffer, expected = ReceiveBuffer(64), b""
    for arrived, consumed in steps:
        with buffer.writable(len(arrived)) as space:
            assert len(space) >= max(len(arrived), FREE_MINIMUM)
            space[: len(arrived)] = arrived
        buffer.received(len(arrived))
        expected += arrived
        used = min(consumed, len(expected))
        buffer.consume(used)
        expected = expected[used:]
        assert bytes(buffer.data[: buffer.filled]) == expected


def test_growing_while_a_view_is_held_is_no_error() -> None:
    buffer = ReceiveBuffer(64)
    view = buffer.writable()
    buffer.received(64)
    assert len(buffer.writable(1 << 20)) >= 1 << 20
    view.release()


def test_the_array_of_a_burst_is_given_back_once_it_is_empty() -> None:
    buffer = ReceiveBuffer()
    buffer.writable(32 * START_SIZE)
    buffer.received(32 * START_SIZE)
    buffer.consume(32 * START_SIZE)
    assert len(buffer.data) == START_SIZE


def test_an_announced_op_gets_its_room_at_once_and_keeps_it() -> None:
    buffer = ReceiveBuffer()
    buffer.expect(40 * START_SIZE)
    for _ in range(3):
        assert len(buffer.writable()) == LARGEST_READ
        assert len(buffer.data) == 40 * START_SIZE
        array = buffer.data
        buffer.received(40 * START_SIZE)
        buffer.consume(40 * START_SIZE)
        assert buffer.data is array
    buffer.expect(0)
    buffer.received(1)
    buffer.consume(1)
    assert len(buffer.data) == START_SIZE


@pytest.mark.skipif(not headwater.__compiled__, reason="interpreted, a new array is cleared")
def test_announced_bytes_take_no_memory() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    buffer = ReceiveBuffer()
    before = resident()
    buffer.expect(256 << 20)
    buffer.writable()[:4] = b"head"
    buffer.received(4)
    assert len(buffer.data) == 256 << 20
    assert resident() - before < 128 << 20


@given(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=9000), st.integers(0, 9000)), max_size=30))
def test_buffers_that_share_an_array_keep_their_bytes_apart(steps: list[tuple[int, bytes, int]]) -> None:
    shared = bytearray(1 << 14)
    buffers = [ReceiveBuffer(shared=shared) for _ in range(3)]
    expected = [b"", b"", b""]
    for which, arrived, consumed in steps:
        buffer = buffers[which]
        buffer.writable()  # no bytes arrive after this
        for at in range(0, len(arrived), FREE_MINIMUM):
            piece = arrived[at : at + FREE_MINIMUM]
            buffer.writable()[: len(piece)] = piece
            buffer.received(len(piece))
            expected[which] += piece
            assert bytes(buffer.data[: buffer.filled]) == expected[which]
            buffer.consume(0)  # no connection keeps the shared array
        used = min(consumed, len(expected[which]))
        buffer.consume(used)
        expected[which] = expected[which][used:]
        for other, rest in zip(buffers, expected, strict=True):
            assert bytes(other.data[: other.filled]) == rest


def test_an_idle_shared_buffer_has_no_array_of_its_own() -> None:
    shared = bytearray(1 << 16)
    buffer = ReceiveBuffer(shared=shared)
    for size in (10, 1 << 16, 100):
        buffer.writable(1 << 20)
        buffer.received(size)
        buffer.consume(0)
        buffer.consume(size)
        assert buffer.data is shared


def test_reads_into_a_shared_array_take_more_of_it_only_when_asked_to() -> None:
    shared = bytearray(SHARED_SIZE)
    one, other = ReceiveBuffer(shared=shared), ReceiveBuffer(shared=shared)
    one.read_large(False, 0)
    assert (len(one.writable()), len(other.writable())) == (FULL_READ, START_SIZE)
    one.read_large(False, 0, True)
    assert (len(one.writable()), len(other.writable())) == (UNHEARD_MESSAGES, START_SIZE)
    one.read_large(True, 0, True)
    assert (len(one.writable()), len(other.writable())) == (FULL_READ, START_SIZE)


def test_reads_end_with_large_ops_of_one_size() -> None:
    shared, op = bytearray(SHARED_SIZE), 2 * START_SIZE + 100
    buffer = ReceiveBuffer(shared=shared)
    buffer.writable()
    buffer.received(START_SIZE)
    buffer.read_large(False, op)
    buffer.consume(0)
    for _ in range(3):
        assert len(buffer.writable()) == 4 * op - buffer.filled
        buffer.received(4 * op - buffer.filled)
        buffer.read_large(True, 0)
        buffer.consume(4 * op)
        assert buffer.data is shared, "nothing is left, and nothing is kept"
    buffer.read_large(False, 0)
    assert len(buffer.writable()) == FULL_READ


def test_an_op_that_no_shared_array_holds_gets_room_of_its_own_until_it_is_there() -> None:
    shared, op = bytearray(SHARED_SIZE), SHARED_SIZE - START_SIZE
    buffer = ReceiveBuffer(shared=shared)
    buffer.writable()
    buffer.received(START_SIZE)
    buffer.read_large(False, op)
    buffer.consume(0)
    assert len(buffer.writable()) == op - START_SIZE
    buffer.received(op - START_SIZE)
    buffer.read_large(True, 0)
    buffer.consume(op)
    assert buffer.data is shared
    assert len(buffer.writable()) == FULL_READ


STEP = st.tuples(
    st.booleans(), st.sampled_from([0, START_SIZE + 1, 2 * START_SIZE, STEPPED_SIZE, STEPPED_SIZE + 1, SHARED_SIZE]),
    st.booleans(), st.integers(0, SHARED_SIZE), st.integers(0, 3000),
)  # fmt: skip


@given(st.lists(STEP, max_size=6))
def test_what_is_left_of_a_read_stays_in_front_however_large_reads_are(
    steps: list[tuple[bool, int, bool, int, int]],
) -> None:
    shared = bytearray(SHARED_SIZE)
    buffer, expected, number = ReceiveBuffer(shared=shared), b"", 0
    for large, op, unheard, most, left in steps:
        buffer.read_large(large, op, unheard)
        space = buffer.writable()
        assert len(space) >= FREE_MINIMUM
        count = min(most, len(space))
        number += 1
        space[:count] = bytes([number]) * count
        buffer.received(count)
        expected += bytes([number]) * count
        buffer.consume(max(0, len(expected) - left))
        expected = expected[max(0, len(expected) - left) :]
        if buffer.filled:
            shared[:] = bytes(SHARED_SIZE)  # another link reads into it
        assert bytes(buffer.data[: buffer.filled]) == expected


def filled(buffer: ReceiveBuffer, size: int, byte: bytes) -> bytearray:
    """The array in which an announced op of `size` bytes has arrived."""
    buffer.expect(size)
    while buffer.filled < size:
        space = buffer.writable()
        count = min(len(space), size - buffer.filled)
        space[:count] = byte * count
        buffer.received(count)
    return buffer.data


def test_an_array_that_was_left_is_not_written_to_as_long_as_it_is_in_use() -> None:
    buffer, size = ReceiveBuffer(shared=bytearray(SHARED_SIZE)), 3 * START_SIZE
    kept = []
    for number in range(5):
        array = filled(buffer, size, b"%d" % number)
        assert buffer.leave(size)
        buffer.consume(size)
        kept.append(array)
        assert [bytes(one[:size]) for one in kept] == [b"%d" % earlier * size for earlier in range(number + 1)]


def test_an_array_that_was_left_is_used_again_once_nobody_has_it() -> None:
    buffer, size = ReceiveBuffer(shared=bytearray(SHARED_SIZE)), 3 * START_SIZE
    seen = set()
    array: bytearray | None = None
    for _ in range(6):
        following = filled(buffer, size, b"x")
        assert buffer.leave(size)
        buffer.consume(size)
        array = following  # the one before is free now, as a program's last poll is
        seen.add(id(array))
        del following
    assert len(seen) == 2


def test_an_array_is_not_left_where_others_read_into_it_or_most_of_it_is_empty() -> None:
    buffer = ReceiveBuffer(shared=bytearray(SHARED_SIZE))
    buffer.writable()[:3] = b"all"
    buffer.received(3)
    assert not buffer.leave(3)
    buffer.consume(3)
    array = filled(buffer, 8 * START_SIZE, b"x")
    assert not buffer.leave(START_SIZE)
    buffer.consume(buffer.filled)
    assert buffer.data is array


def test_what_is_behind_an_op_that_was_left_is_still_read() -> None:
    buffer, size = ReceiveBuffer(shared=bytearray(SHARED_SIZE)), 3 * START_SIZE
    array = filled(buffer, size + 5, b"x")
    assert buffer.leave(size)
    buffer.consume(size)
    assert bytes(buffer.data[: buffer.filled]) == b"x" * 5
    buffer.writable()[:2] = b"yy"
    buffer.received(2)
    assert bytes(buffer.data[: buffer.filled]) == b"xxxxxyy"
    assert bytes(array[: size + 5]) == b"x" * (size + 5)
