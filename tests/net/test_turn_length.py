"""A thread with short turns has them from the kernel, and stays otherwise as it was."""

import os
import re
import subprocess
import sys

import pytest

import headwater
from headwater.net.turn_length import SCHED_SETATTR, TURN, take_short_turns

KERNEL = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
asks = pytest.mark.skipif(
    sys.platform != "linux"
    or not headwater.__compiled__
    or os.uname().machine not in SCHED_SETATTR
    or KERNEL < (6, 12),
    reason="the turns of a thread are asked for by compiled code, and granted since Linux 6.12",
)

PROGRAM = """
import ctypes, os, struct, sys, threading
from headwater.net.turn_length import SCHED_SETATTR, take_short_turns

def attributes():  # policy, nice, runtime
    found = ctypes.create_string_buffer(48)
    assert ctypes.CDLL(None).syscall(SCHED_SETATTR[os.uname().machine] + 1, 0, found, 48, 0) == 0
    size, policy, flags, nice, priority, runtime, deadline, period = struct.unpack("=IIQiIQQQ", found)
    print(policy, nice, runtime, flush=True)

exec(sys.argv[1])
print(take_short_turns())
attributes()
later = threading.Thread(target=attributes)
later.start()
later.join()
"""


def run(before: str) -> list[str]:
    """What a new process prints that executes `before` first."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, before], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.splitlines()


@asks
def test_the_thread_and_those_it_starts_have_short_turns_and_their_nice_value() -> None:
    assert run("os.nice(3)") == ["True", f"0 3 {TURN}", f"0 3 {TURN}"]


@asks
def test_another_policy_stays_as_it_is() -> None:
    taken, thread, later = run("os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))")
    assert taken == "False"
    assert thread == later
    assert thread.split()[0] == str(os.SCHED_BATCH)
    assert thread.split()[2] != str(TURN)


def test_nothing_is_asked_for_on_an_unknown_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.net.turn_length.SCHED_SETATTR", {})
    assert not take_short_turns()
