"""Starts `headwater serve` as a process of its own, as a user would, and stops it."""

import re
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Self

START_TIMEOUT = 60.0  # seconds; the broker needs 0.3, one with a large log on a machine under load twenty and more
STOP_TIMEOUT = 10.0

_LISTENING = re.compile(rb"Listening for client connections on \S+:(\d+)")


class HeadwaterServer:
    """A running broker process: `.url`, `.port`, `.pid`, and `stop()`. Also a context manager."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.port = port
        self.url = f"nats://127.0.0.1:{port}"
        self.pid = process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """False once the process has ended by itself."""
        return self._process.poll() is None

    def stop(self) -> int:
        """SIGTERM, then SIGKILL for one that does not listen; returns the exit code."""
        self._process.terminate()
        try:
            return self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait(STOP_TIMEOUT)

    def kill(self) -> None:
        """SIGKILL: no chance to write anything."""
        self._process.kill()
        self._process.wait(STOP_TIMEOUT)


def start_headwater(directory: Path, *args: str, port: int = -1) -> HeadwaterServer:
    """Runs `headwater serve -a 127.0.0.1 -p PORT ARGS`; returns once it says where it listens.

    Its log goes to `directory`/headwater.log through a thread, so that a full pipe can never stall it. Raises RuntimeError
    with that log when the broker ends, or stays silent for START_TIMEOUT.
    """
    directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "headwater", "serve", "-a", "127.0.0.1", "-p", str(port), *args]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    log = directory / "headwater.log"
    follower = _LogFollower(process.stderr, log)
    follower.start()
    follower.settled.wait(START_TIMEOUT)
    if follower.port is None:
        process.kill()
        process.wait(STOP_TIMEOUT)
        follower.join(STOP_TIMEOUT)
        raise RuntimeError(f"headwater serve did not start:\n{log.read_text(errors='replace')}")
    return HeadwaterServer(process, follower.port)


class _LogFollower(threading.Thread):
    """Copies the log to a file; `settled` is set when the port is known or the log has ended."""

    def __init__(self, source: IO[bytes], log: Path) -> None:
        super().__init__(name="headwater log", daemon=True)
        self._source = source
        self._log = log
        self.port: int | None = None
        self.settled = threading.Event()

    def run(self) -> None:
        with self._source, self._log.open("ab", buffering=0) as copy:
            for line in self._source:
                copy.write(line)
                if self.port is None and (found := _LISTENING.search(line)):
                    self.port = int(found[1])
                    self.settled.set()
        self.settled.set()
