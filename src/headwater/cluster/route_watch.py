"""The timers of routes: PINGs, write deadlines, and connections that do not become a route in time.

One sweep every SWEEP_SECONDS serves all routes; `ended` is called for a connection whose time to become a route is over.
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
DEPARTED_SECONDS = 30.0  # at least so long a member of a queue group that has left is remembered; gnatsd's
LONGEST_PING_INTERVAL = 30.0  # nats-server's for routes, whatever the interval for clients is


class RouteWatch:
    """`forget_departed` is called once in DEPARTED_SECONDS. Times in seconds; those of `options`, where set, come first."""

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
        self.slow = 0  # routes that took nothing for too long
        self.stale = 0  # routes that left too many PINGs unanswered
        self._ping_interval = min(options.ping_interval or ping_interval, LONGEST_PING_INTERVAL)
        self._ping_max = options.ping_max or ping_max
        self._write_deadline = options.write_deadline or write_deadline
        self._login_seconds = options.auth_timeout or AUTHORIZATION_SECONDS
        self._loop = asyncio.get_running_loop()
        self.backpressure = Backpressure(self._loop.time, max_pending)
        self._ended = ended
        self._forget_departed = forget_departed
        self._forget_at = self._loop.time() + DEPARTED_SECONDS
        self._routes: dict[Route, float] = {}  # and when the next PING is due
        self._deadlines: dict[Route, float] = {}  # of connections that are no routes yet
        self._sweeper: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Sweep from now on."""
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def stop(self) -> None:
        """Sweep no more; safe to call again."""
        if self._sweeper is not None:
            self._sweeper.cancel()

    def begin(self, route: Route) -> None:
        """Watch over a new connection, which has to become a route soon."""
        now = self._loop.time()
        self._routes[route] = now + FIRST_PING_SECONDS
        self._deadlines[route] = now + self._login_seconds

    def settled(self, route: Route) -> None:
        """It has become a route, or is being closed: it has no deadline any more."""
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
    """The peer's address as `host:port`, for the log; empty before the connection stands."""
    return route.link.peer if route.link is not None else ""
