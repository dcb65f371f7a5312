"""An event loop without a clock, threads or sockets: what happens when is decided by one seed.

Everything of the simulation runs in this one loop: brokers, clients, the network between them, and what product code does
in threads. Time moves when nothing is left to do at the present moment, to that of the next timer; each callback takes
STEP_SECONDS besides. One callback is one step.

Every callback belongs to a `Process`, by the context it was scheduled in, and is passed over once its process is dead. So
a process can be killed at any moment, also in the middle of a callback: the rest of it runs, and nobody hears of it.

`fingerprint` is a hash over all steps (when, of whom, what). Two runs of one seed have the same: that is how a failure can
be looked at again.
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

START = 1_000.0  # seconds on the clock of the loop at the beginning
STEP_SECONDS = 0.000_002
TIME_OF_DAY_NS = 1_800_000_000_000_000_000  # when the clock of the loop stands at 0


class Process:
    """One program: a broker or a client, on a host of the simulated network."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.alive = True
        self.tag = name.encode()


CURRENT: ContextVar[Process | None] = ContextVar("process", default=None)


class OutOfWork(Exception):
    """Nothing can happen any more, and somebody waits."""


class _Sleeper:
    """In the place of a selector: no file is ever ready, and waiting costs nothing."""

    def __init__(self, loop: "SimulatedLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise OutOfWork("no timer is set, and nothing is ready")
        self._loop.now += timeout
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """`random` is the source of all chance in the simulation. `limit`: steps after which the loop stops."""

    def __init__(self, seed: int, limit: int = 1 << 62) -> None:
        super().__init__()
        self.random = Random(seed)
        self.now = START
        self.steps = 0
        self.limit = limit
        self.fingerprint = 0
        self.trace: list[str] | None = None  # what the fingerprint is of, for whoever compares two runs
        self.failures: list[str] = []  # of callbacks, which asyncio only logs
        self.processes: list[Process] = []
        self._last_done = 0.0  # work ends in the order in which it is told
        self._selector = _Sleeper(self)
        self._clock_resolution = 1e-9
        self._busy_until: dict[int, float] = {}  # by executor, for those that have one thread
        self._executors: list[object] = []  # so that their ids stay theirs
        self.set_exception_handler(self._failed)

    def time(self) -> float:
        return self.now

    def time_ns(self) -> int:
        """The time of day."""
        return TIME_OF_DAY_NS + int(self.now * 1e9)

    def _check_closed(self) -> None:
        """What is collected after the end may still try to say something; nobody hears of it."""

    def _process_events(self, events: list[object]) -> None:
        """There are none."""

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
        """Nobody has threads here."""
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
        who = process.name if process is not None else ""
        line = f"{self.now:.9f} {who} {name}"
        self.fingerprint = zlib.crc32(line.encode(), self.fingerprint)
        if self.trace is not None:
            self.trace.append(line)
        if self.steps >= self.limit:
            self.stop()
        callback(*args)

    # ── what would be done in threads ──

    def run_in_executor(self, executor: Any, func: Callable[[*Arguments], T], *args: *Arguments) -> "asyncio.Future[T]":
        """A moment later, in one piece; in order where the executor has one thread."""
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
        """As `Writers.submit`. What goes `in_order` of one object is done one after the other."""
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
            except Exception as error:  # noqa: BLE001  (whoever asked has to hear of it, whatever it is)
                failure = error
            self._last_done = max(self._last_done + 1e-8, self.now + self.random.expovariate(20_000.0))
            self.call_at(self._last_done, done, result, failure)

        self.call_at(at, at_work)

    def start_process(self, process: Process, work: Callable[[], Any]) -> "asyncio.Task[Any]":
        """A task of `process`: `work()` makes its coroutine."""
        self.processes.append(process)
        context = contextvars.copy_context()
        context.run(CURRENT.set, process)
        return context.run(lambda: self.create_task(work()))
