"""Listeners: bound before they are opened, for both address families, and well-behaved when descriptors run out."""

import asyncio
import errno
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any, cast

import pytest

from headwater.errors import EnvironmentProblem
from headwater.net import listening
from headwater.net.direct_loop import DirectLoop
from headwater.net.limits import Limits
from headwater.net.link import Link
from headwater.net.listening import Listener, bind


class Greeter:
    """An owner that greets, and stores the address of its peer."""

    def __init__(self) -> None:
        self.peer = ""

    def attach(self, link: Link) -> None:
        self.peer = link.host
        link.output.append(b"hello")
        link.flush()

    def receive(self, buffer: bytearray, filled: int) -> int:
        return filled

    def lost(self, error: Exception | None) -> None:
        pass


def receive(host: str, port: int) -> bytes:
    with socket.create_connection((host, port), 5.0) as link:
        return link.recv(100)


@pytest.fixture(params=[asyncio.new_event_loop, DirectLoop], ids=["any loop", "our loop"], autouse=True)
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "make_loop", request.param)


make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop


def run(test: Callable[[], Any]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(bounded())


def test_a_listener_that_is_bound_and_not_open_accepts_no_connections() -> None:
    async def test() -> None:
        listener = bind("127.0.0.1", 0, Greeter)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.to_thread(receive, "127.0.0.1", listener.port)
        with pytest.raises(EnvironmentProblem, match=str(listener.port)):
            bind("127.0.0.1", listener.port, Greeter).open()
        listener.open()
        assert await asyncio.to_thread(receive, "127.0.0.1", listener.port) == b"hello"
        listener.close()
        await listener.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.to_thread(receive, "127.0.0.1", listener.port)

    run(test)


def test_accepted_connections_send_a_small_write_at_once() -> None:
    """Without TCP_NODELAY a write after an unacknowledged one waits for the peer's delayed ACK, 40 ms."""
    options: list[int] = []

    class Observed(Link):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            connection = transport.get_extra_info("socket")
            options.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            super().connection_made(transport)

    async def test() -> None:
        listener = bind("127.0.0.1", 0, Greeter, Observed)
        listener.open()
        assert await asyncio.to_thread(receive, "127.0.0.1", listener.port) == b"hello"
        listener.close()
        await listener.wait_closed()
        assert options == [1]

    run(test)


needs_ipv6 = pytest.mark.skipif(not listening.speaks_ipv6(), reason="this machine has no IPv6")


@needs_ipv6
@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_every_address_is_those_of_both_families_and_peers_are_shown_as_they_came(host: str) -> None:
    async def test() -> None:
        owners = [Greeter(), Greeter()]
        listener = bind(host, 0, iter(owners).__next__)
        listener.open()
        for address in ("127.0.0.1", "::1"):
            assert await asyncio.to_thread(receive, address, listener.port) == b"hello"
        assert [owner.peer for owner in owners] == ["127.0.0.1", "::1"]
        listener.close()

    run(test)


@needs_ipv6
def test_an_address_of_one_family_is_taken_alone() -> None:
    async def test() -> None:
        listener = bind("::1", 0, Greeter)
        listener.open()
        assert await asyncio.to_thread(receive, "::1", listener.port) == b"hello"
        with pytest.raises(ConnectionRefusedError):
            await asyncio.to_thread(receive, "127.0.0.1", listener.port)
        listener.close()

    run(test)


class Exhausted:
    """A listening socket on which accept fails the given number of times."""

    def __init__(self, real: socket.socket, times: int) -> None:
        self._real = real
        self.tries = 0
        self._times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def accept(self) -> tuple[socket.socket, Any]:
        self.tries += 1
        if self.tries <= self._times:
            raise OSError(errno.EMFILE, "Too many open files")
        return self._real.accept()


def test_out_of_descriptors_it_pauses_logs_once_tells_each_time_and_resumes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "FIRST_PAUSE", 0.01)

    async def test() -> None:
        listener = bind("127.0.0.1", 0, Greeter)
        reasons: list[tuple[str, str]] = []
        listener.places.on_turned_away = lambda *what: reasons.append(what)
        exhausted = Exhausted(listener.sockets[0], 3)
        listener.sockets[0] = cast(socket.socket, exhausted)
        listener.open()
        assert await asyncio.to_thread(receive, "127.0.0.1", listener.port) == b"hello"
        assert listener.refused == 3
        assert reasons == [("", "cannot accept connections: Too many open files")] * 3
        listener.close()

    with caplog.at_level(logging.ERROR):
        run(test)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "Too many open files" in caplog.text


