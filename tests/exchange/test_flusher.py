"""What one round of reads produced is written together, and who wrote to a slow receiver is held back."""

from collections.abc import Callable

from support.fake_link import FakeLink, make_outlet

from headwater.exchange.flusher import STALL_AT, TOGETHER, Flusher
from headwater.exchange.sublist import Outlet

MAX_PENDING = 1 << 26


class Publisher:
    def __init__(self) -> None:
        self.held: list[list[Outlet]] = []

    def hold_back(self, congested: list[Outlet]) -> None:
        self.held.append(congested)


class Round:
    """A round of reads: `left` clients are still to be read in it; a test ends it by hand."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.callbacks: list[Callable[[], None]] = []
        self.flusher = Flusher(lambda function: self.callbacks.append(function), MAX_PENDING, self.together)

    def together(self, callback: Callable[[], None]) -> bool:
        if self.left == 0:
            return False
        self.callbacks.append(callback)
        return True

    def read(self, publisher: Publisher, size: int, *outlets: Outlet) -> int:
        """A client's read, which writes `size` bytes to each of these."""
        self.flusher.begin_read()
        for outlet in outlets:
            outlet.output.append(b"x" * size)
            self.flusher.mark(outlet)
        self.left -= self.left > 0
        return self.flusher.end_client_read(publisher, size)

    def end(self) -> None:
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()


def outlets(count: int) -> tuple[list[FakeLink], list[Outlet]]:
    made = [make_outlet() for _ in range(count)]
    return [link for link, _ in made], [outlet for _, outlet in made]


def test_what_the_clients_of_one_round_send_to_a_receiver_is_written_once_when_the_round_is_over() -> None:
    links, receivers = outlets(3)
    reads = Round(left=4)
    assert [reads.read(Publisher(), 100, *receivers) for _ in range(4)] == [1, 1, 1, 1]
    assert [link.flushed for link in links] == [b"", b"", b""]
    assert len(reads.callbacks) == 1
    reads.end()
    assert [link.flushed for link in links] == [b"x" * 400] * 3


def test_what_the_only_client_of_a_round_sends_is_written_at_once() -> None:
    links, receivers = outlets(2)
    reads = Round(left=1)
    assert reads.read(Publisher(), 100, *receivers) == 1
    assert [link.flushed for link in links] == [b"x" * 100] * 2
    assert reads.read(Publisher(), 100) == 0
    assert reads.callbacks == []


def test_on_a_loop_without_rounds_each_read_is_written_at_once() -> None:
    link, outlet = make_outlet()
    flusher = Flusher(lambda function: None, MAX_PENDING)
    flusher.begin_read()
    outlet.output.append(b"x")
    flusher.mark(outlet)
    assert flusher.end_client_read(Publisher(), 1) == 1
    assert link.flushed == b"x"


def test_reads_that_bring_much_together_do_not_wait_for_the_end_of_the_round() -> None:
    links, receivers = outlets(1)
    reads = Round(left=10)
    size = TOGETHER // 2
    for expected in (0, 0, 3, 3, 3, 6):
        reads.read(Publisher(), size, *receivers)
        assert len(links[0].flushed) == expected * size
    reads.read(Publisher(), 1, *receivers)
    reads.end()
    assert len(links[0].flushed) == 6 * size + 1


def test_a_receiver_that_is_behind_is_written_at_once_so_that_it_is_noticed() -> None:
    links, receivers = outlets(1)
    reads = Round(left=3)
    receivers[0].output.append(b"x" * TOGETHER)
    reads.read(Publisher(), 1, *receivers)
    assert len(links[0].flushed) == TOGETHER + 1


def test_all_publishers_of_a_round_are_held_back_if_a_receiver_is_far_behind_after_it() -> None:
    links, receivers = outlets(2)
    reads = Round(left=3)
    publishers = [Publisher(), Publisher()]
    for publisher in publishers:
        reads.read(publisher, 1, *receivers)
    links[1].waiting = STALL_AT + 1
    reads.end()
    assert [publisher.held for publisher in publishers] == [[[receivers[1]]]] * 2
    later = Publisher()
    links[1].waiting = 0
    reads.left = 3
    reads.read(later, 1, *receivers)
    reads.end()
    assert later.held == []
    assert [len(publisher.held) for publisher in publishers] == [1, 1]


def test_who_sent_before_a_read_that_is_written_at_once_is_held_back_with_its_publisher() -> None:
    links, receivers = outlets(1)
    reads = Round(left=3)
    first = Publisher()
    reads.read(first, 1, *receivers)
    links[0].waiting = STALL_AT + 1
    second = Publisher()
    reads.read(second, TOGETHER, *receivers)
    assert first.held == second.held == [receivers]


def test_the_publisher_of_a_lone_read_is_held_back_if_a_receiver_is_far_behind_after_it() -> None:
    links, receivers = outlets(1)
    reads = Round(left=0)
    links[0].waiting = STALL_AT + 1
    publisher = Publisher()
    reads.read(publisher, 1, *receivers)
    assert publisher.held == [receivers]


def test_a_receiver_that_is_gone_when_the_round_is_over_is_left_out() -> None:
    links, receivers = outlets(2)
    reads = Round(left=3)
    reads.read(Publisher(), 10, *receivers)
    receivers[0].closed = True
    reads.end()
    assert [link.flushed for link in links] == [b"", b"x" * 10]
