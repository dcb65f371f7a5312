"""Floods one NATS server with one case and prints its cost for the server: `load_generator.py SPEC` prints one JSON object.

A generator must be far cheaper than a server, or it measures itself. So nothing is done per message: publishers write
prebuilt buffers in slices of 64 KiB, and a receiver compares every chunk with the expected bytes (one memcmp at the right
offset of a prebuilt stream). So every byte is still checked, and the totals must be exact. One thread, one epoll. The
request/reply case is the exception: it waits for each answer, which is what it measures.
"""

import json
import select
import socket
import ssl
import sys
import time
from dataclasses import asdict, dataclass

from contestants import read_cpu_time

WRITE_SIZE = 64 * 1024
RECEIVE_SIZE = 256 * 1024
FULL = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)  # raised by a socket that is not ready
QUIET_TIMEOUT = 30.0  # seconds without any progress end the run
HEADER_BLOCK = b"NATS/1.0\r\nTraceparent: 00-0af7651916cd43dd8448eb21\r\nContent-Type: text/x\r\n\r\n"  # 2 headers


@dataclass(frozen=True, slots=True)
class Spec:
    """One run. `messages` is the total of all publishers, rounded up to whole write buffers."""

    port: int
    pid: int
    payload: int
    messages: int
    publishers: int = 1
    subscribers: int = 1
    own_subjects: bool = False  # publisher i and subscriber i share a subject
    subjects: int = 1  # a publisher cycles over this many, under one wildcard subscription
    headers: bool = False
    request_reply: bool = False
    outstanding: int = 1  # requests in flight
    varied: bool = False  # consecutive control lines differ, because the payload's size does
    write_size: int = WRITE_SIZE  # bytes per write of a publisher; 0: one message
    tls: bool = False
    in_step: bool = False  # publishers send one message each to all subscribers, and again once all have arrived


@dataclass(frozen=True, slots=True)
class Outcome:
    """Measurements of a run; times in seconds, latencies in microseconds (of requests, and of rounds in step)."""

    published: int
    delivered: int
    seconds: float
    server_cpu: float
    server_cpu_ticks: float
    generator_cpu: float
    p50: float = 0.0
    p99: float = 0.0


class Failure(Exception):
    """The server violated what every NATS server does, so no figure of this run is valid."""


def open_link(port: int, *, tls: bool = False) -> socket.socket:
    """A connected client: INFO read, TLS started if requested, CONNECT sent and answered."""
    link = socket.create_connection(("127.0.0.1", port), QUIET_TIMEOUT)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    read_until(link, b"\r\n")
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # only the server's work is measured
        link = context.wrap_socket(link)
    options = b'{"verbose":false,"pedantic":false,"headers":true,"protocol":0,"user":"bench","pass":"bench"}'
    link.sendall(b"CONNECT " + options + b"\r\nPING\r\n")
    read_until(link, b"PONG\r\n")
    return link


def read_until(link: socket.socket, ending: bytes) -> bytes:
    """What comes up to `ending`, without the PINGs of the server: its first comes two seconds after CONNECT, perhaps right
    behind what is awaited, and among 10,000 clients some meet that."""
    received = b""
    while not received.endswith(ending):
        chunk = link.recv(65536)
        if not chunk:
            raise Failure(f"closed after {received[-200:]!r}")
        received = (received + chunk).replace(b"PING\r\n", b"")
    return received


def subject_of(spec: Spec, publisher: int, number: int) -> bytes:
    return b"bench.%d" % publisher if spec.own_subjects else b"bench.%06d" % (number % spec.subjects)


def build_flow(spec: Spec, publisher: int) -> tuple[bytes, bytes, int]:
    """A publisher's buffer, the bytes that its subscriber must receive for it, and the number of messages (>= one write
    buffer)."""
    ops: list[bytes] = []
    deliveries: list[bytes] = []
    size = 0
    while size < max(WRITE_SIZE, spec.write_size) or len(ops) % spec.subjects:
        subject = subject_of(spec, publisher, len(ops))
        length = spec.payload + (len(ops) % 7 - 3 if spec.varied else 0)
        payload = b"x" * length
        if spec.headers:
            total = b"%d %d\r\n" % (len(HEADER_BLOCK), len(HEADER_BLOCK) + length)
            ops.append(b"HPUB %b " % subject + total + HEADER_BLOCK + payload + b"\r\n")
            deliveries.append(b"HMSG %b 1 " % subject + total + HEADER_BLOCK + payload + b"\r\n")
        else:
            ops.append(b"PUB %b %d\r\n%b\r\n" % (subject, length, payload))
            deliveries.append(b"MSG %b 1 %d\r\n%b\r\n" % (subject, length, payload))
        size += len(ops[-1])
    return b"".join(ops), b"".join(deliveries), len(ops)


