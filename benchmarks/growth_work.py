"""What every row of `./hw bench growth` needs: a flow of messages that is counted, and what a server takes for work."""

import os
import socket
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from contestants import Contestant, read_cpu_time, resident_bytes
from load_generator import Failure

CORES = sorted(os.sched_getaffinity(0))
PAYLOAD = b"x" * 128
STRIDE = 7919  # a prime: neighbours in time are not neighbours in any table
PIECE = 1 << 18  # bytes sent at once
WAIT = 120.0  # seconds without a byte
# Seconds of the server's CPU for one figure, or as much as so many times the work take. 250,000 messages took a round of 20
# ms, and what our server does once a second, look at each client, is 20 to 30 ms of 10,000: a round met it or did not.
LEAST_SPENT = 0.15
MOST_TIMES = 8


class Flow:
    """What a publisher sends, again and again, and how many bytes a receiver then gets, which are counted. `between` is
    called after so many operations."""

    def __init__(
        self,
        publisher: socket.socket,
        receiver: socket.socket,
        operations: Sequence[bytes],
        expected: int,
        between: Callable[[], None] | None = None,
        after_each: int = 1,
    ) -> None:
        self._publisher, self._receiver, self._between = publisher, receiver, between
        together = len(operations) if between is None else after_each
        self._pieces = [b"".join(operations[at : at + together]) for at in range(0, len(operations), together)]
        self._expected = expected
        receiver.settimeout(WAIT)

    def _send(self) -> None:
        for piece in self._pieces:
            self._publisher.sendall(piece)
            if self._between is not None:
                self._between()

    def move(self) -> None:
        """Returns when all has arrived. Raises Failure when it does not."""
        sending = threading.Thread(target=self._send, daemon=True)
        sending.start()
        await_bytes(self._receiver, self._expected)
        sending.join(WAIT)


def await_bytes(receiver: socket.socket, expected: int) -> None:
    """Returns when so many bytes have arrived. Raises Failure when it is not so many."""
    arrived, rest = 0, b""
    while arrived < expected:
        chunk = receiver.recv(PIECE)
        if not chunk:
            raise Failure(f"closed after {arrived} of {expected} bytes")
        arrived += len(chunk)
        if pings := (rest + chunk).count(b"PING\r\n"):  # nothing else has these bytes
            receiver.sendall(b"PONG\r\n" * pings)
            arrived -= 6 * pings
        rest = chunk[-5:]
    if arrived != expected:
        raise Failure(f"{arrived} bytes arrived where {expected} were to come")


class Taken:
    """What the server takes from now on until `stop`: resident bytes, CPU seconds."""

    def __init__(self, server: Contestant) -> None:
        self._pid = server.pid
        self._bytes, self._cpu = resident_bytes(server.pid), read_cpu_time(server.pid)
        self.bytes, self.made = 0, 0.0

    def stop(self) -> None:
        self.bytes = resident_bytes(self._pid) - self._bytes
        self.made = read_cpu_time(self._pid).since(self._cpu).scheduled


class Ready(NamedTuple):
    """A server that has so many of something: the work that is measured, its messages, and what the things took."""

    server: Contestant
    work: Callable[[], None]
    messages: int
    taken: Taken

    def cost(self) -> float:
        """Do the work, again if it takes little: the server's CPU microseconds a message."""
        before, spent, times = read_cpu_time(self.server.pid), 0.0, 0
        while spent < LEAST_SPENT and times < MOST_TIMES:
            self.work()
            times += 1
            spent = read_cpu_time(self.server.pid).since(before).scheduled
        return 1e6 * spent / (self.messages * times)


class Cost(NamedTuple):
    """Of one size: the server's CPU microseconds a message in each round, and that by what the smallest size took in the
    same round; resident bytes and CPU seconds that the things took together."""

    cpu: list[float]
    times: list[float]
    bytes: int
    made: float

    @property
    def growth(self) -> float:
        return statistics.median(self.times)

    @property
    def span(self) -> str:
        return f"{self.growth:.2f}x ({min(self.times):.2f}-{max(self.times):.2f})"


@contextmanager
def apart(servers: Sequence[Contestant]) -> Iterator[None]:
    """The servers have a core for themselves, where there are two: with their clients on one core, which the kernel likes,
    what was sent is still in its cache, and a message takes a third less or not."""
    for server in servers:
        for task in Path(f"/proc/{server.pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), {CORES[-1]})
    os.sched_setaffinity(0, {CORES[0]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, CORES)


def compare(sizes: Sequence[Ready], rounds: int, warm_up: int) -> list[Cost]:
    """Do the work at one size after the other, `rounds` times: what else the machine does then falls on all of them. The
    first `warm_up` rounds do not count: tables that grow with what is met have grown thereafter."""
    cpu = [[ready.cost() for ready in sizes] for _ in range(warm_up + rounds)][warm_up:]
    return [
        Cost([each[n] for each in cpu], [each[n] / each[0] for each in cpu], ready.taken.bytes, ready.taken.made)
        for n, ready in enumerate(sizes)
    ]
