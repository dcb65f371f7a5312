"""Writes the output of one router: collects outlets with new output, and writes them together.

    deliver ─▶ mark(outlet) ─▶ dirty list ─┬─ while a client's input is parsed: at its end (`end_read`), or, where others
                                           │  are read in the same round of the loop, at the round's (`end_client_read`)
                                           └─ otherwise: once per loop iteration (`schedule`)

After each write it compares the bytes still pending with two limits: above the lower one the outlet is `congested`, and
its publishers are held back; above the upper one it is a slow consumer, and is disconnected. The flusher holds clients back
(`end_client_read`), all whose output was collected: it does not know which of them it was. Owners of routes and leaf nodes
look at `congested` themselves after `end_read`, since what they do depends on the receiver.
"""

import logging

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.headwater.exchange.sublist import Outlet
    from cython.cimports.headwater.net.shared_run import SharedRun
    from cython.cimports.headwater.wire.cache_lines import prefetch
else:
    from headwater.exchange.sublist import Outlet
    from headwater.net.shared_run import SharedRun

from collections.abc import Callable
from typing import Protocol

logger = logging.getLogger("headwater.exchange.router")

STALL_AT: int = 8 << 20  # pending bytes of one client above which its publishers are held back
STALL_SHARE: int = 4  # or above this part of max_pending, if less: a few publishers' reads must fit in the rest
ROUTE_STALL_AT: int = 1 << 20  # STALL_AT for a peer: many depend on it, and pending bytes that stay in caches cost less
MAX_PENDING: int = 64 << 20  # bytes; above this a client is a slow consumer and is disconnected (nats-server's default)
# Bytes of input, and of one outlet's output, that may wait for the end of a round: the client that is read first waits for
# no more than the parsing of these, and outlets that are behind are written at once, so that they are noticed.
TOGETHER: int = 16 << 10
_TOGETHER: cython.Py_ssize_t = TOGETHER  # in C, as in `wire.memory`


class Publisher(Protocol):
    """Whom the flusher can hold back."""

    def hold_back(self, congested: list[Outlet]) -> None:
        """Receivers of the messages of its last read are far behind."""


