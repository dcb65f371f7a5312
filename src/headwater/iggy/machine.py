"""Resource usage of the process and the machine, for the statistics: from /proc if it exists, else from `resource`.

CPU shares are since the previous call, as in upstream, the first since the start. Nothing here fails: a number that the
system does not provide is 0.
"""

import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_KIB = 1024
PROC = Path("/proc")


class Usage(NamedTuple):
    """Sizes in bytes; shares of one CPU in percent, `total_cpu` of all of them together."""

    cpu: float
    total_cpu: float
    memory: int
    total_memory: int
    available_memory: int
    threads: int
    read_bytes: int
    written_bytes: int
    open_files: int
    most_open_files: int


class Machine:
    """`proc`: the directory of the system's files. `clock`: seconds. `listeners`: host and port of each listener of the
    server, by the names of `face.IggyOptions`."""

    def __init__(self, proc: Path = PROC, clock: Callable[[], float] = time.monotonic) -> None:
        self.listeners: dict[str, tuple[str, int]] = {}
        self.makes_snapshot = False
        self._proc = proc
        self._clock = clock
        self._before = (clock(), time.process_time())
        self._ticks_before = self._ticks()

    def usage(self) -> Usage:
        """The present usage."""
        (then, spent_then), (now, spent) = self._before, (self._clock(), time.process_time())
        ticks_then, ticks = self._ticks_before, self._ticks()
        self._before, self._ticks_before = (now, spent), ticks
        busy, every = ticks[0] - ticks_then[0], ticks[1] - ticks_then[1]
        own = _numbers(self._read("self/status"))
        memory = _numbers(self._read("meminfo"))
        moved = _numbers(self._read("self/io"))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else _KIB)
        total = memory.get("MemTotal", 0) * _KIB or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return Usage(
            cpu=100 * (spent - spent_then) / max(1e-3, now - then),
            total_cpu=100 * busy / every if every > 0 else 0.0,
            memory=own.get("VmRSS", 0) * _KIB or peak,
            total_memory=total,
            available_memory=memory.get("MemAvailable", 0) * _KIB,
            threads=own.get("Threads", 0) or threading.active_count(),
            read_bytes=moved.get("read_bytes", 0),
            written_bytes=moved.get("write_bytes", 0),
            open_files=self._open_files(),
            most_open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        )

    def _open_files(self) -> int:
        try:
            return len(list((self._proc / "self/fd").iterdir()))
        except OSError:
            return 0

    def _ticks(self) -> tuple[int, int]:
        """CPU ticks of all CPUs since boot: busy, and total."""
        words = self._read("stat").partition("\n")[0].split()[1:9]
        if len(words) < 5 or not all(word.isdigit() for word in words):
            return 0, 0
        ticks = [int(word) for word in words]
        return sum(ticks) - ticks[3] - ticks[4], sum(ticks)  # without idle and waiting for disks

    def _read(self, name: str) -> str:
        try:
            return (self._proc / name).read_text()
        except OSError:
            return ""


def _numbers(text: str) -> dict[str, int]:
    """Parse lines of `name: number unit`."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdigit():
            found[name] = int(words[0])
    return found
