"""Many streams and few descriptors, in processes of their own; with nats-server beside."""

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.configured_servers import KINDS
from support.headwater_server import start_headwater
from support.nats_server import start_nats_server
from support.raw_wire import RawLink

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are Linux'"),
]
STREAMS = 150
DESCRIPTORS = 200


class Requester:
    """A connection that asks, one request at a time."""

    def __init__(self, link: RawLink) -> None:
        self._link = link
        link.send(b'CONNECT {"verbose":false}\r\nSUB r 1\r\n')

    def ask(self, subject: str, body: bytes = b"") -> dict[str, object]:
        self._link.send(b"PUB %b r %d\r\n%b\r\n" % (subject.encode(), len(body), body))
        head = self._link.receive_until(b"\r\n")
        while not head.startswith(b"MSG "):
            head = self._link.receive_until(b"\r\n")
        answer: dict[str, object] = json.loads(self._link.receive(int(head.split()[-1])))
        return answer


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


def test_a_hundred_and_fifty_streams_fit_into_two_hundred_descriptors(kind: str, tmp_path: Path) -> None:
    start = start_nats_server if kind == "nats-server" else start_headwater
    arguments = () if kind == "nats-server" else ("-js", "-sd", str(tmp_path / "store"))
    with start(tmp_path, *arguments) as server:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        with RawLink(server.port) as link:
            requester = Requester(link)
            for number in range(STREAMS):
                config = {"name": f"S{number}", "subjects": [f"s.{number}"]}
                made = requester.ask(f"$JS.API.STREAM.CREATE.S{number}", json.dumps(config).encode())
                assert "error" not in made, made
            for turn in range(1, 4):
                for number in range(STREAMS):
                    acked = requester.ask(f"s.{number}", b"x" * 100)
                    assert acked.get("seq") == turn, acked
            for number in range(STREAMS):
                body = json.dumps({"seq": 2}).encode()
                assert "message" in requester.ask(f"$JS.API.STREAM.MSG.GET.S{number}", body)
            assert len(os.listdir(f"/proc/{server.pid}/fd")) < DESCRIPTORS
            with RawLink(server.port) as other:
                assert other.greeting.startswith(b"INFO ")
