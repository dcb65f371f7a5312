"""Connections of this machine to itself have no pauses, where the system chooses a control that makes them."""

import asyncio
import socket

import pytest
from support.in_loop import in_loop

from headwater.net import pacing
from headwater.net.link import Link
from headwater.net.listening import bind
from headwater.net.tcp import dial

needs_choice = pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="this system offers no choice")


def control_of(connection: socket.socket) -> bytes:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


class Noting:
    """An owner that notes its link."""

    def __init__(self) -> None:
        self.link: asyncio.Future[Link] = asyncio.get_running_loop().create_future()

    def attach(self, link: Link) -> None:
        self.link.set_result(link)

    def receive(self, buffer: bytearray, filled: int) -> int:
        return filled

    def lost(self, error: Exception | None) -> None:
        pass


@pytest.fixture
def pausing(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A system that chooses a control with pauses; what it chooses in truth."""
    own = pacing.system_control()
    monkeypatch.setattr(pacing, "system_pauses", lambda: True)
    return own


@needs_choice
@in_loop
@pytest.mark.usefixtures("pausing")
async def test_what_listens_is_steady_before_the_first_connection_which_is_so_from_its_beginning() -> None:
    accepted = Noting()
    listener = bind("127.0.0.1", 0, lambda: accepted)
    listener.open()
    assert [control_of(one) for one in listener.sockets] == [pacing.STEADY]
    link = await dial("127.0.0.1", listener.port, Noting(), 5.0)
    here = await accepted.link
    assert here._transport is not None
    assert control_of(here._transport.get_extra_info("socket")) == pacing.STEADY
    for one in (link, here):
        one.abort()
    listener.close()
    await listener.wait_closed()


@needs_choice
def test_a_connection_from_another_machine_is_given_back_what_the_system_chooses(pausing: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        pacing.prepare(server)
        for peer, control in (("127.0.0.1", pacing.STEADY), ("192.0.2.1", pausing)):
            with socket.create_connection(server.getsockname()), server.accept()[0] as accepted:
                pacing.settle(accepted, peer)
                assert control_of(accepted) == control


@needs_choice
@pytest.mark.usefixtures("pausing")
def test_unix_sockets_and_sockets_that_have_no_such_control_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    with one, other:
        pacing.prepare(one)
        pacing.settle(one, "local")
    monkeypatch.setattr(pacing, "STEADY", b"none such")
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = control_of(server)
        pacing.prepare(server)
        assert control_of(server) == before


@needs_choice
@pytest.mark.parametrize("system", [b"cubic", b""])
def test_what_the_system_chooses_is_kept_where_it_makes_no_pauses(
    system: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "system_control", lambda: system)
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = control_of(server)
        pacing.prepare(server)
        with socket.create_connection(server.getsockname()), server.accept()[0] as accepted:
            pacing.settle(accepted, "192.0.2.1")
            assert control_of(server) == control_of(accepted) == before
