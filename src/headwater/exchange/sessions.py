"""The register of connected clients: admits them, authenticates them, and closes them.

    listener ─▶ make ─▶ Session ─▶ admit ─▶ Greetings (INFO) ─▶ judge (Gate) ─▶ admitted ─▶ … ─▶ forget
                                     └─ ClientWatch: PINGs, deadlines, expiry

Observers (monitoring, the system account) are called at each of these steps.
"""

import asyncio
import base64
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from headwater.authorization.gate import Gate
from headwater.authorization.identity import (
    WEBSOCKET,
    Credentials,
    Identity,
    Lookup,
    PasswordCheck,
    Refusal,
    Verdict,
    shown_in,
)
from headwater.authorization.password_checks import PasswordChecks
from headwater.exchange.accounts import Accounts
from headwater.exchange.client_watch import ClientWatch
from headwater.exchange.former_client import release
from headwater.exchange.greetings import Greetings
from headwater.exchange.session import Session
from headwater.exchange.sublist import Outlet
from headwater.net.journal import Journal
from headwater.net.layer import Layer
from headwater.net.link import Link
from headwater.options.access import GLOBAL_ACCOUNT
from headwater.options.broker import TRACE_LEVEL, TRACE_LOGGER, BrokerOptions
from headwater.wire import error_texts
from headwater.wire.handshake import ConnectOptions, ServerInfo

if TYPE_CHECKING:
    from headwater.authorization.callout import Question
    from headwater.authorization.server_keys import ServerKeys
    from headwater.exchange.callouts import Callouts
    from headwater.exchange.tracing import Tracer
    from headwater.wire.jwt import Token, UserBody

_trace_log = logging.getLogger(TRACE_LOGGER)
_NONCE_BYTES = 11  # 15 characters


class Observer(Protocol):
    """An observer of clients (monitoring, events); called in the loop, and must not block."""

    def arrived(self, session: Session) -> None:
        """A client is connected."""

    def introduced(self, session: Session, options: ConnectOptions) -> None:
        """The client has sent CONNECT, which is not accepted or refused yet."""

    def admitted(self, session: Session) -> None:
        """The client's CONNECT was accepted."""

    def left(self, session: Session) -> None:
        """The client is gone; its counters are final."""


