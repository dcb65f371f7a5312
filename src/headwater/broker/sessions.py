"""The register of connected clients: who is in, what they are greeted with, and the timers that watch over them.

One timer for all, not one per client: a sweep, at most `SWEEP_SECONDS` after the last, sends pings that are due and ends
clients that take no bytes for `write_deadline`. Publishers are held back for slow receivers as `backpressure` says. A
client that still has to show who it is has a timer of its own, and so has one whose credentials expire.
"""

import asyncio
import base64
import logging
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from headwater.broker.accounts import Accounts
from headwater.broker.auth.gate import Gate
from headwater.broker.auth.identity import WEBSOCKET, Identity, PasswordCheck, Refusal, Verdict, shown_in
from headwater.broker.backpressure import Backpressure
from headwater.broker.options import GLOBAL_ACCOUNT, BrokerOptions
from headwater.broker.session import Session
from headwater.broker.sublist import Outlet
from headwater.net.layer import Layer
from headwater.net.link import Link
from headwater.wire import error_texts
from headwater.wire.handshake import ConnectOptions, ServerInfo, encode_info

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from headwater.broker.tracing import Tracer

logger = logging.getLogger(__name__)
_trace_log = logging.getLogger("headwater.broker.tracing")

TRACE = 5  # the level of ops in the log
SWEEP_SECONDS = 1.0
WRITE_DEADLINE = "Slow Consumer (Write Deadline)"  # never said to the client, it takes nothing
FIRST_PING_SECONDS = 1.0  # the first ping measures the round trip, for monitoring
PASSWORD_THREADS = 2  # bcrypt takes a core each; the others are for those who are in already
_NONCE_BYTES = 11  # 15 characters


class Observer(Protocol):
    """Somebody who keeps the books of clients (monitoring); called by the loop, and must not block."""

    def arrived(self, session: Session) -> None:
        """A client is connected."""

    def introduced(self, session: Session, options: ConnectOptions) -> None:
        """It has sent CONNECT; whether it may come in is not decided yet."""

    def admitted(self, session: Session) -> None:
        """It may come in."""

    def left(self, session: Session) -> None:
        """It is gone; its counters are final."""