class Publisher:
    """Writes one buffer repeatedly, then PING; done when the PONG has arrived."""

    def __init__(self, link: socket.socket, buffer: bytes, write_size: int) -> None:
        self.link = link
        self._buffer = memoryview(buffer)
        self._write_size = write_size
        self._position = 0
        self._rounds = 0
        self._pong_owed = False
        self.writing = False
        self.done = True

    def begin(self, rounds: int) -> None:
        self._rounds = rounds
        self.writing, self.done = True, False

    def write(self) -> None:
        """Write until the socket is full, at most 1 MiB at a time so that receivers get their turn."""
        for _ in range(16):
            try:
                if self._pong_owed and self._position == 0:
                    self.link.send(b"PONG\r\n")  # the kernel accepts all of the six bytes or none
                    self._pong_owed = False
                if self._rounds == 0:
                    self.link.send(b"PING\r\n")
                    self.writing = False
                    return
                self._position += self.link.send(self._buffer[self._position : self._position + self._write_size])
            except FULL:
                return
            if self._position == len(self._buffer):
                self._position = 0
                self._rounds -= 1

    def read(self) -> None:
        try:
            received = self.link.recv(4096)
        except FULL:
            return
        if not received:
            raise Failure("the server closed a publisher's connection")
        if b"PING\r\n" in received:
            self._pong_owed = True  # not now: an op may be half written
        elif received != b"PONG\r\n":
            raise Failure(f"a publisher was told {received[:200]!r}")
        self.done = self.done or b"PONG\r\n" in received


