"""A server's thread asks Linux for short turns of the processor, so that it soon has one where others want it, too.

Linux (from 6.12) lets a thread that wakes run before others if its turn ends sooner, and a thread may say for itself how
long its turns are to be. The share of the processor stays the same: who takes shorter turns only has them more often. A
broker mostly runs for some 20 us and sleeps. With the kernel's usual turns (3 ms) one of thirty acknowledgements waited
until eight busy processes had used up theirs: see the row "1 in flight, busy" of `./hw bench streams`. Rows of a machine
with nothing else on it stay as they are.

The threads that a thread starts later, and the processes, inherit it. So a server that is a process asks for it, and a
`Broker` within another program does not. Nice values stay, and so do policies other than the usual one (`chrt`). It asks
for nothing on other systems, on machines whose system call is not listed here, and where nothing is compiled; older kernels
take the request and do nothing.
"""

import os
import struct
import sys
from typing import Any

import cython

if cython.compiled:
    pass  # `syscall` is declared in turn_length.pxd
else:
    syscall: Any = None

TURN = 100_000  # ns; the shortest that Linux grants
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}  # its number on these machines
# struct sched_attr, its first version: size, policy, flags, nice, priority, runtime (ns), deadline, period.
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")


def take_short_turns() -> bool:
    """Ask for turns of `TURN` ns for this thread; returns whether the kernel took the request."""
    if not cython.compiled or sys.platform != "linux":
        return False
    found = SCHED_SETATTR.get(os.uname().machine)
    if found is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    packed: bytes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, TURN, 0, 0)
    number: cython.long = found
    this_thread: cython.uint = 0
    attributes: cython.p_char = packed
    flags: cython.uint = 0
    taken: cython.long = syscall(number, this_thread, attributes, flags)
    return taken == 0
