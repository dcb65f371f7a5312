"""Memory that a login needed is given back, threads share one heap, and settings of the operator stay."""

import os
import platform
import subprocess
import sys

import pytest

from headwater.server.heap_limits import limit_heaps

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="these are options of glibc")

LOGINS = """
import threading
from headwater.iggy.credentials import fits, hash_password
from headwater.server.heap_limits import limit_heaps

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def log_in():
    stored = hash_password("iggy", bytes)
    assert all([fits("iggy", stored) for _ in range(3)])

assert limit_heaps({})
before = resident()
thread = threading.Thread(target=log_in)
thread.start()
thread.join()
print(resident() - before)
"""

THREADS = """
import ctypes, os, threading
from headwater.server.heap_limits import limit_heaps

def allocate():
    kept = [bytes(100_000) for _ in range(20)]
    all_here.wait()
    kept.clear()

assert limit_heaps({})
all_here = threading.Barrier(4)
threads = [threading.Thread(target=allocate) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library = ctypes.CDLL(None)
library.fdopen.restype = ctypes.c_void_p
library.malloc_info(0, stream := ctypes.c_void_p(library.fdopen(os.dup(1), b"w")))
library.fclose(stream)
"""


def printed(program: str) -> str:
    """What a process prints that none of the variables of glibc reaches."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    environment = {**variables, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, check=True, text=True, timeout=60).stdout


def test_the_memory_of_logins_in_a_thread_is_given_back() -> None:
    assert int(printed(LOGINS)) < 4 << 20  # 17 MB without the limits


def test_threads_share_one_heap() -> None:
    assert printed(THREADS).count("<heap ") == 1


@pytest.mark.parametrize(
    "environment", [{"MALLOC_ARENA_MAX": "4"}, {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1048576"}]
)
def test_settings_of_the_operator_stay(environment: dict[str, str]) -> None:
    assert not limit_heaps(environment)
