"""One client as the broker sees it: what its ops mean, and what it is told.

    Link ──receive──▶ ClientOpParser ──on_publish, on_subscribe, …──▶ Session ──route──▶ Router
                                                                         └─ +OK, -ERR, PONG, INFO ─▶ output

The session holds the rules of one conversation (verbose, pedantic, echo, limits); who the client is and what it may do is
decided in `auth`, who gets a message is the router's business, when bytes are written the link's. Nothing here awaits:
a verdict that takes long (a bcrypt password) suspends the parser until it comes.

The hot path is `on_publish` and, for messages that follow each other with the same control line, `on_publish_run`:
neither makes a Python object for a message.

Source: client protocol document; exact texts and consequences as nats-server 2.15 has them.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.auth.guard import Guard
    from cython.cimports.headwater.broker.router import Router
    from cython.cimports.headwater.broker.sublist import Match, Outlet, Subscription
    from cython.cimports.headwater.wire.client_ops import ClientOpHandler, ClientOpParser
    from cython.cimports.headwater.wire.memory import slice_bytes
else:
    from headwater.broker.auth.guard import Guard
    from headwater.broker.router import Router
    from headwater.broker.sublist import Match, Outlet, Subscription
    from headwater.wire.client_ops import ClientOpHandler, ClientOpParser
    from headwater.wire.memory import slice_bytes

import json as json_documents
import logging
from typing import TYPE_CHECKING

from headwater.broker.accounts import Account
from headwater.broker.auth.gate import Gate
from headwater.broker.auth.identity import STANDARD, Identity, PasswordCheck, Refusal, Verdict
from headwater.errors import RemoteProtocolError
from headwater.model.subject import is_literal, is_valid_subject
from headwater.wire import error_texts
from headwater.wire.client_ops import (
    CONTROL_LINE_TOO_LONG,
    NOT_CONNECTED,
    PAYLOAD_TOO_LARGE,
    SUSPEND,
    UNKNOWN_OPERATION,
)
from headwater.wire.handshake import PROTOCOL_DYNAMIC, ConnectOptions, decode_connect

if TYPE_CHECKING:
    from headwater.broker.mappings import Mappings
    from headwater.broker.sessions import Sessions
    from headwater.broker.tracing import Tracer
    from headwater.net.link import Link

logger = logging.getLogger(__name__)

_VIOLATION_TEXTS = {
    UNKNOWN_OPERATION: error_texts.UNKNOWN_OPERATION,
    CONTROL_LINE_TOO_LONG: error_texts.CONTROL_LINE_TOO_LONG,
    PAYLOAD_TOO_LARGE: error_texts.MAXIMUM_PAYLOAD,
    NOT_CONNECTED: error_texts.AUTHORIZATION,
}
_RESERVED_QUEUE: bytes = b"_sys_"
_OK: bytes = b"+OK\r\n"
_SUSPEND: int = SUSPEND
# What only the server itself may publish to, or name as a reply.
_RESERVED_SUBJECTS: tuple[bytes, ...] = (b"_GR_.", b"$NRG.")
_RESERVED_REPLIES: tuple[bytes, ...] = (b"_R_.", b"_GR_.", b"$JS.ACK.")


class Session(ClientOpHandler):
    """A client connection. `sessions` is the broker's register of them, and its view of the rest of the broker.

    `gate` is that of the listener which the client came through; until it has passed, `account` is None.
    """

    def __init__(self, sessions: "Sessions", router: Router, gate: Gate, connection_type: str = STANDARD) -> None:
        self.sessions = sessions
        self.router = router
        self.gate = gate
        self.connection_type = connection_type
        self.account: Account | None = None
        self.identity = Identity()
        self.guard: Guard | None = None
        self.nonce = ""
        self.max_subscriptions = sessions.options.max_subscriptions
        self.reads = 0
        self.round_trip = 0.0
        self.end_reason = ""  # why we ended it; empty when the client went by itself
        self._pinged_at = 0.0
        self._asked: ConnectOptions | None = None
        self.link: Link | None = None
        self.client_id = 0
        self.since = 0  # ns since 1970
        self.name = ""
        self.lang = ""
        self.version = ""
        self.asked_user = ""  # who a client that was refused said it was
        self.mappings: Mappings | None = None
        self.tracer: Tracer | None = None  # None: ops are not logged
        # Until CONNECT says otherwise; nats-server assumes the same of a client that skips it.
        self.verbose = True
        self.pedantic = True
        self._checked = False  # the subject of the op whose payload is coming
        self.no_responders = False
        self.protocol = 0
        self.introduced = False
        self.pings_out = 0
        self.in_messages = 0
        self.in_bytes = 0
        self.parser = ClientOpParser(self, sessions.options.max_control_line, sessions.options.max_payload)
        self.parser.headers = False

    # ── the link's owner ──

    def attach(self, link: "Link") -> None:
        """The client is there: greet it, or send it away when there are too many."""
        self.link = link
        self.tracer = self.sessions.trace(self)
        self.outlet = Outlet(link if self.tracer is None else self.tracer, link.output)
        if not self.sessions.admit(self):
            self.outlet.output.append(self.sessions.greeting(self))
            self._end(error_texts.MAXIMUM_CONNECTIONS)
            return
        unasked = self.gate.unasked(self.connection_type)
        if unasked is None:
            self.parser.awaiting_connect = True
        elif not self._enter(unasked):
            return
        self.outlet.output.append(self.sessions.greeting(self))
        link.flush()  # not soon: who connects can do nothing before

    def secured(self) -> None:
        """The TLS handshake is done: the time to show who one is begins."""
        self.sessions.start_authentication(self)

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Parse what came; afterwards hold this client back when those it publishes to are too far behind."""
        self.pings_out = 0
        self.reads += 1
        router: Router = self.router
        router.begin_read()
        try:
            used = self.parser.parse(buffer, 0, filled)
            if self.tracer is not None:
                self.tracer.heard(slice_bytes(buffer, 0, used))
        finally:
            router.end_read()
        if router.congested:
            self.sessions.hold_back(self, router.congested)
        return used

    def lost(self, error: Exception | None) -> None:
        """The connection is gone: its interest goes with it."""
        self.parser.stopped = True
        self.outlet.closed = True
        self.sessions.forget(self)  # first: the books are closed with the subscriptions that there were
        self._drop_subscriptions()
        self._leave()

    # ── publishing ──

    def on_publish(
        self,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.int:
        if self.mappings is not None:
            mapped = self.mappings.apply(slice_bytes(buffer, subject, subject_end))
            if mapped is not None:
                shift: cython.Py_ssize_t = len(mapped) + 1 - tail
                buffer = bytearray(b"%b %b" % (mapped, slice_bytes(buffer, tail, end + 2)))
                subject, subject_end = 0, len(mapped)
                reply, reply_end, tail = reply + shift, reply_end + shift, tail + shift
                headers, payload, end = headers + shift, payload + shift, end + shift
        router: Router = self.router
        match: Match = router.sublist.find(buffer, subject, subject_end)
        self.in_messages += 1
        self.in_bytes += end - headers
        if self.pedantic:
            self.on_early_publish(slice_bytes(buffer, subject, subject_end))
            self._checked = False
        if self.guard is not None or buffer[subject] == 95 or buffer[subject] == 36 or reply != reply_end:  # _ $
            if not self._may_publish(buffer, subject, subject_end, reply, reply_end):
                return 0
        if self.verbose:
            self._say(_OK)
        deliveries: cython.int = router.route(
            self.outlet, match, True, buffer, subject, subject_end, reply, reply_end, tail, headers, payload, end
        )
        if deliveries == 0 and self.no_responders and reply != reply_end:
            self._no_responders(slice_bytes(buffer, subject, subject_end), slice_bytes(buffer, reply, reply_end))
        return 0

    def on_publish_run(
        self,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        router: Router = self.router
        match: Match = router.sublist.find(buffer, subject, subject_end)
        if (
            self.verbose
            or self.pedantic
            or self.mappings is not None
            or (self.guard is not None and not self.guard.always_publishes(buffer, subject, subject_end))
            or reply != reply_end
            or buffer[subject] == 95
            or buffer[subject] == 36
            or not match.separate
        ):
            # Each message has an answer or a choice of its own.
            return ClientOpHandler.on_publish_run(
                self, buffer, subject, subject_end, reply, reply_end, tail, headers, payload, end, stride, count
            )
        self.in_messages += count
        self.in_bytes += count * (end - headers)
        router.route_run(
            self.outlet,
            match,
            buffer,
            subject,
            subject_end,
            reply,
            reply_end,
            tail,
            headers,
            payload,
            end,
            stride,
            count,
        )
        return 0

    def on_early_publish(self, subject: bytes) -> cython.int:
        if self.pedantic and not self._checked:
            self._checked = True
            if not (is_valid_subject(subject) and is_literal(subject)):
                self._error(error_texts.INVALID_PUBLISH_SUBJECT)
        return 0

    def _may_publish(
        self,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
    ) -> cython.bint:
        """Whether this client may send this; tells it when not. The order of the checks is nats-server's."""
        name: bytes
        second: cython.int = buffer[subject + 1]
        allowed: cython.bint = self.guard is None or self.guard.may_publish(buffer, subject, subject_end)
        if not allowed or second == 71 or second == 78:  # G, N: most are _INBOX, which need no slice
            name = slice_bytes(buffer, subject, subject_end)
            if not allowed or name.startswith(_RESERVED_SUBJECTS):
                logger.info("publish_refused client=%d subject=%r", self.client_id, name)
                self._error(error_texts.publish_permission(_text(name)))
                return False
        second = buffer[reply + 1]
        if reply != reply_end and (second == 82 or second == 71 or second == 74):  # R, G, J
            name = slice_bytes(buffer, reply, reply_end)
            if name.startswith(_RESERVED_REPLIES):
                self._error(error_texts.reply_permission(_text(name)))
                return False
        return True

    def _no_responders(self, subject: bytes, reply: bytes) -> None:
        """Status 503 for a request that reached nobody, on the requester's own subscription to the reply subject."""
        match: Match = self.router.sublist.match(reply)
        block = b"NATS/1.0 503\r\nNats-Subject: " + subject + b"\r\n\r\n"
        for subscription in match.plain:  # a queue subscription does not count, as in nats-server
            if subscription.outlet is self.outlet:
                size = len(block)
                self._say(b"HMSG %b %b %d %d\r\n%b\r\n" % (reply, subscription.sid, size, size, block))
                return

    # ── interest ──

    def on_subscribe(self, subject: bytes, queue: bytes, sid: bytes) -> cython.int:
        # The order of the checks is nats-server's: a sid in use is left as it is, whatever the subject.
        if queue == _RESERVED_QUEUE or (self.guard is not None and not self.guard.may_subscribe(subject, queue)):
            logger.info("subscription_refused client=%d subject=%r queue=%r", self.client_id, subject, queue)
            self._error(error_texts.subscribe_permission(_text(subject), _text(queue)))
            return 0
        most_tokens = self.sessions.options.max_subscription_tokens
        if most_tokens and subject.count(b".") >= most_tokens:
            self._error(error_texts.too_many_tokens(_text(subject)))
            return 0
        if self.max_subscriptions and len(self.outlet.subscriptions) >= self.max_subscriptions:
            self._error(error_texts.MAXIMUM_SUBSCRIPTIONS)
            return 0
        if sid not in self.outlet.subscriptions:
            if not is_valid_subject(subject):
                self._error(error_texts.INVALID_SUBJECT)
                return 0
            subscription = Subscription(subject, queue, sid, self.outlet, None)
            self.outlet.subscriptions[sid] = subscription
            self.router.subscribe(subscription)
        self._acknowledge()
        return 0

    def on_unsubscribe(self, sid: bytes, maximum: cython.Py_ssize_t) -> cython.int:
        found: Subscription | None = self.outlet.subscriptions.get(sid)
        if found is not None:
            found.maximum = maximum
            if maximum == 0 or found.delivered >= maximum:
                self.router.unsubscribe(found)
        self._acknowledge()
        return 0

    def _drop_subscriptions(self) -> None:
        for subscription in list(self.outlet.subscriptions.values()):
            self.router.unsubscribe(subscription)

    # ── the conversation ──

    def on_connect(self, json: bytes) -> cython.int:
        try:
            options = decode_connect(json)
        except RemoteProtocolError as error:
            logger.info("connect_refused client=%d reason=%s", self.client_id, error)
            return self._end("")
        return self._hear_verdict(options, self.sessions.judge(self, options))

    def _hear_verdict(self, options: ConnectOptions, verdict: Verdict) -> cython.int:
        """What the gate says to a CONNECT, at once or later."""
        if isinstance(verdict, PasswordCheck):
            self._asked = options
            self.sessions.ask_later(self, verdict)
            return _SUSPEND
        self.lang, self.version = options.lang, options.version
        if isinstance(verdict, Refusal) or options.account or options.new_account:
            reason = verdict.reason if isinstance(verdict, Refusal) else "an account was asked for"
            self.asked_user = options.user or ""
            logger.warning("authentication_failed client=%d peer=%s reason=%s", self.client_id, self._peer(), reason)
            return self._end(error_texts.AUTHORIZATION)
        self._drop_subscriptions()
        if not self._enter(verdict):
            return 1
        self.name = options.name
        self.sessions.admitted(self)
        if options.protocol not in (0, PROTOCOL_DYNAMIC):
            return self._end(error_texts.INVALID_CLIENT_PROTOCOL)
        headers = options.headers and not self.sessions.options.no_header_support
        if options.no_responders and not headers:
            return self._end(error_texts.NO_RESPONDERS_NEEDS_HEADERS)
        self.verbose = options.verbose
        self.pedantic = options.pedantic
        self.no_responders = options.no_responders
        self.protocol = options.protocol
        self.parser.headers = self.outlet.headers = headers
        self.outlet.echo = options.echo
        self.parser.awaiting_connect = False
        self._acknowledge()
        return 0

    def hear_late_verdict(self, verdict: "Identity | Refusal") -> None:
        """The verdict that the parser was suspended for: go on with what the client has said since."""
        options, self._asked = self._asked, None
        if options is None or self.end_reason or self.outlet.closed or self.link is None:
            return
        self.parser.stopped = self.parser.suspended = False
        self.link.resume_reading()
        if self._hear_verdict(options, verdict) == 0:
            self.link.read_on()

    # ── the account ──

    def _enter(self, identity: Identity) -> cython.bint:
        """The client is `identity` from now on; False, and told so, when its account has no room."""
        self._leave()
        account = self.sessions.accounts[identity.account]
        if account.full:
            self._end(error_texts.MAXIMUM_ACCOUNT_CONNECTIONS)
            return False
        account.connections += 1
        self.account = account
        self.router = account.router
        self.mappings = account.mappings
        self.identity = identity
        self.guard = Guard(identity.rules, self.sessions.clock) if identity.rules is not None else None
        self.outlet.guard = self.guard if self.guard is not None and self.guard.watches_deliveries else None
        options, limits = self.sessions.options, account.options
        self.max_subscriptions = _least(
            options.max_subscriptions or -1, identity.max_subscriptions, limits.max_subscriptions if limits else -1
        )
        self.parser.max_payload = _least(
            options.max_payload, identity.max_payload, limits.max_payload if limits else -1
        )
        return True

    def _leave(self) -> None:
        if self.account is not None:
            self.account.connections -= 1
            self.account = None

    # ── small talk ──

    def on_info(self, json: bytes) -> cython.int:
        try:
            json_documents.loads(json)
        except (ValueError, RecursionError):
            return self._end("")
        return 0

    def on_ping(self) -> cython.int:
        self._say(b"PONG\r\n")
        if not self.introduced and self.protocol >= PROTOCOL_DYNAMIC:
            # Once per connection, behind the first PONG: a newer client learns under which account it runs.
            self._say(self.sessions.introduction(self))
        self.introduced = True
        return 0

    def on_pong(self) -> cython.int:
        self.pings_out = 0
        if self._pinged_at:
            self.round_trip = max(self.sessions.clock() - self._pinged_at, 1e-9)
            self._pinged_at = 0.0
        return 0

    def on_error(self) -> cython.int:
        return self._end("")

    def on_violation(self, violation: cython.int) -> cython.int:
        return self._end(_VIOLATION_TEXTS.get(violation, ""))

    def ping(self, ping_max: int, now: float) -> bool:
        """The timer's turn: ask for a sign of life, or give up (False) on a client that owes too many."""
        if self.pings_out >= ping_max:
            self._end(error_texts.STALE_CONNECTION)
            return False
        self.pings_out += 1
        self._pinged_at = now
        self._say(b"PING\r\n")
        return True

    @property
    def wants_news(self) -> bool:
        """Whether INFO may be sent to this client at any time."""
        return bool(self.protocol >= PROTOCOL_DYNAMIC and not self.outlet.closed)

    def tell(self, op: bytes) -> None:
        """Say something that the client has not asked for."""
        self._say(op)

    def expire(self, text: str) -> None:
        """The timer's turn: the client took too long to connect, or its time is up."""
        self._end(text)

    # ── words to the client ──

    def _acknowledge(self) -> None:
        if self.verbose:
            self._say(_OK)

    def _error(self, text: str) -> None:
        self._say(error_texts.encode_error(text))

    def _say(self, op: bytes) -> None:
        self.outlet.output.append(op)
        self.router.mark_dirty(self.outlet)

    def _peer(self) -> str:
        return self.link.peer if self.link is not None else ""

    def _end(self, text: str) -> cython.int:
        """Say `text` as -ERR (nothing, when empty) and close; the parser stops."""
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


def _least(*limits: int) -> int:
    """The strictest of limits of which -1 means none; 0 when there is none at all."""
    return min((limit for limit in limits if limit >= 0), default=0)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
