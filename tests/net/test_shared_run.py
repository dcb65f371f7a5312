"""Runs that receivers share: whatever their sockets take and refuse, each gets what ordinary writes would bring it."""

import logging
import os
import random
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import headwater
from headwater.exchange.router import SHARED, Router
from headwater.exchange.sublist import Outlet, Subscription
from headwater.net.endpoint import Endpoint
from headwater.net.shared_run import LEFT_OUT, MOST_BYTES, SharedRun
from headwater.wire.message_view import MessageView
from headwater.wire.receive import ReceiveBuffer

has_pages = pytest.mark.skipif(
    not headwater.__compiled__ or sys.platform != "linux", reason="only the compiled half hands over pages, on Linux"
)


class Reader:
    """A client: its endpoint has no loop, and `read` is the other end."""

    def __init__(self, stack: ExitStack, sid: bytes) -> None:
        ours, self.theirs = stack.enter_context(pair())
        self.endpoint = Waiting(ours.fileno())
        self.outlet = Outlet(self.endpoint, self.endpoint.output)
        self.outlet.headers = True
        self.sid = sid
        self.expected = self.received = b""

    def go_on(self) -> None:
        self.endpoint._blocked = False
        self.endpoint.push()

    def read(self, most: int) -> None:
        """Read what there is, up to so much; there is room for more then."""
        try:
            self.received += self.theirs.recv(most)
        except BlockingIOError:
            return
        self.go_on()

    def read_all(self) -> None:
        while len(self.received) < len(self.expected):
            self.go_on()
            self.received += self.theirs.recv(1 << 20)


