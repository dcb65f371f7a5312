"""An asyncio event loop that reads plain links directly, without asyncio's callbacks.

    epoll ──ready descriptors──▶ ReadyLinks.wait ─┬─ a plain link's: Endpoint.read_ready, here and now
                                                  └─ everything else: returned to asyncio, as usual

For every ready descriptor asyncio schedules a callback and runs it in its own context; the callback calls a transport,
which calls a protocol for space: 8 us of interpreter for a read that takes the kernel two. The links' transports stay
registered, so pausing, closing and errors work as usual; only readiness for reading is intercepted, and the end of
input and errors are passed to asyncio.

A component that acts once on all input of a turn (a store: one fdatasync for every publish) registers a callback with
`DirectLoop.after_reads`. It is called when all ready links have been read, without a detour through asyncio either. When
many have (a hundred streams, each with its own fdatasync), links that are ready again are read before that: a read of
64 KiB brings each of a hundred streams three messages, and to store three costs nearly what it costs to store ten.

When links are ready again and again with one small message each, `wait` may pause before it asks epoll, so that one read
finds several: `net.moderation` decides, and its pauses end where they bring nothing.

`wait` keeps waiting until `call_soon` or `call_at` has scheduled something. Python runs signal handlers between
interpreter instructions, which compiled code does not execute, so `wait` runs them in each turn; otherwise a busy
server would handle SIGTERM only once its clients are silent. Linux only (epoll); elsewhere, and for brokers in a
program's own loop, transports read the links.
"""

import asyncio
import os
import select
import selectors
import socket
import sys
import time
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVarTuple, Unpack

import cython

if cython.compiled:
    from cython.cimports.cpython.exc import PyErr_CheckSignals
    from cython.cimports.headwater.net.endpoint import Endpoint
    from cython.cimports.headwater.net.moderation import Moderation
    from cython.cimports.libc.errno import EINTR, errno
    from cython.cimports.libc.string import memcpy
    from cython.cimports.posix.time import CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, clock_gettime, nanosleep, timespec
    from cython.cimports.posix.unistd import close, read

    # `syscall`, `ioctl` and `FIONREAD` are declared in direct_loop.pxd
else:
    import fcntl
    import termios

    from headwater.net.endpoint import Endpoint
    from headwater.net.moderation import Moderation

    syscall: Any = None
    ioctl: Any = None
    FIONREAD: Any = None

Arguments = TypeVarTuple("Arguments")

READABLE: int = 1  # EPOLLIN, and EVENT_READ
BROKEN: int = select.EPOLLERR | select.EPOLLHUP
MAX_EVENTS: int = 256  # descriptors reported by one call; the next call reports the others
MANY_AFTERWARDS: int = 8  # callbacks that wait for the end of the reads: from here on, more is read first
# Callbacks that are then called before more is read; each may wait for the disk, and a client for what the first has for it.
FINISHED_TOGETHER: int = 16
_FINISHED_TOGETHER: cython.Py_ssize_t = FINISHED_TOGETHER
READS_AGAIN: int = 3  # times that ready links are then read again, at most: 64 KiB each, a quarter of a millisecond
_READS_AGAIN: cython.int = READS_AGAIN
# Bytes that the links of one turn share, so that each is read soon; but each may take LEAST_READ.
READ_IN_A_TURN: int = 1 << 20
LEAST_READ: int = 1 << 16
# ns. The kernel adds up to 50 us of slack to every timer, and 20 to 30 us until the process runs: 0.1 ms in all.
PAUSE: int = 15_000
PAUSES_BEFORE: float = 0.002  # seconds; with a timer that is due earlier, the loop does not pause

# Seconds. For a shorter sleep the timer is not set: that costs more than the timeouts of a few sleeps.
SET_FOR: float = 0.02

# The numbers of the system calls epoll_pwait(2), timerfd_create(2) and timerfd_settime(2), 0 where they are not known, and
# `struct epoll_event`: x86-64 packs it.
_MACHINE: str = os.uname().machine if sys.platform == "linux" and sys.maxsize > 1 << 32 else ""
EPOLL_PWAIT: int = {"x86_64": 281, "aarch64": 22, "riscv64": 22}.get(_MACHINE, 0)
TIMER_CREATE: int = {"x86_64": 283, "aarch64": 85, "riscv64": 85}.get(_MACHINE, 0)
TIMER_SET: int = {"x86_64": 286, "aarch64": 86, "riscv64": 86}.get(_MACHINE, 0)
EVENT_SIZE: int = 12 if _MACHINE == "x86_64" else 16
EVENT_DATA: int = EVENT_SIZE - 8


