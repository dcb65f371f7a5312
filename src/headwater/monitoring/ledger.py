"""Monitoring's record of clients: their start, last activity, and final state.

A session only has counters. Its start, its last activity (checked once a second), and the sums over closed clients are kept
here, and only while monitoring is on.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.exchange.session import Session
    from headwater.wire.handshake import ConnectOptions

MOST_CLOSED = 10_000  # closed clients that are remembered

Document = dict[str, object]


class Entry:
    """One client. Times in ns since 1970."""

    def __init__(self, started: int) -> None:
        self.started = started
        self.last_activity = started
        self.seen = (0, 0)  # its reads and deliveries at the last `look`


class Totals:
    """Messages and bytes of clients: in as they publish, out as they receive."""

    def __init__(self) -> None:
        self.in_messages = 0
        self.in_bytes = 0
        self.out_messages = 0
        self.out_bytes = 0

    def add(self, session: "Session") -> None:
        """Add the counters of a client."""
        traffic, outlet = session.traffic, session.outlet
        self.in_messages += traffic.messages
        self.in_bytes += traffic.bytes
        self.out_messages += outlet.out_messages
        self.out_bytes += outlet.out_bytes

    def include(self, other: "Totals") -> None:
        """Add other totals."""
        self.in_messages += other.in_messages
        self.in_bytes += other.in_bytes
        self.out_messages += other.out_messages
        self.out_bytes += other.out_bytes


class Ledger:
    """Observes the sessions of a broker. `closed` remembers those that left, the oldest first.

    `describe(session, entry, now)` makes the document of a client that has left; `now` in ns since 1970.
    """

    def __init__(self, describe: "Callable[[Session, Entry, int], Document]") -> None:
        self.gone: dict[str, Totals] = {}  # by account
        self.closed: deque[Document] = deque(maxlen=MOST_CLOSED)
        self._describe = describe
        self._entries: dict[int, Entry] = {}

    def entry(self, session: "Session") -> Entry:
        """The client's entry; a new one for a client that came before monitoring began."""
        found = self._entries.get(session.client_id)
        if found is None:
            since = session.since or time.time_ns()
            found = self._entries[session.client_id] = Entry(since)
        return found

    def totals(self, sessions: "Iterable[Session]", account: str = "") -> Totals:
        """The counters of all clients, or of an account's: those of `sessions` and those that have left."""
        sums = Totals()
        for name, totals in self.gone.items():
            if account in ("", name):
                sums.include(totals)
        for session in sessions:
            if account in ("", session.membership.identity.account):
                sums.add(session)
        return sums

    def look(self, sessions: "Iterable[Session]") -> None:
        """Note which clients have sent or received something since the last call."""
        now = time.time_ns()
        for session in sessions:
            entry = self.entry(session)
            seen = (session.traffic.reads, session.outlet.out_messages)
            if seen != entry.seen:
                entry.seen = seen
                entry.last_activity = now

    # ── the sessions' observer ──

    def arrived(self, session: "Session") -> None:
        self.entry(session)

    def introduced(self, session: "Session", options: "ConnectOptions") -> None:
        self.entry(session)

    def admitted(self, session: "Session") -> None:
        self.entry(session)

    def left(self, session: "Session") -> None:
        self.look((session,))
        self.closed.append(self._describe(session, self.entry(session), time.time_ns()))
        del self._entries[session.client_id]
        self.gone.setdefault(session.membership.identity.account, Totals()).add(session)