def test_a_storm_of_newcomers_leaves_turns_of_the_loop_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "ACCEPTED_PER_TURN", 2)

    async def test() -> None:
        arrived: list[int] = []
        turns = 0

        class Counting(Greeter):
            def attach(self, link: Link) -> None:
                arrived.append(turns)
                super().attach(link)

        listener = bind("127.0.0.1", 0, Counting)
        for one in listener.sockets:
            one.listen()
        waiting = [socket.create_connection(("127.0.0.1", listener.port), 5.0) for _ in range(10)]
        listener.open()
        while len(arrived) < len(waiting):
            await asyncio.sleep(0)
            turns += 1
        assert all(arrived.count(turn) <= 2 for turn in arrived)
        for link in waiting:
            link.close()
        listener.close()

    run(test)


def test_a_link_that_cannot_be_made_ends_its_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        makers: list[Callable[[], Link]] = [lambda: Link(Greeter())]

        def make() -> Link:
            if makers:
                return makers.pop()()
            raise ValueError("no link today")

        listener = Listener(listening.bound_sockets("127.0.0.1", 0), make)
        listener.open()
        assert await asyncio.to_thread(receive, "127.0.0.1", listener.port) == b"hello"
        assert await asyncio.to_thread(receive, "127.0.0.1", listener.port) == b""
        listener.close()

    run(test)
    assert "no link today" in caplog.text


def test_connections_above_the_limits_get_a_farewell_and_places_become_free_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        limits = Limits(connections=3, per_address=2)
        listener = bind("127.0.0.1", 0, Greeter, limits=limits, farewell=b"full")
        listener.open()
        port = listener.port
        held: list[socket.socket] = []
        for source, received in (("127.0.0.1", b"hello"), ("127.0.0.1", b"hello"), ("127.0.0.1", b"full"),
                              ("127.0.0.2", b"hello"), ("127.0.0.3", b"full")):  # fmt: skip
            link = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", port), 5.0, (source, 0))
            assert await asyncio.to_thread(link.recv, 100) == received
            held.append(link)
        assert (listener.places.connections, listener.places.turned_away) == (3, 2)
        assert listener.places.by_host == {"127.0.0.1": 2, "127.0.0.2": 1}
        for link in held:
            link.close()
        for _ in range(5000):
            if listener.places.connections:
                await asyncio.sleep(0.001)
        assert listener.places.by_host == {}
        assert await asyncio.to_thread(receive, "127.0.0.1", port) == b"hello"
        listener.close()

    run(test)
    assert caplog.text.count("connection_turned_away") == 1


def test_a_connection_accepted_in_the_turn_in_which_the_listener_closes_is_closed_too() -> None:
    async def test() -> None:
        listener = bind("127.0.0.1", 0, Greeter)
        listener.open()
        with socket.create_connection(("127.0.0.1", listener.port), 5.0) as link:
            listener._accept(listener.sockets[0])  # its link is not made yet when the listener is closed
            assert listener.places.connections == 1
            listener.close()
            await listener.wait_closed()
            assert listener.places.connections == 0
            while await asyncio.to_thread(link.recv, 100):
                pass  # it may have been greeted before

    run(test)


def test_a_port_that_the_system_chose_can_be_taken_again_after_its_connections_were_left_behind() -> None:
    async def test() -> None:
        listener = bind("127.0.0.1", 0, Greeter)
        listener.open()
        assert listener.sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
        listener.close()
        await listener.wait_closed()

    run(test)
