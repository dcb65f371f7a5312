"""Connections of this machine to itself have no pauses, where the system chooses a control that makes them."""

import asyncio
import socket

import pytest
from support.in_loop import in_loop

from headwater.net import pacing
from headwater.net.link import Link
from headwater.net.tcp import dial, listen

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


@needs_choice
@in_loop
async def test_both_ends_of_a_connection_within_this_machine_are_steady(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "system_pauses", lambda: True)
    chosen = pacing.Pacing()
    chosen.leave_out()
    monkeypatch.setattr("headwater.net.link.PACING", chosen)
    accepted = Noting()
    server = await listen("127.0.0.1", 0, lambda: accepted)
    link = await dial("127.0.0.1", server.port, Noting(), 5.0)
    for one in (link, await accepted.link):
        assert one._transport is not None
        assert control_of(one._transport.get_extra_info("socket")) == pacing.STEADY
        one.abort()
    server.close()
    await server.wait_closed()


class Elsewhere:
    """A connection from another machine."""

    family = socket.AF_INET

    def getpeername(self) -> tuple[str, int]:
        return "192.0.2.1", 4222

    def getsockname(self) -> tuple[str, int]:
        return "192.0.2.2", 4222

    def setsockopt(self, *arguments: object) -> None:
        raise AssertionError("the system chooses for it")


def test_connections_to_other_machines_and_unix_sockets_keep_what_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "system_pauses", lambda: True)
    chosen = pacing.Pacing()
    chosen.leave_out()
    assert not chosen.pauses()
    chosen.apply(Elsewhere())  # type: ignore[arg-type]
    one, other = socket.socketpair()
    with one, other:
        chosen.apply(one)


@needs_choice
def test_a_connection_whose_peer_is_gone_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "system_pauses", lambda: True)
    chosen = pacing.Pacing()
    chosen.leave_out()
    with socket.socket() as never_connected:
        before = control_of(never_connected)
        chosen.apply(never_connected)
        assert control_of(never_connected) == before


@needs_choice
@pytest.mark.parametrize("system_pauses", [False, True])
def test_what_the_system_chooses_is_kept_where_it_makes_no_pauses_or_nobody_leaves_them_out(
    system_pauses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "system_pauses", lambda: system_pauses)
    chosen = pacing.Pacing()
    if not system_pauses:
        chosen.leave_out()
    assert chosen.pauses() == system_pauses
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connected:
        before = control_of(connected)
        chosen.apply(connected)
        assert control_of(connected) == before