class Waiting(Endpoint):
    """Counts how often it waits for room."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(Unheard(), ReceiveBuffer(), None)
        self._descriptor = descriptor
        self.waits = 0

    @property
    def pending(self) -> int:
        return len(self.output)

    def await_room(self) -> None:
        self.waits += 1

    def abort(self) -> None:
        raise AssertionError("nobody is cut off here")


class Unheard:
    def attach(self, link: object) -> None:
        """Not called here."""

    def receive(self, buffer: bytearray, filled: int) -> int:
        raise AssertionError("nothing is received here")

    def lost(self, error: Exception | None) -> None:
        """Not called here."""


@contextmanager
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a TCP connection, whose sockets fill up early."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        theirs = socket.create_connection(door.getsockname())
        ours = door.accept()[0]
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        ours.setblocking(False)
        theirs.settimeout(10)
        yield ours, theirs


def subscribe(router: Router, reader: Reader, subject: bytes = b"a", sid: bytes = b"") -> Subscription:
    subscription = Subscription(subject, b"", sid or reader.sid, reader.outlet, None)
    reader.outlet.subscriptions[subscription.sid] = subscription
    router.subscribe(subscription)
    return subscription


def publish(router: Router, count: int, payload: bytes) -> None:
    """A client publishes so many messages on subject a."""
    op = b"PUB a %d\r\n%b\r\n" % (len(payload), payload)
    message = MessageView()
    message.buffer = bytearray(op * count)
    message.subject, message.subject_end = 4, 5
    message.tail = message.reply = message.reply_end = 6
    message.headers = message.payload = len(op) - len(payload) - 2
    message.end = len(op) - 2
    router.begin_read()
    router.route_run_here(None, router.sublist.match(b"a"), message, len(op), count)
    router.end_read()


def publish_and_read(router: Router, clients: list[Reader], payload: bytes) -> None:
    """A run that is worth pages, which each of the clients gets whole."""
    publish(router, 480, payload)
    for client in clients:
        client.expected, client.received = run_for(b"1", 480, payload), b""
        client.read_all()
        assert client.received == client.expected


def run_for(sid: bytes, count: int, payload: bytes) -> bytes:
    return b"MSG a %b %d\r\n%b\r\n" % (sid, len(payload), payload) * count


def router_of(shared: SharedRun) -> Router:
    return Router(lambda _: None, 7, 1 << 30, None, shared)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("seed", range(12))
def test_each_receiver_gets_what_ordinary_writes_bring_it_whatever_its_socket_takes(seed: int) -> None:
    chance = random.Random(seed)
    shared = SharedRun()
    router = router_of(shared)
    with ExitStack() as stack:
        sids = [*chance.choice(((b"1",) * 4, (b"1", b"1", b"22", b"22"))), *chance.choices((b"1", b"22", b"333"), k=3)]
        readers = [Reader(stack, sid) for sid in sids]
        for reader in readers:
            subscribe(router, reader)
            reader.theirs.setblocking(False)
        for number in range(60):
            payload = bytes([65 + number % 26]) * chance.choice((3, 130, 1500))
            count = chance.randrange(1, 300_000) // (len(payload) + 20) + 1
            for reader in readers:
                if chance.random() < 0.1:  # other output waits in front of it
                    reader.endpoint.output.append(b"PONG\r\n")
                    reader.expected += b"PONG\r\n"
                reader.expected += run_for(reader.sid, count, payload)
            publish(router, count, payload)
            for reader in readers:
                assert reader.endpoint._handed + len(reader.endpoint.output) == len(reader.expected)
                if chance.random() < 0.6:
                    reader.read(chance.choice((1, 5_000, 70_000, 1 << 20)))
        for reader in readers:
            reader.theirs.settimeout(10)
            reader.read_all()
            assert reader.received == reader.expected
            assert reader.outlet.out_messages == reader.outlet.subscriptions[reader.sid].delivered
            assert reader.outlet.out_messages == reader.received.count(b"MSG ")
    assert shared.by_pages > 1 << 20 or not headwater.__compiled__ or sys.platform != "linux"
    shared.close()


def test_a_short_run_with_another_sid_leaves_the_long_one_as_it_is() -> None:
    """The longer sid makes the run long enough to be shared, the shorter one does not."""
    router = router_of(SharedRun())
    payload = b"x" * 100
    count = SHARED // len(run_for(b"1", 1, payload))
    assert len(run_for(b"1", count, payload)) < SHARED <= len(run_for(b"4444", count, payload))
    with ExitStack() as stack:
        readers = [Reader(stack, sid) for sid in (b"4444", b"1", b"4444", b"4444")]
        for reader in readers:
            subscribe(router, reader)
            reader.expected = run_for(reader.sid, count, payload)
        publish(router, count, payload)
        for reader in readers:
            reader.read_all()
            assert reader.received == reader.expected


def test_a_client_that_gets_it_twice_gets_both_and_the_others_the_first_run() -> None:
    router = router_of(SharedRun())
    payload = b"x" * 100
    with ExitStack() as stack:
        first, second, third = readers = [Reader(stack, b"1") for _ in range(3)]
        subscribe(router, first)
        limited = subscribe(router, first, b"a", b"2")
        limited.maximum = 10_000
        subscribe(router, second)
        subscribe(router, third)
        publish(router, 900, payload)
        for reader in readers:
            reader.expected = run_for(b"1", 900, payload)
        first.expected += run_for(b"2", 900, payload)
        for reader in readers:
            reader.read_all()
            assert reader.received == reader.expected


@has_pages
@pytest.mark.parametrize(("readers", "by_pages"), [(2, 0), (3, 3), (8, 8)])
def test_three_receivers_and_more_are_handed_pages_and_the_pipes_are_empty_after_it(
    readers: int, by_pages: int
) -> None:
    shared = SharedRun()
    router = router_of(shared)
    payload = b"x" * 128
    run = run_for(b"1", 480, payload)
    with ExitStack() as stack:
        before = descriptors()
        clients = [Reader(stack, b"1") for _ in range(readers)]
        for client in clients:
            subscribe(router, client)
        open_without = descriptors()
        for number in range(1, 4):
            publish(router, 480, payload)
            for client in clients:
                client.expected += run
                client.read_all()
                assert client.received == client.expected
            assert shared.by_pages == number * by_pages * len(run)
        assert descriptors() == open_without + (4 if by_pages else 0)
        shared.close()
        assert descriptors() == open_without > before


@has_pages
@pytest.mark.parametrize("count", [200, 10_000])
def test_runs_below_the_least_size_and_beyond_the_room_of_a_pipe_are_written(count: int) -> None:
    shared = SharedRun()
    router = router_of(shared)
    payload = b"x" * 128
    assert not SHARED <= len(run_for(b"1", count, payload)) <= MOST_BYTES
    with ExitStack() as stack:
        clients = [Reader(stack, b"1") for _ in range(4)]
        for client in clients:
            subscribe(router, client)
        publish(router, count, payload)
        for client in clients:
            client.expected = run_for(b"1", count, payload)
            client.read_all()
            assert client.received == client.expected
    assert shared.by_pages == 0


@has_pages
def test_a_receiver_that_is_gone_costs_the_others_nothing_and_is_left_for_the_transport_to_meet() -> None:
    shared = SharedRun()
    router = router_of(shared)
    payload = b"x" * 128
    with ExitStack() as stack:
        clients = [Reader(stack, b"1") for _ in range(5)]
        for client in clients:
            subscribe(router, client)
        for gone in (clients[0], clients[2]):
            gone.theirs.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
            )  # reset, not an orderly end
            gone.theirs.close()
        for _ in range(3):
            publish(router, 600, payload)
            for client in (clients[1], clients[3], clients[4]):
                client.expected += run_for(b"1", 600, payload)
                client.read_all()
                assert client.received == client.expected
        assert [client.endpoint.waits for client in (clients[0], clients[2])] == [0, 0]
        assert not shared.calls.refused
    shared.close()


@has_pages
def test_an_error_of_one_receiver_is_no_refusal_of_the_system(caplog: pytest.LogCaptureFixture) -> None:
    """As a connection that has timed out, whose error is that of the next call; here: a socket without an address."""
    shared = SharedRun()
    router = router_of(shared)
    payload = b"x" * 128
    caplog.set_level(logging.INFO)
    with ExitStack() as stack:
        clients = [Reader(stack, b"1") for _ in range(5)]
        for client in clients:
            subscribe(router, client)
        unconnected = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        clients[2].endpoint._descriptor = unconnected.fileno()
        for _ in range(2):
            publish(router, 480, payload)
            for client in clients[:2] + clients[3:]:
                client.expected += run_for(b"1", 480, payload)
                client.read_all()
                assert client.received == client.expected
    assert (shared.calls.refused, caplog.records) == (False, [])
    assert shared.by_pages == 2 * 4 * len(run_for(b"1", 480, payload))
    shared.close()


@has_pages
def test_where_a_pipe_gets_no_room_that_is_said_once_and_tried_again_after_some_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As for a user who has as many pages in pipes as it may; here: a socket, whose room is not that of a pipe."""
    shared = SharedRun()
    router = router_of(shared)
    payload = b"x" * 128
    caplog.set_level(logging.INFO)
    tries = 0

    def refused(_: int) -> tuple[int, int]:
        nonlocal tries
        tries += 1
        one, other = socket.socketpair()
        return one.detach(), other.detach()

    with ExitStack() as stack:
        clients = [Reader(stack, b"1") for _ in range(3)]
        for client in clients:
            subscribe(router, client)
        before = descriptors()

        with monkeypatch.context() as without:
            without.setattr(os, "pipe2", refused)
            for _ in range(2 * LEFT_OUT + 2):
                publish_and_read(router, clients, payload)
            assert (tries, shared.by_pages, descriptors()) == (2, 0, before)
        assert [record.getMessage() for record in caplog.records] == [
            f"no_pipe_for_pages reason=Bad file descriptor bytes={MOST_BYTES} runs_left_out={LEFT_OUT}"
        ]
        for _ in range(LEFT_OUT):
            publish_and_read(router, clients, payload)
        assert shared.by_pages > 0
    shared.close()


