"""A killed process with the thread of `exit_order` closes what others wait on before its memory is freed."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headwater

if sys.platform != "linux" or not headwater.__compiled__:
    pytest.skip("the order of an exit is Linux', and changed by compiled code", allow_module_level=True)

MEMORY = 64 << 20  # bytes in pages of 4 KiB: at least 2 ms until they are freed
TRIES = 20  # the two threads may also end the other way round, mostly one kill in five

PROGRAM = """
import mmap, os, sys, time
from headwater.net.exit_order import close_sockets_first
held = mmap.mmap(-1, int(sys.argv[2]))
held.madvise(mmap.MADV_NOHUGEPAGE)
for page in range(0, len(held), 4096):
    held[page] = 1
if sys.argv[3] == "first":
    close_sockets_first()
os.write(int(sys.argv[1]), b"!")
time.sleep(600)
"""


@contextmanager
def program(memory: int, order: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """The process, and the end of a pipe that it holds open."""
    reader, writer = os.pipe()
    arguments = [sys.executable, "-c", PROGRAM, str(writer), str(memory), order]
    try:
        with subprocess.Popen(arguments, pass_fds=[writer]) as process:
            os.close(writer)
            try:
                assert os.read(reader, 1) == b"!"
                yield process, reader
            finally:
                process.kill()
    finally:
        os.close(reader)


def seconds_until_closed(order: str) -> float:
    with program(MEMORY, order) as (process, reader):
        start = time.perf_counter()
        process.kill()
        assert os.read(reader, 1) == b""
        return time.perf_counter() - start


def test_the_thread_holds_no_descriptor_and_hears_no_signal() -> None:
    with program(1 << 12, "first") as (process, _):
        (other,) = [task for task in Path(f"/proc/{process.pid}/task").iterdir() if task.name != str(process.pid)]
        deadline = time.monotonic() + 60
        while list((other / "fd").iterdir()) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert list((other / "fd").iterdir()) == []
        lines = dict(line.split(":\t", 1) for line in (other / "status").read_text().splitlines())
        usual = 0x7FFF_FFFF & ~(1 << 8) & ~(1 << 18)  # all but SIGKILL and SIGSTOP, which cannot be blocked
        assert int(lines["SigBlk"], 16) & usual == usual
        assert len(list(Path(f"/proc/{process.pid}/fd").iterdir())) >= 4, "the process keeps its own"


def test_a_killed_process_closes_its_pipe_before_it_frees_its_memory() -> None:
    usual = min(seconds_until_closed("usual") for _ in range(3))
    assert any(seconds_until_closed("first") < usual / 3 for _ in range(TRIES))
