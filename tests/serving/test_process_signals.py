"""`--signal` finds the server and tells it something."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.errors import ConfigError, EnvironmentProblem
from headwater.serving.process_signals import running, send


def process_list(directory: Path, lines: dict[int, str]) -> Path:
    for number, line in lines.items():
        (directory / str(number)).mkdir()
        (directory / str(number) / "cmdline").write_bytes("\0".join(line.split()).encode() + b"\0")
    return directory


def test_servers_are_told_by_their_command_lines(tmp_path: Path) -> None:
    lines = {
        10: "/usr/bin/python3 /usr/bin/headwater serve -p 1",
        11: "python -m headwater serve",
        12: "python -m headwater serve --signal reload",
        13: "python -m headwater demo",
        14: "vim serve headwater",
    }
    assert running(process_list(tmp_path, lines)) == [10, 11]


def test_workers_are_one_server_with_their_parent(tmp_path: Path) -> None:
    processes = process_list(tmp_path, dict.fromkeys((20, 21, 22, 30), "headwater serve --workers 2"))
    for worker, parent in {20: 1, 21: 20, 22: 20, 30: 1}.items():
        (tmp_path / str(worker) / "stat").write_text(f"{worker} (odd) name) S {parent} 20 20 0")
    assert running(processes) == [20, 30]


@pytest.mark.parametrize(
    ("request_", "error", "reason"),
    [
        ("frob", ConfigError, 'unknown signal "frob"'),
        ("reload=abc", ConfigError, "invalid pid: abc"),
        ("reload=0", ConfigError, "invalid pid: 0"),
        ("reload=-5", ConfigError, "invalid pid: -5"),
        ("reload", EnvironmentProblem, "multiple headwater processes running: 1, 2"),
    ],
)
def test_a_request_that_names_nobody_is_refused(
    tmp_path: Path, request_: str, error: type[Exception], reason: str
) -> None:
    processes = process_list(tmp_path, {1: "headwater serve", 2: "headwater serve"})
    with pytest.raises(error, match=reason):
        send(request_, processes)


def test_nobody_to_tell_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="no headwater processes running"):
        send("ldm", tmp_path)


def test_the_signal_arrives_by_number_and_by_pid_file(tmp_path: Path) -> None:
    for by_file in (False, True):
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        target = str(child.pid)
        if by_file:
            (tmp_path / "pid").write_text(f"{target}\n")
            target = str(tmp_path / "pid")
        try:
            send(f"stop={target}")
            assert child.wait(10) == -signal.SIGKILL
        finally:
            child.kill()
            child.wait(10)