@has_pages
def test_without_descriptors_each_is_written_to_and_pages_come_again_once_there_are_some() -> None:
    shared = SharedRun()
    router = router_of(shared)
    payload = b"x" * 128
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        clients = [Reader(stack, b"1") for _ in range(4)]
        for client in clients:
            subscribe(router, client)

        with ExitStack() as filling:
            filling.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
            with pytest.raises(OSError, match="Too many open files"):
                while True:
                    filling.enter_context(open(os.devnull, "rb"))
            publish_and_read(router, clients, payload)
            assert (shared.by_pages, shared.calls.refused) == (0, False)
        for _ in range(LEFT_OUT + 1):
            publish_and_read(router, clients, payload)
        assert shared.by_pages > 0
    shared.close()


@has_pages
def test_a_system_that_refuses_is_asked_once_and_each_is_written_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared = SharedRun()
    router = router_of(shared)
    payload = b"x" * 128
    run = run_for(b"1", 480, payload)
    caplog.set_level(logging.INFO)
    with ExitStack() as stack:
        clients = [Reader(stack, b"1") for _ in range(4)]
        for client in clients:
            subscribe(router, client)
        without_pipes = descriptors() + 1
        file = stack.enter_context(
            open(tmp_path / "end", "ab")
        )  # it takes writes; splicing to the end of a file is EINVAL
        clients[1].endpoint._descriptor = file.fileno()
        for _ in range(2):
            publish(router, 480, payload)
        for client in (clients[0], *clients[2:]):
            client.expected = 2 * run
            client.read_all()
            assert client.received == client.expected
        assert (tmp_path / "end").read_bytes() == 2 * run
        assert (clients[1].endpoint._handed, clients[1].endpoint.waits) == (2 * len(run), 0)
        assert descriptors() == without_pipes
    assert [record.getMessage() for record in caplog.records] == ["pages_not_shared reason=Invalid argument"]
    assert shared.calls.refused
    shared.close()