class Subscriber:
    """Compares received bytes with a repeating stream; done when exactly the right number has been received."""

    def __init__(self, link: socket.socket, expected: bytes) -> None:
        self.link = link
        self._period = len(expected)
        self._expected = memoryview(expected * (RECEIVE_SIZE // len(expected) + 2))
        self._offset = 0
        self._missing = 0
        self._buffer = bytearray(RECEIVE_SIZE)

    @property
    def done(self) -> bool:
        return self._missing == 0

    def begin(self, rounds: int) -> None:
        self._missing = rounds * self._period

    def read(self) -> None:
        while True:
            try:
                size = self.link.recv_into(self._buffer)
            except FULL:
                return
            if size == 0:
                raise Failure("the server closed a subscriber's connection")
            if not self._buffer.startswith(self._expected[self._offset : self._offset + size]):
                size = self._take_out_ping(size)
            self._offset = (self._offset + size) % self._period
            self._missing -= size
            if self._missing < 0:
                raise Failure("more was delivered than published")
            if size < RECEIVE_SIZE and not isinstance(self.link, ssl.SSLSocket):
                return

    def _take_out_ping(self, size: int) -> int:
        """Answer a PING of the server, and check the remaining bytes. Returns their number."""
        received = bytes(self._buffer[:size])
        while any(received.endswith(b"PING\r\n"[:part]) for part in range(1, 6)) and b"PING\r\n" not in received:
            received += self.link.recv(1)
        rest = received.replace(b"PING\r\n", b"", 1)
        if self._expected[self._offset : self._offset + len(rest)] != rest:
            raise Failure(f"a subscriber got wrong bytes: {received[:200]!r}")
        self.link.send(b"PONG\r\n")
        return len(rest)


def run_flood(spec: Spec) -> Outcome:
    """One round to warm up, then the measured rounds on the same connections."""
    publishers: list[Publisher] = []
    streams: list[bytes] = []
    per_round = 0
    for number in range(spec.publishers):
        ops, deliveries, per_round = build_flow(spec, number)
        write_size = spec.write_size or len(ops) // per_round  # then all messages have the same length
        publishers.append(Publisher(open_link(spec.port, tls=spec.tls), ops, write_size))
        streams.append(deliveries)
    subscribers: list[Subscriber] = []
    for number in range(spec.subscribers):
        link = open_link(spec.port, tls=spec.tls)
        subject = b"bench.>" if spec.subjects > 1 else subject_of(spec, number, 0)
        link.sendall(b"SUB " + subject + b" 1\r\nPING\r\n")
        read_until(link, b"PONG\r\n")
        subscribers.append(Subscriber(link, streams[number if spec.own_subjects else 0]))
    rounds = max(1, -(-spec.messages // (per_round * spec.publishers)))
    exchange(publishers, subscribers, 1)
    before, own_before, start = read_cpu_time(spec.pid), time.process_time(), time.perf_counter()
    exchange(publishers, subscribers, rounds)
    seconds = time.perf_counter() - start
    used, own = read_cpu_time(spec.pid).since(before), time.process_time() - own_before
    published = rounds * per_round * spec.publishers
    delivered = rounds * per_round * spec.subscribers  # each subscriber receives the messages of one publisher
    return Outcome(published, delivered, seconds, used.scheduled, used.ticks, own)


def exchange(publishers: list[Publisher], subscribers: list[Subscriber], rounds: int) -> None:
    """Publish `rounds` buffers from each publisher and receive all resulting messages."""
    actors: dict[int, Publisher | Subscriber] = {publisher.link.fileno(): publisher for publisher in publishers}
    actors |= {subscriber.link.fileno(): subscriber for subscriber in subscribers}
    with select.epoll() as epoll:
        for actor in actors.values():
            actor.link.setblocking(False)
            actor.begin(rounds)
            writes = select.EPOLLOUT if isinstance(actor, Publisher) else 0
            epoll.register(actor.link, select.EPOLLIN | writes)
        while not all(actor.done for actor in actors.values()):
            events = epoll.poll(QUIET_TIMEOUT)
            if not events:
                raise Failure(f"nothing happened for {QUIET_TIMEOUT} s")
            for descriptor, event in events:
                actor = actors[descriptor]
                if event & ~select.EPOLLOUT:
                    actor.read()
                if event & select.EPOLLOUT and isinstance(actor, Publisher):
                    actor.write()
                    if not actor.writing:
                        epoll.modify(descriptor, select.EPOLLIN)


def run_request_reply(spec: Spec) -> Outcome:
    """`outstanding` requests at a time, each with its own reply subject; a request is two published and two delivered
    messages. Latencies are per group of requests, from its first byte out to its last byte in."""
    caller, service = open_link(spec.port, tls=spec.tls), open_link(spec.port, tls=spec.tls)
    for link, subject in ((caller, b"_INBOX.bench.*"), (service, b"bench.service")):
        link.sendall(b"SUB " + subject + b" 1\r\nPING\r\n")
        read_until(link, b"PONG\r\n")
    payload = b"x" * spec.payload
    tail = b" %d\r\n" % spec.payload + payload + b"\r\n"
    latencies: list[int] = []
    before, own_before, start = read_cpu_time(spec.pid), time.process_time(), time.perf_counter()
    for number in range(0, spec.messages, spec.outstanding):
        inboxes = [b"_INBOX.bench.%08d" % each for each in range(number, number + spec.outstanding)]
        sent = time.perf_counter_ns()
        caller.sendall(b"".join(b"PUB bench.service " + inbox + tail for inbox in inboxes))
        receive_exactly(service, b"".join(b"MSG bench.service 1 " + inbox + tail for inbox in inboxes))
        service.sendall(b"".join(b"PUB " + inbox + tail for inbox in inboxes))
        receive_exactly(caller, b"".join(b"MSG " + inbox + b" 1" + tail for inbox in inboxes))
        latencies.append(time.perf_counter_ns() - sent)
    seconds = time.perf_counter() - start
    used, own = read_cpu_time(spec.pid).since(before), time.process_time() - own_before
    latencies.sort()
    p50, p99 = (latencies[int(len(latencies) * part)] / 1000 for part in (0.50, 0.99))
    count = 2 * spec.outstanding * len(latencies)
    return Outcome(count, count, seconds, used.scheduled, used.ticks, own, p50, p99)


def run_in_step(spec: Spec) -> Outcome:
    """Latencies are per round, from its first byte out to the last byte in at the last subscriber."""
    publishers = [open_link(spec.port) for _ in range(spec.publishers)]
    subscribers = [open_link(spec.port) for _ in range(spec.subscribers)]
    for link in subscribers:
        link.sendall(b"SUB bench.step 1\r\nPING\r\n")
        read_until(link, b"PONG\r\n")
    tail = b" %d\r\n%b\r\n" % (spec.payload, b"x" * spec.payload)
    expected = (b"MSG bench.step 1" + tail) * spec.publishers
    rounds = -(-spec.messages // spec.publishers)
    latencies: list[int] = []
    before, own_before, start = read_cpu_time(spec.pid), time.process_time(), time.perf_counter()
    for _ in range(rounds):
        sent = time.perf_counter_ns()
        for link in publishers:
            link.send(b"PUB bench.step" + tail)
        for link in subscribers:
            receive_exactly(link, expected)
        latencies.append(time.perf_counter_ns() - sent)
    seconds = time.perf_counter() - start
    used, own = read_cpu_time(spec.pid).since(before), time.process_time() - own_before
    latencies.sort()
    p50, p99 = (latencies[int(rounds * part)] / 1000 for part in (0.50, 0.99))
    count = rounds * spec.publishers
    return Outcome(count, count * spec.subscribers, seconds, used.scheduled, used.ticks, own, p50, p99)


def receive_exactly(link: socket.socket, expected: bytes) -> None:
    """The next bytes must be `expected`. A PING of the server before or after them is answered."""
    received = b""
    while len(received) < len(expected) or len(received) - len(expected) in range(1, 6):
        chunk = link.recv(65536)
        if not chunk:
            raise Failure(f"closed after {received[:200]!r}")
        received += chunk
        if b"PING\r\n" in received:
            link.sendall(b"PONG\r\n")
            received = received.replace(b"PING\r\n", b"", 1)
    if received != expected:
        raise Failure(f"expected {expected[:80]!r}, got {received[:200]!r}")


def main() -> int:
    spec = Spec(**json.loads(sys.argv[1]))
    run = run_request_reply if spec.request_reply else run_in_step if spec.in_step else run_flood
    outcome = run(spec)
    print(json.dumps(asdict(outcome)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError) as error:
        sys.exit(f"load generator: {error}")
