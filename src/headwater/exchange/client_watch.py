"""The timers of clients: PINGs, write deadlines, logins that take too long, credentials that expire.

One timer serves all clients: a sweep, at most SWEEP_SECONDS after the last one, sends the PINGs that are due and
disconnects clients that accept no bytes for `write_deadline`. It looks at those only that have something to expect: PINGs
are kept in the order in which they are due, and a link whose kernel took less than it was given says so. To look at each
client took 2 to 3 % of a core for 10,000 that were silent. A client that has not authenticated yet has its own timer, and
so has one whose credentials expire.
"""

import asyncio
from collections.abc import Callable, Iterator

from headwater.exchange.backpressure import Backpressure
from headwater.exchange.session import Session
from headwater.net.link import Link
from headwater.options.broker import BrokerOptions

SWEEP_SECONDS = 1.0
SWEPT = 500  # clients per turn of the loop, some 3 us each, 10 with a PING
WRITE_DEADLINE = "Slow Consumer (Write Deadline)"  # never sent to the client, which reads nothing
FIRST_PING_SECONDS = 2.0  # after CONNECT, as in nats-server; the first PING measures the round trip, for monitoring

Note = Callable[..., None]
"""`note(session, kind, **fields)` records an event of a client in the journal."""


class ClientWatch:
    """`clock`: monotonic seconds."""

    def __init__(self, options: BrokerOptions, clock: Callable[[], float], note: Note) -> None:
        self.options = options
        self.stale = 0  # clients that left too many PINGs unanswered
        self.slow_consumers = 0  # clients that accepted no bytes for too long; the routers count the others
        self.elsewhere: Callable[[], int] = int  # number of clients in other processes that share this port; 0
        self.backpressure = Backpressure(clock, options.max_pending)
        self._clock = clock
        self._note = note
        self._loop = asyncio.get_running_loop()
        # When the next PING is due, the earliest first: all of one dict are scheduled with the same delay.
        self._first_ping: dict[Session, float] = {}
        self._next_ping: dict[Session, float] = {}
        self._behind: dict[Link, None] = {}  # those that may have bytes pending: they join by themselves
        self._ops_at_ping: dict[int, int] = {}  # a client's messages and ops when its PING was last considered
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def begin(self, session: Session) -> None:
        """Watch a new client. The first PING is timed from CONNECT, because a client expects only INFO before its
        login.
        """
        self._next_ping[session] = self._clock() + self.options.ping_interval
        if session.link is not None:
            session.link.joins = self._behind
            self._behind[session.link] = None
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(self._pace(), self._sweep)

    def logged_in(self, session: Session) -> None:
        """A CONNECT was accepted: cancel the timer for authentication, and schedule the first PING."""
        self.cancel_timer(session)
        if not session.login.accepted:
            self._unschedule(session)
            self._first_ping[session] = self._clock() + min(FIRST_PING_SECONDS, self.options.ping_interval)

    def reload(self, options: BrokerOptions) -> None:
        """Times of other options apply, also to PINGs that are scheduled."""
        self.options = options
        now = self._clock()
        for pings, delay in ((self._first_ping, FIRST_PING_SECONDS), (self._next_ping, options.ping_interval)):
            latest = now + min(delay, options.ping_interval)
            pings.update([(session, min(due, latest)) for session, due in pings.items()])

    def forget(self, session: Session) -> None:
        """The client is gone."""
        self._unschedule(session)
        self._ops_at_ping.pop(session.client_id, None)
        self.cancel_timer(session)
        if session.link is not None:
            session.link.joins = None
            self._behind.pop(session.link, None)
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

    def _unschedule(self, session: Session) -> None:
        self._first_ping.pop(session, None)
        self._next_ping.pop(session, None)

    def _sweep(self) -> None:
        if not self._first_ping and not self._next_ping:
            self._sweeper = None
            return
        now = self._clock()
        sessions = dict.fromkeys([*_due(self._first_ping, now), *_due(self._next_ping, now)])
        sessions.update(dict.fromkeys(link.owner for link in self._behind if isinstance(link.owner, Session)))
        self._sweep_some(list(sessions), 0)

    def _sweep_some(self, sessions: list[Session], start: int) -> None:
        """Sweep SWEPT clients from `start` on, the rest in later turns; some may be gone by then."""
        now, end = self._clock(), start + SWEPT
        if end < len(sessions):
            self._sweeper = self._loop.call_later(0, self._sweep_some, sessions, end)
        else:
            self._sweeper = self._loop.call_later(self._pace(), self._sweep)
        for session in sessions[start:end]:
            due = self._first_ping.get(session) or self._next_ping.get(session)
            if session.link is None or due is None:
                continue
            if now >= due:
                self._unschedule(session)
                self._next_ping[session] = now + self.options.ping_interval
                self._consider_ping(session)
            if session.link in self._behind:
                self._look_behind(session, session.link, now)

    def _look_behind(self, session: Session, link: Link, now: float) -> None:
        """Disconnect a client that accepts nothing; one that has accepted all is looked at no more."""
        if self.backpressure.progress.end_stuck(link, now, self.options.write_deadline):
            self._note(session, "slow_consumer", reason=f"took nothing for {self.options.write_deadline:g} s")
            self.slow_consumers += 1
            session.end_reason = WRITE_DEADLINE
        elif not link.pending:
            self._behind.pop(link, None)

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


def _due(pings: dict[Session, float], now: float) -> Iterator[Session]:
    for session, due in pings.items():
        if due > now:
            return
        yield session