class Sessions:
    """All clients of one broker. `clock`: monotonic seconds; `wall_clock`: seconds since 1970."""

    def __init__(
        self,
        options: BrokerOptions,
        accounts: Accounts,
        gate: Gate,
        info: ServerInfo,
        clock: Callable[[], float],
        wall_clock: Callable[[], float] = time.time,
        journal: Journal | None = None,
    ) -> None:
        self.options = options
        self.accounts = accounts
        self.clock = clock
        self.journal = Journal(time.time_ns, clock) if journal is None else journal
        self.total = 0  # connections since the start
        self.observers: list[Observer] = []
        self.greetings = Greetings(options, info)
        self.watch = ClientWatch(options, clock, self.note)
        self._wall_clock = wall_clock
        self.gate = gate
        self._websocket_gate = gate.for_websocket()
        self._sessions: dict[int, Session] = {}
        self._password_checks = PasswordChecks()
        self.keys: ServerKeys | None = None  # for requests to callout services
        self._callouts: Callouts | None = None

    # ── coming and going ──

    def make(self) -> Session:
        """Make the session for a connection that is being accepted."""
        return Session(self, self.accounts[GLOBAL_ACCOUNT].router, self.gate)

    def make_websocket(self) -> Session:
        """As `make`, for the WebSocket listener."""
        return Session(self, self.accounts[GLOBAL_ACCOUNT].router, self._websocket_gate, WEBSOCKET)

    def admit(self, session: Session) -> bool:
        """Register a new client; False if the broker is full or closing."""
        self.total += 1
        session.client_id = self.total
        if len(self._sessions) + self.watch.elsewhere() >= self.options.max_connections:
            return False
        self._sessions[session.client_id] = session
        if session.login.gate.asks_for_signature:
            session.login.nonce = base64.urlsafe_b64encode(os.urandom(_NONCE_BYTES)).decode("ascii").rstrip("=")
        self.start_authentication(session, seconds_before=self.options.tls.timeout if self.options.tls else 0.0)
        self.watch.begin(session)
        session.since = time.time_ns()
        for observer in self.observers:
            observer.arrived(session)
        return True

    def trace(self, session: Session) -> "Tracer | None":
        """The logger of a new client's ops; None if ops are not logged."""
        if session.link is None or not _trace_log.isEnabledFor(TRACE_LEVEL):
            return None
        from headwater.exchange.tracing import Tracer

        return Tracer(session, session.link)

    def forget(self, session: Session) -> None:
        """A client is gone."""
        if self._sessions.pop(session.client_id, None) is not None:
            for observer in self.observers:
                observer.left(session)
        self.watch.forget(session)
        asyncio.get_running_loop().call_soon(release, session)

    # ── what an operator must see ──

    def note(self, session: Session, kind: str, *, log: bool = True, **fields: object) -> None:
        """Record an event of a client in the journal; `kind` is one of `journal.KINDS`."""
        peer = session.link.peer if session.link is not None else ""
        account = session.membership.account
        self.journal.note(
            kind,
            log=log,
            account=account.name if account is not None else "",
            user=session.membership.identity.user,
            client=session.client_id,
            address=peer,
            **fields,
        )

    def note_refused_login(self, session: Session, reason: str) -> None:
        """Record a failed login, with the user's name but no other credentials."""
        peer = session.link.peer if session.link is not None else ""
        user, client = session.login.refused_user, session.client_id
        self.journal.note("login_failed", user=user, client=client, address=peer, reason=reason)

    # ── authentication ──

    def start_authentication(self, session: Session, *, seconds_before: float = 0.0) -> None:
        """Start the timer for authentication, if that is required; `seconds_before` is added for a TLS handshake."""
        if session.login.gate.required:
            seconds = seconds_before + self.options.seconds_to_authenticate
            self.watch.set_timer(session, seconds, self._authentication_timed_out)

    def judge(self, session: Session, options: ConnectOptions) -> "Verdict | Question":
        """The gate's verdict on the credentials in a CONNECT."""
        for observer in self.observers:
            observer.introduced(session, options)
        shown = self._shown(session, options)
        verdict = session.login.gate.decide(shown, self._wall_clock())
        if isinstance(verdict, PasswordCheck | Lookup):
            return verdict
        return session.login.gate.verdict_or_question(shown, verdict, options)

    def _shown(self, session: Session, options: ConnectOptions) -> Credentials:
        login, layer = session.login, session.link.layer if session.link is not None else None
        names: tuple[str, ...] = ()
        if layer is not None:
            from headwater.net.certificate_names import names_on  # here: a start does not need it

            names = names_on(layer)
        return shown_in(
            self._with_cookies(options, layer) if login.connection_type == WEBSOCKET else options,
            nonce=login.nonce,
            certificate_names=names,
            connection_type=login.connection_type,
            address=session.link.host if session.link is not None else "",
        )

    def _place(self, question: "Question", user: "Token", body: "UserBody", now: float) -> Identity | Refusal:
        return self.gate.place(question, user, body, now)

    def _with_cookies(self, options: ConnectOptions, layer: Layer | None) -> ConnectOptions:
        """CONNECT with the missing credentials filled in from cookies, which browsers may use."""
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

    def decide_later(self, session: Session, verdict: "PasswordCheck | Lookup | Question") -> None:
        """Compare a password in another thread, fetch an account, or ask a callout service; the session reads no input
        meanwhile.
        """
        if session.link is not None:
            session.link.pause_reading()
        if isinstance(verdict, PasswordCheck):
            self._password_checks.start(verdict, session.client_id, partial(self._on_password_checked, session))
        elif isinstance(verdict, Lookup):
            verdict.find(verdict.account, partial(self._on_account_search, session))
        else:
            self._ask(session, verdict)

    def _on_password_checked(self, session: Session, verdict: Identity | Refusal) -> None:
        """A password was compared; a callout service may still decide."""
        options = session.login.pending
        if options is None or session.link is None:
            return
        found = session.login.gate.verdict_or_question(self._shown(session, options), verdict, options)
        if isinstance(found, Identity | Refusal):
            session.late_verdict(found)
        else:
            self._ask(session, found)

    def _on_account_search(self, session: Session) -> None:
        """The search for an account has ended: judge the credentials again."""
        options = session.login.pending
        if options is None or session.link is None:
            return
        verdict = session.login.gate.decide(self._shown(session, options), self._wall_clock())
        if not isinstance(verdict, Identity | Refusal):
            verdict = Refusal("no account that is known signed the user's JWT")
        self._on_password_checked(session, verdict)

    def _ask(self, session: Session, question: "Question") -> None:
        kind = "websocket" if question.shown.connection_type == WEBSOCKET else "nats"
        client = {"id": session.client_id, "kind": "Client", "type": kind}
        self.ask(question, client, self.options.seconds_to_authenticate, session.late_verdict)

    def ask(
        self,
        question: "Question",
        client: dict[str, object],
        seconds: float,
        act: Callable[[Identity | Refusal], None],
    ) -> None:
        """Ask a callout service about a login; `act` is called once, within `seconds`. `client`: facts about the
        connection besides the credentials.
        """
        if self.keys is None:
            asyncio.get_running_loop().call_soon(act, Refusal("this broker has no key to ask with"))
            return
        if self._callouts is None:
            from headwater.exchange.callouts import Callouts

            self._callouts = Callouts(self.accounts, self.keys, self._wall_clock, self._place)
        info, shown = self.greetings.info, question.shown
        server = {"name": info.server_name, "host": info.host, "version": info.version, "cluster": info.cluster}
        facts = {
            "host": shown.address,
            "user": shown.user or shown.nkey,
            "name": question.connect.name,
            **client,
        }
        self._callouts.ask(question, server, facts, seconds, act)

    def admitted(self, session: Session) -> None:
        """A CONNECT was accepted: stop the timer for authentication, and start that of `end_in_time`."""
        self.watch.logged_in(session)
        for observer in self.observers:
            observer.admitted(session)
        self.end_in_time(session)

    def end_in_time(self, session: Session) -> None:
        """Set the timer for the expiry of a client's credentials, or of its account."""
        identity = session.membership.identity
        ends = [
            (moment, text)
            for moment, text in (
                (identity.expires, error_texts.USER_EXPIRED),
                (identity.account_expires, error_texts.ACCOUNT_EXPIRED),
            )
            if moment is not None
        ]
        self.watch.cancel_timer(session)
        if ends:
            moment, text = min(ends)
            self.watch.set_timer(session, max(0.0, moment - self._wall_clock()), lambda expired: expired.expire(text))

    def _authentication_timed_out(self, session: Session) -> None:
        if session.membership.account is None or session.traffic.reads == 0:
            self.note(session, "login_timeout", seconds=self.options.seconds_to_authenticate)
            session.expire(error_texts.AUTHENTICATION_TIMEOUT)

    def reload(self, options: BrokerOptions) -> int:
        """Apply other options; returns the number of clients that were disconnected because their credentials have
        changed. If only the permissions of a user have changed, its clients stay and lose the subscriptions that are
        now forbidden.

        Times apply to all clients; so do limits, once the accounts have theirs (`server/room.py`). The accounts must be
        the same except for their users. Raises EnvironmentProblem, before any change, if a package that the new users
        need is missing.
        """
        from headwater.exchange.reauthorization import Reauthorization

        gate = Gate(options, self.gate.trust if options.operator == self.options.operator else None)
        before, self.options = self.options, options
        self.greetings.options = options
        self.watch.reload(options)
        self.gate, self._websocket_gate = gate, gate.for_websocket()
        if options.max_payload != before.max_payload:
            self.announce(max_payload=options.max_payload)
        judge = Reauthorization(before, options)
        leaving = []
        for session in self.all():
            session.login.gate = self._websocket_gate if session.login.connection_type == WEBSOCKET else gate
            membership = session.membership
            renewed = judge.renewed(membership.identity) if membership.account is not None else None
            if renewed is None:
                leaving.append(session)
            elif renewed is not membership.identity:
                session.renew(session.login.gate.without_callout_requests(renewed))
        for session in leaving:
            session.expire(error_texts.AUTHORIZATION)
        return len(leaving)

    # ── INFO ──

    def greeting(self, session: Session) -> bytes:
        """The first INFO for this client."""
        return self.greetings.first(session)

    def introduction(self, session: Session) -> bytes:
        """The INFO after a client's first PONG."""
        return self.greetings.after_login(session)

    def announce(self, **changes: object) -> None:
        """Change this server's INFO, and send it now to all clients that accept INFO at any time."""
        self.greetings.info = self.greetings.info.replace(**changes)
        for session in self.all():
            if session.accepts_info:
                session.outlet.output.append(self.greetings.first(session))
                cast(Link, session.outlet.link).flush()

    def send_away(self, session: Session) -> None:
        """Ask one client to move to another server."""
        if session.accepts_info:
            session.send(self.greetings.lame_duck(session))

    # ── all of them ──

    def hold_back(self, publisher: Session, congested: list[Outlet]) -> None:
        """Pause reading from `publisher` for a moment, because receivers of its messages are too far behind."""
        if publisher.link is not None:
            self.watch.backpressure.hold_publisher(publisher.link, congested)

    def close_all(self) -> None:
        """End every connection, without -ERR, as nats-server does on a signal."""
        self.watch.stop()
        self._password_checks.stop()
        if self._callouts is not None:
            self._callouts.stop()
        for session in self.all():
            self.watch.cancel_timer(session)
            if session.link is not None:
                session.link.close()

    def __len__(self) -> int:
        return len(self._sessions)

    def all(self) -> list[Session]:
        """Every connected client, oldest first."""
        return list(self._sessions.values())