class Sessions:
    """All clients of one broker. `clock` is monotonic, in seconds; `wall_clock` is that of the calendar."""

    def __init__(
        self,
        options: BrokerOptions,
        accounts: Accounts,
        gate: Gate,
        info: ServerInfo,
        clock: Callable[[], float],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.options = options
        self.accounts = accounts
        self.info = info
        self.clock = clock
        self.total = 0
        self.stale = 0
        self.observers: list[Observer] = []
        self.websocket_address = ("", 0)
        self.slow_consumers = 0  # those that took no bytes for too long; the others are the routers'
        self._wall_clock = wall_clock
        self._gate = gate
        self._websocket_gate = gate.for_websocket()
        self._loop = asyncio.get_running_loop()
        self._sessions: dict[int, Session] = {}
        self._next_ping: dict[int, float] = {}
        self._reads: dict[int, int] = {}  # how much a client had said when its ping was last considered
        self._backpressure = Backpressure(clock, options.max_pending)
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._pace = min(SWEEP_SECONDS, options.ping_interval, options.write_deadline / 2)
        self._sweeper: asyncio.TimerHandle | None = None
        self._password_threads: ThreadPoolExecutor | None = None

    # ── coming and going ──

    def make(self) -> Session:
        """A session for a connection that is about to be made."""
        return Session(self, self.accounts[GLOBAL_ACCOUNT].router, self._gate)

    def make_websocket(self) -> Session:
        """The same for the WebSocket listener."""
        return Session(self, self.accounts[GLOBAL_ACCOUNT].router, self._websocket_gate, WEBSOCKET)

    def admit(self, session: Session) -> bool:
        """Register a new client; False when the broker is full or closing."""
        self.total += 1
        session.client_id = self.total
        if len(self._sessions) >= self.options.max_connections:
            return False
        self._sessions[session.client_id] = session
        self._next_ping[session.client_id] = self.clock() + min(FIRST_PING_SECONDS, self.options.ping_interval)
        if session.gate.asks_for_signature:
            session.nonce = base64.urlsafe_b64encode(os.urandom(_NONCE_BYTES)).decode("ascii").rstrip("=")
        self.start_authentication(session, seconds_before=self.options.tls.timeout if self.options.tls else 0.0)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(self._pace, self._sweep)
        session.since = time.time_ns()
        for observer in self.observers:
            observer.arrived(session)
        return True

    def trace(self, session: Session) -> "Tracer | None":
        """What logs the ops of a new client, where they are wanted."""
        if session.link is None or not _trace_log.isEnabledFor(TRACE):
            return None
        from headwater.broker.tracing import Tracer

        return Tracer(session, session.link)

    def forget(self, session: Session) -> None:
        """A client is gone."""
        if self._sessions.pop(session.client_id, None) is not None:
            for observer in self.observers:
                observer.left(session)
        self._next_ping.pop(session.client_id, None)
        self._reads.pop(session.client_id, None)
        self._cancel_timer(session)
        if session.link is not None:
            self._backpressure.progress.forget(session.link)

    # ── who a client is ──

    def start_authentication(self, session: Session, *, seconds_before: float = 0.0) -> None:
        """From now on (or `seconds_before` later at most, with TLS) time runs for a client that has to show who it is."""
        if session.gate.required:
            self._cancel_timer(session)
            seconds = seconds_before + self.options.seconds_to_authenticate
            self._set_timer(session, seconds, self._authentication_timed_out)

    def judge(self, session: Session, options: ConnectOptions) -> Verdict:
        """What the gate says to the credentials in a CONNECT."""
        for observer in self.observers:
            observer.introduced(session, options)
        layer = session.link.layer if session.link is not None else None
        shown = shown_in(
            self._with_cookies(options, layer) if session.connection_type == WEBSOCKET else options,
            nonce=session.nonce,
            certificate_names=_certificate_names(layer),
            connection_type=session.connection_type,
            address=_host_of(session),
        )
        return session.gate.decide(shown, self._wall_clock())

    def _with_cookies(self, options: ConnectOptions, layer: Layer | None) -> ConnectOptions:
        """A browser's credentials may come as cookies: they stand in for what its CONNECT leaves out."""
        from headwater.net.websocket import websocket_of

        websocket, names = websocket_of(layer), self.options.websocket
        if websocket is None or names is None:
            return options
        cookies = websocket.cookies
        sources = {
            "jwt": names.jwt_cookie,
            "user": names.user_cookie,
            "password": names.pass_cookie,
            "auth_token": names.token_cookie,
        }
        found = {
            field: cookies[cookie]
            for field, cookie in sources.items()
            if cookie in cookies and not getattr(options, field)
        }
        return options.replace(**found)

    def ask_later(self, session: Session, check: PasswordCheck) -> None:
        """Have a slow verdict found in another thread; the session takes no input until it hears it."""
        if session.link is not None:
            session.link.pause_reading()
        if self._password_threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._password_threads = ThreadPoolExecutor(PASSWORD_THREADS, "headwater-passwords")
        outcome = self._loop.run_in_executor(self._password_threads, check.decide)
        outcome.add_done_callback(lambda done: self._tell(session, done))

    def admitted(self, session: Session) -> None:
        """A CONNECT was accepted: the time to authenticate ends, the time until the credentials expire begins."""
        self._cancel_timer(session)
        for observer in self.observers:
            observer.admitted(session)
        identity = session.identity
        ends = [
            (moment, text)
            for moment, text in (
                (identity.expires, error_texts.USER_EXPIRED),
                (identity.account_expires, error_texts.ACCOUNT_EXPIRED),
            )
            if moment is not None
        ]
        if ends:
            moment, text = min(ends)
            self._set_timer(session, max(0.0, moment - self._wall_clock()), lambda expired: expired.expire(text))

    def _tell(self, session: Session, outcome: "asyncio.Future[Identity | Refusal]") -> None:
        if outcome.cancelled():
            return
        error = outcome.exception()
        if error is not None:
            logger.error("password_check_failed client=%d error=%s", session.client_id, type(error).__name__)
        session.hear_late_verdict(Refusal("the check failed") if error is not None else outcome.result())

    def _authentication_timed_out(self, session: Session) -> None:
        if session.account is None or session.reads == 0:
            session.expire(error_texts.AUTHENTICATION_TIMEOUT)

    def _set_timer(self, session: Session, seconds: float, function: Callable[[Session], None]) -> None:
        self._timers[session.client_id] = self._loop.call_later(seconds, function, session)

    def _cancel_timer(self, session: Session) -> None:
        timer = self._timers.pop(session.client_id, None)
        if timer is not None:
            timer.cancel()

    def reload(self, options: BrokerOptions) -> int:
        """Go on under other options; returns how many clients had to leave, because their user is not what it was.

        Limits hold for who connects from now on, times for all. The accounts must be the same but for their users.
        Raises EnvironmentProblem when a package is missing that the new users need; nothing has changed then.
        """
        from headwater.broker.reauthorization import may_stay

        gate = Gate(options)
        before, self.options = self.options, options
        self._gate, self._websocket_gate = gate, gate.for_websocket()
        if options.max_payload != before.max_payload:
            self.announce(max_payload=options.max_payload)
        leaving = [
            session
            for session in self.all()
            if session.account is None or not may_stay(session.identity, before, options)
        ]
        for session in self.all():
            session.gate = self._websocket_gate if session.connection_type == WEBSOCKET else gate
        for session in leaving:
            session.expire(error_texts.AUTHORIZATION)
        return len(leaving)

    # ── what clients are told ──

    def greeting(self, session: Session) -> bytes:
        """The INFO that opens the conversation with this client."""
        return encode_info(self._info_for(session))

    def introduction(self, session: Session) -> bytes:
        """The INFO behind a client's first PONG: under which account it runs."""
        account = session.account
        return encode_info(
            self._info_for(session).replace(
                connect_info=True,
                auth_required=session.gate.required,  # nats-server hides it in the first INFO only
                remote_account=account.name if account is not None else "",
                acc_is_sys=account is not None and account.is_system,
            )
        )

    def announce(self, **changes: object) -> None:
        """Something about this server has changed: tell all clients that want to know, now."""
        self.info = self.info.replace(**changes)
        for session in list(self._sessions.values()):
            if session.wants_news:
                session.outlet.output.append(encode_info(self._info_for(session)))
                cast(Link, session.outlet.link).flush()

    def send_away(self, session: Session) -> None:
        """Tell one client that it should go to another server."""
        if session.wants_news:
            session.tell(encode_info(self._info_for(session).replace(ldm=True)))

    def _info_for(self, session: Session) -> ServerInfo:
        websocket = session.connection_type == WEBSOCKET
        tls = self.options.websocket.tls if websocket and self.options.websocket else self.options.tls
        where: dict[str, object] = {}
        if websocket:
            host, port = self.websocket_address
            where = {"host": host, "port": port, "connect_urls": self.info.ws_connect_urls}
        return self.info.replace(
            **where,
            ws_connect_urls=(),
            client_id=session.client_id,
            client_ip=_host_of(session),
            auth_required=session.gate.announced,
            nonce=session.nonce,
            tls_required=tls is not None and not tls.allow_non_tls,
            tls_available=tls is not None and tls.allow_non_tls,
            tls_verify=tls is not None and tls.verify,
        )

    # ── watching over them ──

    def hold_back(self, publisher: Session, congested: list[Outlet]) -> None:
        """Take no input from `publisher` for a moment, for the sake of those it has just published to."""
        if publisher.link is not None:
            self._backpressure.hold_publisher(publisher.link, congested)

    def close_all(self) -> None:
        """End every connection, without -ERR, as nats-server does on a signal."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        if self._password_threads is not None:
            self._password_threads.shutdown(wait=False, cancel_futures=True)
            self._password_threads = None
        for session in list(self._sessions.values()):
            self._cancel_timer(session)
            if session.link is not None:
                session.link.close()

    def __len__(self) -> int:
        return len(self._sessions)

    def all(self) -> list[Session]:
        """Everybody who is connected now, the oldest first."""
        return list(self._sessions.values())

    def _sweep(self) -> None:
        now = self.clock()
        self._sweeper = self._loop.call_later(self._pace, self._sweep) if self._sessions else None
        for session in list(self._sessions.values()):
            if session.link is None:
                continue
            if now >= self._next_ping[session.client_id]:
                self._next_ping[session.client_id] = now + self.options.ping_interval
                self._consider_ping(session)
            if self._backpressure.progress.end_stuck(session.link, now, self.options.write_deadline):
                logger.warning("slow_consumer client=%d deadline=%g", session.client_id, self.options.write_deadline)
                self.slow_consumers += 1
                session.end_reason = WRITE_DEADLINE

    def _consider_ping(self, session: Session) -> None:
        """A client that speaks needs no ping, once its round trip is known."""
        spoke = session.reads != self._reads.get(session.client_id, 0)
        self._reads[session.client_id] = session.reads
        if session.account is None or (spoke and session.round_trip > 0):
            return
        if not session.ping(self.options.ping_max, self.clock()):
            self.stale += 1


def _certificate_names(layer: Layer | None) -> tuple[str, ...]:
    """The names that may name a user in the certificate shown; TLS is imported only where it is in use."""
    if layer is None:
        return ()
    from headwater.broker.auth.certificates import names_in
    from headwater.net.tls import tls_of

    return names_in(tls_of(layer))


def _host_of(session: Session) -> str:
    return session.link.host if session.link is not None else ""
