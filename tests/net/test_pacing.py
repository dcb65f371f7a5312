"""Connections of this machine to itself have no pauses, where the system chooses a control that makes them."""

import asyncio
import socket

import pytest
from support.in_loop import in_loop

from headwater.errors import TransportError
from headwater.net import pacing
from headwater.net.link import Link
from headwater.net.listening import bind
from headwater.net.tcp import dial, reserve

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
async def test_both_ends_of_a_connection_are_steady_from_its_beginning() -> None:
    accepted, dialled = Noting(), Noting()
    listener = bind("127.0.0.1", 0, lambda: accepted)
    listener.open()
    assert [control_of(one) for one in listener.sockets] == [pacing.STEADY]
    await dial("127.0.0.1", listener.port, dialled, 5.0)
    for link in (await accepted.link, await dialled.link):
        assert link._transport is not None
        assert control_of(link._transport.get_extra_info("socket")) == pacing.STEADY
        link.abort()
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


@pytest.mark.usefixtures("pausing")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@in_loop
async def test_a_port_where_nobody_listens_is_named_with_or_without_pauses(host: str) -> None:
    with reserve("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
        with pytest.raises(TransportError, match=rf"cannot connect to {host}:{port}: "):
            await dial(host, port, Noting(), 5.0)


@pytest.mark.parametrize(
    ("host", "within"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("127.example", False), ("10.0.0.1", False), ("", False)],
)
def test_numbers_of_addresses_within_the_machine_are_known(host: str, within: bool) -> None:
    assert pacing.is_loopback(host) == within
