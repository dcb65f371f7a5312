"""The broker's side of one client: handles its ops, and answers them.

    Link ──receive──▶ ClientOpParser ──on_publish, on_subscribe, …──▶ Session ──route──▶ Router
                                                                         └─ +OK, -ERR, PONG, INFO ─▶ output

The session applies the rules of one connection (verbose, pedantic, echo, limits). `auth` decides the client's identity
and rights, the router the receivers of a message, and the link when to write. Nothing here awaits: a slow verdict (a
bcrypt password) suspends the parser until it arrives. The client's state is in the parts of `client_state`.

The hot path is `on_publish` and, for consecutive messages with the same control line, `on_publish_run`: neither makes a
Python object for a message.

Source: client protocol document; exact texts and their effects as in nats-server 2.15.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.authorization.guard import Guard
    from cython.cimports.headwater.exchange.ahead import AHEAD, deliver_ahead
    from cython.cimports.headwater.exchange.client_state import Heartbeat, Login, Membership, Terms, Traffic
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.sublist import Beginning, Match, Outlet, Subscription
    from cython.cimports.headwater.wire.client_ops import ClientOpHandler, ClientOpParser
    from cython.cimports.headwater.wire.memory import slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView, renamed
    from cython.cimports.headwater.wire.publish_series import PublishSeries
else:
    from headwater.authorization.guard import Guard
    from headwater.exchange.ahead import AHEAD, deliver_ahead
    from headwater.exchange.client_state import Heartbeat, Login, Membership, Terms, Traffic
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Beginning, Match, Outlet, Subscription
    from headwater.wire.client_ops import ClientOpHandler, ClientOpParser
    from headwater.wire.memory import slice_bytes
    from headwater.wire.message_view import MessageView, renamed
    from headwater.wire.plain_publishes import Stretch, collect_plain_publishes
    from headwater.wire.publish_series import PublishSeries

import json as json_documents
import logging
import time
from typing import TYPE_CHECKING, Protocol

from headwater.authorization.gate import Gate
from headwater.authorization.identity import STANDARD, Identity, Lookup, PasswordCheck, Refusal, Verdict
from headwater.errors import RemoteProtocolError
from headwater.model.subject import is_literal, is_valid_subject
from headwater.wire import error_texts, violations
from headwater.wire.handshake import PROTOCOL_DYNAMIC, ConnectOptions, decode_connect
from headwater.wire.verbs import SUSPEND

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.authorization.callout import Question
    from headwater.exchange.accounts import Accounts
    from headwater.exchange.tracing import Tracer
    from headwater.net.link import Link
    from headwater.options.broker import BrokerOptions

    class SessionRegister(Protocol):
        """What a session needs from the broker; `sessions.Sessions` implements it. For type checkers only."""

        options: BrokerOptions
        accounts: Accounts
        clock: Callable[[], float]

        def admit(self, session: "Session") -> bool: ...
        def trace(self, session: "Session") -> Tracer | None: ...
        def start_authentication(self, session: "Session", *, seconds_before: float = 0.0) -> None: ...
        def judge(self, session: "Session", options: ConnectOptions) -> "Verdict | Question": ...
        def decide_later(self, session: "Session", verdict: "PasswordCheck | Lookup | Question") -> None: ...
        def admitted(self, session: "Session") -> None: ...
        def greeting(self, session: "Session") -> bytes: ...
        def introduction(self, session: "Session") -> bytes: ...
        def hold_back(self, publisher: "Session", congested: list[Outlet]) -> None: ...
        def forget(self, session: "Session") -> None: ...
        def note(self, session: "Session", kind: str, *, log: bool = True, **fields: object) -> None: ...
        def note_refused_login(self, session: "Session", reason: str) -> None: ...


logger = logging.getLogger(__name__)

SLOW_CONSUMER = "Slow Consumer (Pending Bytes)"  # never sent: the client does not read
SMALL_MESSAGE: int = 512  # bytes, on average of a read; of larger ones without a receiver, more is read at once
# One for all sessions: it is filled and used up within a call that runs no Python code.
SERIES: PublishSeries = PublishSeries()
_RESERVED_QUEUE: bytes = b"_sys_"
_OK: bytes = b"+OK\r\n"
# Subjects that only the server itself may publish to, or use as a reply.
_RESERVED_SUBJECTS: tuple[bytes, ...] = (b"_GR_.", b"$NRG.")
_RESERVED_REPLIES: tuple[bytes, ...] = (b"_R_.", b"_GR_.", b"$JS.ACK.")


class Session(ClientOpHandler):
    """A client connection. `sessions` is the broker's register of clients, and the session's access to the rest of the
    broker.
    """

    def __init__(
        self, sessions: "SessionRegister", router: Router, gate: Gate, connection_type: str = STANDARD
    ) -> None:
        self.sessions = sessions
        self.client_id = 0
        self.since = 0  # ns since 1970
        self.link: Link | None = None
        self.tracer: Tracer | None = None  # None: ops are not logged
        self.parser = ClientOpParser(self, sessions.options.max_control_line, sessions.options.max_payload)
        self.parser.headers = False
        self.login = Login(gate, connection_type)
        self.membership = Membership(router, sessions.options.max_subscriptions)
        self.terms = Terms()
        self.traffic = Traffic()
        self.heartbeat = Heartbeat()
        self.introduced = False  # the client has got its first PONG
        self.end_reason = ""  # why we ended the connection; "" if the client closed it
        self._subject_checked = False  # for the op whose payload is incomplete

    # ── the link's owner ──

    def attach(self, link: "Link") -> None:
        """Greet the client, or close the connection if there are too many."""
        self.link = link
        self.tracer = self.sessions.trace(self)
        self.outlet = Outlet(link if self.tracer is None else self.tracer, link.output)
        if not self.sessions.admit(self):
            self.outlet.output.append(self.sessions.greeting(self))
            self._end(error_texts.MAXIMUM_CONNECTIONS)
            return
        unasked = self.login.gate.unasked(self.login.connection_type)
        if unasked is None:
            self.parser.awaiting_connect = True
        elif not self._enter(unasked):
            return
        self.outlet.output.append(self.sessions.greeting(self))
        link.flush()  # immediately: the client waits for it

    def secured(self) -> None:
        """The TLS handshake is done: start the timer for authentication."""
        self.sessions.start_authentication(self)

    def receive(self, buffer: bytearray, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Parse input; the flusher then writes what came of it, and calls `hold_back` if receivers are too far behind."""
        self.heartbeat.unanswered = 0
        self.traffic.reads += 1
        before: cython.Py_ssize_t = self.traffic.messages
        router: Router = self.membership.router
        router.begin_read()
        if router.foresight is not None:
            router.foresight.seen = 0
        written: cython.int = 0
        try:
            used: cython.Py_ssize_t = self.parser.parse(buffer, 0, filled)
            if self.tracer is not None:
                self.tracer.received(slice_bytes(buffer, 0, used))
        finally:
            written = router.flusher.end_client_read(self, filled)
        if filled >= 65536 and self.link is not None:  # START_SIZE: a full read; its name would be a Python object here
            count: cython.Py_ssize_t = self.traffic.messages - before
            unheard = written == 0 and used > SMALL_MESSAGE * count
            self.link.read_large(used > 65536 * count, self.parser.incomplete, unheard)
        return used

    def hold_back(self, congested: list[Outlet]) -> None:
        """Pause reading from this client for a moment: `congested` are too far behind."""
        self.sessions.hold_back(self, congested)

    def lost(self, error: Exception | None) -> None:
        """The connection is gone: remove its interest."""
        self.parser.stopped = True
        if self.outlet.closed and not self.end_reason:
            self.end_reason = SLOW_CONSUMER
            self.sessions.note(self, "slow_consumer", reason="more than max_pending waits for it")
        self.outlet.closed = True
        self.sessions.forget(self)  # before its subscriptions end, because observers record them
        self._drop_subscriptions()
        self.membership.leave()

    # ── publishing ──

    def on_publishes(self, ops: ClientOpParser) -> cython.int:
        membership: Membership = self.membership
        terms: Terms = self.terms
        router: Router = membership.router
        if terms.verbose or terms.pedantic or membership.mappings is not None:
            return ClientOpHandler.on_publishes(self, ops)
        message: MessageView = ops.message
        match: Match
        first: cython.int
        free: cython.bint
        deliveries: cython.int
        alone: cython.bint = membership.guard is None and router.forwarding is None
        while True:
            if alone and AHEAD.goes_on(self.outlet, message) and self._publish_ahead(ops, message.subject - 4) > 0:
                pass  # mostly with the first op of a read
            elif ops.count > 1:
                self.on_publish_run(message, ops.stride, ops.count)
            elif message.headers != message.payload or (
                membership.guard is not None and not membership.guard.always_publishes(message)
            ):
                self.on_publish(message)
            else:
                match = router.sublist.find(message.buffer, message.subject, message.subject_end)
                if not match.separate:
                    if cython.compiled and router.foresight is not None and ops._position >= router.foresight.seen:
                        router.foresight.look(ops)
                    self._publish_to(match, message)
                else:
                    first = message.buffer[message.subject]
                    free = first != 95 and first != 36 and message.reply == message.reply_end  # _ $
                    if (free or self._may_publish(message)) and (
                        ops._position == ops._filled or self._publish_series(ops, match) == 1
                    ):
                        if router.forwarding is None:
                            deliveries = router.route_plain(self.outlet, match, message)
                        else:
                            deliveries = router.forwarding.route(router, self.outlet, match, message)
                        if deliveries == 0 and terms.no_responders and message.reply != message.reply_end:
                            self._no_responders(message.subject_bytes(), message.reply_bytes())
                        if len(match.plain) == 1 and free and alone:
                            self._publish_ahead(ops, ops._position)
                    self.traffic.messages += 1
                    self.traffic.bytes += message.end - message.headers
            if not cython.compiled or not ops.next_publish():  # interpreted, `take_publishes` goes on
                return 0

    def take_publishes(self, buffer: bytearray, start: int, filled: int) -> int:
        membership, terms, router = self.membership, self.terms, self.membership.router
        if cython.compiled or terms.verbose or terms.pedantic or router.forwarding is not None:
            return start
        if membership.mappings is not None or membership.guard is not None:
            return start
        stretch = Stretch(self.outlet)
        start = collect_plain_publishes(router.sublist, stretch, self.parser, buffer, start, filled)
        sizes = stretch.finish(router.mark_dirty)
        self.traffic.messages += len(sizes)
        self.traffic.bytes += sum(sizes)
        return start

    def _publish_ahead(self, ops: ClientOpParser, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Publish what is from `at` on, as far as `deliver_ahead` does; returns the number of messages."""
        router: Router = self.membership.router
        count: cython.Py_ssize_t = deliver_ahead(ops, at, router.sublist, router.flusher, self.outlet)
        self.traffic.messages += count
        self.traffic.bytes += AHEAD.payload
        return count

    def _publish_series(self, ops: ClientOpParser, match: Match) -> cython.Py_ssize_t:
        """Publish the current op of `ops` and those behind it that have its receivers, if these take messages unlooked at;
        with permissions, those on its subject, which was checked. Returns the number of messages; 1 if only the current one
        is left to be published.
        """
        if not cython.compiled or not match.takes_series():
            return 1
        message: MessageView = ops.message
        router: Router = self.membership.router
        same_subject: cython.bint = self.membership.guard is not None
        receivers: cython.int
        if router.forwarding is not None:
            receivers = router.forwarding.publish_series(router, self.outlet, match, ops, SERIES, same_subject)
            if receivers < 0:
                return 1
        else:
            beginning: Beginning | None = None
            if not same_subject:
                beginning = router.sublist.beginning_of(match, message.buffer, message.subject, message.subject_end)
            prefix: bytes | None = None if beginning is None else beginning.prefix
            if SERIES.collect(ops, prefix, beginning is not None and beginning.deep) == 1:
                return 1
            receivers = router.route_series(self.outlet, match, message.buffer, SERIES)
        self.traffic.messages += SERIES.count - 1  # the caller counts the first
        self.traffic.bytes += SERIES.payload - (message.end - message.payload)
        if receivers == 0 and self.terms.no_responders:
            for subject, reply in SERIES.reply_pairs(message.buffer):
                self._no_responders(subject, reply)
        return SERIES.count

    def on_publish(self, message: MessageView) -> cython.int:
        if message.headers != message.payload:
            mark: cython.int = message.trace_mark()
            if mark == 1 or (mark != 0 and self.membership.router.samples_traces):
                return self._publish_traced(message)
        return self._publish(message)

    def _publish(self, message: MessageView) -> cython.int:
        membership: Membership = self.membership
        if membership.mappings is not None:
            mapped = membership.mappings.apply(message.subject_bytes())
            if mapped is not None:
                message = renamed(mapped, message)
                if message.trace is not None:
                    message.trace.mapped(mapped)
        match: Match = membership.router.sublist.find(message.buffer, message.subject, message.subject_end)
        return self._publish_to(match, message)

    def _publish_to(self, match: Match, message: MessageView) -> cython.int:
        """Publish a message whose receivers are known."""
        membership: Membership = self.membership
        terms: Terms = self.terms
        traffic: Traffic = self.traffic
        traffic.messages += 1
        traffic.bytes += message.end - message.headers
        if terms.pedantic:
            self.on_early_publish(message.subject_bytes())
            self._subject_checked = False
        first: cython.int = message.buffer[message.subject]
        if membership.guard is not None or first == 95 or first == 36 or message.reply != message.reply_end:  # _ $
            if not self._may_publish(message):
                return 0
        if terms.verbose:
            self._send_op(_OK)
        deliveries: cython.int = membership.router.route(self.outlet, match, message)
        if deliveries == 0 and terms.no_responders and message.reply != message.reply_end:
            self._no_responders(message.subject_bytes(), message.reply_bytes())
        return 0

    def on_publish_run(self, message: MessageView, stride: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.int:
        membership: Membership = self.membership
        router: Router = membership.router
        match: Match = router.sublist.find(message.buffer, message.subject, message.subject_end)
        first: cython.int = message.buffer[message.subject]
        if message.headers != message.payload and message.run_trace_mark(stride, count, router.samples_traces):
            return ClientOpHandler.on_publish_run(self, message, stride, count)
        if (
            self.terms.verbose
            or self.terms.pedantic
            or membership.mappings is not None
            or (membership.guard is not None and not membership.guard.always_publishes(message))
            or message.reply != message.reply_end
            or first == 95
            or first == 36
            or not match.separate
        ):
            # Each message needs its own answer or its own choice.
            return ClientOpHandler.on_publish_run(self, message, stride, count)
        self.traffic.messages += count
        self.traffic.bytes += count * (message.end - message.headers)
        router.route_run(self.outlet, match, message, stride, count)
        return 0

    def _publish_traced(self, message: MessageView) -> int:
        """`on_publish` for a message whose headers may request a trace."""
        # Here: few programs trace a message.
        from headwater.message_tracing.message_trace import Source, allowed_by, begin, deliver
        from headwater.model.message_trace import CLIENT

        account = self.membership.account
        if account is None:
            return self._publish(message)
        source = Source(CLIENT, self.client_id, self.terms.name, allowed_by(self.membership.guard))
        begun = begin(account, source, message)
        if begun.denied:
            self.sessions.note(self, "publish_refused", subject=begun.denied)
            self._error(error_texts.publish_permission(_text(begun.denied)))
        if not begun.skip:
            deliver(begun.message, begun.trace, lambda one: self._publish(one))
        return 0

    def on_early_publish(self, subject: bytes) -> cython.int:
        if self.terms.pedantic and not self._subject_checked:
            self._subject_checked = True
            if not (is_valid_subject(subject) and is_literal(subject)):
                self._error(error_texts.INVALID_PUBLISH_SUBJECT)
        return 0

    def _may_publish(self, message: MessageView) -> cython.bint:
        """Whether this client may publish this message; sends -ERR if not. The order of the checks is nats-server's."""
        name: bytes
        buffer: bytearray = message.buffer
        second: cython.int = buffer[message.subject + 1]
        allowed: cython.bint = self.membership.guard is None or self.membership.guard.may_publish(message)
        if not allowed or second == 71 or second == 78:  # G, N: most other subjects are _INBOX and need no slice
            name = message.subject_bytes()
            if not allowed or name.startswith(_RESERVED_SUBJECTS):
                self.sessions.note(self, "publish_refused", subject=name)
                self._refuse(message, error_texts.publish_permission(_text(name)))
                return False
        second = buffer[message.reply + 1]
        if message.reply != message.reply_end and (second == 82 or second == 71 or second == 74):  # R, G, J
            name = message.reply_bytes()
            if name.startswith(_RESERVED_REPLIES):
                self.sessions.note(self, "publish_refused", subject=message.subject_bytes(), reply=name)
                self._refuse(message, error_texts.reply_permission(_text(name)))
                return False
        return True

    def _refuse(self, message: MessageView, text: str) -> None:
        if message.trace is not None:
            message.trace.refused(text)
        self._error(text)

    def _no_responders(self, subject: bytes, reply: bytes) -> None:
        """Send status 503 for a request without a receiver, on the requester's own subscription to the reply subject."""
        match: Match = self.membership.router.sublist.match(reply)
        block = b"NATS/1.0 503\r\nNats-Subject: " + subject + b"\r\n\r\n"
        for subscription in match.plain:  # a queue subscription does not count, as in nats-server
            if subscription.outlet is self.outlet:
                size = len(block)
                self._send_op(b"HMSG %b %b %d %d\r\n%b\r\n" % (reply, subscription.sid, size, size, block))
                return

    # ── interest ──

    def on_subscribe(self, subject: bytes, queue: bytes, sid: bytes) -> cython.int:
        self.traffic.ops += 1
        # The order of the checks is nats-server's: a sid in use keeps its subscription, even if the new subject is
        # invalid.
        guard: Guard | None = self.membership.guard
        if queue == _RESERVED_QUEUE or (guard is not None and not guard.may_subscribe(subject, queue)):
            self.sessions.note(self, "subscription_refused", subject=subject, queue=queue)
            self._error(error_texts.subscribe_permission(_text(subject), _text(queue)))
            return 0
        most_tokens = self.sessions.options.max_subscription_tokens
        if most_tokens and subject.count(b".") >= most_tokens:
            self._error(error_texts.too_many_tokens(_text(subject)))
            return 0
        most: cython.Py_ssize_t = self.membership.max_subscriptions
        if most and len(self.outlet.subscriptions) >= most:
            self._error(error_texts.MAXIMUM_SUBSCRIPTIONS)
            return 0
        if sid not in self.outlet.subscriptions:
            if not is_valid_subject(subject):
                self._error(error_texts.INVALID_SUBJECT)
                return 0
            subscription = Subscription(subject, queue, sid, self.outlet, None)
            self.outlet.subscriptions[sid] = subscription
            self.membership.router.subscribe(subscription)
        self._acknowledge()
        return 0

    def on_unsubscribe(self, sid: bytes, maximum: cython.Py_ssize_t) -> cython.int:
        self.traffic.ops += 1
        found: Subscription | None = self.outlet.subscriptions.get(sid)
        if found is not None:
            if self.membership.router.sublist.limit(found, maximum):
                self.membership.router.unsubscribe(found)
        self._acknowledge()
        return 0

    def _drop_subscriptions(self) -> None:
        for subscription in list(self.outlet.subscriptions.values()):
            self.membership.router.unsubscribe(subscription)

    # ── the conversation ──

    def on_connect(self, json: bytes) -> cython.int:
        try:
            options = decode_connect(json)
        except RemoteProtocolError as error:
            logger.info("connect_refused client=%d reason=%s", self.client_id, error)
            return self._end("")
        return self._apply_verdict(options, self.sessions.judge(self, options))

    def _apply_verdict(self, options: ConnectOptions, verdict: "Verdict | Question") -> cython.int:
        """Apply the gate's verdict on a CONNECT, which arrives at once or later."""
        if not isinstance(verdict, Identity | Refusal):
            self.login.pending = options
            self.sessions.decide_later(self, verdict)
            return SUSPEND
        self.terms.lang, self.terms.version = options.lang, options.version
        if isinstance(verdict, Refusal) or options.account or options.new_account:
            reason = verdict.reason if isinstance(verdict, Refusal) else "CONNECT names an account"
            self.login.refused_user = options.user or ""
            self.sessions.note_refused_login(self, reason)
            return self._end(error_texts.AUTHORIZATION)
        self._drop_subscriptions()
        if not self._enter(verdict):
            return 1
        self.terms.name = options.name
        self.heartbeat.round_trip = max(time.time_ns() - self.since, 1) / 1e9  # an estimate, until the first PONG
        self.sessions.admitted(self)
        self.login.accepted = True
        if options.protocol not in (0, PROTOCOL_DYNAMIC):
            return self._end(error_texts.INVALID_CLIENT_PROTOCOL)
        headers = options.headers and not self.sessions.options.no_header_support
        if options.no_responders and not headers:
            return self._end(error_texts.NO_RESPONDERS_NEEDS_HEADERS)
        self.terms.settle(options)
        self.parser.headers = self.outlet.headers = headers
        self.outlet.echo = options.echo
        self.parser.awaiting_connect = False
        self._acknowledge()
        return 0

    def late_verdict(self, verdict: "Identity | Refusal") -> None:
        """Apply the verdict that the parser was suspended for, then parse the input received since."""
        options, self.login.pending = self.login.pending, None
        if options is None or self.end_reason or self.outlet.closed or self.link is None:
            return
        self.parser.stopped = self.parser.suspended = False
        self.link.resume_reading()
        if self._apply_verdict(options, verdict) == 0:
            self.link.read_on()

    # ── the account ──

    def _enter(self, identity: Identity) -> cython.bint:
        """Make the client a member of its account. If the account is full, close the connection and return False."""
        membership: Membership = self.membership
        membership.leave()
        account = self.sessions.accounts[identity.account]
        if account.full:
            self._end(error_texts.MAXIMUM_ACCOUNT_CONNECTIONS)
            return False
        membership.enter(account, identity, self.sessions.clock)
        self._guard_deliveries()
        self.apply_limits()
        return True

    def apply_limits(self) -> None:
        """Apply the limits of the server, the account and the user as they are now; subscriptions above a limit stay."""
        self.parser.max_payload = self.membership.limit(self.sessions.options)
        self.parser.max_control_line = self.sessions.options.max_control_line

    def renew(self, identity: Identity) -> None:
        """Replace the client's rights. Subscriptions that the new ones do not allow end, each with an error to the
        client.
        """
        self.membership.renew(identity, self.sessions.clock)
        self._guard_deliveries()
        guard: Guard | None = self.membership.guard
        if guard is None:
            return
        for held in list(self.outlet.subscriptions.values()):
            if not guard.may_subscribe(held.subject, held.queue):
                self.membership.router.unsubscribe(held)
                self.sessions.note(self, "subscription_ended", subject=held.subject, queue=held.queue)
                self._error(error_texts.subscription_ended(_text(held.subject), _text(held.queue), _text(held.sid)))

    def _guard_deliveries(self) -> None:
        guard: Guard | None = self.membership.guard
        self.outlet.guard = guard if guard is not None and guard.watches_deliveries else None

    # ── INFO, PING, PONG ──

    def on_info(self, json: bytes) -> cython.int:
        try:
            json_documents.loads(json)
        except (ValueError, RecursionError):
            return self._end("")
        return 0

    def on_ping(self) -> cython.int:
        self.traffic.ops += 1
        self._send_op(b"PONG\r\n")
        if not self.introduced and self.terms.protocol >= PROTOCOL_DYNAMIC:
            # Once per connection, after the first PONG: newer clients read their account from this INFO.
            self._send_op(self.sessions.introduction(self))
        self.introduced = True
        return 0

    def on_pong(self) -> cython.int:
        self.heartbeat.answered(self.sessions.clock())
        return 0

    def on_error(self) -> cython.int:
        return self._end("")

    def on_violation(self, violation: cython.int) -> cython.int:
        return self._end(violations.TEXTS.get(violation, ""))

    def ping(self, ping_max: int, now: float) -> bool:
        """Send a PING, for the timer. If `ping_max` of them are unanswered, close the connection and return False."""
        if self.heartbeat.unanswered >= ping_max:
            self._end(error_texts.STALE_CONNECTION)
            return False
        self.heartbeat.sent(now)
        self._send_op(b"PING\r\n")
        return True

    @property
    def accepts_info(self) -> bool:
        """Whether INFO may be sent to this client at any time. That begins with its first PONG: nats-py never considers
        itself connected if it reads anything but PONG after its PING.
        """
        return bool(self.terms.protocol >= PROTOCOL_DYNAMIC and self.introduced and not self.outlet.closed)

    def send(self, op: bytes) -> None:
        """Send an op that is not an answer."""
        self._send_op(op)

    def expire(self, text: str) -> None:
        """Close the connection, for timers: authentication took too long, or the credentials have expired."""
        self._end(text)

    # ── answers ──

    def _acknowledge(self) -> None:
        if self.terms.verbose:
            self._send_op(_OK)

    def _error(self, text: str) -> None:
        self._send_op(error_texts.encode_error(text))

    def _send_op(self, op: bytes) -> None:
        self.outlet.output.append(op)
        self.membership.router.mark_dirty(self.outlet)

    def _end(self, text: str) -> cython.int:
        """Send `text` as -ERR (unless it is empty) and close; the parser stops."""
        self.parser.stopped = True
        self.end_reason = text or error_texts.UNKNOWN_OPERATION
        if self.link is not None:
            if text:
                self.outlet.output.append(error_texts.encode_error(text))
            if self.tracer is not None:
                self.tracer.look()
            logger.info("client_closed client=%d peer=%s reason=%s", self.client_id, self.link.peer, text or "protocol")
            self.link.close()
        return 1


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
