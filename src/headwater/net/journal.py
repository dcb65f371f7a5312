"""Events for operators: keeps the last MOST_EVENTS, counts each kind, and logs a line for each.

    a session, a listener, a reload ── note(kind, …) ─▶ ring (/eventz), counts (/varz, /metrics), log

An event equal to the last one of its kind increments that one's `times` instead of taking a place in the ring, and each
kind logs at most LINES_PER_SECOND lines; the next line gives the number left out. So a client that tries a thousand
passwords can neither fill the disk nor displace earlier events. No event contains a secret: a failed login is recorded
with the user name, without the credentials.
"""

import logging
from collections import deque
from collections.abc import Callable

from headwater.model.line_limit import LineLimit

logger = logging.getLogger("headwater.events")

MOST_EVENTS = 500
LINES_PER_SECOND = 10
LONGEST_TEXT = 256  # characters of one field; a subject may have thousands

KINDS = {
    "login_failed": logging.ERROR,
    "login_timeout": logging.ERROR,
    "publish_refused": logging.ERROR,
    "subscription_refused": logging.ERROR,
    "subscription_ended": logging.WARNING,
    "request_refused": logging.ERROR,
    "write_refused": logging.ERROR,
    "refusal_unanswered": logging.WARNING,
    "slow_consumer": logging.WARNING,
    "stale_connection": logging.WARNING,
    "connection_turned_away": logging.WARNING,
    "route_lost": logging.WARNING,
    "route_not_reached": logging.WARNING,
    "leafnode_lost": logging.WARNING,
    "leafnode_not_joined": logging.ERROR,
    "leafnode_refused": logging.ERROR,
    "damage_found": logging.ERROR,
    "streams_unserved": logging.WARNING,
    "reload": logging.INFO,
    "reload_failed": logging.ERROR,
}
"""Kinds of events, and their log levels."""

Event = dict[str, object]


class Journal:
    """The journal of one broker. `wall_clock_ns`: since 1970; `clock`: monotonic, in seconds."""

    def __init__(self, wall_clock_ns: Callable[[], int], clock: Callable[[], float]) -> None:
        self.counts = dict.fromkeys(KINDS, 0)
        self.events: deque[Event] = deque(maxlen=MOST_EVENTS)  # the oldest first
        self._wall_clock_ns = wall_clock_ns
        self._clock = clock
        self._last: dict[str, tuple[dict[str, object], Event]] = {}  # by kind: fields of the last event, the event
        self._limits = {kind: LineLimit(1.0, LINES_PER_SECOND) for kind in KINDS}

    def note(self, kind: str, *, log: bool = True, **fields: object) -> None:
        """Record an event of this kind; `log` False: the caller has logged it already."""
        self.counts[kind] += 1
        shown = {name: _shortened(value) for name, value in fields.items()}
        now = self._wall_clock_ns()
        before = self._last.get(kind)
        if before is not None and before[0] == shown:
            before[1]["times"] = int(str(before[1].get("times", 1))) + 1
            before[1]["last_ns"] = now
        else:
            event: Event = {"kind": kind, "time_ns": now, **shown}
            self.events.append(event)
            self._last[kind] = (shown, event)
        if log:
            self._write(kind, shown)

    def _write(self, kind: str, shown: dict[str, object]) -> None:
        events = self._limits[kind].due(self._clock())
        if not events:
            return
        words = [f"{name}={value!r}" for name, value in shown.items() if value != ""]
        if events > 1:
            words.append(f"left_out={events - 1}")
        logger.log(KINDS[kind], "%s %s", kind, " ".join(words))


def _shortened(value: object) -> object:
    if isinstance(value, bytes):
        value = value[:LONGEST_TEXT].decode("utf-8", "replace")
    return value[:LONGEST_TEXT] if isinstance(value, str) else value