def _read_ahead(dirty: list[Outlet], first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.int:
    """Have what the next eight writes touch here in the processor's caches (see `router._read_ahead`): the kernel takes most
    of them for each write, so that more would be gone before their turn."""
    if cython.compiled:
        index: cython.Py_ssize_t
        for index in range(first, last):
            outlet: Outlet = cython.cast(Outlet, dirty[index])
            prefetch(cython.cast(cython.p_void, outlet.endpoint))
            prefetch(PyByteArray_AS_STRING(outlet.output.data))
    return 0


class Flusher:
    """`schedule(function)` runs the function once, later in this loop iteration. `max_pending`: limit of one client's
    pending bytes. `together(function)` runs it once the round of reads is over, and returns False, without doing so, where
    no other client is left to be read in it; None on loops that have no rounds. `shared`: of all flushers
    of this event loop.
    """

    def __init__(
        self,
        schedule: Callable[[Callable[[], None]], object],
        max_pending: int,
        together: Callable[[Callable[[], None]], bool] | None = None,
        shared: SharedRun | None = None,
    ) -> None:
        self.shared = shared if shared is not None else SharedRun()
        self.max_pending = max_pending
        self.route_stall_at = min(ROUTE_STALL_AT, max_pending // STALL_SHARE)
        self.slow_consumers = 0
        self.congested: list[Outlet] = []  # outlets that the last read wrote to and whose clients are behind
        self._schedule = schedule
        # The first `_marked` of these are to be written; the others are None, so that the list keeps its room.
        self._dirty: list[Outlet | None] = []
        self._marked = 0
        self._spare: list[Outlet | None] | None = None  # a list of nothing but None for the next turn
        self._scheduled = False
        self._reading = False
        self._together = together
        self._expected = False  # `together` will call `_end_round`
        self._collected = 0  # bytes of input of the round whose output is not written yet
        self._publishers: list[Publisher] = []  # who sent them

    @property
    def stall_at(self) -> int:
        """Pending bytes of one client above which its publishers are held back."""
        return min(STALL_AT, self.max_pending // STALL_SHARE)

    def mark(self, outlet: Outlet) -> cython.int:
        """Schedule the output of `outlet` to be written in this loop iteration."""
        if outlet.dirty:
            return 0
        outlet.dirty = True
        if self._marked < len(self._dirty):
            self._dirty[self._marked] = outlet
        else:
            self._dirty.append(outlet)
        self._marked += 1
        if outlet.output.size - outlet.output.head > _TOGETHER:
            self._collected = _TOGETHER
        if not self._scheduled and not self._reading:
            self._scheduled = True
            self._schedule(self.flush)
        return 0

    def begin_read(self) -> cython.int:
        """Call before parsing a client's input; `end_read` then writes the resulting output, and fills `congested`."""
        self._reading = True
        if self.congested:
            self.congested = []
        return 0

    def end_read(self) -> cython.int:
        """Write the output that the parsed input produced, at once; returns 0 if there was none."""
        self._reading = False
        if self._marked == 0:
            return 0
        self._flush_dirty()
        return 1

    def end_client_read(self, publisher: Publisher, size: cython.Py_ssize_t) -> cython.int:
        """As `end_read`, for a read of `size` bytes that is perhaps one of several in a round of the loop: their output is
        then written together, one write for each receiver. A lone read's is written at once. In both cases `publisher` is
        held back if receivers are far behind."""
        self._reading = False
        if self._marked == 0:
            return 0
        self._collected += size
        if self._together is not None and self._collected <= _TOGETHER:
            if not self._expected:
                self._expected = self._together(self._end_round)
            if self._expected:
                self._publishers.append(publisher)
                return 1
        self._flush_dirty()
        if self.congested:
            publisher.hold_back(self.congested)
        return 1

    def _end_round(self) -> None:
        self._expected = False
        self._flush_dirty()

    def flush(self) -> None:
        """Write all pending output, and disconnect slow consumers."""
        self._scheduled = False
        self._flush_dirty()

    def _flush_dirty(self) -> cython.int:
        dirty: list[Outlet | None] = self._dirty
        marked: cython.Py_ssize_t = self._marked
        self._marked = 0
        self._dirty = [] if self._spare is None else self._spare
        self._spare = None
        outlet: Outlet
        waiting: cython.Py_ssize_t
        index: cython.Py_ssize_t
        for index in range(marked):
            if index & 7 == 0 and marked > 64:  # as in `router.route_plain`
                _read_ahead(cython.cast(list, dirty), index, min(index + 8, marked))
            outlet = cython.cast(Outlet, dirty[index])
            dirty[index] = None
            outlet.dirty = False
            if outlet.closed:
                continue
            if outlet.endpoint is not None:
                waiting = outlet.endpoint.write_output()
            else:
                outlet.link.flush()
                waiting = outlet.link.pending
            if waiting > self.route_stall_at and (outlet.is_route or waiting > self.stall_at):
                self._fell_behind(outlet, waiting)
        self._spare = dirty
        self._collected = 0
        if self._publishers:
            publishers, self._publishers = self._publishers, []
            if self.congested:
                for publisher in publishers:
                    publisher.hold_back(self.congested)
        return 0

    def _fell_behind(self, outlet: Outlet, waiting: int) -> None:
        self.congested.append(outlet)
        if waiting > self.max_pending:
            if not outlet.is_route:
                self.slow_consumers += 1  # its session reports it, with its name; peers are counted by their services
            else:
                peer = getattr(outlet.link, "peer", "")
                logger.warning("slow_consumer peer=%s pending=%d limit=%d", peer, waiting, self.max_pending)
            outlet.closed = True
            outlet.link.abort()
