"""Loads for a broker of several workers: clients that are connected to the worker that they are meant for.

The operating system deals connections out by a hash of their addresses, so a client connects again until the INFO that
greets it names the wanted worker. A broker of one process has only one, which has every number.
"""

import json
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from contestants import Contestant, read_cpu_time
from load_generator import (
    WRITE_SIZE,
    Failure,
    Publisher,
    Spec,
    Subscriber,
    build_flow,
    exchange,
    open_link,
    read_until,
    receive_exactly,
    subject_of,
)
from stream_load import ACK, PAYLOAD, ask

from headwater.jetstream_workers.placement import owner_of

NAME = "bench"
CORES = sorted(os.sched_getaffinity(0))
MOST_TRIES = 200  # connections until one reaches the wanted worker: half of them do
PATIENCE = 10.0  # seconds
IN_FLIGHT = 512  # publishes of one client that are not acknowledged
QUIET_SECONDS = 0.05  # without an acknowledgement, after which none of an earlier publish will come


class Brokers(NamedTuple):
    """A broker of so many workers, and the one whose CPU is measured, 0 for all processes."""

    server: Contestant
    workers: int
    measured: int = 0

    def with_a_core_for(self, worker: int) -> "Brokers":
        """This one has a core for itself from now on and is measured; the others share another core with the clients."""
        theirs, own = CORES[0], CORES[-1]
        os.sched_setaffinity(0, {theirs})
        alone = process_of(self.server.pid, worker)
        for pid in processes(self.server.pid):
            for task in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(task.name), {own if pid == alone else theirs})
        return self._replace(measured=worker)

    def link(self, worker: int) -> socket.socket:
        """A connected client at this worker, from 1; at the only one if there is one."""
        if self.workers == 1:
            return open_link(self.server.port)
        for _ in range(MOST_TRIES):
            if self._greeted(link := socket.create_connection(("127.0.0.1", self.server.port), PATIENCE)) == worker:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link.sendall(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"protocol":0}\r\nPING\r\n')
                read_until(link, b"PONG\r\n")
                return link
            link.close()
        raise Failure(f"none of {MOST_TRIES} connections reached worker {worker}")

    def _greeted(self, link: socket.socket) -> int:
        name = json.loads(read_until(link, b"\r\n").removeprefix(b"INFO "))["server_name"]
        return int(str(name).rpartition("-")[2])

    def cpu(self) -> float:
        """CPU seconds of what is measured so far."""
        measured = [process_of(self.server.pid, self.measured)] if self.measured else processes(self.server.pid)
        return sum(read_cpu_time(pid).scheduled for pid in measured)


def process_of(parent: int, worker: int) -> int:
    """The process of a worker; a broker of one process is its only worker."""
    found = processes(parent)
    return found[min(worker, len(found) - 1)]


def processes(parent: int) -> list[int]:
    """A process and its children."""
    found = [parent]
    for task in Path(f"/proc/{parent}/task").iterdir():
        found += [int(pid) for pid in (task / "children").read_text().split()]
    return found


class Used(NamedTuple):
    """One run: CPU microseconds of what is measured for each message, and messages a second."""

    cpu: float
    rate: float


