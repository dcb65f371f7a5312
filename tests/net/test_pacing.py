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


def without_pauses(monkeypatch: pytest.MonkeyPatch, system: bytes = b"bbr") -> pacing.Pacing:
    """What a process chooses that leaves pauses out, on a system with that control."""
    monkeypatch.setattr(pacing, "system_control", lambda: system)
    chosen = pacing.Pacing()
    chosen.leave_out()
    return chosen


@needs_choice
@in_loop
async def test_what_listens_is_steady_before_the_first_connection_which_is_so_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headwater.net.listening.PACING", without_pauses(monkeypatch))
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
def test_a_connection_from_another_machine_is_given_back_what_the_system_chooses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = pacing.system_control()
    chosen = without_pauses(monkeypatch)
    monkeypatch.setattr(pacing, "system_control", lambda: own)
    with socket.create_server(("127.0.0.1", 0)) as server:
        chosen.prepare(server)
        for peer, control in (("127.0.0.1", pacing.STEADY), ("192.0.2.1", own)):
            with socket.create_connection(server.getsockname()), server.accept()[0] as accepted:
                chosen.settle(accepted, peer)
                assert control_of(accepted) == control


@needs_choice
def test_unix_sockets_and_sockets_that_have_no_such_control_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = without_pauses(monkeypatch)
    assert not chosen.pauses()
    one, other = socket.socketpair()
    with one, other:
        chosen.prepare(one)
        chosen.settle(one, "local")
    monkeypatch.setattr(pacing, "STEADY", b"none such")
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = control_of(server)
        chosen.prepare(server)
        assert control_of(server) == before


@needs_choice
@pytest.mark.parametrize("system", [b"cubic", b"bbr", b""])
def test_what_the_system_chooses_is_kept_where_it_makes_no_pauses_or_nobody_leaves_them_out(
    system: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "system_control", lambda: system)
    chosen = pacing.Pacing()
    if system != b"bbr":
        chosen.leave_out()
    assert chosen.pauses() == (system == b"bbr")
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = control_of(server)
        chosen.prepare(server)
        with socket.create_connection(server.getsockname()), server.accept()[0] as accepted:
            chosen.settle(accepted, "192.0.2.1")
            assert control_of(server) == control_of(accepted) == before
