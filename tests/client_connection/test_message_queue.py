"""The queue of one subscription: order, limits, counts; it equals a plain list whatever the order of the calls."""

import asyncio
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.client_connection.connection_ops import ConnectionOps
from headwater.client_connection.message_queue import MessageQueue
from headwater.model.message import Message
from headwater.wire.server_ops import ServerOpParser


class Watched(MessageQueue):
    """Counts the calls that a subscription would get."""

    def __init__(self, direct: object = None) -> None:
        super().__init__(1, direct)  # type: ignore[arg-type]
        self.overruns = 0
        self.reached = 0
        self.failures: list[BaseException] = []

    def overrun_began(self) -> None:
        self.overruns += 1

    def maximum_reached(self) -> None:
        self.reached += 1

    def callback_failed(self, error: BaseException) -> None:
        self.failures.append(error)


def put(queue: MessageQueue, *payloads: bytes) -> None:
    receive(queue, b"".join(b"MSG a %d %d\r\n%b\r\n" % (queue.sid, len(payload), payload) for payload in payloads))


def receive(queue: MessageQueue, wire: bytes) -> None:
    """What a connection with this one subscription does with bytes that arrive."""
    connection = ConnectionOps()
    connection.queues[queue.sid] = queue
    assert ServerOpParser(connection).parse(bytearray(wire), 0, len(wire)) == len(wire)


def drain(queue: MessageQueue) -> list[bytes]:
    return [queue.pop().data for _ in range(queue.pending)]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 5)),
        st.tuples(st.just("pop"), st.just(0)),
        st.tuples(st.just("take"), st.integers(1, 5)),
    ),
    max_size=40,
)


@given(steps)
def test_it_is_a_fifo_whatever_the_order_of_the_calls(script: list[tuple[str, int]]) -> None:
    queue = Watched()
    model: deque[bytes] = deque()
    number = 0
    for verb, count in script:
        if verb == "add":
            for _ in range(count):
                number += 1
                put(queue, b"%d" % number)
                model.append(b"%d" % number)
        elif verb == "pop" and model:
            assert queue.pop().data == model.popleft()
        elif verb == "take":
            expected = [model.popleft() for _ in range(min(count, len(model)))]
            assert [message.data for message in queue.take(count)] == expected
        assert queue.pending == len(model)
        assert queue.pending_bytes == sum(map(len, model))
    assert drain(queue) == list(model)


def test_a_full_queue_drops_the_newest_counts_it_and_reports_once() -> None:
    queue = Watched()
    queue.max_pending = 4
    put(queue, b"1", b"2", b"3", b"4", b"5", b"6")
    assert (queue.received, queue.dropped, queue.pending, queue.overruns) == (6, 2, 4, 1)
    assert drain(queue) == [b"1", b"2", b"3", b"4"]


def test_an_overrun_is_over_when_half_the_room_is_free() -> None:
    queue = Watched()
    queue.max_pending = 4
    put(queue, b"1", b"2", b"3", b"4", b"5")
    queue.pop()
    put(queue, b"6", b"7")
    assert (queue.dropped, queue.overruns) == (2, 1)
    queue.pop()
    queue.pop()
    put(queue, b"8", b"9", b"10")
    assert (queue.dropped, queue.overruns) == (3, 2)
    assert drain(queue) == [b"4", b"6", b"8", b"9"]


def test_the_limit_in_bytes_counts_headers_too() -> None:
    queue = Watched()
    queue.max_pending_bytes = 20
    receive(queue, b"HMSG a %d 10 15\r\n012345678912345\r\n" % queue.sid)
    put(queue, b"123456", b"12345")
    assert (queue.pending_bytes, queue.dropped, queue.overruns) == (20, 1, 1)
    queue.pop()
    assert queue.pending_bytes == 5


def test_taking_everything_ends_an_overrun() -> None:
    queue = Watched()
    queue.max_pending = 1
    put(queue, b"1", b"2")
    queue.take(10)
    put(queue, b"3", b"4")
    assert queue.overruns == 2


def test_the_maximum_counts_every_delivery_also_a_dropped_one() -> None:
    queue = Watched()
    queue.max_pending = 1
    queue.maximum = 3
    put(queue, b"1", b"2")
    assert queue.reached == 0
    put(queue, b"3")
    assert (queue.reached, queue.pending) == (1, 1)


@pytest.mark.parametrize("failure", [ValueError("mine"), asyncio.CancelledError()])
def test_a_direct_receiver_that_raises_is_reported_and_nothing_waits(failure: BaseException) -> None:
    def receive(message: Message) -> None:
        raise failure

    queue = Watched(receive)
    put(queue, b"1", b"2")
    assert queue.failures == [failure, failure]
    assert (queue.received, queue.pending) == (2, 0)


def test_a_callback_gets_what_waits_up_to_a_number_and_up_to_a_result_to_await() -> None:
    queue = Watched()
    delivered: list[bytes] = []

    def callback(message: Message) -> object:
        if message.data == b"2":
            raise ValueError("mine")
        delivered.append(message.data)
        return "await me" if message.data == b"4" else None

    put(queue, b"1", b"2", b"3", b"4", b"5", b"6")
    assert queue.call(callback, 3) is None
    assert (delivered, [str(error) for error in queue.failures]) == ([b"1", b"3"], ["mine"])
    assert queue.call(callback, 100) == "await me"
    assert queue.pending == 2
    assert queue.call(callback, 100) is None
    assert (delivered, queue.pending, queue.pending_bytes) == ([b"1", b"3", b"4", b"5", b"6"], 0, 0)
