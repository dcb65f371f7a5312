"""Run one of Spark's commands in a child process, and treat its end by a signal as success.

A service manager sends SIGTERM to all processes of a service, a terminal SIGINT; either may also reach only this process.
Spark then exits with a status of failure (143, 130). But a run that was stopped has not failed: its checkpoints are kept,
and the next run continues from them. So the signal is passed on, and the status is 0 once the command has ended. A second
signal, or `PATIENCE` seconds, kill the command, which loses nothing, either; Spark's Python processes end with it.
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

PATIENCE = 60.0  # seconds for Spark's own shutdown; systemd usually waits for 90
ENDING = (signal.SIGINT, signal.SIGTERM)


def call(command: list[str], environ: Mapping[str, str], directory: Path, patience: float = PATIENCE) -> int:
    """The exit status of `command`; 0 if SIGINT or SIGTERM ended it."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may install signal handlers
        return subprocess.call(command, env=environ, cwd=directory)
    stopping = _Stopping()
    before = {each: signal.signal(each, stopping.on_signal) for each in ENDING}
    try:
        with subprocess.Popen(command, env=environ, cwd=directory) as process:
            stopping.watch(process)
            return stopping.wait(process, patience)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class _Stopping:
    """Whether and how the command is being stopped. A signal may arrive before the process is started."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stop_requested = False
        self._kill_requested = False

    def watch(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        if self._kill_requested:
            process.kill()
        elif self._stop_requested:
            process.terminate()

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._stop_requested:
            self._kill_requested = True
            if self._process is not None:
                self._process.kill()
            return
        self._stop_requested = True
        sys.stderr.write("stopping; the next run goes on from here. Once more to stop at once\n")
        sys.stderr.flush()
        if self._process is not None:
            self._process.terminate()

    def wait(self, process: "subprocess.Popen[bytes]", patience: float) -> int:
        """The status to report. A signal is noticed within a second; a wait that it interrupts is resumed."""
        while True:
            patient = self._stop_requested
            try:
                status = process.wait(patience if patient else 1.0)
            except subprocess.TimeoutExpired:
                if patient:
                    process.kill()
            else:
                return 0 if self._stop_requested else status
