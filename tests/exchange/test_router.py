"""Deliveries: the receivers of a message, the bytes they get, and the treatment of slow receivers."""

import logging
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import cast

import pytest
from support.fake_link import FakeLink, make_outlet

from headwater.exchange.flusher import STALL_AT
from headwater.exchange.router import LARGE, Router
from headwater.exchange.sublist import Outlet, Subscription
from headwater.net import pacing
from headwater.net.endpoint import Endpoint
from headwater.net.link import LinkOwner
from headwater.wire.message_view import MessageView, composed
from headwater.wire.receive import ReceiveBuffer

BLOCK = b"NATS/1.0\r\nA: 1\r\n\r\n"


class Bench:
    """A router whose scheduled flushes a test runs by hand."""

    def __init__(self) -> None:
        self.scheduled: list[Callable[[], None]] = []
        self.router = Router(lambda function: self.scheduled.append(function), seed=7, max_pending=1 << 26)

    def subscribe(self, outlet: Outlet, subject: bytes, sid: bytes = b"1", queue: bytes = b"") -> Subscription:
        subscription = Subscription(subject, queue, sid, outlet, None)
        outlet.subscriptions[sid] = subscription
        self.router.subscribe(subscription)
        return subscription

    def run(self) -> None:
        scheduled, self.scheduled = self.scheduled, []
        for function in scheduled:
            function()

    def client(self, *, headers: bool = True, echo: bool = True) -> tuple[FakeLink, Outlet]:
        return make_outlet(headers=headers, echo=echo)


def test_a_message_becomes_msg_and_one_with_headers_hmsg() -> None:
    bench = Bench()
    link, outlet = bench.client()
    bench.subscribe(outlet, b"a.*")
    assert bench.router.publish(b"a.b", b"", b"", b"hi") == 1
    assert bench.router.publish(b"a.b", b"r.1", BLOCK, b"hi") == 1
    bench.run()
    assert link.take_flushed() == b"MSG a.b 1 2\r\nhi\r\nHMSG a.b 1 r.1 18 20\r\n" + BLOCK + b"hi\r\n"


def test_a_client_without_headers_gets_the_block_stripped() -> None:
    bench = Bench()
    link, outlet = bench.client(headers=False)
    bench.subscribe(outlet, b"a")
    bench.router.publish(b"a", b"r.1", BLOCK, b"hi")
    bench.router.publish(b"a", b"", BLOCK, b"")
    bench.run()
    assert link.take_flushed() == b"MSG a 1 r.1 2\r\nhi\r\nMSG a 1 0\r\n\r\n"


def test_one_member_of_each_group_and_every_plain_subscription_gets_a_message() -> None:
    bench = Bench()
    link, outlet = bench.client()
    for sid, queue in ((b"1", b""), (b"2", b""), (b"3", b"q"), (b"4", b"q"), (b"5", b"r")):
        bench.subscribe(outlet, b"a", sid, queue)
    seen = Counter[bytes]()
    for _ in range(200):
        assert bench.router.publish(b"a", b"", b"", b"") == 4
        bench.run()
        seen.update(line.split()[2] for line in link.take_flushed().split(b"\r\n\r\n") if line)
    assert seen[b"1"] == seen[b"2"] == seen[b"5"] == 200
    assert seen[b"3"] + seen[b"4"] == 200
    assert min(seen[b"3"], seen[b"4"]) > 50


def test_a_queue_member_that_may_not_have_a_message_is_passed_over() -> None:
    bench = Bench()
    _, publisher = bench.client(echo=False)
    link, other = bench.client()
    bench.subscribe(publisher, b"a", b"1", b"q")
    bench.subscribe(other, b"a", b"2", b"q")
    for _ in range(50):
        match = bench.router.sublist.match(b"a")
        assert bench.router.route(publisher, match, composed(b"a", b"", b"", b"")) == 1
    bench.run()
    assert link.take_flushed().count(b"MSG") == 50


def test_a_client_with_echo_off_does_not_get_its_own_messages() -> None:
    bench = Bench()
    link, outlet = bench.client(echo=False)
    bench.subscribe(outlet, b"a")
    match = bench.router.sublist.match(b"a")
    assert bench.router.route(outlet, match, composed(b"a", b"", b"", b"")) == 0
    assert bench.router.publish(b"a", b"", b"", b"") == 1
    bench.run()
    assert link.take_flushed() == b"MSG a 1 0\r\n\r\n"


def test_a_subscription_ends_after_its_maximum_of_deliveries() -> None:
    bench = Bench()
    link, outlet = bench.client()
    bench.subscribe(outlet, b"a").maximum = 2
    assert [bench.router.publish(b"a", b"", b"", b"") for _ in range(4)] == [1, 1, 0, 0]
    bench.run()
    assert link.take_flushed().count(b"MSG") == 2
    assert not outlet.subscriptions
    assert not bench.router.has_interest(b"a")


