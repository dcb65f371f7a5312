"""net/local_sockets.py: sockets of processes on one machine, with and without names in a directory."""

import asyncio
from pathlib import Path

import pytest

from headwater.errors import EnvironmentProblem, TransportError
from headwater.net.link import Link
from headwater.net.local_sockets import ABSTRACT, bind_local, dial_local, forget, new_place

SIZE = 3 << 20  # bytes; more than a socket holds


class Echo:
    """Sends back what comes."""

    def __init__(self) -> None:
        self.link: Link | None = None

    def attach(self, link: Link) -> None:
        self.link = link

    def receive(self, buffer: bytearray, filled: int) -> int:
        assert self.link is not None
        self.link.output.append(bytes(buffer[:filled]))
        self.link.flush_soon()
        return filled

    def lost(self, error: Exception | None) -> None:
        pass


class Collector(Echo):
    """Keeps what comes; `complete` has a result with the last byte."""

    def __init__(self) -> None:
        super().__init__()
        self.received = bytearray()
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def receive(self, buffer: bytearray, filled: int) -> int:
        self.received += buffer[:filled]
        if len(self.received) == SIZE:
            self.complete.set_result(None)
        return filled


@pytest.fixture(params=["of the system", "in a directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return new_place() if request.param == "of the system" else str(tmp_path)


async def echoed(place: str, number: int) -> str:
    """Exchange more than a socket holds; returns the name of the other end."""
    collector = Collector()
    link = await dial_local(place, number, collector, 10)
    sent = bytes(range(256)) * (SIZE // 256)
    link.output.append(sent)
    link.flush_soon()
    await asyncio.wait_for(collector.complete, 30)
    assert collector.received == sent
    peer = link.peer
    link.abort()
    return peer


def test_bytes_go_both_ways_and_the_name_has_the_number(place: str) -> None:
    async def exchange() -> None:
        listener = bind_local(place, 7, Echo)
        listener.open()
        assert listener.port == 7
        assert (await echoed(place, 7)).endswith("7")
        listener.close()
        await listener.wait_closed()

    asyncio.run(exchange())


def test_nobody_listens_there(place: str) -> None:
    with pytest.raises(TransportError, match="cannot connect to local socket 3"):
        asyncio.run(dial_local(place, 3, Echo(), 10))


def test_a_number_is_bound_once() -> None:
    async def bind_twice() -> None:
        place = new_place()
        listener = bind_local(place, 1, Echo)
        with pytest.raises(EnvironmentProblem, match="cannot listen on local socket 1"):
            bind_local(place, 1, Echo)
        listener.close()

    asyncio.run(bind_twice())


def test_the_socket_of_a_process_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    async def take_over() -> None:
        place = str(tmp_path)
        bind_local(place, 1, Echo).close()  # a file stays, as after a kill
        assert (tmp_path / "1").exists()
        listener = bind_local(place, 1, Echo)
        listener.open()
        await echoed(place, 1)
        listener.close()

    asyncio.run(take_over())


def test_a_place_is_forgotten(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "1").touch()
    forget(str(place))
    assert not place.exists()
    forget(ABSTRACT + "nothing")