class Flow(NamedTuple):
    """Core messages. `publishers` and `subscribers`: the worker of each. `pairs`: a subject for each pair; otherwise all
    subscribers listen to the one publisher, which has so many `subjects` in turn."""

    name: str
    publishers: tuple[int, ...]
    subscribers: tuple[int, ...]
    pairs: bool = False
    subjects: int = 1

    def run(self, brokers: Brokers, deliveries: int) -> Used:
        """Publish what makes so many deliveries."""
        spec = Spec(brokers.server.port, 0, PAYLOAD, 0, own_subjects=self.pairs, subjects=self.subjects)
        links = [brokers.link(worker) for worker in self.publishers]
        flows = [build_flow(spec, number) for number in range(len(links))]
        per_round = flows[0][2] * len(self.subscribers)
        publishers = [Publisher(link, flow[0], WRITE_SIZE) for link, flow in zip(links, flows, strict=True)]
        subscribers: list[Subscriber] = []
        for number, worker in enumerate(self.subscribers):
            link = brokers.link(worker)
            source = number if self.pairs else 0
            subject = b"bench.>" if self.subjects > 1 else subject_of(spec, source, 0)
            link.sendall(b"SUB %b 1\r\nPING\r\n" % subject)
            read_until(link, b"PONG\r\n")
            await_interest(link, links[source], b"ready.%d" % number)
            subscribers.append(Subscriber(link, flows[source][1]))
        rounds = max(1, -(-deliveries // per_round))
        exchange(publishers, subscribers, 1)
        before, started = brokers.cpu(), time.perf_counter()
        exchange(publishers, subscribers, rounds)
        seconds = time.perf_counter() - started
        used = brokers.cpu() - before
        for link in (*links, *(subscriber.link for subscriber in subscribers)):
            link.close()
        return Used(1e6 * used / (rounds * per_round), rounds * per_round / seconds)


def await_interest(subscriber: socket.socket, publisher: socket.socket, subject: bytes) -> None:
    """Wait until the publisher's worker knows what the subscriber wants: a message comes the same way, behind it."""
    publisher.sendall(b"SUB %b 9\r\nPING\r\n" % subject)
    read_until(publisher, b"PONG\r\n")
    received = b""
    deadline = time.monotonic() + PATIENCE
    publisher.settimeout(0.001)
    while not received:
        subscriber.sendall(b"PUB %b 1\r\n.\r\n" % subject)
        try:
            received = publisher.recv(65536)
        except TimeoutError:
            if time.monotonic() > deadline:
                raise Failure("interest does not cross to the other worker") from None
    publisher.settimeout(PATIENCE)
    subscriber.sendall(b"PUB %b 3\r\nend\r\n" % subject)
    while not received.endswith(b"end\r\n"):
        received += publisher.recv(65536)
    publisher.sendall(b"UNSUB 9\r\nPING\r\n")
    read_until(publisher, b"PONG\r\n")


class Requests(NamedTuple):
    """Requests, `outstanding` at a time, of a client at one worker to a service at the other."""

    name: str
    outstanding: int

    def run(self, brokers: Brokers, messages: int) -> Used:
        """Exchange so many; a request and its answer are two."""
        caller, service = brokers.link(1), brokers.link(2)
        service.sendall(b"SUB bench.service 1\r\nPING\r\n")
        read_until(service, b"PONG\r\n")
        await_interest(service, caller, b"ready.1")
        caller.sendall(b"SUB _INBOX.bench.* 1\r\nPING\r\n")
        read_until(caller, b"PONG\r\n")
        tail = b" %d\r\n%b\r\n" % (PAYLOAD, b"x" * PAYLOAD)
        inboxes = [b"_INBOX.bench.%08d" % number for number in range(self.outstanding)]
        requests = b"".join(b"PUB bench.service " + inbox + tail for inbox in inboxes)
        received = b"".join(b"MSG bench.service 1 " + inbox + tail for inbox in inboxes)
        answers = b"".join(b"PUB " + inbox + tail for inbox in inboxes)
        returned = b"".join(b"MSG " + inbox + b" 1" + tail for inbox in inboxes)
        rounds = max(1, messages // (2 * self.outstanding))
        before, started = brokers.cpu(), time.perf_counter()
        for _ in range(rounds):
            caller.sendall(requests)
            receive_exactly(service, received)
            service.sendall(answers)
            receive_exactly(caller, returned)
        seconds = time.perf_counter() - started
        used = brokers.cpu() - before
        caller.close()
        service.close()
        count = 2 * rounds * self.outstanding
        return Used(1e6 * used / count, count / seconds)


class Stored(NamedTuple):
    """Publishes into a stream at each worker, IN_FLIGHT of them unacknowledged. `elsewhere`: from the other worker."""

    name: str
    elsewhere: bool

    def run(self, brokers: Brokers, messages: int) -> Used:
        """Store so many in all."""
        names = [stream_at(worker) for worker in (1, 2)]
        with brokers.link(1) as control:
            control.sendall(b"SUB _INBOX.ask 1\r\n")
            try:
                for name in names:
                    config = {"name": name, "subjects": [f"bench.{name}"], "storage": "file"}
                    ask(control, f"$JS.API.STREAM.CREATE.{name}", config)
                writers = [
                    StreamWriter(brokers.link(3 - worker if self.elsewhere else worker), name)
                    for worker, name in zip((1, 2), names, strict=True)
                ]
                used = store_all(brokers, writers, messages)
            finally:
                for name in names:
                    ask(control, f"$JS.API.STREAM.DELETE.{name}", None)
        return used


def stream_at(worker: int) -> str:
    """The name of a stream of the second of two workers, or of the first."""
    return next(name for number in range(64) if owner_of("", name := f"S{number}", 2) == worker)


class StreamWriter:
    """Publishes into one stream."""

    def __init__(self, link: socket.socket, stream: str) -> None:
        self.link = link
        self.left = 0
        self._op = b"PUB bench.%b _INBOX.%b %d\r\n%b\r\n" % (stream.encode(), stream.encode(), PAYLOAD, b"x" * PAYLOAD)
        self._rest = b""
        self._seen = self._flying = 0
        link.sendall(b"SUB _INBOX.%b 1\r\nPING\r\n" % stream.encode())
        read_until(link, b"PONG\r\n")
        self._await_stream()

    def _await_stream(self) -> None:
        """Until this worker knows where the stream is."""
        deadline = time.monotonic() + PATIENCE
        self.link.settimeout(QUIET_SECONDS)
        while True:
            try:
                if not self._seen:
                    self.link.sendall(self._op)
                self._seen += len(ACK.findall(self.link.recv(65536)))
            except TimeoutError:
                if self._seen:
                    break
                if time.monotonic() > deadline:
                    raise Failure("no publish into the stream is acknowledged") from None
        self.link.settimeout(PATIENCE)

    def begin(self, messages: int) -> None:
        self.left = messages
        self._send(IN_FLIGHT)

    @property
    def done(self) -> bool:
        return self._flying == 0

    def _send(self, count: int) -> None:
        count = min(count, self.left)
        self.left -= count
        self._flying += count
        self.link.sendall(self._op * count)

    def read(self) -> None:
        chunk = self.link.recv(1 << 18)
        if not chunk:
            raise Failure("the server closed a publisher's connection")
        received = self._rest + chunk
        end = received.rfind(b"}\r\n") + 3
        whole, self._rest = (received[:end], received[end:]) if end > 2 else (b"", received)
        if b'"error"' in whole:
            raise Failure(f"a publish was refused: {whole[:300]!r}")
        if b"PING\r\n" in whole or self._rest == b"PING\r\n":
            self.link.sendall(b"PONG\r\n")
            self._rest = b"" if self._rest == b"PING\r\n" else self._rest
        for sequence in ACK.findall(whole):
            self._seen += 1
            self._flying -= 1
            if int(sequence) != self._seen:
                raise Failure(f"acknowledgement {self._seen} has sequence {int(sequence)}")
        if len(whole):
            self._send(IN_FLIGHT - self._flying)


def store_all(brokers: Brokers, writers: Sequence[StreamWriter], messages: int) -> Used:
    """Publish with all of them until each has its share acknowledged."""
    by_descriptor = {writer.link.fileno(): writer for writer in writers}
    before, started = brokers.cpu(), time.perf_counter()
    with select.epoll() as epoll:
        for descriptor, writer in by_descriptor.items():
            epoll.register(descriptor, select.EPOLLIN)
            writer.begin(messages // len(writers))
        while not all(writer.done for writer in writers):
            events = epoll.poll(PATIENCE)
            if not events:
                raise Failure(f"no acknowledgement for {PATIENCE:g} s")
            for descriptor, _ in events:
                by_descriptor[descriptor].read()
    seconds = time.perf_counter() - started
    used = brokers.cpu() - before
    for writer in writers:
        writer.link.close()
    count = messages // len(writers) * len(writers)
    return Used(1e6 * used / count, count / seconds)


Run = Callable[[Brokers, int], Used]
