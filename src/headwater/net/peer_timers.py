"""The timers of the connections to other servers: PINGs, write deadlines, and the deadline for a connection to join.

One sweep every SWEEP_SECONDS serves all of them. What joining is, and what happens to a connection that does not, is decided
by the subclass for routes (`cluster/route_watch.py`) and for leaf nodes (`leaf/leaf_watch.py`).
"""

import asyncio
import logging
from typing import Any, Generic, Protocol, TypeVar

from headwater.net.link import Link
from headwater.net.write_progress import Progress

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 0.5
FIRST_PING_SECONDS = 1.0
LONGEST_PING_INTERVAL = 30.0  # nats-server's limit for routes, even if clients have a longer interval


class Peer(Protocol):
    """A connection to another server."""

    @property
    def link(self) -> Link | None:
        """None before the connection is established."""

    def ping(self, most: int, now: float) -> bool:
        """Send a PING. If `most` of them are unanswered, close the connection and return False."""


class Receivers(Protocol):
    """Those who get the peers' messages; `exchange/backpressure.py` has them."""

    @property
    def progress(self) -> Progress:
        """Which connections read what they are sent."""

    def hold_route(self, route: Link, congested: list[Any]) -> None:
        """Pause reading from a peer while those of the `congested` that still read would else be cut off."""


AnyPeer = TypeVar("AnyPeer", bound=Peer)


class PeerTimers(Generic[AnyPeer]):
    """Times are seconds of the loop's clock. A connection is closed after `ping_max` unanswered PINGs, and when the other
    end has read nothing for `write_deadline`, which the progress of `receivers` shows.
    """

    def __init__(self, receivers: Receivers, *, ping_interval: float, ping_max: int, write_deadline: float) -> None:
        self.slow = 0  # connections closed because the other end did not read for too long
        self.stale = 0  # connections closed for too many unanswered PINGs
        self._receivers = receivers
        self._progress = receivers.progress
        self._ping_interval = min(ping_interval, LONGEST_PING_INTERVAL)
        self._ping_max = ping_max
        self._write_deadline = write_deadline
        self._loop = asyncio.get_running_loop()
        self._next_ping: dict[AnyPeer, float] = {}
        self._deadlines: dict[AnyPeer, tuple[float, str]] = {}  # with the error for one that misses it
        self._sweeper: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start sweeping."""
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def stop(self) -> None:
        """Stop sweeping; safe to call again."""
        if self._sweeper is not None:
            self._sweeper.cancel()

    def begin(self, peer: AnyPeer, seconds: float, text: str) -> None:
        """Watch a new connection; `expect` says what the arguments are."""
        self._next_ping[peer] = self._loop.time() + FIRST_PING_SECONDS
        self.expect(peer, seconds, text)

    def expect(self, peer: AnyPeer, seconds: float, text: str) -> None:
        """Unless the connection has joined within `seconds`, `_missed` is called with the error `text`."""
        self._deadlines[peer] = (self._loop.time() + seconds, text)

    def settled(self, peer: AnyPeer) -> None:
        """The connection has joined, or is being closed: drop its deadline."""
        self._deadlines.pop(peer, None)

    def hold(self, peer: AnyPeer, congested: list[Any]) -> None:
        """Pause reading from this peer: receivers of its messages are behind."""
        if peer.link is not None:
            self._receivers.hold_route(peer.link, congested)

    def forget(self, peer: AnyPeer) -> None:
        """The connection is gone."""
        self._next_ping.pop(peer, None)
        self._deadlines.pop(peer, None)
        if peer.link is not None:
            self._progress.forget(peer.link)

    def _sweep(self) -> None:
        now = self._loop.time()
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)  # first: an error below must not be the last
        self._swept(now)
        for peer, next_ping in list(self._next_ping.items()):
            deadline, text = self._deadlines.get(peer, (now, ""))
            if now > deadline:
                self._deadlines.pop(peer)
                self._missed(peer, text)
            elif self._may_ping(peer) and now >= next_ping and peer in self._next_ping:
                self._next_ping[peer] = now + self._ping_interval
                if not peer.ping(self._ping_max, now):
                    self._end_stale(peer)
            if self._progress.end_stuck(peer.link, now, self._write_deadline):
                self.slow += 1
                self._stuck(peer)

    def _end_stale(self, peer: AnyPeer) -> None:
        """A connection is being closed, because the other end answers nothing. That waits until the output is read, which
        is never: until the write deadline the peer would go on to be chosen for messages."""
        self.stale += 1
        logger.warning("peer_stale peer=%s: it has answered none of %d PINGs", address_of(peer), self._ping_max)
        if peer.link is not None and peer.link.pending:
            peer.link.abort()

    def _swept(self, now: float) -> None:
        """Called before each look at all connections."""

    def _missed(self, peer: AnyPeer, text: str) -> None:
        """A connection has missed its deadline."""
        raise NotImplementedError

    def _may_ping(self, peer: AnyPeer) -> bool:
        """Whether a connection gets PINGs; one that has to be closed for another reason is closed here."""
        raise NotImplementedError

    def _stuck(self, peer: AnyPeer) -> None:
        """A connection was aborted, because the other end read nothing for too long."""
        raise NotImplementedError


def address_of(peer: Peer) -> str:
    """The other end's address as `host:port`, for the log; empty before the connection is established."""
    return peer.link.peer if peer.link is not None else ""
