"""An asyncio event loop that reads plain links directly, without asyncio's callbacks.

    epoll ──ready descriptors──▶ Poller.select ─┬─ a plain link's: Endpoint.read_ready, here and now
                                                └─ everything else: returned to asyncio, as usual

For every ready descriptor asyncio schedules a callback and runs it in its own context; the callback calls a transport,
which calls a protocol for space: 8 us of interpreter for a read that takes the kernel two. The links' transports stay
registered, so pausing, closing and errors work as usual; only readiness for reading is intercepted, and the end of
input and errors are passed to asyncio.

A component that acts once on all input of a turn (a store: one fdatasync for every publish) registers a callback with
`DirectLoop.after_reads`. It is called when all ready links have been read, without a detour through asyncio either. When
many have (a hundred streams, each with its own fdatasync), links that are ready again are read before that: a read of
64 KiB brings each of a hundred streams three messages, and to store three costs nearly what it costs to store ten.

`select` keeps waiting until `call_soon` or `call_at` has scheduled something. Python runs signal handlers between
interpreter instructions, which compiled code does not execute, so `select` runs them in each turn; otherwise a busy
server would handle SIGTERM only once its clients are silent. Linux only (epoll); elsewhere, and for brokers in a
program's own loop, transports read the links.
"""

import asyncio
import os
import select
import selectors
import socket
import time
from collections.abc import Callable
from contextvars import Context
from typing import TypeVarTuple, Unpack

import cython

if cython.compiled:
    from cython.cimports.cpython.exc import PyErr_CheckSignals
    from cython.cimports.headwater.net.endpoint import Endpoint
else:
    from headwater.net.endpoint import Endpoint

Arguments = TypeVarTuple("Arguments")

READABLE: int = 1  # EPOLLIN, and EVENT_READ
BROKEN = select.EPOLLERR | select.EPOLLHUP
MAX_EVENTS = 256  # descriptors reported by one call; the next call reports the others
MANY_AFTERWARDS: int = 8  # callbacks that wait for the end of the reads: from here on, more is read first
# Callbacks that are then called before more is read; each may wait for the disk, and a client for what the first has for it.
FINISHED_TOGETHER: int = 16
READS_AGAIN: int = 3  # times that ready links are then read again, at most: 64 KiB each, a quarter of a millisecond


class Poller(selectors.EpollSelector):
    """asyncio's selector. `endpoints`: the links to read from, by descriptor; `scheduled`: the loop has work again."""

    def __init__(self) -> None:
        super().__init__()
        self._epoll = select.epoll.fromfd(os.dup(self.fileno()))
        self.endpoints: dict[int, Endpoint] = {}
        self.scheduled = False
        self.reading = False  # links are being read; `select` then calls `afterwards` before it returns
        self.events = 0  # how often a descriptor was ready, but for `own`
        self.own = -1  # the one by which threads and signals wake the loop
        self.afterwards: list[Callable[[], object]] = []
        self.last: list[Callable[[], object]] = []
        self.finishing = False  # `afterwards` run; `last` follow them
        self.report: Callable[[dict[str, object]], None] = _ignore

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Read links until asyncio has something to do or `timeout` seconds have passed."""
        poll = self._epoll.poll
        endpoints: dict[int, Endpoint] = self.endpoints
        endpoint: Endpoint | None
        again: cython.int
        seen: cython.Py_ssize_t
        left = -1.0 if timeout is None else max(timeout, 0.0)
        end = time.monotonic() + left if left > 0 else 0.0
        self.scheduled = False
        while True:
            if cython.compiled:
                PyErr_CheckSignals()
                if self.scheduled:
                    left = 0.0
            found = poll(left, MAX_EVENTS)
            others: list[tuple[selectors.SelectorKey, int]] = []
            more = found
            again = READS_AGAIN
            seen = 0
            self.reading = True
            while more:
                if len(more) > 1 or more[0][1] != READABLE:
                    self._read_broken(more)
                for descriptor, events in more:
                    endpoint = endpoints.get(descriptor)
                    if endpoint is None or events != READABLE or not endpoint.read_ready():
                        self._report(others, descriptor, events)
                        seen -= descriptor == self.own
                seen += len(more)
                if again == 0 or others or len(self.afterwards) < MANY_AFTERWARDS:
                    break
                again -= 1
                more = poll(0.0, MAX_EVENTS)
            self.reading = False
            self.events += seen
            if self.afterwards:
                self._run_afterwards()
            if others or self.scheduled or left == 0 or not found:
                return others
            if left > 0:
                left = max(0.0, end - time.monotonic())

    def _read_broken(self, found: list[tuple[int, int]]) -> None:
        """First handle links whose peers have reset them, so that no more messages are routed to them.

        A broker that is killed resets its routes: with messages unread, the kernel sends RST and no FIN.
        """
        endpoint: Endpoint | None
        for descriptor, events in found:
            if events != READABLE and events & BROKEN:
                endpoint = self.endpoints.get(descriptor)
                while endpoint is not None and endpoint.read_ready():
                    pass

    def _run_afterwards(self) -> None:
        callbacks, self.afterwards = self.afterwards, []
        first: cython.Py_ssize_t
        self.finishing = True
        for first in range(0, len(callbacks), FINISHED_TOGETHER):
            self._run(callbacks[first : first + FINISHED_TOGETHER])
            if self.last:
                last, self.last = self.last, []
                self._run(last)
        self.finishing = False

    def _run(self, callbacks: list[Callable[[], object]]) -> None:
        for callback in callbacks:
            try:
                callback()
            except Exception as error:  # noqa: BLE001  (as asyncio does with what it calls)
                self.report({"message": f"Exception in {callback!r}, after links were read", "exception": error})

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
        self.endpoints.clear()
        self._epoll.close()
        super().close()


def _ignore(context: dict[str, object]) -> None:
    """Does nothing; used before the loop exists."""


class DirectLoop(asyncio.SelectorEventLoop):
    """asyncio's loop over a Poller."""

    def __init__(self) -> None:
        self.poller = Poller()
        self.readers = self.poller.endpoints  # links register here
        super().__init__(self.poller)
        self.poller.report = self.call_exception_handler
        self.poller.own = self._ssock.fileno()  # type: ignore[attr-defined]  # asyncio's own

    def events_seen(self) -> int:
        """How often a link or another descriptor was ready so far; wake-ups by this process itself do not count."""
        return self.poller.events

    def after_reads(self, callback: Callable[[], object]) -> None:
        """Call `callback` once the links that are ready have been read; outside of a read, as `call_soon`."""
        if self.poller.reading:
            self.poller.afterwards.append(callback)
        else:
            self.call_soon(callback)

    def after_callbacks(self, callback: Callable[[], object]) -> None:
        """Call `callback` after the callbacks of `after_reads` that run together with the one that calls this; outside of
        these, as `call_soon`. What several of them have for one client is written at once."""
        if self.poller.finishing:
            self.poller.last.append(callback)
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
        self.poller.scheduled = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: Unpack[Arguments],  # noqa: UP044
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self.poller.scheduled = True
        return super().call_at(when, callback, *args, context=context)
