"""The common part of connections to other brokers: a link, an outlet, a parser, PINGs, and an orderly end.

A route (`cluster/route.py`) and a leaf node's connection (`leaf/connection.py`) extend it and handle the ops.
"""

import logging

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.client_state import Traffic
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.sublist import Outlet
    from cython.cimports.headwater.wire.route_ops import RouteOpHandler, RouteOpParser
else:
    from headwater.exchange.client_state import Traffic
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Outlet
    from headwater.wire.route_ops import RouteOpHandler, RouteOpParser

from typing import TYPE_CHECKING

from headwater.exchange.peer_pulse import PeerPulse
from headwater.wire.route_lines import PING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from headwater.net.link import Link


logger = logging.getLogger(__name__)


class PeerConnection(RouteOpHandler):
    """`clock`: monotonic seconds. A subclass replaces `parser` before the first byte."""

    def __init__(self, clock: "Callable[[], float]") -> None:
        self.clock = clock
        self.link: Link | None = None
        self.outlet: Outlet | None = None
        self.parser = RouteOpParser(self)
        self.pulse = PeerPulse()
        self.traffic = Traffic()
        self.opened = clock()

    def established(self, link: "Link") -> None:
        """The link is established."""
        self.link = link
        self.outlet = Outlet(link, link.output)
        self.outlet.is_route = True

    def parse(self, router: Router, buffer: bytearray, filled: int) -> int:
        """Parse input, and write its deliveries through `router`; returns the number of bytes used."""
        router.begin_read()
        try:
            return self.parser.parse(buffer, 0, filled)
        finally:
            router.end_read()

    def ended(self) -> None:
        """The link is gone."""
        self.parser.stopped = True
        if self.outlet is not None:
            self.outlet.closed = True
        self.pulse.end()

    def send(self, data: bytes) -> None:
        """Queue output, which is written at the end of this loop iteration."""
        if self.link is not None and not self.link.closing and data:
            self.link.output.append(data)
            self.link.flush_soon()

    def settled(self) -> "asyncio.Future[None]":
        """Send a PING; the future completes once the peer has read everything sent so far, or is lost."""
        settled = self.pulse.settle(self.clock())
        self.send(PING)
        return settled

    def close_link(self) -> None:
        """Stop parsing, and close after the pending output."""
        self.parser.stopped = True
        if self.link is not None:
            self.link.resume_reading()  # reading may be paused for a verdict, and only reading detects the end
            self.link.close()

    def go_on(self) -> None:
        """The verdict on CONNECT has arrived: continue parsing if the peer was accepted."""
        if self.parser.suspended and self.link is not None and not self.link.closing:
            self.parser.stopped = self.parser.suspended = False
            self.link.resume_reading()
            self.link.read_on()

    def on_too_large(self, subject: bytes, size: cython.Py_ssize_t, limit: cython.Py_ssize_t) -> cython.int:
        peer = self.link.peer if self.link is not None else ""
        logger.warning("message_refused peer=%s subject=%r size=%d limit=%d", peer, subject, size, limit)
        return 0

    def on_pong(self) -> cython.int:
        self.pulse.answered(self.clock())
        return 0
