"""An event loop without a clock, threads or sockets: one seed decides what happens when.

The whole simulation runs in this one loop: brokers, clients, the network between them, and the work that product code does
in threads. When nothing is left to do at the present moment, time advances to the next timer; each callback also takes
STEP_SECONDS. One callback is one step.

Every callback belongs to a `Process`, through the context in which it was scheduled, and is skipped once its process is
dead. So a process can be killed at any moment, even in the middle of a callback: the rest of it runs without effect.

`fingerprint` is a hash over all steps (time, process, callback). Two runs with the same seed have the same fingerprint, so
a failure can be reproduced.
"""

import asyncio
import contextvars
import zlib
from collections.abc import Callable
from contextvars import Context, ContextVar
from random import Random
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

START = 1_000.0  # initial time of the loop in seconds
STEP_SECONDS = 0.000_002
TIME_OF_DAY_NS = 1_800_000_000_000_000_000  # the time of day when the loop's clock is at 0


class Process:
    """One program: a broker or a client, on a host of the simulated network."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.alive = True
        self.tag = name.encode()


CURRENT: ContextVar[Process | None] = ContextVar("process", default=None)


class OutOfWork(Exception):
    """Nothing can happen any more, but a task is still waiting."""


class _Sleeper:
    """Replaces a selector: no file is ever ready, and waiting takes no real time."""

    def __init__(self, loop: "SimulatedLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise OutOfWork("no timer is set, and nothing is ready")
        self._loop.now += timeout
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """`random` is the source of all randomness in the simulation. `limit`: the number of steps after which the loop
    stops."""

    def __init__(self, seed: int, limit: int = 1 << 62) -> None:
        super().__init__()
        self.random = Random(seed)
        self.now = START
        self.steps = 0
        self.limit = limit
        self.fingerprint = 0
        self.trace: list[str] | None = None  # the input of the fingerprint, for comparing two runs
        self.failures: list[str] = []  # exceptions in callbacks, which asyncio would only log
        self.processes: list[Process] = []
        self._last_done = 0.0  # so that work ends in the order in which it is reported
        self._selector = _Sleeper(self)
        self._clock_resolution = 1e-9
        self._busy_until: dict[int, float] = {}  # by executor, for executors with one thread
        self._executors: list[object] = []  # kept alive, so that their ids are not reused
        self.set_exception_handler(self._failed)

    def time(self) -> float:
        return self.now

    def time_ns(self) -> int:
        """The time of day."""
        return TIME_OF_DAY_NS + int(self.now * 1e9)

    def _check_closed(self) -> None:
        """Objects collected after the end may still call the loop; that is ignored."""

    def _process_events(self, events: list[object]) -> None:
        """There are no I/O events."""

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        process = CURRENT.get()
        if process is None or process.alive:
            self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")

    # ── steps ──

    def call_soon(
        self, callback: Callable[[*Arguments], object], *args: *Arguments, context: Context | None = None
    ) -> asyncio.Handle:
        process = CURRENT.get() if context is None else context.get(CURRENT)
        return super().call_soon(self._step, process, callback, args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Arguments], object], *args: *Arguments, context: Context | None = None
    ) -> asyncio.Handle:
        """The same as `call_soon`, because there are no threads."""
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        process = CURRENT.get() if context is None else context.get(CURRENT)
        return super().call_at(when, self._step, process, callback, args, context=context)

    def _step(self, process: Process | None, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        if process is not None and not process.alive:
            return
        self.steps += 1
        self.now += STEP_SECONDS
        name = getattr(callback, "__qualname__", None) or type(callback).__name__
        owner = process.name if process is not None else ""
        line = f"{self.now:.9f} {owner} {name}"
        self.fingerprint = zlib.crc32(line.encode(), self.fingerprint)
        if self.trace is not None:
            self.trace.append(line)
        if self.steps >= self.limit:
            self.stop()
        callback(*args)

    # ── what would be done in threads ──

    def run_in_executor(self, executor: Any, func: Callable[[*Arguments], T], *args: *Arguments) -> "asyncio.Future[T]":
        """Run the function a moment later, uninterrupted; in order if the executor has one thread."""
        future: asyncio.Future[T] = self.create_future()

        def done(result: T | None, error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

        self.work(lambda _: func(*args), None, done, executor if getattr(executor, "_max_workers", 0) == 1 else None)
        return future

    def work(
        self,
        function: Callable[[Any], T],
        argument: object,
        done: Callable[[T | None, BaseException | None], None],
        in_order: object = None,
    ) -> None:
        """Like `Writers.submit`. Work with the same `in_order` object is done sequentially."""
        at = self.now + self.random.expovariate(3_000.0)
        if in_order is not None:
            if not any(one is in_order for one in self._executors):
                self._executors.append(in_order)
            at = max(at, self._busy_until.get(id(in_order), 0.0) + 1e-6)
            self._busy_until[id(in_order)] = at

        def at_work() -> None:
            result: T | None = None
            failure: BaseException | None = None
            try:
                result = function(argument)
            except Exception as error:  # noqa: BLE001  (the caller has to get it, whatever it is)
                failure = error
            self._last_done = max(self._last_done + 1e-8, self.now + self.random.expovariate(20_000.0))
            self.call_at(self._last_done, done, result, failure)

        self.call_at(at, at_work)

    def start_process(self, process: Process, work: Callable[[], Any]) -> "asyncio.Task[Any]":
        """Start a task of `process`; `work()` creates its coroutine."""
        self.processes.append(process)
        context = contextvars.copy_context()
        context.run(CURRENT.set, process)
        return context.run(lambda: self.create_task(work()))
