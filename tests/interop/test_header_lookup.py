"""`header_block.lookup` against the look-up of the real nats-server, observed through what its de-duplication recognises.

A block with an odd `Nats-Msg-Id` is published into a stream, then a plain one with the value that we say the server has
found: it answers `duplicate` exactly if we are right.
"""

import json
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.nats_server import start_nats_server

from headwater.model.header_block import lookup

pytestmark = pytest.mark.interop

NAME = b"Nats-Msg-Id"
PIECES = [
    NAME,
    NAME + b":",
    NAME + b": ",
    NAME[:-1],
    b"\r\n",
    b"\r\n" + NAME + b":",
    b"a",
    b" ",
    b"\t",
    b"X: ",
    b"\n",
    b"\r",
    b":",
]
BLOCKS = 400


class Stream:
    """One memory stream on `t`, spoken to in bytes: a client would not send what is sent here."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._file = self._socket.makefile("rb")
        self._file.readline()
        self._socket.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB inbox 1\r\n')
        request = json.dumps({"name": "T", "subjects": ["t"], "storage": "memory"}).encode()
        created = self._answer(b"PUB $JS.API.STREAM.CREATE.T inbox %d\r\n%b\r\n" % (len(request), request))
        assert "error" not in created

    def publish(self, block: bytes) -> dict[str, Any]:
        return self._answer(b"HPUB t inbox %d %d\r\n%b\r\n" % (len(block), len(block), block))

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _answer(self, op: bytes) -> dict[str, Any]:
        self._socket.sendall(op)
        while True:
            control = self._file.readline()
            if control == b"PING\r\n":
                self._socket.sendall(b"PONG\r\n")
                continue
            assert control.startswith(b"MSG "), control
            answer: dict[str, Any] = json.loads(self._file.read(int(control.split()[-1]) + 2))
            return answer


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Stream]:
    with start_nats_server(tmp_path) as server:
        stream = Stream(server.port)
        yield stream
        stream.close()


def test_lookup_finds_exactly_what_the_server_finds(stream: Stream) -> None:
    dice = random.Random(4)
    reported = 0
    for number in range(BLOCKS):
        unique = b"u%d" % number
        odd = b"".join(dice.choice(PIECES) for _ in range(dice.randint(0, 5))) + dice.choice([b"\r\n", b""])
        line = dice.choice([b": " + unique, b":" + unique + b" ", b":  \t" + unique])
        block = b"NATS/1.0\r\n" + odd + NAME + line + b"\r\n\r\n"
        found = lookup(block, NAME)
        if found and unique not in found:  # an earlier, empty or common value: it tells nothing here
            continue
        stream.publish(block)
        again = stream.publish(b"NATS/1.0\r\n" + NAME + b": " + (found or unique) + b"\r\n\r\n")
        assert again.get("duplicate", False) == bool(found), block
        reported += bool(found)
    assert reported > BLOCKS // 4
