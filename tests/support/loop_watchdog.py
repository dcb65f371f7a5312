"""A watchdog over every event loop of the test process: which calls of the product kept a loop busy for too long.

It measures the CPU time of the loop's thread, not the wall: a machine with other work does not lie so much. Garbage
collection is taken off, for the test's own objects are collected too, and a call that has imported modules is passed over:
that happens once in the life of a process. Only calls of the product count (a task whose coroutine is ours, a callback of
ours, a transport that reads for a protocol of ours), not what a test does in its own coroutine.

    BOUND seconds compiled, INTERPRETED_BOUND where the hot modules run interpreted: the call is named in the summary
    FAILS times as much: its test fails. CPU time doubles where other processes take the caches, and a test that fails by
    chance proves nothing.
"""

import asyncio
import gc
import os
import sys
import time
from asyncio import events
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import headwater

BOUND = 0.020  # seconds
INTERPRETED_BOUND = 0.150
FAILS = 2.5

RUN = "_run"  # of asyncio's handles: every call of a loop goes through it
_PACKAGE = Path(headwater.__file__).parent
_HOMES = tuple(str(folder) + os.sep for folder in (_PACKAGE, Path(headwater.__file__).resolve().parent))


class Stall(NamedTuple):
    """One call."""

    test: str
    call: str
    seconds: float

    def __str__(self) -> str:
        return f"{1e3 * self.seconds:6.0f} ms  {self.call}  ({self.test})"


class Watchdog:
    """`stalls`: what was found so far. `test`: under which name."""

    def __init__(self, bound: float) -> None:
        self.bound = bound
        self.stalls: list[Stall] = []
        self.calls = 0
        self.test = ""
        self._collecting = 0.0
        self._collected = 0.0
        self._original: Any = None

    def install(self) -> None:
        """From now on every call of a loop is timed."""
        self._original = original = getattr(events.Handle, RUN)
        clock, modules = time.thread_time, sys.modules

        def run(handle: Any) -> None:
            collected, imported = self._collected, len(modules)
            callback = handle._callback  # gone when it has run and was cancelled
            began = clock()
            original(handle)
            spent = clock() - began
            self.calls += 1
            if spent > self.bound:
                spent -= self._collected - collected
                if spent > self.bound and len(modules) == imported and (name := name_of_ours(callback)):
                    self.stalls.append(Stall(self.test, name, spent))

        setattr(events.Handle, RUN, run)
        gc.callbacks.append(self._on_collection)

    def remove(self) -> None:
        """Time no more."""
        setattr(events.Handle, RUN, self._original)
        gc.callbacks.remove(self._on_collection)

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = time.thread_time()
        else:
            self._collected += time.thread_time() - self._collecting


def name_of_ours(callback: Any) -> str:
    """What the product calls it; "" for a call that is not the product's."""
    while isinstance(callback, partial):
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        coroutine: Any = owner.get_coro()
        return _ours(getattr(coroutine, "cr_code", None), getattr(coroutine, "__qualname__", ""))
    for holder in (getattr(owner, "_protocol", None), owner):  # a transport, then an object of ours
        module = type(holder).__module__
        if module.startswith("headwater."):
            return f"{module}.{type(holder).__name__} <- {getattr(callback, '__qualname__', callback)}"
    return _ours(getattr(callback, "__code__", None), getattr(callback, "__qualname__", ""), callback)


def _ours(code: CodeType | None, name: str, callback: Any = None) -> str:
    if code is not None:
        for home in _HOMES:  # the package, and where the links of the compiled copy lead
            if code.co_filename.startswith(home):
                return f"{code.co_filename.removeprefix(home)} {name}"
    module = getattr(callback, "__module__", "") or ""
    return f"{module}.{name}" if module.startswith("headwater.") else ""


def make_watchdog() -> Watchdog:
    """With the bound of this build."""
    compiled = bool(getattr(headwater, "__compiled__", False))
    return Watchdog(BOUND if compiled else INTERPRETED_BOUND)
