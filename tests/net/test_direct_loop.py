"""A loop that reads links itself: connections behave as on asyncio's own loop, and everything else still runs."""

import asyncio
import os
import select
import signal
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import ClassVar

import pytest
from support.clusters import until

from headwater.net.link import Link
from headwater.net.listening import Listener
from headwater.net.tcp import dial, listen

if not hasattr(select, "epoll"):
    pytest.skip("the loop is made of epoll", allow_module_level=True)

from headwater.net.direct_loop import FINISHED_TOGETHER, MANY_AFTERWARDS, READS_AGAIN, DirectLoop

TIMEOUT = 20.0


class Echo:
    """Echoes its input; records how the link ended."""

    link: Link

    def __init__(self, made: "asyncio.Queue[Echo] | None" = None) -> None:
        self._made = made
        self.reads = 0
        self.ended = asyncio.get_running_loop().create_future()
        self.received = asyncio.Event()

    def attach(self, link: Link) -> None:
        self.link = link
        if self._made is not None:
            self._made.put_nowait(self)

    def receive(self, buffer: bytearray, filled: int) -> int:
        self.reads += 1
        self.link.output.append(bytes(buffer[:filled]))
        self.link.flush_soon()
        self.received.set()
        return filled

    def lost(self, error: Exception | None) -> None:
        self.ended.set_result(error)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TIMEOUT):
            await scenario()

    with asyncio.Runner(loop_factory=DirectLoop) as runner:
        runner.run(bounded())


async def conversation() -> tuple[Echo, socket.socket, Listener]:
    """An owner with an established link, and the socket of its peer."""
    made: asyncio.Queue[Echo] = asyncio.Queue()
    server = await listen("127.0.0.1", 0, lambda: Echo(made))
    peer = socket.create_connection(server.sockets[0].getsockname()[:2])
    peer.setblocking(False)
    return await made.get(), peer, server


def test_what_links_say_is_counted_and_what_the_process_tells_itself_is_not() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        owner, peer, server = await conversation()
        before = loop.events_seen()
        for _ in range(3):
            await asyncio.to_thread(int)
        assert loop.events_seen() == before
        for count in range(1, 4):
            owner.received.clear()
            peer.sendall(b"x")
            await owner.received.wait()
            assert loop.events_seen() == before + count
        peer.close()
        await owner.ended
        server.close()

    run(scenario)


def test_input_is_read_by_the_loop_itself_and_answered() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        owner, peer, server = await conversation()
        with peer:
            for size in (1, 100, 100_000):
                await loop.sock_sendall(peer, b"x" * size)
                answer = b""
                while len(answer) < size:
                    answer += await loop.sock_recv(peer, 1 << 16)
                assert answer == b"x" * size
            assert isinstance(loop, DirectLoop)
            assert loop.ready.reads(owner.link)
        await owner.ended
        assert not loop.ready.reads(owner.link)
        server.close()

    run(scenario)


def test_an_owner_that_fails_at_the_end_of_its_link_does_not_end_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        owner, peer, server = await conversation()
        owner.ended.set_result(None)  # raises if it is set a second time
        peer.close()
        await until(lambda: "link_owner_failed peer=127.0.0.1:" in caplog.text, "the failure in the log")
        assert owner.link.closing
        server.close()

    run(scenario)
    assert "InvalidStateError" in caplog.text


def test_the_end_and_a_reset_of_the_peer_end_the_link_once() -> None:
    async def scenario() -> None:
        for linger in (struct.pack("ii", 0, 0), struct.pack("ii", 1, 0)):  # FIN, RST
            owner, peer, server = await conversation()
            await asyncio.get_running_loop().sock_sendall(peer, b"hello")
            await owner.received.wait()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            peer.close()
            await owner.ended
            server.close()

    run(scenario)


class Chronicler(Echo):
    """Records the events of all links, in order."""

    calls: ClassVar[list[str]] = []

    def receive(self, buffer: bytearray, filled: int) -> int:
        self.calls.append(bytes(buffer[:filled]).decode())
        return super().receive(buffer, filled)

    def lost(self, error: Exception | None) -> None:
        self.calls.append("lost")
        super().lost(error)


