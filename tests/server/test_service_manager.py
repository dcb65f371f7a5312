"""`Type=notify`: systemd is notified when the server is ready, and when it begins to stop."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.server.service_manager import READY, STOPPING, activated, notify


@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_a_server_says_when_it_is_ready_and_when_it_stops(tmp_path: Path, workers: tuple[str, ...]) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(60)
        with subprocess.Popen(
            [sys.executable, "-m", "headwater", "serve", "-a", "127.0.0.1", "-p", "-1", *workers],
            env={**os.environ, "NOTIFY_SOCKET": str(address)},
            stderr=subprocess.DEVNULL,
        ) as server:
            assert manager.recv(100) == READY.encode()
            server.send_signal(signal.SIGTERM)
            assert manager.recv(100) == STOPPING.encode()
            assert server.wait(60) == 0


def test_without_a_manager_nothing_is_said_and_one_that_is_gone_stops_no_server(tmp_path: Path) -> None:
    assert not notify(READY, {})
    assert not notify(READY, {"NOTIFY_SOCKET": str(tmp_path / "gone")})
    assert not notify(READY, {"NOTIFY_SOCKET": "@headwater-test-that-is-not-there"})


def test_a_server_takes_the_socket_that_was_bound_for_it_and_one_that_comes_early_waits() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours, socket.create_server(("127.0.0.1", 0)) as unused:
        port = ours.getsockname()[1]
        early = socket.create_connection(("127.0.0.1", port), timeout=60)  # no server is there yet
        descriptors = (ours.fileno(), unused.fileno())
        above = max(*descriptors, 4) + 1  # where neither is overwritten by the move to 3 and 4
        moves = f"exec {above}<&{descriptors[0]} {above + 1}<&{descriptors[1]}; exec 3<&{above} 4<&{above + 1}"
        command = f"{moves}; LISTEN_PID=$$ LISTEN_FDS=2 exec {sys.executable} -m headwater serve -a 127.0.0.1 -p {port}"
        with (
            early,
            subprocess.Popen(["bash", "-c", command], pass_fds=descriptors, stderr=subprocess.PIPE) as server,
        ):
            assert early.recv(5) == b"INFO "
            server.send_signal(signal.SIGTERM)
            assert server.stderr is not None
            output = server.stderr.read().decode()
            assert server.wait(60) == 0
        assert (
            f"systemd listens on port {unused.getsockname()[1]} for this server, which has no listener there" in output
        )


def test_sockets_of_another_process_are_left_alone() -> None:
    environment = {"LISTEN_PID": "1", "LISTEN_FDS": "1"}
    assert activated(environment) == []
    assert environment == {}
