"""What a consumer delivers to a pulling client of the benchmark, requested again where it does not come.

nats-server 2.15.1 now and then forgets messages that were refused (-NAK): it delivers them neither to the pull that is
open nor after `ack_wait`.
"""

import json
import re
import socket
from collections.abc import Callable

from load_generator import Failure

IDLE = 0.25  # seconds without a message, from which on the CPU of the server is that of waiting
PATIENCE = 3.0  # seconds without a message, after which what is missing is requested again
REQUESTED_AGAIN = 3  # times one after the other at most

_DELIVERED = re.compile(rb"MSG \S+ \S+ (\$JS\.ACK\.\w+\.R\.(\d+)\.(\d+)\.\S+) \d+\r\nx+\r\n")

Delivery = tuple[int, int]  # a sequence, and which attempt it is


class Missing(Failure):
    """Deliveries that never came, though they were requested again."""


class Deliveries:
    """The deliveries of the consumer R of `stream` on `link`, which is subscribed to `_INBOX.one`. `cpu()`: CPU seconds of
    the server. `seen`: what came; `idle`: CPU seconds while nothing came; `note(text)` is called each time that messages
    are requested again."""

    def __init__(self, link: socket.socket, stream: str, cpu: Callable[[], float], note: Callable[[str], None]) -> None:
        self.seen: list[Delivery] = []
        self.idle = 0.0
        self._link = link
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.R".encode()
        self._cpu = cpu
        self._note = note
        self._rest = b""

    def request(self, size: int) -> bytes:
        """The pull of `size` messages."""
        request = json.dumps({"batch": size, "expires": 30_000_000_000}).encode()
        return b"PUB %b _INBOX.one %d\r\n%b\r\n" % (self._subject, len(request), request)

    def pull(self, size: int, missing: set[Delivery]) -> list[tuple[bytes, int, int]]:
        """Pull `size` messages; see `receive`."""
        self._link.sendall(self.request(size))
        return self.receive(size, missing)

    def receive(self, size: int, missing: set[Delivery]) -> list[tuple[bytes, int, int]]:
        """The next `size` messages or more: where to acknowledge each, its sequence, and which attempt it is. `missing`:
        what may still come, for the error. Raises Missing."""
        found: list[tuple[bytes, int, int]] = []
        again = 0
        while len(found) < size:
            chunk = self._read()
            if chunk:
                came = self._parse(chunk)
                found += came
                again = 0 if came else again
                continue
            lacking = missing.difference((sequence, attempt) for _, sequence, attempt in found)
            if again == REQUESTED_AGAIN:
                first = ", ".join(f"{sequence} (attempt {attempt})" for sequence, attempt in sorted(lacking)[:10])
                raise Missing(f"{len(lacking)} deliveries did not come in {again + 1} pulls: {first}")
            again += 1
            self._note(f"{size - len(found)} messages of a pull requested again")
            self._link.sendall(self.request(size - len(found)))
        self.seen += [(sequence, attempt) for _, sequence, attempt in found]
        return found

    def _read(self) -> bytes:
        """What comes within PATIENCE; b"" for nothing."""
        self._link.settimeout(IDLE)
        try:
            return self._chunk()
        except TimeoutError:
            before = self._cpu()
        self._link.settimeout(PATIENCE - IDLE)
        try:
            return self._chunk()
        except TimeoutError:
            return b""
        finally:
            self.idle += self._cpu() - before

    def _chunk(self) -> bytes:
        chunk = self._link.recv(1 << 20)
        if not chunk:
            raise Failure("the server closed the consumer's connection")
        return chunk

    def _parse(self, chunk: bytes) -> list[tuple[bytes, int, int]]:
        received, end = self._rest + chunk, 0
        if b"PING\r\n" in received:
            self._link.sendall(b"PONG\r\n")
            received = received.replace(b"PING\r\n", b"")
        found = []
        for match in _DELIVERED.finditer(received):
            found.append((match[1], int(match[3]), int(match[2])))
            end = match.end()
        self._rest = received[end:]
        return found
