"""The timers of clients: PINGs, write deadlines, logins that take too long, credentials that expire.

One timer serves all clients: a sweep, at most SWEEP_SECONDS after the last one, sends the PINGs that are due and
disconnects clients that accept no bytes for `write_deadline`. A client that has not authenticated yet has its own
timer, and so has one whose credentials expire.
"""

import asyncio
from collections.abc import Callable, Iterable

from headwater.exchange.backpressure import Backpressure
from headwater.exchange.session import Session
from headwater.options.broker import BrokerOptions

SWEEP_SECONDS = 1.0
SWEPT = 500  # clients per turn of the loop, some 2 us each
WRITE_DEADLINE = "Slow Consumer (Write Deadline)"  # never sent to the client, which reads nothing
FIRST_PING_SECONDS = 2.0  # after CONNECT, as in nats-server; the first PING measures the round trip, for monitoring

Note = Callable[..., None]
"""`note(session, kind, **fields)` records an event of a client in the journal."""


class ClientWatch:
    """`clients` returns the clients to watch; `clock`: monotonic seconds."""

    def __init__(
        self, options: BrokerOptions, clients: Callable[[], Iterable[Session]], clock: Callable[[], float], note: Note
    ) -> None:
        self.options = options
        self.stale = 0  # clients that left too many PINGs unanswered
        self.slow_consumers = 0  # clients that accepted no bytes for too long; the routers count the others
        self.elsewhere: Callable[[], int] = int  # number of clients in other processes that share this port; 0
        self.backpressure = Backpressure(clock, options.max_pending)
        self._clients = clients
        self._clock = clock
        self._note = note
        self._loop = asyncio.get_running_loop()
        self._next_ping: dict[int, float] = {}
        self._ops_at_ping: dict[int, int] = {}  # a client's messages and ops when its PING was last considered
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def begin(self, session: Session) -> None:
        """Watch a new client. The first PING is timed from CONNECT, because a client expects only INFO before its
        login.
        """
        self._next_ping[session.client_id] = self._clock() + self.options.ping_interval
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(self._pace(), self._sweep)

    def logged_in(self, session: Session) -> None:
        """A CONNECT was accepted: cancel the timer for authentication, and schedule the first PING."""
        self.cancel_timer(session)
        if not session.login.accepted:
            self._next_ping[session.client_id] = self._clock() + min(FIRST_PING_SECONDS, self.options.ping_interval)

    def forget(self, session: Session) -> None:
        """The client is gone."""
        self._next_ping.pop(session.client_id, None)
        self._ops_at_ping.pop(session.client_id, None)
        self.cancel_timer(session)
        if session.link is not None:
            self.backpressure.progress.forget(session.link)

    def set_timer(self, session: Session, seconds: float, function: Callable[[Session], None]) -> None:
        """Call `function(session)` in `seconds`; replaces the timer set before."""
        self.cancel_timer(session)
        self._timers[session.client_id] = self._loop.call_later(seconds, function, session)

    def cancel_timer(self, session: Session) -> None:
        """Undo `set_timer`; safe to call again."""
        timer = self._timers.pop(session.client_id, None)
        if timer is not None:
            timer.cancel()

    def stop(self) -> None:
        """End the sweep."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def _pace(self) -> float:
        return min(SWEEP_SECONDS, self.options.ping_interval, self.options.write_deadline / 2)

    def _sweep(self) -> None:
        sessions = list(self._clients())
        if sessions:
            self._sweep_some(sessions, 0)
        else:
            self._sweeper = None

    def _sweep_some(self, sessions: list[Session], start: int) -> None:
        """Sweep SWEPT clients from `start` on, the rest in later turns; some may be gone by then."""
        now, end = self._clock(), start + SWEPT
        if end < len(sessions):
            self._sweeper = self._loop.call_later(0, self._sweep_some, sessions, end)
        else:
            self._sweeper = self._loop.call_later(self._pace(), self._sweep)
        for session in sessions[start:end]:
            if session.link is None or session.client_id not in self._next_ping:
                continue
            if now >= self._next_ping[session.client_id]:
                self._next_ping[session.client_id] = now + self.options.ping_interval
                self._consider_ping(session)
            if self.backpressure.progress.end_stuck(session.link, now, self.options.write_deadline):
                self._note(session, "slow_consumer", reason=f"took nothing for {self.options.write_deadline:g} s")
                self.slow_consumers += 1
                session.end_reason = WRITE_DEADLINE

    def _consider_ping(self, session: Session) -> None:
        """PING a client, unless its round trip was measured and it has sent ops meanwhile; PONGs do not count as ops."""
        if session.membership.account is None:
            return
        ops = session.traffic.messages + session.traffic.ops
        before = self._ops_at_ping.get(session.client_id)
        self._ops_at_ping[session.client_id] = ops
        if before is not None and ops != before:
            return
        if not session.ping(self.options.ping_max, self._clock()):
            self.stale += 1
            self._note(session, "stale_connection", pings=self.options.ping_max)
