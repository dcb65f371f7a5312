"""The receive buffer never loses a byte, never resizes an array under a view, and gives bursts back."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.receive import FREE_MINIMUM, START_SIZE, ReceiveBuffer


@given(st.lists(st.tuples(st.binary(max_size=9000), st.integers(0, 9000)), max_size=20))
def test_what_is_not_consumed_stays_in_front(steps: list[tuple[bytes, int]]) -> None:
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
        assert len(buffer.writable()) == 40 * START_SIZE
        array = buffer.data
        buffer.received(40 * START_SIZE)
        buffer.consume(40 * START_SIZE)
        assert buffer.data is array
    buffer.expect(0)
    buffer.received(1)
    buffer.consume(1)
    assert len(buffer.data) == START_SIZE
