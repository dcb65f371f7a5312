# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Small reads all over a file without a system call for each: its pages are mapped once there have been some.

A `pread` of a stored message that no cache of the processor has takes 1.2 us, of which the message is the smaller part. A
file is mapped after FEWEST_LOOKS of them, for the first touch of a page costs more than a `pread`.

A read of a page that the disk cannot read, or that is no more in the file, gets SIGBUS, which ends a process. So the signal
is caught: while a read copies, `_from` and `_to` have its addresses, and a fault in there puts a page of zeros in place of
the lost one. The read then returns nothing, the mapping goes, and `pread` raises what is wrong. Every other SIGBUS goes
where it went before.

Somebody else in the process may take the signal later: `faulthandler.enable()` of the program that we are part of. A lost
page would end it then. So each tick of the system's coarse clock (1 to 10 ms) the first read checks that the signal is
still ours, and where it is not, files are read with `pread`. A check before each is 0.14 us, a tenth of what a mapping
saves; the clock is 3 ns. We do not take the signal back: two that each insist would never end.

Pages of a mapping are the system's cache, which takes them back when memory is short; until then they count as resident.
There are no more than MOST_MAPPINGS, for the system allows a process some 65,000 areas. Compiled only, on Linux.
"""

import sys
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.libc.signal import SIG_DFL, SIGBUS, raise_
    from cython.cimports.libc.string import memset
    from cython.cimports.posix.mman import (
        MAP_ANONYMOUS,
        MAP_FAILED,
        MAP_FIXED,
        MAP_PRIVATE,
        MAP_SHARED,
        POSIX_MADV_RANDOM,
        PROT_READ,
        mmap,
        munmap,
        posix_madvise,
    )
    from cython.cimports.posix.signal import SA_NODEFER, SA_SIGINFO, sigaction, sigaction_t
    from cython.cimports.posix.time import clock_gettime, timespec
    from cython.cimports.posix.unistd import _SC_PAGESIZE, sysconf
else:
    _action = _before = None

FEWEST_LOOKS: int = 64
LEAST: int = 1 << 20  # bytes of a mapping: a file that grows is mapped anew when it has twice as many
MOST_MAPPINGS: int = 1 << 13
ABLE: bool = sys.platform == "linux"
COARSE_CLOCK: cython.int = 6  # Linux's CLOCK_MONOTONIC_COARSE, a name that other systems' compilers do not know

_PAGE: cython.ulonglong = 4096
_mappings: cython.Py_ssize_t = 0
_guarded: cython.bint = False  # the signal was ours at the last check
_checked: cython.longlong = 0  # the tick of the coarse clock when that was
_from: cython.ulonglong = 0  # the address where the read that is under way begins
_to: cython.ulonglong = 0  # and where it ends; 0: none is
_lost: cython.bint = False  # it met a page that is not there


class MappedFile:
    """What is mapped of one file: `size` bytes."""

    def __init__(self) -> None:
        self._looks = 0
        self._wanted = FEWEST_LOOKS
        self.size = 0

    def look(self, descriptor: cython.int, size: cython.Py_ssize_t, position: cython.longlong) -> bytes | None:
        """These bytes, which are in the file; None while they are not mapped, and where they cannot be read."""
        global _from, _to, _lost
        if cython.compiled:
            if position + size > self.size:
                self._looks += 1
                if self._looks < self._wanted or not ABLE:
                    return None
                self._map(descriptor, position + size)
                if self.size == 0:
                    return None
            elif not _still_guarded():
                self.end()
                self._looks = 0
                return None
            _lost = False
            _from = cython.cast(cython.ulonglong, self._base + position)
            _to = _from + size
            # A function elsewhere: so neither the lines before nor those behind are moved across it.
            data: bytes = PyBytes_FromStringAndSize(self._base + position, size)
            _from = _to = 0
            if not _lost:
                return data
            self.end()
            self._looks, self._wanted = 0, 2 * self._wanted
        return None

    def address(self, size: cython.Py_ssize_t, position: cython.longlong) -> cython.ulonglong:
        """Where these bytes are mapped, for a prefetch only, which does not fault; 0 while they are not."""
        if cython.compiled and 0 <= position and position + size <= self.size:
            return cython.cast(cython.ulonglong, self._base + position)
        return 0

    def _map(self, descriptor: cython.int, end: cython.longlong) -> cython.int:
        """Map the file up to `end` and as far again, for it may grow: what is behind its end is not touched."""
        global _mappings
        if cython.compiled:
            self.end()
            self._looks = 0
            if _mappings >= MOST_MAPPINGS:
                return 0
            if not _guard():
                return 0
            size: cython.Py_ssize_t = max(LEAST, 2 * end)
            place: cython.p_void = mmap(cython.NULL, size, PROT_READ, MAP_SHARED, descriptor, 0)
            if place == MAP_FAILED:
                return 0
            # A page that has to be read from the disk comes without others.
            posix_madvise(place, size, POSIX_MADV_RANDOM)
            self._base = cython.cast(cython.p_char, place)
            self.size = size
            _mappings += 1
        return 0

    def end(self) -> cython.int:
        """Unmap it."""
        global _mappings
        if cython.compiled and self.size > 0:
            munmap(self._base, self.size)
            self.size = 0
            _mappings -= 1
        return 0

    def __dealloc__(self) -> None:
        self.end()


def _guard() -> cython.bint:
    """Whether SIGBUS goes to `_on_bus_error`, which is set the first time, and later where there is no other handler."""
    global _PAGE
    if cython.compiled:
        found = cython.declare(sigaction_t)
        sigaction(SIGBUS, cython.NULL, cython.address(found))
        if _checked == 0 or found.sa_handler == SIG_DFL:
            _PAGE = sysconf(_SC_PAGESIZE)
            memset(cython.address(_action), 0, cython.sizeof(sigaction_t))
            _action.sa_sigaction = _on_bus_error
            _action.sa_flags = SA_SIGINFO | SA_NODEFER
            sigaction(SIGBUS, cython.address(_action), cython.address(_before))
        return _check()
    return False


def _still_guarded() -> cython.bint:
    """Whether the signal is ours, or was when this tick of the coarse clock began."""
    if cython.compiled:
        return _guarded if _tick() == _checked else _check()
    return False


def _check() -> cython.bint:
    global _guarded, _checked
    if cython.compiled:
        found = cython.declare(sigaction_t)
        _checked = _tick()
        sigaction(SIGBUS, cython.NULL, cython.address(found))
        _guarded = found.sa_sigaction == _on_bus_error
        return _guarded
    return False


def _tick() -> cython.longlong:
    if cython.compiled:
        now = cython.declare(timespec)
        clock_gettime(COARSE_CLOCK, cython.address(now))
        return now.tv_sec * 1_000_000_000 + now.tv_nsec
    return 0


def _on_bus_error(number: cython.int, info: Any, context: cython.p_void) -> None:
    """See the head of this module. Nothing but system calls happens in here."""
    global _lost
    if cython.compiled:
        address: cython.ulonglong = cython.cast(cython.ulonglong, info.si_addr)
        if _from <= address < _to:
            address -= address % _PAGE
            if (
                mmap(
                    cython.cast(cython.p_void, address),
                    _PAGE,
                    PROT_READ,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                    -1,
                    0,
                )
                != MAP_FAILED
            ):
                _lost = True
                return
        sigaction(number, cython.address(_before), cython.NULL)  # the instruction is tried again, and faults again
        if info.si_code <= 0:  # from a process: it does not come again by itself
            raise_(number)
