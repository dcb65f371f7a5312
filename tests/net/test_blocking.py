"""Deadlines and losses of a blocking connection, over real sockets on loopback."""

import socket
import time
from collections.abc import Iterator

import pytest

from headwater.errors import ConnectionClosed, HostUnknown, RequestTimeout, TlsRefused, TransportError
from headwater.net.blocking import BlockingConnection, deadline_after, first_that_answers


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        yield server


def dialed(listener: socket.socket) -> tuple[BlockingConnection, socket.socket]:
    connection = BlockingConnection.dial("127.0.0.1", listener.getsockname()[1], deadline_after(10))
    peer, _ = listener.accept()
    return connection, peer


def test_input_is_added_to_the_received_bytes(listener: socket.socket) -> None:
    connection, peer = dialed(listener)
    with connection, peer:
        peer.sendall(b"INFO {}")
        assert connection.receive(deadline_after(10))
        peer.sendall(b"\r\n")
        assert connection.receive(deadline_after(10))
        received = connection.received
        assert received.data[: received.filled] == b"INFO {}\r\n"


def test_a_message_larger_than_the_buffer_is_received(listener: socket.socket) -> None:
    connection, peer = dialed(listener)
    size = 3 << 20
    with connection, peer:
        peer.settimeout(None)
        sender = peer.dup()
        sender.setblocking(False)
        left = memoryview(bytes(size))
        while connection.received.filled < size:
            if left:
                try:
                    left = left[sender.send(left) :]
                except BlockingIOError:
                    pass
            connection.receive(deadline_after(0 if left else 10))
        sender.close()
    assert connection.received.filled == size


def test_a_deadline_without_bytes_is_an_answer_and_not_an_error(listener: socket.socket) -> None:
    connection, peer = dialed(listener)
    with connection, peer:
        start = time.monotonic()
        assert not connection.receive(deadline_after(0.05))
        assert 0.04 < time.monotonic() - start < 5
        assert not connection.receive(deadline_after(-1))
        assert not connection.closed


def test_after_the_deadline_bytes_that_have_arrived_are_still_read(listener: socket.socket) -> None:
    connection, peer = dialed(listener)
    with connection, peer:
        peer.sendall(b"PING\r\n")
        assert connection.receive(deadline_after(10))
        peer.sendall(b"PING\r\n")
        while not connection.receive(deadline_after(-1)):
            pass
        assert connection.received.filled == 12


def test_a_peer_that_closes_is_a_transport_error_and_closes_us(listener: socket.socket) -> None:
    connection, peer = dialed(listener)
    peer.close()
    with pytest.raises(TransportError, match="closed the connection"):
        connection.receive(deadline_after(10))
    assert connection.closed
    with pytest.raises(ConnectionClosed):
        connection.send(b"PING\r\n", deadline_after(10))


def test_a_peer_that_does_not_read_ends_a_write_at_its_deadline(listener: socket.socket) -> None:
    connection, peer = dialed(listener)
    with connection, peer, pytest.raises(TransportError, match="while writing"):
        connection.send(bytes(64 << 20), deadline_after(0.1))
    assert connection.closed


def test_a_refused_connection_is_a_transport_error_that_names_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(TransportError, match=f"127.0.0.1:{port}"):
        BlockingConnection.dial("127.0.0.1", port, deadline_after(1))


def test_a_name_that_never_had_an_address_is_told_from_one_that_has_lost_it(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, real = listener.getsockname()[1], socket.getaddrinfo
    known: set[str] = set()

    def look_up(host: str, *others: int) -> object:
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real("127.0.0.1", *others)

    def dial() -> None:
        BlockingConnection.dial("broker.example", port, deadline_after(10)).close()

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(HostUnknown, match=r"cannot connect to broker\.example:.*: the name does not resolve"):
        dial()
    known.add("broker.example")
    dial()
    known.clear()
    with pytest.raises(TransportError) as lost:
        dial()
    assert not isinstance(lost.value, HostUnknown)


def test_the_first_place_that_answers_is_taken_and_else_a_failure_that_may_pass_is_raised() -> None:
    failures = [
        HostUnknown("mistyped"),
        TransportError("refused"),
        RequestTimeout("slow"),
        TlsRefused("no certificate"),
    ]

    def connect(place: int) -> int:
        if place < len(failures):
            raise failures[place]
        return place

    assert first_that_answers([0, 1, 4, 2], connect) == 4
    for places, raised in (([0, 1, 2, 3], 2), ([3, 1], 1), ([0, 3], 0)):
        with pytest.raises(type(failures[raised])):
            first_that_answers(places, connect)


def test_a_name_with_an_empty_label_is_one_that_does_not_resolve() -> None:
    with pytest.raises(HostUnknown, match="does not resolve"):
        BlockingConnection.dial("broker..example", 1, deadline_after(10))
