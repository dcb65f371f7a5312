"""A planner that a template forks does what one does that Spark starts, for a tenth; without one Python starts."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.spark_planner import planner

from headwater.spark_runtime import planner_template as template
from headwater.spark_runtime.planner_launcher import DIRECTORY

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="templates are for Linux only")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    assert len(str(tmp_path)) < 90, "a Unix socket has a short path"
    return tmp_path


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.spark
def test_the_second_planner_is_forked_and_behaves_as_the_first(place: Path) -> None:
    python = template.launcher_python(Path(sys.executable), place)
    with planner(python, place, "first") as first:
        assert first.pid == first.process.pid
        assert first.make_reader() == 0
        serves = place / str(os.getpid())
        assert serves.is_socket()
        with planner(python, place, "second") as second:
            assert second.pid != second.process.pid, "the launcher is not the planner"
            made_from = parent_of(second.pid)
            assert made_from not in {os.getpid(), second.process.pid}
            assert second.make_reader() == 0
            assert [each for each in place.iterdir() if each.is_socket() and each.suffix == ""] == [serves]
            ended = second.end()
        with planner(python, place, "third") as third:
            os.kill(made_from, signal.SIGKILL)
            assert third.make_reader() == 0, "a planner does not need the template any more"
        with planner(python, place, "fourth") as fourth:
            assert fourth.pid == fourth.process.pid, "where no template answers, Python starts"
        assert first.end() == ended


def test_a_process_set_up_otherwise_is_told_apart() -> None:
    ours = {"PYTHONPATH": "/a", "PYTHON_WORKER_FACTORY_PORT": "1", "HOME": "/h"}
    assert template._python_settings(ours) == template._python_settings({"PYTHONPATH": "/a", "HOME": "/other"})
    assert template._python_settings(ours) != template._python_settings({"PYTHONPATH": "/b"})


def test_a_template_ends_with_its_jvm(place: Path) -> None:
    before = signal.getsignal(signal.SIGCHLD)
    with subprocess.Popen([sys.executable, "-c", ""]) as jvm, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "socket"))
        listener.listen()
        try:
            template._serve(listener, jvm.pid)
        finally:
            signal.signal(signal.SIGCHLD, before)
    assert not place.exists(), "with a driver that was killed nothing else would remove it"


def test_no_template_is_offered_outside_a_planner(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY, str(place))
    assert not template.offer()
    assert not list(place.iterdir())


def test_the_directory_of_templates_is_this_drivers_own() -> None:
    made = template.directory_of_this_process()
    assert template.directory_of_this_process() == made
    assert made.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("words", [["-c", "print(1)"], ["-m", "this"]])
def test_all_else_is_python_itself(place: Path, words: list[str]) -> None:
    python = template.launcher_python(Path(sys.executable), place)
    environ = {**os.environ, DIRECTORY: str(place)}
    ran = subprocess.run([str(python), *words], env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout == subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout
