"""`Type=notify`: systemd hears when the server is ready, and when it begins to stop."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cli.service_manager import READY, STOPPING, notify


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