class Epoll:
    """Says which descriptors are ready.

    Compiled, it calls epoll_pwait(2) itself: `select.epoll` makes a list of tuples of each answer. And it has its own timer
    (timerfd), set to the next deadline, which stays set while the loop sleeps and wakes. For a timeout the kernel sets one
    for each sleep and takes it back, 3 % of what it costs to be woken for a message. The timer is set anew for an earlier
    deadline; where it rings too early, the loop is woken once for nothing. Where there is none, epoll gets timeouts.
    """

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self._number = epoll.fileno()
        self._found: list[tuple[int, int]] = []  # the last answer of `select.epoll`
        self._rings = 0.0  # when the timer does, by `_now`; 0: it is not set
        self._timer = _make_timer()
        if self._timer >= 0:
            epoll.register(self._timer, select.EPOLLIN)

    def close(self) -> None:
        self._epoll.close()
        if cython.compiled and self._timer >= 0:
            close(self._timer)
            self._timer = -1

    def poll(self, seconds: cython.double, end: cython.double) -> cython.Py_ssize_t:
        """The number of descriptors that are ready within `seconds` (below 0: without a limit), which are over at `end`."""
        if seconds > 0 and self._is_set(seconds, end):
            seconds = -1.0
        if cython.compiled and EPOLL_PWAIT != 0:
            count: cython.long
            problem: cython.int
            number: cython.long = self._number
            milliseconds: cython.long = -1 if seconds < 0 else cython.cast(cython.long, 1000 * seconds)
            if milliseconds < 1000 * seconds:
                milliseconds += 1  # rounded up, or the loop would run before its timer is due
            most: cython.long = MAX_EVENTS
            call: cython.long = EPOLL_PWAIT
            set_size: cython.long = 8
            events: cython.p_char = self._events
            with cython.nogil:
                count = syscall(call, number, events, most, milliseconds, cython.NULL, set_size)
                problem = errno
            if count < 0:
                if problem == EINTR:
                    return 0  # asyncio runs the signal's handler, and asks again
                raise OSError(problem, os.strerror(problem))
            return count  # type: ignore[no-any-return]
        self._found = self._epoll.poll(seconds, MAX_EVENTS)
        return len(self._found)

    def descriptor_at(self, index: cython.Py_ssize_t) -> cython.int:
        if cython.compiled and EPOLL_PWAIT != 0:
            descriptor: cython.int = 0
            memcpy(cython.address(descriptor), self._events + index * EVENT_SIZE + EVENT_DATA, 4)
            return descriptor
        return self._found[index][0]

    def events_at(self, index: cython.Py_ssize_t) -> cython.uint:
        if cython.compiled and EPOLL_PWAIT != 0:
            events: cython.uint = 0
            memcpy(cython.address(events), self._events + index * EVENT_SIZE, 4)
            return events
        return self._found[index][1]

    def is_timer(self, descriptor: cython.int) -> cython.bint:
        """Whether this is the timer's, which has rung and is no event; it is not set any more."""
        if descriptor != self._timer:
            return False
        if cython.compiled:
            times = cython.declare(cython.ulonglong)
            read(self._timer, cython.address(times), 8)
        self._rings = 0.0
        return True

    def _is_set(self, left: cython.double, end: cython.double) -> cython.bint:
        """Whether the timer ends a sleep of `left` seconds at `end` or before; it is set if necessary."""
        if self._rings > 0 and self._rings <= end:
            return True
        if self._timer < 0 or left < SET_FOR:
            return False
        if cython.compiled:
            number: cython.long = self._timer
            call: cython.long = TIMER_SET
            absolute: cython.long = 1  # TFD_TIMER_ABSTIME
            times = cython.declare(timespec[2])  # the interval, and the moment
            times[0] = timespec(0, 0)
            times[1].tv_sec = cython.cast(cython.long, end)
            times[1].tv_nsec = min(cython.cast(cython.long, 1e9 * (end - times[1].tv_sec)) + 1, 999_999_999)
            if syscall(call, number, absolute, cython.address(times[0]), cython.NULL) == 0:
                self._rings = end
                return True
        return False


