"""The timers of routes: PINGs, write deadlines, and the deadline for a connection to become a route.

One sweep every SWEEP_SECONDS serves all routes; `ended` is called for a connection that missed its deadline.
"""

import asyncio
import logging
from collections.abc import Callable

from headwater.cluster.route import Route
from headwater.exchange.backpressure import Backpressure
from headwater.exchange.cluster_options import ClusterOptions
from headwater.wire.error_texts import AUTHENTICATION_TIMEOUT, encode_error

logger = logging.getLogger("headwater.cluster.service")

SWEEP_SECONDS = 0.5
FIRST_PING_SECONDS = 1.0
AUTHORIZATION_SECONDS = 1.0
DEPARTED_SECONDS = 30.0  # minimum time for which a departed queue group member is kept; gnatsd's value
LONGEST_PING_INTERVAL = 30.0  # nats-server's limit for routes, even if clients have a longer interval


class RouteWatch:
    """`forget_departed` is called every DEPARTED_SECONDS. Times are in seconds; those set in `options` take precedence."""

    def __init__(
        self,
        options: ClusterOptions,
        ended: Callable[[Route], None],
        forget_departed: Callable[[], None],
        *,
        ping_interval: float,
        ping_max: int,
        write_deadline: float,
        max_pending: int,
    ) -> None:
        self.slow = 0  # routes closed because the peer did not read for too long
        self.stale = 0  # routes closed for too many unanswered PINGs
        self._ping_interval = min(options.ping_interval or ping_interval, LONGEST_PING_INTERVAL)
        self._ping_max = options.ping_max or ping_max
        self._write_deadline = options.write_deadline or write_deadline
        self._login_seconds = options.auth_timeout or AUTHORIZATION_SECONDS
        self._loop = asyncio.get_running_loop()
        self.backpressure = Backpressure(self._loop.time, max_pending)
        self._ended = ended
        self._forget_departed = forget_departed
        self._forget_at = self._loop.time() + DEPARTED_SECONDS
        self._routes: dict[Route, float] = {}  # values: the time of the next PING
        self._deadlines: dict[Route, float] = {}  # of connections that are not routes yet
        self._sweeper: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start sweeping."""
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def stop(self) -> None:
        """Stop sweeping; safe to call again."""
        if self._sweeper is not None:
            self._sweeper.cancel()

    def begin(self, route: Route) -> None:
        """Watch a new connection, which has a deadline to become a route."""
        now = self._loop.time()
        self._routes[route] = now + FIRST_PING_SECONDS
        self._deadlines[route] = now + self._login_seconds

    def settled(self, route: Route) -> None:
        """The connection has become a route, or is being closed: drop its deadline."""
        self._deadlines.pop(route, None)

    def forget(self, route: Route) -> None:
        """The connection is gone."""
        self._routes.pop(route, None)
        self._deadlines.pop(route, None)
        if route.link is not None:
            self.backpressure.progress.forget(route.link)

    def _sweep(self) -> None:
        now = self._loop.time()
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        if now >= self._forget_at:
            self._forget_at = now + DEPARTED_SECONDS
            self._forget_departed()
        for route, next_ping in list(self._routes.items()):
            deadline = self._deadlines.get(route)
            if deadline is not None and now > deadline:
                self._deadlines.pop(route)
                if not route.dialled:
                    route.send(encode_error(AUTHENTICATION_TIMEOUT))
                self._ended(route)
            elif now >= next_ping and route in self._routes:
                self._routes[route] = now + self._ping_interval
                if not route.ping(self._ping_max, now):
                    self.stale += 1
            if self.backpressure.progress.end_stuck(route.link, now, self._write_deadline):
                logger.warning("slow_route peer=%s deadline=%g", peer_of(route), self._write_deadline)
                self.slow += 1


def peer_of(route: Route) -> str:
    """The peer's address as `host:port`, for the log; empty before the connection is established."""
    return route.link.peer if route.link is not None else ""
