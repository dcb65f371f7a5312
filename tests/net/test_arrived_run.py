"""net/arrived_run.py: what came through a Unix socket is handed to sockets whole, whatever they take."""

import os
import random
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import headwater
from headwater.net.arrived_run import ArrivedRun
from headwater.net.endpoint import Endpoint
from headwater.net.shared_run import PageCalls
from headwater.wire.receive import ReceiveBuffer

pytestmark = pytest.mark.skipif(
    not headwater.__compiled__ or sys.platform != "linux", reason="only the compiled half takes pages, on Linux"
)


class Waiting(Endpoint):
    """An endpoint without a loop; `theirs` is the other end."""

    def __init__(self, stack: ExitStack) -> None:
        super().__init__(Unheard(), ReceiveBuffer(), None)
        self.ours, self.theirs = map(stack.enter_context, socket.socketpair())
        self.ours.setblocking(False)
        self.theirs.setblocking(False)
        self._descriptor = self.ours.fileno()
        self.expected = self.received = b""

    def await_room(self) -> None:
        """`read` goes on."""

    def abort(self) -> None:
        raise AssertionError("nobody is cut off here")

    def read(self, most: int) -> None:
        try:
            self.received += self.theirs.recv(most)
        except BlockingIOError:
            return
        self._blocked = False
        self.push()


class Unheard:
    def attach(self, link: object) -> None:
        """Not called here."""

    def receive(self, buffer: bytearray, filled: int) -> int:
        raise AssertionError("nothing is received here")

    def lost(self, error: Exception | None) -> None:
        """Not called here."""


def begun(calls: PageCalls) -> ArrivedRun:
    run = ArrivedRun()
    assert run.begin(calls)
    return run


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("seed", range(8))
def test_each_gets_all_of_each_run_behind_what_waits_for_it(seed: int) -> None:
    chance = random.Random(seed)
    calls = PageCalls()
    run = begun(calls)
    with ExitStack() as stack:
        source, sink = map(stack.enter_context, socket.socketpair())
        source.setblocking(False)
        receivers = [Waiting(stack) for _ in range(chance.randrange(1, 6))]
        for number in range(60):
            body = chance.randbytes(chance.choice((1, 5000, 70_000, 200_000)))
            while body:
                sent = source.send(body)
                assert run.begin(calls)
                while run.size < sent:
                    assert run.take(sink.fileno(), sent - run.size) > 0
                for receiver in receivers:
                    receiver.expected += body[:sent]
                run.hand(list[Endpoint](receivers))
                assert run.size == 0
                body = body[sent:]
            for receiver in receivers:
                assert receiver._handed + len(receiver.output) == len(receiver.expected)
                if chance.random() < 0.5:
                    receiver.read(chance.choice((1, 3000, 100_000)))
                if number % 9 == 0:
                    receiver.output.append(b"PING\r\n")
                    receiver.expected += b"PING\r\n"
        for receiver in receivers:
            while len(receiver.received) < len(receiver.expected):
                receiver._blocked = False
                receiver.push()
                receiver.read(1 << 20)
            assert receiver.received == receiver.expected
    assert run.by_pages > 1 << 18
    run.close()


def test_an_empty_socket_gives_nothing_and_is_no_refusal() -> None:
    run = begun(PageCalls())
    with ExitStack() as stack:
        source, sink = map(stack.enter_context, socket.socketpair())
        sink.setblocking(False)
        assert run.take(sink.fileno(), 1000) == 0
        source.close()
        assert run.take(sink.fileno(), 1000) == 0
    assert run.calls is not None and not run.calls.refused
    run.close()


def test_a_part_of_a_run_is_read_into_an_array_for_all_of_it() -> None:
    run = begun(PageCalls())
    with ExitStack() as stack:
        source, sink = map(stack.enter_context, socket.socketpair())
        source.send(b"abcdef")
        assert run.take(sink.fileno(), 4) == 4
        found = run.read(10)
        assert (bytes(found[:4]), len(found), run.size) == (b"abcd", 10, 0)
        assert sink.recv(10) == b"ef"
    run.close()


def test_a_refusal_that_one_run_finds_is_known_to_all_and_closes_the_pipes(tmp_path: Path) -> None:
    calls = PageCalls()
    with ExitStack() as stack:
        source, sink = map(stack.enter_context, socket.socketpair())
        file = stack.enter_context(open(tmp_path / "end", "ab"))  # splicing to the end of a file is EINVAL
        receivers = [Waiting(stack) for _ in range(3)]
        receivers[1]._descriptor = file.fileno()
        before = descriptors()
        first, second = begun(calls), begun(calls)
        assert descriptors() == before + 6
        source.send(b"abcdef")
        assert first.take(sink.fileno(), 6) == 6
        first.hand(list[Endpoint](receivers))
        assert calls.refused
        assert (tmp_path / "end").read_bytes() == b"abcdef"
        assert [receiver.theirs.recv(10) for receiver in receivers[::2]] == [b"abcdef"] * 2
        assert not second.begin(calls)
        assert descriptors() == before
        assert second.take(sink.fileno(), 6) == 0


def test_a_run_that_is_in_the_pages_when_another_finds_a_refusal_is_handed_on_all_the_same(tmp_path: Path) -> None:
    calls = PageCalls()
    with ExitStack() as stack:
        source, sink = map(stack.enter_context, socket.socketpair())
        file = stack.enter_context(open(tmp_path / "end", "ab"))
        receivers = [Waiting(stack) for _ in range(3)]
        refusing = Waiting(stack)
        refusing._descriptor = file.fileno()
        first, second = begun(calls), begun(calls)
        source.send(b"abcdefghi")
        assert (first.take(sink.fileno(), 6), second.take(sink.fileno(), 3)) == (6, 3)
        second.hand([refusing])
        assert calls.refused
        first.hand(list[Endpoint](receivers))
        assert [receiver.theirs.recv(10) for receiver in receivers] == [b"abcdef"] * 3
