"""Backpressure on the publishers of slow receivers: how long they wait, and how long a receiver has been stuck.

A publisher is held by not reading from its socket, so that TCP slows it down. That happens after a read whose messages
went to a receiver that is far behind, and it is bounded, so that no client slows another for long:

    a client of ours   above `flusher.STALL_AT`, or a quarter of its limit: 5 ms a read; above half of its limit
                       until less is pending, a quarter of a second at most; only while it reads
    a peer             above `flusher.ROUTE_STALL_AT`: until little is pending, a quarter of a second at most while it
                       reads. While it reads nothing, 10 ms a read; with many publishers waiting for it, and more than
                       a fair part of its limit pending, so much longer that together they stay within the limit

A peer as a publisher is held only for a local client that would be cut off soon (`hold_route`), because many depend on
a route. nats-server holds its clients for 2 to 5 ms, 10 ms a read at most, and its routes never.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from headwater.exchange.flusher import STALL_AT, STALL_SHARE
from headwater.exchange.sublist import Outlet
from headwater.net.link import Link
from headwater.net.write_progress import Progress

STALL_SECONDS = 0.005  # nats-server holds a producer for 2 to 5 ms
ROUTE_STALL_SECONDS = 0.01  # nats-server's total for one read
LONGEST_HOLD = 0.25  # for a receiver that reads, but slowly


class Backpressure:
    """`clock` is monotonic, in seconds. `max_pending`: pending bytes at which a receiver is cut off."""

    def __init__(self, clock: Callable[[], float], max_pending: int) -> None:
        self.progress = Progress()
        self._clock = clock
        self._max_pending = max_pending
        self._stall_at = min(STALL_AT, max_pending // STALL_SHARE)
        self._loop = asyncio.get_running_loop()
        self._held: dict[Link, int] = {}  # the number of publishers that wait for a peer

    def hold_publisher(self, publisher: Link, congested: list[Outlet]) -> None:
        """Pause reading from a client for a moment, because receivers of its latest messages are behind."""
        for outlet in congested:
            link = cast(Link, outlet.link)
            if outlet.closed or link is publisher:
                continue
            if outlet.is_route:
                if _Hold(self, publisher, link).begins():
                    return
            elif link.pending > self._stall_at and self.progress.moved_lately(link, self._clock()):
                publisher.pause_reading()
                self._loop.call_later(STALL_SECONDS, self._look_again, publisher, link, self._clock())
                return

    def hold_route(self, route: Link, congested: list[Outlet]) -> None:
        """As `hold_publisher`, for a peer: only if a local client that still reads would soon be cut off."""
        for outlet in congested:
            link = cast(Link, outlet.link)
            if outlet.closed or outlet.is_route or link.pending <= self._max_pending // 2:
                continue
            if self.progress.moved(link, self._clock()):
                self._pause(route)
                return

    def _look_again(self, publisher: Link, receiver: Link, since: float) -> None:
        """Resume reading from the publisher, unless a receiver that still reads would be cut off."""
        now = self._clock()
        if (
            receiver.pending > self._max_pending // 2
            and not receiver.closing
            and now - since < LONGEST_HOLD
            and self.progress.moved_lately(receiver, now)
        ):
            self._loop.call_later(STALL_SECONDS, self._look_again, publisher, receiver, since)
        else:
            publisher.resume_reading()

    def _pause(self, link: Link) -> None:
        link.pause_reading()
        self._loop.call_later(STALL_SECONDS, link.resume_reading)

    def patience(self, link: Link) -> float:
        """Seconds that a publisher waits for a peer that accepts nothing."""
        return ROUTE_STALL_SECONDS * max(1.0, self._held.get(link, 1) * link.pending / self._max_pending)


class _Hold:
    """One publisher that waits for one peer."""

    def __init__(self, owner: Backpressure, publisher: Link, peer: Link) -> None:
        self._owner = owner
        self._publisher = publisher
        self._peer = peer
        self._sent = peer.sent
        self._since = owner._clock()
        self._moved = self._since
        self._timer: asyncio.TimerHandle | None = None

    def begins(self) -> bool:
        """Hold the publisher; False if the peer has caught up already."""
        drained = self._peer.draining()
        if drained is None:
            return False
        held = self._owner._held
        held[self._peer] = held.get(self._peer, 0) + 1
        self._publisher.pause_reading()
        self._timer = self._owner._loop.call_later(ROUTE_STALL_SECONDS, self._look)
        drained.add_done_callback(self._end)
        return True

    def _look(self) -> None:
        now = self._owner._clock()
        if self._peer.sent > self._sent:
            self._sent, self._moved = self._peer.sent, now
        longest = now - self._since >= LONGEST_HOLD and self._moved == now
        if longest or self._peer.closing or now - self._moved >= self._owner.patience(self._peer):
            self._end(None)
        else:
            self._timer = self._owner._loop.call_later(ROUTE_STALL_SECONDS, self._look)

    def _end(self, drained: "asyncio.Future[None] | None") -> None:
        if drained is not None and not drained.cancelled():
            drained.exception()  # the loss of a peer is reported elsewhere
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        held = self._owner._held
        held[self._peer] -= 1
        if held[self._peer] == 0:
            del held[self._peer]
        self._publisher.resume_reading()
