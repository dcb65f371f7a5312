"""The timers of routes (`net/peer_timers.py`), and when departed members of queue groups are forgotten."""

import asyncio
import logging
from collections.abc import Callable

from headwater.cluster.route import Route
from headwater.exchange.backpressure import Backpressure
from headwater.net.peer_timers import PeerTimers, address_of
from headwater.options.cluster import ClusterOptions
from headwater.wire.error_texts import AUTHENTICATION_TIMEOUT, encode_error

logger = logging.getLogger("headwater.cluster.service")

AUTHORIZATION_SECONDS = 1.0
DEPARTED_SECONDS = 30.0  # minimum time for which a departed queue group member is kept; gnatsd's value


class RouteWatch(PeerTimers[Route]):
    """`ended` is called for a connection that did not become a route in time, `forget_departed` every DEPARTED_SECONDS.
    Times are in seconds; those set in `options` take precedence."""

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
        super().__init__(
            Backpressure(asyncio.get_running_loop().time, max_pending),
            ping_interval=options.ping_interval or ping_interval,
            ping_max=options.ping_max or ping_max,
            write_deadline=options.write_deadline or write_deadline,
        )
        self._login_seconds = options.auth_timeout or AUTHORIZATION_SECONDS
        self._ended = ended
        self._forget_departed = forget_departed
        self._forget_at = self._loop.time() + DEPARTED_SECONDS

    def opened(self, route: Route) -> None:
        """Watch a new connection, which has a deadline to become a route."""
        self.begin(route, self._login_seconds, AUTHENTICATION_TIMEOUT)

    def _swept(self, now: float) -> None:
        if now >= self._forget_at:
            self._forget_at = now + DEPARTED_SECONDS
            self._forget_departed()

    def _missed(self, peer: Route, text: str) -> None:
        if not peer.dialled:
            peer.send(encode_error(text))
        self._ended(peer)

    def _may_ping(self, peer: Route) -> bool:
        return True

    def _stuck(self, peer: Route) -> None:
        name, deadline = peer.traced_name, self._write_deadline
        logger.warning("slow_route peer=%s name=%s deadline=%g", address_of(peer), name, deadline)