class ReadyLinks:
    """What is ready, and the links among it, which are read here and now. `scheduled`: the loop has work again."""

    def __init__(self, epoll: select.epoll) -> None:
        self.scheduled = False
        self.reading = False  # links are being read; `wait` then calls `afterwards` before it returns
        self.events = 0  # how often a descriptor was ready, but for `own`
        self.own = -1  # the one by which threads and signals wake the loop
        self.afterwards: list[Callable[[], object]] = []
        self.last: list[Callable[[], object]] = []
        self.finishing = 0  # so many `afterwards` run; `last` follow them
        self.report: Callable[[dict[str, object]], None] = _ignore
        self.moderation = Moderation()
        self.pauses = 0  # so far, as `moderation` decided
        self._pause_next = False  # before epoll is asked again
        self._epoll = Epoll(epoll)
        self._links: list[Endpoint | None] = []  # by descriptor
        self._left = 0  # descriptors that are still to be looked at in this round of reads
        self._rounds: list[Callable[[], object]] = []

    def add(self, descriptor: int, link: Endpoint) -> None:
        """Read this link when it is ready."""
        if descriptor >= len(self._links):
            self._links.extend([None] * (descriptor + 1))
        self._links[descriptor] = link

    def discard(self, descriptor: int) -> None:
        """Leave the descriptor to asyncio; safe to call again."""
        if 0 <= descriptor < len(self._links):
            self._links[descriptor] = None

    def reads(self, link: Endpoint) -> bool:
        """Whether this link is read here."""
        return link in self._links

    def close(self) -> None:
        self._links.clear()
        self._epoll.close()

    def events_seen(self) -> cython.Py_ssize_t:
        """How often a link or another descriptor was ready so far; wake-ups by this process itself do not count."""
        return self.events

    def finishes_alone(self) -> cython.bint:
        """Whether the caller is the only callback of `after_reads` that runs after these reads."""
        return self.finishing == 1

    def together(self, callback: Callable[[], object]) -> cython.bint:
        """Call `callback` when this round of reads is over, before anything else runs; False, without doing so, where no
        other link is left to be read in it."""
        if self._left == 0:
            return False
        self._rounds.append(callback)
        return True

    def wait(self, left: cython.double) -> list[tuple[int, int]]:
        """Read links until the loop has something to do or `left` seconds have passed (below 0: without a limit). Returns
        what else is ready: descriptors with their events."""
        again: cython.int
        index: cython.Py_ssize_t
        count: cython.Py_ssize_t
        descriptor: cython.int
        events: cython.uint
        most: cython.Py_ssize_t
        found: cython.bint
        seen: cython.Py_ssize_t
        link: Endpoint | None
        epoll: Epoll = self._epoll
        end: cython.double = _now() + left if left > 0 else 0.0
        others: list[tuple[int, int]] = []
        self.scheduled = False
        while True:
            if cython.compiled:
                PyErr_CheckSignals()
                if self.scheduled:
                    left = 0.0
            if self._pause_next:
                self._pause_next = False
                if left < 0 or left > PAUSES_BEFORE:
                    self._pause()
            count = epoll.poll(left, end)
            found = count > 0
            if found and self.moderation.wants_look(count):
                self._look(count)
            again = _READS_AGAIN
            seen = 0
            self.reading = True
            while count > 0:
                if count > 1 or epoll.events_at(0) != READABLE:
                    self._read_broken(count)
                most = max(READ_IN_A_TURN // count, LEAST_READ)
                for index in range(count):
                    descriptor = epoll.descriptor_at(index)
                    events = epoll.events_at(index)
                    link = self._link(descriptor)
                    self._left = count - index - 1
                    if link is None and epoll.is_timer(descriptor):
                        seen -= 1
                    elif link is None or events != READABLE or not link.read_ready(most):
                        others.append((descriptor, events))
                        seen -= descriptor == self.own
                seen += count
                self._end_round()
                if again == 0 or others or not self.afterwards or len(self.afterwards) < MANY_AFTERWARDS:
                    break
                again -= 1
                count = epoll.poll(0.0, 0.0)
            self.reading = False
            self.events += seen
            if self.afterwards:
                self._run_afterwards()
            if others or self.scheduled or left == 0 or not found:
                return others
            if left > 0:
                left = max(0.0, end - _now())

    def _link(self, descriptor: cython.Py_ssize_t) -> Endpoint | None:
        if descriptor >= len(self._links):
            return None
        link: Endpoint | None = cython.cast(Endpoint, self._links[descriptor])  # unchecked: `add` has put it there
        return link

    def _look(self, count: cython.Py_ssize_t) -> cython.int:
        """Measure what the reads of this round will find; where others than links are ready, too, there is no pause."""
        index: cython.Py_ssize_t
        descriptor: cython.int
        links: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t = 0
        room: cython.Py_ssize_t = 0
        most: cython.Py_ssize_t
        link: Endpoint | None
        for index in range(count):
            descriptor = self._epoll.descriptor_at(index)
            link = self._link(descriptor)
            if link is not None:
                links += 1
                if self.moderation.counting:
                    most = max(min(link._input._most, READ_IN_A_TURN // count), LEAST_READ)
                    size += min(_available(descriptor), most)
                    room += most
        now: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, 1e9 * _now())
        self._pause_next = self.moderation.look(now, _cpu(), links, size, room) and links == count
        return 0

    def _pause(self) -> cython.int:
        self.pauses += 1
        if cython.compiled:
            duration: timespec = timespec(0, PAUSE)
            with cython.nogil:
                nanosleep(cython.address(duration), cython.NULL)
        else:
            time.sleep(1e-9 * PAUSE)
        return 0

    def _read_broken(self, count: cython.Py_ssize_t) -> cython.int:
        """First handle links whose peers have reset them, so that no more messages are routed to them.

        A broker that is killed resets its routes: with messages unread, the kernel sends RST and no FIN.
        """
        link: Endpoint | None
        index: cython.Py_ssize_t
        events: cython.uint
        for index in range(count):
            events = self._epoll.events_at(index)
            if events != READABLE and events & BROKEN:
                link = self._link(self._epoll.descriptor_at(index))
                while link is not None and link.read_ready(LEAST_READ):
                    pass
        return 0

    def _end_round(self) -> cython.int:
        if self._rounds:
            callbacks, self._rounds = self._rounds, []
            self._run(callbacks)
        return 0

    def _run_afterwards(self) -> cython.int:
        callbacks, self.afterwards = self.afterwards, []
        first: cython.Py_ssize_t = 0
        self.finishing = len(callbacks)
        while first < len(callbacks):
            self._run(callbacks[first : first + _FINISHED_TOGETHER])
            first += _FINISHED_TOGETHER
            if self.last:
                last, self.last = self.last, []
                self._run(last)
        self.finishing = 0
        return 0

    def _run(self, callbacks: list[Callable[[], object]]) -> cython.int:
        for callback in callbacks:
            try:
                callback()
            except Exception as error:  # noqa: BLE001  (as asyncio does with what it calls)
                self.report({"message": f"Exception in {callback!r}, after links were read", "exception": error})
        return 0


def _make_timer() -> int:
    """The descriptor of a timer that is not set, -1 without one."""
    if cython.compiled and TIMER_CREATE != 0:
        call: cython.long = TIMER_CREATE
        clock: cython.long = CLOCK_MONOTONIC
        flags: cython.long = os.O_NONBLOCK | os.O_CLOEXEC
        return max(-1, syscall(call, clock, flags))  # type: ignore[no-any-return]
    return -1


def _now() -> float:
    """`time.monotonic`."""
    if cython.compiled:
        moment = cython.declare(timespec)
        clock_gettime(CLOCK_MONOTONIC, cython.address(moment))
        return moment.tv_sec + 1e-9 * moment.tv_nsec
    return time.monotonic()


def _available(descriptor: cython.int) -> cython.Py_ssize_t:
    """The number of received bytes that wait in a socket; 0 where that is not known."""
    if cython.compiled:
        count: cython.int = 0
        ioctl(descriptor, FIONREAD, cython.address(count))
        return count
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)


def _cpu() -> cython.Py_ssize_t:
    """Nanoseconds of CPU time of this thread so far."""
    if cython.compiled:
        moment = cython.declare(timespec)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, cython.address(moment))
        seconds: cython.Py_ssize_t = moment.tv_sec
        return 1_000_000_000 * seconds + cython.cast(cython.Py_ssize_t, moment.tv_nsec)
    return time.thread_time_ns()


