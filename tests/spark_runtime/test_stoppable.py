"""Commands of Spark's that a signal ends, in real processes: the signal goes to the whole group, as systemd sends it."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headwater.spark_runtime.stoppable import _Stopping, call

OUTER = """
import os, pathlib, sys
from headwater.spark_runtime.stoppable import call
sys.exit(call(["sh", "-c", sys.argv[1]], os.environ, pathlib.Path("."), patience=float(sys.argv[2])))
"""
DYING = "echo ready; exec sleep 600"
DEAF = "trap '' TERM; echo ready; while :; do sleep 600; done"


@pytest.mark.parametrize(("script", "patience", "signals"), [(DYING, "60", 1), (DEAF, "0.1", 1), (DEAF, "60", 2)])
def test_a_signal_to_the_group_ends_the_command_and_is_no_failure(script: str, patience: str, signals: int) -> None:
    command = [sys.executable, "-c", OUTER, script, patience]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as outer:
        assert outer.stdout is not None and outer.stderr is not None
        try:
            assert outer.stdout.readline() == b"ready\n"
            os.killpg(outer.pid, signal.SIGTERM)
            assert b"the next run goes on from here" in outer.stderr.readline()
            for _ in range(signals - 1):
                os.kill(outer.pid, signal.SIGINT)
            assert outer.wait(60) == 0
        finally:
            try:
                os.killpg(outer.pid, signal.SIGKILL)  # also the sleep of a shell that was killed
            except ProcessLookupError:
                pass


@pytest.mark.parametrize(("signals", "status"), [(0, 0), (1, -signal.SIGTERM), (2, -signal.SIGKILL)])
def test_signals_before_the_process_is_known_are_not_lost(signals: int, status: int) -> None:
    """The command may say that it is ready while `Popen` has not returned."""
    stopping = _Stopping()
    for _ in range(signals):
        stopping.on_signal(signal.SIGTERM, None)
    with subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE) as process:
        stopping.watch(process)
        if not signals:
            process.communicate(b"\n", 60)
        assert process.wait(60) == status


def test_a_command_that_ends_by_itself_keeps_its_status_and_our_handlers_come_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert call(["sh", "-c", "exit 3"], os.environ, tmp_path) == 3
    assert signal.getsignal(signal.SIGTERM) is before


def test_another_thread_than_the_main_one_waits_without_handlers(tmp_path: Path) -> None:
    ended: list[int] = []
    waiting = threading.Thread(target=lambda: ended.append(call(["sh", "-c", "exit 4"], os.environ, tmp_path)))
    waiting.start()
    waiting.join(60)
    assert ended == [4]
