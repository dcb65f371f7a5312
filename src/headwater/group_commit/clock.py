# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""A clock that is read for every message. Compiled, a system clock is read without a call of Python, which took as long as
to copy the message; any other clock (of a test, of a simulation) is called.
"""

import time
from collections.abc import Callable
from types import BuiltinFunctionType

import cython

if cython.compiled:
    from cython.cimports.posix.time import CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec


class Clock:
    """`read`: `time.time_ns`, `time.monotonic_ns`, or another function that returns nanoseconds.

    A simulation puts functions of its own into the module `time`: only the interpreter's are read in C.
    """

    def __init__(self, read: Callable[[], int]) -> None:
        self._read = read
        is_real: bool = isinstance(read, BuiltinFunctionType)
        self._is_of_day = is_real and read is time.time_ns
        self._is_monotonic = is_real and read is time.monotonic_ns

    def now(self) -> cython.Py_ssize_t:
        """The nanoseconds that `read` would return."""
        if cython.compiled and (self._is_of_day or self._is_monotonic):
            found: timespec = timespec(0, 0)
            clock_gettime(CLOCK_REALTIME if self._is_of_day else CLOCK_MONOTONIC, cython.address(found))
            return cython.cast(cython.longlong, found.tv_sec) * 1_000_000_000 + found.tv_nsec
        return self._read()
