"""The timers of leaf node connections: PINGs, write deadlines, and the deadline for a connection to join.

One sweep every SWEEP_SECONDS serves all of them.
"""

import asyncio
from typing import Protocol

from headwater.exchange.backpressure import Backpressure
from headwater.exchange.sublist import Outlet
from headwater.leaf.connection import LeafConnection

SWEEP_SECONDS = 0.5
FIRST_PING_SECONDS = 1.0
LONGEST_PING_INTERVAL = 30.0  # as on routes, even if clients have a longer one: only PINGs detect a dead connection


class LeafTimes(Protocol):
    """What a watch calls; `service.LeafNodes` implements it."""

    def swept(self) -> None: ...
    def not_joined_in_time(self, leaf: LeafConnection, text: str) -> None: ...
    def expired(self, leaf: LeafConnection) -> str: ...


class LeafWatch:
    """Times are seconds of the loop's clock. A connection is closed after `ping_max` unanswered PINGs, and when the other
    end has read nothing for `write_deadline`.
    """

    def __init__(
        self,
        nodes: LeafTimes,
        *,
        ping_interval: float,
        ping_max: int,
        write_deadline: float,
        max_pending: int,
    ) -> None:
        self.slow = 0  # connections closed because the other end did not read for too long
        self.stale = 0  # connections closed for too many unanswered PINGs
        self._nodes = nodes
        self._ping_interval = min(ping_interval, LONGEST_PING_INTERVAL)
        self._ping_max = ping_max
        self._write_deadline = write_deadline
        self._loop = asyncio.get_running_loop()
        self._backpressure = Backpressure(self._loop.time, max_pending)
        self._next_ping: dict[LeafConnection, float] = {}
        self._deadlines: dict[LeafConnection, tuple[float, str]] = {}  # with the -ERR for one that misses it
        self._sweeper: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start sweeping."""
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def stop(self) -> None:
        """Stop sweeping; safe to call again."""
        if self._sweeper is not None:
            self._sweeper.cancel()

    def begin(self, leaf: LeafConnection, seconds: float, text: str) -> None:
        """Watch a new connection; `expect` says what the arguments are."""
        self._next_ping[leaf] = self._loop.time() + FIRST_PING_SECONDS
        self.expect(leaf, seconds, text)

    def expect(self, leaf: LeafConnection, seconds: float, text: str) -> None:
        """Unless the connection has joined within `seconds`, it is closed with the -ERR `text`."""
        self._deadlines[leaf] = (self._loop.time() + seconds, text)

    def settled(self, leaf: LeafConnection) -> None:
        """The connection has joined: drop its deadline."""
        self._deadlines.pop(leaf, None)

    def forget(self, leaf: LeafConnection) -> None:
        """The connection is gone."""
        self._next_ping.pop(leaf, None)
        self._deadlines.pop(leaf, None)
        if leaf.link is not None:
            self._backpressure.progress.forget(leaf.link)

    def hold(self, leaf: LeafConnection, congested: list[Outlet]) -> None:
        """Pause reading from this neighbour: receivers of its messages are behind."""
        if leaf.link is not None:
            self._backpressure.hold_route(leaf.link, congested)

    def _sweep(self) -> None:
        now = self._loop.time()
        self._nodes.swept()
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        for leaf, next_ping in list(self._next_ping.items()):
            deadline, text = self._deadlines.get(leaf, (now, ""))
            if now > deadline:
                self._deadlines.pop(leaf)
                self._nodes.not_joined_in_time(leaf, text)
            elif leaf.joined and (expired := self._nodes.expired(leaf)):
                leaf.close(expired)
            elif leaf.joined and now >= next_ping and leaf in self._next_ping:
                self._next_ping[leaf] = now + self._ping_interval
                if not leaf.ping(self._ping_max, now):
                    self.stale += 1
            if self._backpressure.progress.end_stuck(leaf.link, now, self._write_deadline):
                leaf.end_reason = f"took nothing for {self._write_deadline:g} s"
                self.slow += 1
