"""How a server's ports open, and what happens at them when it is out of descriptors; with nats-server beside.

Both run as processes of their own: when a port begins to listen, and how many descriptors there are, is a matter of a
process.
"""

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.configured_servers import KINDS
from support.headwater_server import HeadwaterServer, start_headwater
from support.nats_server import NatsServer, start_nats_server
from support.raw_wire import RawLink, dial, prove_service

from headwater.testing.ports import free_ports

pytestmark = pytest.mark.interop
TIMEOUT = 20.0


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


def start(kind: str, directory: Path, *args: str, port: int = -1) -> "HeadwaterServer | NatsServer":
    if kind == "nats-server":
        return start_nats_server(directory, *args, jetstream=False, port=port)
    return start_headwater(directory, *args, port=port)


SECONDS_BETWEEN_DOORS = {"nats-server": 0.5, "headwater": 0.0}
"""nats-server opens its route port a millisecond behind the others, on a machine under load more."""


def is_open_within(port: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not is_open(port):
        if time.monotonic() >= end:
            return False
    return True


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), TIMEOUT).close()
    except OSError:
        return False
    return True


DOORS = """
http: "127.0.0.1:%d"
websocket { host: 127.0.0.1, port: %d, no_tls: true }
cluster { name: c, host: 127.0.0.1, port: %d }
"""


def test_whoever_waits_for_the_client_port_finds_every_other_door_open(kind: str, tmp_path: Path) -> None:
    client, *others = free_ports(4)
    config = tmp_path / "server.conf"
    config.write_text(DOORS % tuple(others))
    found: list[bool] = []
    end = time.monotonic() + TIMEOUT

    def wait_and_go_on() -> None:
        while not is_open(client) and time.monotonic() < end:
            time.sleep(0.0005)
        found.extend(is_open_within(port, SECONDS_BETWEEN_DOORS[kind]) for port in others)

    waiter = threading.Thread(target=wait_and_go_on)
    waiter.start()
    with start(kind, tmp_path, "-c", str(config), port=client):
        waiter.join(TIMEOUT)
    assert found == [True, True, True]


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are Linux'")
def test_out_of_descriptors_who_is_in_is_served_and_the_log_stays_short(kind: str, tmp_path: Path) -> None:
    log = tmp_path / ("nats-server.log" if kind == "nats-server" else "headwater.log")
    with start(kind, tmp_path) as server, dial(server.port) as member, ExitStack() as strangers:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (40, 40))
        for _ in range(70):
            strangers.enter_context(socket.create_connection(("127.0.0.1", server.port), TIMEOUT))
        before = processor_seconds(server.pid)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            assert member.answer(b"SUB a 1\r\n").closed is False
            time.sleep(0.05)
        assert processor_seconds(server.pid) - before < 0.5
        assert log.stat().st_size < 8_000
        strangers.close()
        serve_again(server.port)
        assert "ccept" in log.read_text()  # it is notified: "Temporary Client Accept Error" there


def serve_again(port: int) -> None:
    """Once the strangers have left. A server that pauses looks again after a second at most."""
    with RawLink(port) as link:
        assert link.greeting.startswith(b"INFO ")
    prove_service(port)


def test_a_server_takes_as_many_descriptors_as_it_may(kind: str, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        with start(kind, tmp_path) as server:
            limits = Path(f"/proc/{server.pid}/limits").read_text()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    words = next(line for line in limits.splitlines() if line.startswith("Max open files")).split()
    assert int(words[3]) >= int(words[4]) - 1  # Go leaves one
