"""A killed process closes its sockets before it frees its memory, so that its peers notice at once.

Linux ends each thread of a killed process by giving up the thread's share of the memory and then of the descriptors. The
last owner of the memory frees it: 3 ms for the 20 MB of a node, and longer the more it holds. Only then are the sockets
closed, and until then peers go on sending: messages for its members of queue groups are lost.

Here a second thread shares the memory, but no descriptors. Linux wakes it after the first one, so the memory mostly has an
owner left when the first thread gives it up, and the sockets are closed while the other thread frees the memory. (The two
may also arrive the other way round, on another core; then nothing is gained.)

The thread never runs again: it holds no descriptor, takes no signal, and waits without the interpreter's lock. Where the
system has no close_range(2) (Linux 5.9), or where nothing is compiled, the order stays as it is.
"""

import signal
import sys
import threading
from typing import Any

import cython

if cython.compiled:
    pass  # `syscall` is declared in exit_order.pxd
else:
    syscall: Any = None

CLOSE_RANGE = 436  # the same number on all architectures
ALL_DESCRIPTORS = 0xFFFFFFFF
UNSHARE = 2  # CLOSE_RANGE_UNSHARE: gives this thread a table of its own first, from which it closes


def close_sockets_first() -> None:
    """Start the thread. For programs of our own: it blocks no signal and closes no file for any other thread."""
    if cython.compiled and sys.platform == "linux":
        threading.Thread(target=_leave_last, name="leaves-last", daemon=True).start()


def _leave_last() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    first: cython.uint = 0
    last: cython.uint = ALL_DESCRIPTORS
    flags: cython.uint = UNSHARE
    if syscall(CLOSE_RANGE, first, last, flags) == 0:
        while True:
            signal.pause()