def test_reset_of_one_peer_is_handled_before_earlier_input_of_others() -> None:
    async def scenario() -> None:
        Chronicler.calls.clear()
        made: asyncio.Queue[Echo] = asyncio.Queue()
        server = await listen("127.0.0.1", 0, lambda: Chronicler(made))
        address = server.sockets[0].getsockname()[:2]
        with socket.create_connection(address) as living, socket.create_connection(address) as dying:
            first, second = await made.get(), await made.get()
            living.sendall(b"said earlier")  # all of it has arrived before the loop polls again
            dying.sendall(b"last words")
            dying.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            dying.close()
            ended, _ = await asyncio.wait({first.ended, second.ended}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(
                {asyncio.ensure_future(first.received.wait()), asyncio.ensure_future(second.received.wait())}
            )
            assert len(ended) == 1
        assert Chronicler.calls[:3] == ["last words", "lost", "said earlier"]
        await asyncio.wait({first.ended, second.ended})
        server.close()

    run(scenario)


def test_a_link_that_does_not_want_to_read_is_not_read() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        owner, peer, server = await conversation()
        with peer:
            await loop.sock_sendall(peer, b"1")
            await owner.received.wait()
            owner.link.pause_reading()
            reads = owner.reads
            await loop.sock_sendall(peer, b"2")
            for _ in range(10):
                await asyncio.sleep(0)
            assert owner.reads == reads
            owner.received.clear()
            owner.link.resume_reading()
            await owner.received.wait()
        await owner.ended
        server.close()

    run(scenario)


def test_timers_tasks_and_other_threads_have_their_turn_while_links_are_busy() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        owner, peer, server = await conversation()
        peer.setblocking(True)
        over = False

        def flood() -> None:
            while not over:
                peer.sendall(b"x" * 100)
                peer.recv(1 << 16)

        with peer:
            flooding = asyncio.create_task(asyncio.to_thread(flood))
            await owner.received.wait()
            await asyncio.sleep(0.01)
            assert await asyncio.to_thread(lambda: 7) == 7
            rung = asyncio.Event()
            loop.call_later(0.01, rung.set)
            await rung.wait()
            over = True
            await flooding
        await owner.ended
        server.close()

    run(scenario)


def test_timers_run_in_order_whichever_was_set_first() -> None:
    """The loop's own timer is set for the first of them, and anew for an earlier one; one that is cancelled it rings for."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        rung: list[str] = []
        owner, peer, server = await conversation()
        loop.call_later(3600, rung.append, "an hour")
        await asyncio.sleep(0)
        before = loop.events_seen()
        done = asyncio.Event()
        loop.call_later(0.15, done.set)
        loop.call_later(0.1, rung.append, "third")
        await asyncio.sleep(0)
        cancelled = loop.call_later(0.04, rung.append, "cancelled")
        await asyncio.to_thread(int)
        cancelled.cancel()
        loop.call_later(0.06, rung.append, "second")
        loop.call_later(0.001, rung.append, "first")
        await done.wait()
        assert rung == ["first", "second", "third"]
        assert loop.events_seen() == before
        with select.epoll.fromfd(os.dup(loop.poller.fileno())) as epoll:
            assert epoll.poll(0) == []  # the timer is read, and would wake the loop for ever otherwise
        peer.close()
        await owner.ended
        server.close()

    run(scenario)


def test_a_loop_that_ends_leaves_no_descriptor() -> None:
    async def scenario() -> None:
        await asyncio.sleep(0.03)

    run(scenario)
    before = os.listdir("/proc/self/fd")
    run(scenario)
    assert os.listdir("/proc/self/fd") == before


def test_an_owner_that_fails_ends_its_own_link_only(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Echo):
        def receive(self, buffer: bytearray, filled: int) -> int:
            raise ZeroDivisionError

    async def scenario() -> None:
        made: asyncio.Queue[Echo] = asyncio.Queue()
        server = await listen("127.0.0.1", 0, lambda: Failing(made))
        host, port = server.sockets[0].getsockname()[:2]
        link = await dial(host, port, Echo(), 5.0)
        link.output.append(b"boom")
        link.flush_soon()
        await (await made.get()).ended
        link.abort()
        server.close()

    run(scenario)
    assert "link_owner_failed peer=127.0.0.1:" in caplog.text


class Gatherer(Echo):
    """Registers an `after_reads` callback at every read."""

    calls: ClassVar[list[str]] = []

    def receive(self, buffer: bytearray, filled: int) -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        self.calls.append("read")
        loop.after_reads(lambda: self.calls.append("after"))
        return super().receive(buffer, filled)


def test_callbacks_after_the_reads_run_when_all_ready_links_have_been_read() -> None:
    async def scenario() -> None:
        Gatherer.calls.clear()
        made: asyncio.Queue[Echo] = asyncio.Queue()
        server = await listen("127.0.0.1", 0, lambda: Gatherer(made))
        address = server.sockets[0].getsockname()[:2]
        with socket.create_connection(address) as first, socket.create_connection(address) as second:
            owners = [await made.get(), await made.get()]
            first.sendall(b"x")  # both have arrived before the loop polls again
            second.sendall(b"x")
            for owner in owners:
                await owner.received.wait()
            await asyncio.sleep(0)
            assert Gatherer.calls == ["read", "read", "after", "after"]
        for owner in owners:
            await owner.ended
        server.close()

    run(scenario)


class Joiner(Echo):
    """Asks at every read for a call when the round is over."""

    calls: ClassVar[list[str]] = []

    def receive(self, buffer: bytearray, filled: int) -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        self.calls.append("last" if not loop.together(lambda: self.calls.append("over")) else "read")
        loop.after_reads(lambda: self.calls.append("after"))
        return super().receive(buffer, filled)


def test_a_round_of_reads_ends_before_anything_else_runs_and_a_lone_read_is_no_round() -> None:
    async def scenario() -> None:
        Joiner.calls.clear()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        assert not loop.together(Joiner.calls.clear)  # nothing is being read
        made: asyncio.Queue[Echo] = asyncio.Queue()
        server = await listen("127.0.0.1", 0, lambda: Joiner(made))
        address = server.sockets[0].getsockname()[:2]
        with ExitStack() as stack:
            peers = [stack.enter_context(socket.create_connection(address)) for _ in range(3)]
            owners = [await made.get() for _ in peers]
            for peer in peers:
                peer.sendall(b"x")  # all have arrived before the loop polls again
            for owner in owners:
                await owner.received.wait()
            await asyncio.sleep(0)
            assert Joiner.calls == ["read", "read", "last", "over", "over", "after", "after", "after"]
            Joiner.calls.clear()
            owners[0].received.clear()
            peers[0].sendall(b"x")
            await owners[0].received.wait()
            await asyncio.sleep(0)
            assert Joiner.calls == ["last", "after"]
        for owner in owners:
            await owner.ended
        server.close()

    run(scenario)


class Hoarder(Echo):
    """Registers many `after_reads` callbacks at its first read, and counts its reads before the first of them runs."""

    reads_before = 0

    def receive(self, buffer: bytearray, filled: int) -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        self.reads += 1
        if self.reads == 1:
            for _ in range(MANY_AFTERWARDS):
                loop.after_reads(self.note)
        return filled

    def note(self) -> None:
        if not self.reads_before:
            self.reads_before = self.reads
            self.received.set()


def test_links_that_are_ready_again_are_read_before_many_callbacks() -> None:
    """A read takes 64 KiB at most: what is left is read in the same turn, but not for ever."""

    async def scenario() -> None:
        made: asyncio.Queue[Echo] = asyncio.Queue()
        server = await listen("127.0.0.1", 0, lambda: Hoarder(made))
        with socket.create_connection(server.sockets[0].getsockname()[:2]) as peer:
            owner = await made.get()
            assert isinstance(owner, Hoarder)
            peer.settimeout(1.0)
            peer.sendall(b"x" * (150 << 10))  # all of it is in the kernel's buffers before the loop polls
            await owner.received.wait()
            assert 2 <= owner.reads_before <= 1 + READS_AGAIN
        await owner.ended
        server.close()

    run(scenario)


def test_what_callbacks_leave_for_the_end_runs_once_after_them_and_before_later_ones() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        calls: list[str] = []

        def finish(number: int) -> None:
            calls.append(str(number))
            if number in (0, FINISHED_TOGETHER):
                loop.after_callbacks(lambda: calls.append("written"))

        owner, peer, server = await conversation()
        with peer:
            loop.ready.afterwards += [partial(finish, number) for number in range(FINISHED_TOGETHER + 2)]
            peer.sendall(b"x")
            await owner.received.wait()
            assert calls[FINISHED_TOGETHER - 1 : FINISHED_TOGETHER + 2] == [
                str(FINISHED_TOGETHER - 1),
                "written",
                str(FINISHED_TOGETHER),
            ]
            assert calls[-1] == "written"
            loop.after_callbacks(lambda: calls.append("later"))  # none runs: in the loop's next turn
            assert calls[-1] == "written"
            await asyncio.sleep(0)
            assert calls[-1] == "later"
        await owner.ended
        server.close()

    run(scenario)


@pytest.mark.parametrize("count", [1, 2])
def test_a_callback_knows_whether_it_is_the_only_one_after_the_reads(count: int) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        alone: list[bool] = []
        owner, peer, server = await conversation()
        with peer:
            loop.ready.afterwards += [lambda: alone.append(loop.finishes_alone())] * count
            peer.sendall(b"x")
            await owner.received.wait()
            assert alone == [count == 1] * count
            assert not loop.finishes_alone()
        await owner.ended
        server.close()

    run(scenario)


def test_callbacks_after_the_reads_run_soon_outside_of_a_read() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        called = asyncio.Event()
        loop.after_reads(called.set)
        assert not called.is_set()
        await called.wait()

    run(scenario)


def test_signal_that_comes_while_links_are_read_is_handled_before_the_loop_waits_again() -> None:
    """No other event follows, and compiled code executes no interpreter instruction, between which Python runs
    handlers.
    """

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        handled = asyncio.Event()
        before = signal.signal(signal.SIGUSR1, lambda number, frame: loop.call_soon_threadsafe(handled.set))
        try:
            owner, peer, server = await conversation()
            with peer:
                loop.ready.afterwards.append(partial(os.kill, os.getpid(), signal.SIGUSR1))
                peer.sendall(b"x")
                await handled.wait()
        finally:
            signal.signal(signal.SIGUSR1, before)
        await owner.ended
        server.close()

    run(scenario)


def test_a_failed_callback_after_the_reads_is_reported_and_the_next_is_called() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        reported: list[object] = []
        loop.set_exception_handler(lambda _loop, context: reported.append(context.get("exception")))
        called: list[int] = []
        loop.ready.afterwards += [lambda: called.append(1 // 0), lambda: called.append(2)]
        owner, peer, server = await conversation()  # links are read meanwhile
        with peer:
            peer.sendall(b"x")
            await owner.received.wait()
        assert called == [2]
        assert [type(error) for error in reported] == [ZeroDivisionError]
        await owner.ended
        server.close()

    run(scenario)


def test_a_loop_that_never_pauses_measures_nothing() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        loop.never_pause()
        owner, peer, server = await conversation()
        loop.ready.moderation.counting = True  # a look would begin to count, and end that
        with peer:
            for size in range(1, 100):
                await loop.sock_sendall(peer, b"x" * size)
                left = size
                while left:
                    left -= len(await loop.sock_recv(peer, 1 << 16))
        assert not loop.ready.moderation.pausing
        assert loop.pauses_made() == 0
        await owner.ended
        server.close()

    run(scenario)


def test_pauses_that_find_nothing_more_end_after_two_and_lose_nothing() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        owner, peer, server = await conversation()
        moderation = loop.ready.moderation
        now = 1
        while not moderation.pausing:  # as after many reads of 100 bytes each, 5 us apart
            if moderation.wants_look(1):
                moderation.look(now, now, 1, 100, 1 << 16)
            now += 5000
        with peer:
            for size in range(1, 30):
                await loop.sock_sendall(peer, b"x" * size)
                answer = b""
                while len(answer) < size:
                    answer += await loop.sock_recv(peer, 1 << 16)
                assert answer == b"x" * size
        assert not moderation.pausing
        assert loop.ready.pauses <= 2
        await owner.ended
        server.close()

    run(scenario)
