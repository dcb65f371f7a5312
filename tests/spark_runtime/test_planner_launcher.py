"""The launcher stands for the planner that a template forked: signals go there, and its status is the launcher's."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.spark_runtime import planner_launcher

WAIT = 60.0


@contextmanager
def launched(path: Path, python: str = sys.executable) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, "-IS", str(planner_launcher.__file__), str(path), python]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"COLOUR": "blue"}) as process:
        yield process


@contextmanager
def template(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(WAIT)
        listener.bind(str(path))
        listener.listen()
        yield listener


def test_signals_go_to_the_planner_and_its_status_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with template(path) as listener, subprocess.Popen(["sleep", "600"]) as planner, launched(path) as process:
        link, _ = listener.accept()
        with link:
            data, files, _, _ = socket.recv_fds(link, 1 << 20, 3)
            while not data.endswith(planner_launcher.END):
                data += link.recv(1 << 20)
            assert b"COLOUR=blue" in data.split(b"\0")
            os.write(files[1], b"said by the planner\n")
            for file in files:
                os.close(file)
            ended = threading.Event()

            def wait() -> None:
                planner.wait()
                ended.set()

            waiting = threading.Thread(target=wait)
            waiting.start()
            link.sendall(b"%d\n" % planner.pid)
            while not ended.wait(0.05):  # its handlers may not be there yet
                assert process.poll() is None or planner.poll() is not None, "the launcher took the signal for its own"
                if Path(f"/proc/{process.pid}/status").exists() and not catches(process.pid, signal.SIGTERM):
                    continue
                process.send_signal(signal.SIGTERM)
            waiting.join()
            link.sendall(b"3\n")
        assert process.wait(WAIT) == 3
        assert process.stdout is not None and process.stdout.read() == "said by the planner\n"
    assert planner.returncode == -signal.SIGTERM


def catches(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.partition("SigCgt:\t")[2][:16], 16) & 1 << (number - 1))


def test_a_planner_that_was_killed_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with template(path) as listener, launched(path) as process:
        link, _ = listener.accept()
        link.sendall(b"4194305\n")  # beyond the largest process id
        link.close()
        assert process.wait(WAIT) == 1


def test_it_imports_next_to_nothing_before_the_planner_runs() -> None:
    command = [sys.executable, "-IS", "-X", "importtime", str(planner_launcher.__file__), "/nowhere", "/bin/true"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "_socket" in imported
    assert not imported & {"json", "socket", "signal", "enum", "re", "typing"}


def test_without_an_answer_it_becomes_the_planner(tmp_path: Path) -> None:
    with launched(tmp_path / "nobody", "/bin/echo") as process:
        assert process.stdout is not None
        assert process.stdout.read().split() == ["-m", planner_launcher.RUNNER]
    assert process.returncode == 0
