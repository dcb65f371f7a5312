"""The hot half of a link, on a plain socket pair: partial writes, errors, and owners that fail."""

import socket

import pytest

from headwater.net.endpoint import Endpoint
from headwater.wire.receive import ReceiveBuffer


class Owner:
    """Uses all input, or fails."""

    def __init__(self) -> None:
        self.received = b""
        self.fail = False

    def attach(self, link: object) -> None:
        """Not called here."""

    def receive(self, buffer: bytearray, filled: int) -> int:
        if self.fail:
            raise ZeroDivisionError
        self.received += buffer[:filled]
        return filled

    def lost(self, error: Exception | None) -> None:
        """Not called here."""


class Watched(Endpoint):
    """An endpoint that counts its calls to its link."""

    def __init__(self, owner: Owner, descriptor: int) -> None:
        super().__init__(owner, ReceiveBuffer(), None)
        self._descriptor = descriptor
        self.waits = 0
        self.aborts = 0

    def await_room(self) -> None:
        self.waits += 1

    def abort(self) -> None:
        self.aborts += 1


def test_bytes_that_the_kernel_refuses_wait_and_are_not_offered_again_before_there_is_room() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        endpoint = Watched(Owner(), ours.fileno())
        sent = bytes(range(256)) * (1 << 14)
        endpoint.output.append(sent)
        waiting = endpoint.push()
        assert 0 < waiting == len(endpoint.output) < len(sent)
        assert (endpoint._handed, endpoint.waits, endpoint._blocked) == (len(sent) - waiting, 1, True)
        received = theirs.recv(1 << 16)
        assert endpoint.push() == waiting, "the loop says when, not the next flush"
        while len(received) < len(sent):
            endpoint._blocked = False
            endpoint.push()
            received += theirs.recv(1 << 20)
        assert received == sent


def test_a_write_that_fails_is_left_for_the_transport_to_meet() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        endpoint = Watched(Owner(), ours.fileno())
        endpoint.output.append(b"x")
        assert endpoint.push() == 1
        assert (endpoint.waits, endpoint._blocked) == (0, False)


def test_input_reaches_the_owner_and_an_owner_that_fails_ends_its_link_only(caplog: pytest.LogCaptureFixture) -> None:
    owner = Owner()
    endpoint = Watched(owner, -1)
    endpoint.get_buffer(-1)[:3] = b"abc"
    endpoint.buffer_updated(3)
    assert owner.received == b"abc"
    owner.fail = True
    endpoint.get_buffer(-1)[:1] = b"d"
    endpoint.buffer_updated(1)
    assert endpoint.aborts == 1
    assert "link_owner_failed" in caplog.text