def test_deliver_writes_another_subject_than_the_one_that_is_subscribed_to() -> None:
    bench = Bench()
    link, outlet = bench.client()
    bench.subscribe(outlet, b"_INBOX.1", b"9")
    assert bench.router.deliver(b"_INBOX.1", b"orders.eu", b"$JS.ACK.x", b"", b"hi") == 1
    assert bench.router.deliver(b"_INBOX.2", b"orders.eu", b"", b"", b"hi") == 0
    bench.run()
    assert link.take_flushed() == b"MSG orders.eu 9 $JS.ACK.x 2\r\nhi\r\n"


def test_an_internal_subscription_is_called_with_bytes_and_its_exception_is_contained(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    link, outlet = bench.client()
    bench.subscribe(outlet, b"a")
    calls: list[tuple[bytes, bytes, bytes, bytes]] = []

    def fail(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        raise ZeroDivisionError

    bench.router.subscribe_internal(b"a", fail)
    kept = bench.router.subscribe_internal(b">", lambda *call: calls.append(call), b"q")
    with caplog.at_level(logging.ERROR):
        assert bench.router.publish(b"a", b"r", BLOCK, b"hi") == 3
    bench.run()
    assert calls == [(b"a", b"r", BLOCK, b"hi")]
    assert "internal_subscription_failed" in caplog.text
    assert link.take_flushed().startswith(b"HMSG a 1 r ")
    bench.router.unsubscribe(kept)
    assert bench.router.publish(b"zzz", b"", b"", b"") == 0


def test_many_deliveries_of_one_loop_iteration_are_one_flush() -> None:
    bench = Bench()
    _, outlet = bench.client()
    _, other = bench.client()
    bench.subscribe(outlet, b"a")
    bench.subscribe(other, b"a")
    for _ in range(10):
        bench.router.publish(b"a", b"", b"", b"")
    assert len(bench.scheduled) == 1


def test_a_client_far_behind_is_congested_and_one_beyond_the_limit_is_cut_off() -> None:
    bench = Bench()
    slow_link, slow = bench.client()
    stuck_link, stuck = bench.client()
    fine_link, fine = bench.client()
    for outlet in (slow, stuck, fine):
        bench.subscribe(outlet, b"a")
    slow_link.waiting, stuck_link.waiting = STALL_AT + 1, (1 << 26) + 1
    bench.router.publish(b"a", b"", b"", b"x")
    bench.run()
    assert bench.router.flusher.congested == [slow, stuck]
    assert (slow_link.aborted, stuck_link.aborted, fine_link.aborted) == (False, True, False)
    assert bench.router.flusher.slow_consumers == 1
    slow.is_route, slow_link.waiting = True, (1 << 26) + 1
    bench.router.publish(b"a", b"", b"", b"x")
    bench.run()
    assert (slow_link.aborted, bench.router.flusher.slow_consumers) == (True, 1)  # its service counts a peer
    assert bench.router.pending(b"a") > 1 << 26
    assert fine_link.take_flushed() == b"MSG a 1 1\r\nx\r\n" * 2


def test_a_delivery_that_shows_another_subject_is_none_over_a_route() -> None:
    router, found = Bench().router, []
    router.subscribe_internal(b"inbox", lambda *call: found.append((router.inbox, router.over_route, call[0])))
    message = composed(b"a.b", b"", b"", b"hi")
    router.route_under(b"inbox", router.sublist.match(b"inbox"), message)
    assert found == [(b"inbox", False, b"a.b")]


class Watched(Endpoint):
    """An endpoint on a socket, without a loop."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(cast(LinkOwner, None), ReceiveBuffer(), None)
        self._descriptor = descriptor
        self.waits = 0

    @property
    def pending(self) -> int:
        return len(self.output)

    def await_room(self) -> None:
        self.waits += 1


def watched(descriptor: int) -> tuple[Watched, Outlet]:
    endpoint = Watched(descriptor)
    outlet = Outlet(endpoint, endpoint.output)
    outlet.headers = True
    return endpoint, outlet


@contextmanager
def paired() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def drained(endpoint: Watched, theirs: socket.socket, size: int) -> bytes:
    """So many bytes, as the other end receives them."""
    received = b""
    while len(received) < size:
        endpoint._blocked = False
        endpoint.push()
        received += theirs.recv(1 << 20)
    return received


@pytest.mark.parametrize("before", [0, 5, 1 << 22])
@pytest.mark.parametrize("subject", [b"a.b", b"a.*"])
def test_a_large_message_goes_at_once_behind_what_waits_and_what_the_kernel_refuses_is_kept(
    before: int, subject: bytes
) -> None:
    bench = Bench()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        endpoint, outlet = watched(ours.fileno())
        bench.subscribe(outlet, subject)
        bench.router.publish(b"a.b", b"", b"", b"x" * 9)
        endpoint.output.append(b"+" * before)
        payload = bytes(range(256)) * (1 << 14)
        for reply, block in ((b"", b""), (b"r", BLOCK)):
            assert bench.router.publish(b"a.b", reply, block, payload) == 1
        assert (endpoint.waits, endpoint._blocked, outlet.dirty) == (1, True, True)
        size = len(BLOCK), len(BLOCK) + len(payload)
        expected = b"MSG a.b 1 9\r\nxxxxxxxxx\r\n" + b"+" * before
        expected += b"MSG a.b 1 %d\r\n%b\r\n" % (len(payload), payload)
        expected += b"HMSG a.b 1 r %d %d\r\n" % size + BLOCK + payload + b"\r\n"
        assert endpoint._handed + len(endpoint.output) == len(expected)
        assert drained(endpoint, theirs, len(expected)) == expected
        assert (outlet.out_messages, outlet.out_bytes) == (3, 9 + len(BLOCK) + 2 * len(payload))


def test_a_large_message_to_a_broken_socket_is_left_for_the_transport_to_meet() -> None:
    bench = Bench()
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        endpoint, outlet = watched(ours.fileno())
        bench.subscribe(outlet, b"a")
        bench.router.publish(b"a", b"", b"", b"x" * LARGE)
        assert endpoint.output.take() == b"MSG a 1 %d\r\n%b\r\n" % (LARGE, b"x" * LARGE)
        assert (endpoint.waits, endpoint._blocked) == (0, False)


def run_of(count: int, payload: bytes) -> tuple[MessageView, int]:
    """The first of so many messages on subject a with one control line, and how far they are apart."""
    op = b"PUB a %d\r\n%b\r\n" % (len(payload), payload)
    line = len(op) - len(payload) - 2
    message = MessageView()
    message.buffer = bytearray(op * count)
    message.subject, message.subject_end = 4, 5
    message.tail = message.reply = message.reply_end = 6
    message.headers = message.payload = line
    message.end = line + len(payload)
    return message, len(op)


def publish_run(bench: Bench, publisher: Outlet | None, count: int, payload: bytes) -> int:
    message, stride = run_of(count, payload)
    bench.router.begin_read()
    receivers = bench.router.route_run_here(publisher, bench.router.sublist.match(b"a"), message, stride, count)
    bench.router.end_read()
    return receivers


@pytest.mark.parametrize("count", [5, 200, 2000])  # 2000: more than a socket takes
def test_those_with_one_sid_get_a_run_from_the_output_of_the_first(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "system_pauses", lambda: False)
    bench = Bench()
    payload = b"x" * 300
    with ExitStack() as stack:
        pairs = [stack.enter_context(paired()) for _ in range(5)]
        clients = [watched(ours.fileno()) for ours, _ in pairs]
        sids = [b"1", b"1", b"22", b"1", b"22"]
        for (_, outlet), sid in zip(clients, sids, strict=True):
            bench.subscribe(outlet, b"a" if outlet is not clients[3][1] else b"*", sid)
        clients[1][0].output.append(b"+OK\r\n")
        clients[3][1].echo = False
        assert publish_run(bench, clients[3][1], count, payload) == 4
        assert publish_run(bench, None, count, payload) == 5
        for number, ((endpoint, outlet), sid) in enumerate(zip(clients, sids, strict=True)):
            runs = 1 if number == 3 else 2
            expected = b"+OK\r\n" if number == 1 else b""
            expected += b"MSG a %b 300\r\n%b\r\n" % (sid, payload) * (runs * count)
            assert endpoint._handed + len(endpoint.output) == len(expected)
            assert drained(endpoint, pairs[number][1], len(expected)) == expected
            assert (outlet.out_messages, outlet.out_bytes) == (runs * count, runs * count * 300)
            assert outlet.subscriptions[sid].delivered == runs * count


def test_a_receiver_that_does_not_read_is_behind_after_a_run_from_the_output_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pacing, "system_pauses", lambda: False)
    bench = Bench()
    with paired() as (first, reads), paired() as (second, _):
        reading, outlet = watched(first.fileno())
        bench.subscribe(outlet, b"a")
        _, slow = watched(second.fileno())
        bench.subscribe(slow, b"a")
        size = STALL_AT // 300
        publish_run(bench, None, size, b"x" * 300)
        drained(reading, reads, size * len(b"MSG a 1 300\r\n\r\n") + 300 * size)
        publish_run(bench, None, 1, b"y")
        assert bench.router.flusher.congested == [slow]


def test_a_receiver_that_dies_takes_nothing_of_a_run_from_those_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is the one whose output the others are written from, or one of these."""
    monkeypatch.setattr(pacing, "system_pauses", lambda: False)
    for dead in (0, 1):
        bench = Bench()
        with ExitStack() as stack:
            pairs = [stack.enter_context(paired()) for _ in range(3)]
            clients = [watched(ours.fileno()) for ours, _ in pairs]
            for _, outlet in clients:
                bench.subscribe(outlet, b"a")
            pairs[dead][1].close()
            assert publish_run(bench, None, 200, b"x" * 300) == 3
            expected = b"MSG a 1 300\r\n%b\r\n" % (b"x" * 300) * 200
            for number, (endpoint, _) in enumerate(clients):
                if number == dead:
                    assert (endpoint._handed, len(endpoint.output)) == (0, len(expected))
                else:
                    assert drained(endpoint, pairs[number][1], len(expected)) == expected