class Poller(selectors.EpollSelector):
    """asyncio's selector: `ready` reads links while asyncio waits."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = ReadyLinks(select.epoll.fromfd(os.dup(self.fileno())))

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Read links until asyncio has something to do or `timeout` seconds have passed."""
        ready: ReadyLinks = self.ready
        found: list[tuple[selectors.SelectorKey, int]] = []
        for descriptor, events in ready.wait(-1.0 if timeout is None else max(timeout, 0.0)):
            self._report(found, descriptor, events)
        return found

    def _report(self, others: list[tuple[selectors.SelectorKey, int]], descriptor: int, events: int) -> None:
        try:
            key = self.get_key(descriptor)
        except KeyError:
            return  # closed by a link that was read earlier in this turn
        found = 0
        if events & ~select.EPOLLIN:
            found |= selectors.EVENT_WRITE
        if events & ~select.EPOLLOUT:
            found |= selectors.EVENT_READ
        others.append((key, found & key.events))

    def close(self) -> None:
        self.ready.close()
        super().close()


def _ignore(context: dict[str, object]) -> None:
    """Does nothing; used before the loop exists."""


class DirectLoop(asyncio.SelectorEventLoop):
    """asyncio's loop over a Poller."""

    def __init__(self) -> None:
        self.poller = Poller()
        self.ready: ReadyLinks = self.poller.ready  # links register here
        super().__init__(self.poller)
        # Called for each publish that is alone: methods of this class take 900 instructions more, all of them look-ups.
        self.events_seen: Callable[[], int] = self.ready.events_seen
        self.finishes_alone: Callable[[], bool] = self.ready.finishes_alone
        self.ready.report = self.call_exception_handler
        self.ready.own = self._ssock.fileno()  # type: ignore[attr-defined]  # asyncio's own

    def pauses_made(self) -> int:
        """How often the loop has paused before it read, so that it found more (`net.moderation`)."""
        return self.ready.pauses

    def together(self, callback: Callable[[], object]) -> bool:
        """See `ReadyLinks.together`."""
        return self.ready.together(callback)

    def never_pause(self) -> None:
        """Read at once, however little there is."""
        self.ready.moderation.is_off = True

    def after_reads(self, callback: Callable[[], object]) -> None:
        """Call `callback` once the links that are ready have been read; outside of a read, as `call_soon`."""
        if self.ready.reading:
            self.ready.afterwards.append(callback)
        else:
            self.call_soon(callback)

    def after_callbacks(self, callback: Callable[[], object]) -> None:
        """Call `callback` after the callbacks of `after_reads` that run together with the one that calls this; outside of
        these, as `call_soon`. What several of them have for one client is written at once."""
        if self.ready.finishing:
            self.ready.last.append(callback)
        else:
            self.call_soon(callback)

    def attach(
        self, accepted: socket.socket, protocol: asyncio.BaseProtocol, address: tuple[object, ...]
    ) -> asyncio.Transport:
        """As `connect_accepted_socket` without TLS, where that takes a task, two futures and three turns: the protocol's
        `connection_made` runs in the next turn. `address`: the peer's."""
        transport: asyncio.Transport = self._make_socket_transport(  # type: ignore[attr-defined]  # asyncio's own way
            accepted, protocol, extra={"peername": address}
        )
        return transport

    def call_soon(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: Unpack[Arguments],  # noqa: UP044 (Cython reads no star here)
        context: Context | None = None,
    ) -> asyncio.Handle:
        ready: ReadyLinks = self.ready
        ready.scheduled = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: Unpack[Arguments],  # noqa: UP044
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        ready: ReadyLinks = self.ready
        ready.scheduled = True
        return super().call_at(when, callback, *args, context=context)
