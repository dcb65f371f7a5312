"""What every row of `./hw bench growth` needs: a flow of messages that is counted, and what a server takes for work."""

import socket
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from contestants import Contestant, read_cpu_time, resident_bytes
from load_generator import Failure

REPEATS = 3
PAYLOAD = b"x" * 128
STRIDE = 7919  # a prime: neighbours in time are not neighbours in any table
PIECE = 1 << 18  # bytes sent at once
WAIT = 120.0  # seconds without a byte


class Flow:
    """A connection that counts the bytes it gets, in a thread; and what a publisher sends to it."""

    def __init__(self, receiver: socket.socket) -> None:
        self._receiver = receiver
        receiver.settimeout(WAIT)

    def move(self, publisher: socket.socket, operations: Sequence[bytes], expected: int) -> None:
        """Send `operations`; returns when `expected` bytes have arrived. Raises Failure when they do not."""
        sending = threading.Thread(target=publisher.sendall, args=(b"".join(operations),), daemon=True)
        sending.start()
        arrived, rest = 0, b""
        while arrived < expected:
            chunk = self._receiver.recv(PIECE)
            if not chunk:
                raise Failure(f"closed after {arrived} of {expected} bytes")
            arrived += len(chunk)
            if pings := (rest + chunk).count(b"PING\r\n"):  # nothing else has these bytes
                self._receiver.sendall(b"PONG\r\n" * pings)
                arrived -= 6 * pings
            rest = chunk[-5:]
        sending.join(WAIT)
        if arrived != expected:
            raise Failure(f"{arrived} bytes arrived where {expected} were to come")


def cheapest(server: Contestant, messages: int, work: Callable[[], None]) -> float:
    """CPU microseconds a message, of the cheapest repetition. The first one warms up and does not count."""
    work()
    costs = []
    for _ in range(REPEATS):
        before = read_cpu_time(server.pid)
        work()
        costs.append(1e6 * read_cpu_time(server.pid).since(before).scheduled / messages)
    return min(costs)


class Cost(NamedTuple):
    """Microseconds of the server's CPU a message; resident bytes and CPU seconds that the things took together."""

    cpu: float
    bytes: int
    made: float


class Taken:
    """What the server takes from now on."""

    def __init__(self, server: Contestant) -> None:
        self._pid = server.pid
        self._bytes, self._cpu = resident_bytes(server.pid), read_cpu_time(server.pid)
        self.bytes, self.made = 0, 0.0

    def stop(self) -> None:
        self.bytes = resident_bytes(self._pid) - self._bytes
        self.made = read_cpu_time(self._pid).since(self._cpu).scheduled
