"""A NATS client made of bytes: what a test says is what the server reads, and every byte of the answer is kept.

No parser of Headwater is used here, so a fault in one cannot hide a fault in the other. Time-outs everywhere: a server that
should have answered and did not fails the test, it does not hang it. `settle` is the only synchronisation: a server answers
PING after everything that the same link sent before it, so no test sleeps.
"""

import json
import socket
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple, Self

ANSWER_TIMEOUT = 5.0  # seconds; a healthy server answers in a millisecond, a machine under load in some hundred
QUIET = {"verbose": False, "pedantic": False, "headers": True, "no_responders": False, "protocol": 0}

VIOLATION = b"-ERR 'Unknown Protocol Operation'\r\n"


class Answer(NamedTuple):
    """What a server answered: the bytes, and whether it closed the connection after them."""

    output: bytes
    closed: bool


class Row(NamedTuple):
    """One exchange on a link that has sent CONNECT: what is sent, what comes back before a PONG or before the end."""

    title: str
    sent: bytes
    received: bytes
    closed: bool = False


def titles(row: Row) -> str:
    return row.title


def closed(*output: bytes) -> Answer:
    return Answer(b"".join(output), closed=True)


def still_open(*output: bytes) -> Answer:
    return Answer(b"".join(output), closed=False)


class Delivery(NamedTuple):
    """One MSG or HMSG as it came: the bytes of the control line without its sid, then of block and payload."""

    sid: bytes
    control: bytes
    body: bytes


class RawLink:
    """One TCP connection to a NATS server, spoken to in bytes. The INFO that opens it is in `.greeting`."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), ANSWER_TIMEOUT)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread = bytearray()
        try:
            self.greeting = self.receive_line()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the socket, whatever is still unread."""
        self._socket.close()

    def patience(self, seconds: float) -> None:
        """How long the server may be silent from now on."""
        self._socket.settimeout(seconds)

    def send(self, data: bytes) -> None:
        """Sends `data` as one write. A server that has closed already is no error here: `receive_end` will tell."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def send_in_pieces(self, data: bytes, cuts: Iterable[int]) -> None:
        """Sends `data` cut at the given positions, each piece a segment of its own."""
        start = 0
        for cut in [*sorted(cuts), len(data)]:
            self.send(data[start:cut])
            start = cut

    def end_sending(self) -> None:
        """Closes our half: the server reads the end of the stream after what was sent."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the server was faster

    def receive(self, size: int) -> bytes:
        """Exactly `size` bytes. Raises EOFError when the server closes before, TimeoutError when it is silent."""
        while len(self._unread) < size:
            if not self._receive():
                raise EOFError(f"closed after {bytes(self._unread)!r}, wanted {size} bytes")
        data = bytes(self._unread[:size])
        del self._unread[:size]
        return data

    def receive_line(self) -> bytes:
        """Everything up to and with the next CRLF."""
        return self.receive_until(b"\r\n")

    def receive_until(self, marker: bytes) -> bytes:
        """Everything up to and with `marker`."""
        searched = 0
        while (found := self._unread.find(marker, searched)) < 0:
            searched = max(0, len(self._unread) - len(marker) + 1)
            if not self._receive():
                raise EOFError(f"closed after {bytes(self._unread)!r}, wanted {marker!r}")
        return self.receive(found + len(marker))

    def receive_end(self) -> bytes:
        """Everything until the server closes. Raises TimeoutError when it keeps the connection open."""
        while self._receive():
            pass
        return self.receive(len(self._unread))

    def settle(self) -> bytes:
        """Everything that the server says before it answers a PING. Raises EOFError when it closes instead.

        A link that is a second old may receive a PING of the server's first: it is left out.
        """
        self.send(b"PING\r\n")
        return self.receive_until(b"PONG\r\n").removesuffix(b"PONG\r\n").removeprefix(b"PING\r\n")

    def answer(self, data: bytes) -> Answer:
        """Says `data`, then PING: what comes back before the PONG, or before the end if the server closes."""
        self.send(data)
        self.send(b"PING\r\n")
        while True:
            if self._unread.endswith(b"PONG\r\n"):
                return Answer(self.receive(len(self._unread)).removesuffix(b"PONG\r\n"), closed=False)
            if not self._receive():
                return Answer(self.receive(len(self._unread)), closed=True)

    def _receive(self) -> bool:
        try:
            chunk = self._socket.recv(65536)
        except ConnectionResetError:  # the server closed while bytes of ours were still unread
            return False
        self._unread += chunk
        return bool(chunk)


def dial(port: int, **options: object) -> RawLink:
    """A link that has sent CONNECT (quiet, not pedantic, headers on, unless `options` say otherwise) and is settled."""
    link = RawLink(port)
    link.send(connect_op(**options))
    verbose = bool({**QUIET, **options}["verbose"])
    try:
        answer = link.settle()
        assert answer == (b"+OK\r\n" if verbose else b""), answer
    except BaseException:
        link.close()
        raise
    return link


def connect_op(**options: object) -> bytes:
    """`CONNECT {json}` with the quiet options, changed by `options`."""
    return b"CONNECT " + json.dumps({**QUIET, **options}).encode() + b"\r\n"


def read_info(line: bytes) -> dict[str, Any]:
    """The JSON object of an INFO line, which must be spelled as nats-server spells it."""
    assert line.startswith(b"INFO {"), line
    assert line.endswith(b"} \r\n"), line
    document: dict[str, Any] = json.loads(line[5:])
    return document


def split_deliveries(stream: bytes) -> tuple[list[Delivery], list[bytes]]:
    """Takes what a server sent apart: the deliveries in order, and the other lines in order."""
    deliveries: list[Delivery] = []
    lines: list[bytes] = []
    position = 0
    while position < len(stream):
        end = stream.index(b"\r\n", position) + 2
        line = stream[position:end]
        position = end
        if not line.startswith((b"MSG ", b"HMSG ")):
            lines.append(line)
            continue
        words = line.split()
        size = int(words[-1])
        body = stream[position : position + size + 2]
        assert body.endswith(b"\r\n"), (line, body)
        position += size + 2
        deliveries.append(Delivery(words[2], b" ".join([*words[:2], *words[3:]]), body))
    return deliveries, lines


def prove_service(port: int) -> None:
    """A fresh client can publish and subscribe: the condition after every hostile input."""
    with dial(port) as link:
        link.send(b"SUB still.alive 1\r\nPUB still.alive 2\r\nok\r\n")
        assert link.settle() == b"MSG still.alive 1 2\r\nok\r\n"
