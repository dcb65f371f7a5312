"""`headwater serve` as scripts see it: flags, readiness lines on stderr, signals, exit status."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cli.serve import parse_arguments


def start(*flags: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "headwater", "serve", "-a", "127.0.0.1", *flags]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def wait_until_ready(process: "subprocess.Popen[str]") -> int:
    """The port that it listens on; the lines are those which the clients' own test suites look for."""
    assert process.stderr is not None
    port = 0
    for line in process.stderr:
        assert "[INF]" in line
        if "Listening for client connections on 127.0.0.1:" in line:
            port = int(line.rpartition(":")[2])
        if line.rstrip().endswith("Server is ready"):
            return port
    raise AssertionError("the broker ended before it was ready")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_listens_says_so_and_ends_on_a_signal_with_status_0(number: signal.Signals) -> None:
    process = start("-p", "-1")
    try:
        with socket.create_connection(("127.0.0.1", wait_until_ready(process)), timeout=10) as link:
            info = json.loads(link.makefile("rb").readline().removeprefix(b"INFO "))
        assert info["headers"] is True
        process.send_signal(number)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_port_in_use_is_fatal_with_status_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = start("-p", str(taken.getsockname()[1]))
        _, said = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "[FTL] cannot listen on 127.0.0.1" in said


def test_gos_flag_spellings_are_understood() -> None:
    made = parse_arguments(["-js", "-sd=/tmp/x", "--name", "n1", "-p", "-1", "--addr", "127.0.0.1", "-D"])
    assert (made.jetstream, made.store_dir, made.name, made.port, made.debug) == (True, Path("/tmp/x"), "n1", -1, True)


def test_an_unknown_flag_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments(["--frobnicate"])
    assert caught.value.code == 2
    assert "--frobnicate" in capsys.readouterr().err
