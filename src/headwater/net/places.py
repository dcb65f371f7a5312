"""Counts a listener's connections for `Limits.connections` and `Limits.per_address`, for TCP and QUIC alike.

places.refusal(host) ── "" ──▶ places.take(host) ─▶ Place ── leave()
          └── a reason ──▶ the connection is closed, counted, and logged once in SECONDS_BETWEEN_LINES
"""

import logging
from collections.abc import Callable

from headwater.model.line_limit import LineLimit
from headwater.net.limits import Limits

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 10.0


class RateLimitedLog:
    """Logs at most one line in SECONDS_BETWEEN_LINES, with the number of occurrences since the last. Each kind of line
    has its own object.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._limit = LineLimit(SECONDS_BETWEEN_LINES)

    def log(self, level: int, text: str, *values: object) -> None:
        """Log `text` with `values`, unless it is too soon. `text` ends with a placeholder for the count."""
        times = self._limit.due(self._clock())
        if times:
            logger.log(level, text, *values, times)


class Place:
    """One counted connection of a listener, until `leave` is called; further calls have no effect."""

    def __init__(self, places: "Places", host: str) -> None:
        self._places: Places | None = places
        self._host = host

    def leave(self) -> None:
        """The connection has ended."""
        places, self._places = self._places, None
        if places is not None:
            places.left(self._host)


class Places:
    """The connections of one listener. `on_turned_away(address, reason)` is called for each refused connection, and
    with "" by a listener that cannot accept any."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.connections = 0  # open connections, in total and by address
        self.by_host: dict[str, int] = {}
        self.turned_away = 0  # connections above the limits
        self.on_turned_away: Callable[[str, str], None] | None = None
        self._limits = limits
        self._refusals = RateLimitedLog(clock)

    def refusal(self, host: str) -> str:
        """Why one more connection from this address is refused; "" if it is not."""
        limits = self._limits
        if 0 < limits.per_address <= self.by_host.get(host, 0):
            return f"there are {limits.per_address} from this address"
        if 0 < limits.connections <= self.connections:
            return f"there are {limits.connections}"
        return ""

    def take(self, host: str) -> Place:
        """Count one more connection."""
        self.connections += 1
        self.by_host[host] = self.by_host.get(host, 0) + 1
        return Place(self, host)

    def left(self, host: str) -> None:
        """Count one connection fewer."""
        self.connections -= 1
        self.by_host[host] -= 1
        if not self.by_host[host]:
            del self.by_host[host]

    def note_refusal(self, port: int, host: str, reason: str) -> None:
        """Count and log a refused connection."""
        self.turned_away += 1
        if self.on_turned_away is not None:
            self.on_turned_away(host, reason)
        text = "connection_turned_away port=%d address=%s reason=%r times=%d"
        self._refusals.log(logging.WARNING, text, port, host, reason)
