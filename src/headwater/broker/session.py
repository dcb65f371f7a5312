"""One client as the broker sees it: what its ops mean, and what it is told.

    Link ──receive──▶ ClientOpParser ──on_publish, on_subscribe, …──▶ Session ──route──▶ Router
                                                                         └─ +OK, -ERR, PONG, INFO ─▶ output

The session holds the rules of one conversation (verbose, pedantic, echo, limits); who gets a message is the router's
business, when bytes are written the link's. Nothing here awaits. The hot path is `on_publish`: it remembers what the
last subject matched, and makes no Python object when the next message has the same one.

Source: client protocol document; exact texts and consequences as nats-server 2.15 has them.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.router import Router
    from cython.cimports.headwater.broker.sublist import Match, Outlet, Subscription
    from cython.cimports.headwater.wire.client_ops import ClientOpHandler, ClientOpParser
    from cython.cimports.headwater.wire.memory import equals, slice_bytes
else:
    from headwater.broker.router import Router
    from headwater.broker.sublist import Match, Outlet, Subscription
    from headwater.wire.client_ops import ClientOpHandler, ClientOpParser
    from headwater.wire.memory import equals, slice_bytes

import json as json_documents
import logging
from typing import TYPE_CHECKING

from headwater.errors import RemoteProtocolError
from headwater.model.subject import is_literal, is_valid_subject
from headwater.wire import error_texts
from headwater.wire.client_ops import CONTROL_LINE_TOO_LONG, NOT_CONNECTED, PAYLOAD_TOO_LARGE, UNKNOWN_OPERATION
from headwater.wire.handshake import PROTOCOL_DYNAMIC, decode_connect

if TYPE_CHECKING:
    from headwater.broker.sessions import Sessions
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


class Session(ClientOpHandler):
    """A client connection. `sessions` is the broker's register of them, and its view of the rest of the broker."""

    def __init__(self, sessions: "Sessions", router: Router) -> None:
        self.sessions = sessions
        self.router = router
        self.link: Link | None = None
        self.client_id = 0
        self.name = ""
        # Until CONNECT says otherwise; nats-server assumes the same of a client that skips it.
        self.verbose = True
        self.pedantic = True
        self.no_responders = False
        self.protocol = 0
        self.introduced = False
        self.pings_out = 0
        self.in_messages = 0
        self.in_bytes = 0
        self.stall = False
        self.parser = ClientOpParser(self, sessions.options.max_control_line, sessions.options.max_payload)
        self.parser.headers = False
        self._last_subject = b""
        self._last_match = Match(-1)

    # ── the link's owner ──

    def attach(self, link: "Link") -> None:
        """The client is there: greet it, or send it away when there are too many."""
        self.link = link
        self.outlet = Outlet(link, link.output)
        if not self.sessions.admit(self):
            self._end(error_texts.MAXIMUM_CONNECTIONS)
            return
        self.outlet.output.append(self.sessions.greeting(self))
        link.flush_soon()

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Parse what came; afterwards hold this client back when those it publishes to are too far behind."""
        self.pings_out = 0
        used = self.parser.parse(buffer, 0, filled)
        if self.stall:
            self.stall = False
            self.sessions.hold_back(self)
        return used

    def lost(self, error: Exception | None) -> None:
        """The connection is gone: its interest goes with it."""
        self.parser.stopped = True
        self.outlet.closed = True
        self._drop_subscriptions()
        self.sessions.forget(self)

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
        match: Match = self._last_match
        router: Router = self.router
        if match.generation != router.sublist.generation or not equals(
            buffer, subject, subject_end, self._last_subject
        ):
            self._last_subject = slice_bytes(buffer, subject, subject_end)
            self._last_match = match = router.sublist.match(self._last_subject)
        self.in_messages += 1
        self.in_bytes += end - headers
        if self.pedantic:
            self._check_publish(self._last_subject)
        if self.verbose:
            self._say(_OK)
        deliveries: cython.int = router.route(
            self.outlet, match, True, buffer, subject, subject_end, reply, reply_end, tail, headers, payload, end
        )
        if deliveries == 0:
            if self.no_responders and reply != reply_end:
                self._no_responders(self._last_subject, slice_bytes(buffer, reply, reply_end))
        elif router.congested:
            self.stall = True
        return 0

    def on_torn_publish(self, subject: bytes) -> cython.int:
        if self.pedantic:
            self._check_publish(subject)
        return 0

    def _check_publish(self, subject: bytes) -> None:
        if not (is_valid_subject(subject) and is_literal(subject)):
            self._error(error_texts.INVALID_PUBLISH_SUBJECT)

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
        if queue == _RESERVED_QUEUE:
            self._error(error_texts.queue_permission(_text(subject), _text(queue)))
            return 0
        limit = self.sessions.options.max_subscriptions
        if limit and len(self.outlet.subscriptions) >= limit:
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
        if options.account or options.new_account:
            return self._end(error_texts.AUTHORIZATION)
        if options.protocol not in (0, PROTOCOL_DYNAMIC):
            return self._end(error_texts.INVALID_CLIENT_PROTOCOL)
        if options.no_responders and not options.headers:
            return self._end(error_texts.NO_RESPONDERS_NEEDS_HEADERS)
        self._drop_subscriptions()
        self.verbose = options.verbose
        self.pedantic = options.pedantic
        self.no_responders = options.no_responders
        self.protocol = options.protocol
        self.name = options.name
        self.parser.headers = options.headers
        self.outlet.headers = options.headers
        self.outlet.echo = options.echo
        self.parser.awaiting_connect = False
        self._acknowledge()
        return 0

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
        return 0

    def on_error(self) -> cython.int:
        return self._end("")

    def on_violation(self, violation: cython.int) -> cython.int:
        return self._end(_VIOLATION_TEXTS.get(violation, ""))

    def ping(self, ping_max: int) -> None:
        """The timer's turn: ask for a sign of life, or give up on a client that owes too many."""
        if self.pings_out >= ping_max:
            self._end(error_texts.STALE_CONNECTION)
            return
        self.pings_out += 1
        self._say(b"PING\r\n")

    # ── words to the client ──

    def _acknowledge(self) -> None:
        if self.verbose:
            self._say(_OK)

    def _error(self, text: str) -> None:
        self._say(error_texts.encode_error(text))

    def _say(self, op: bytes) -> None:
        self.outlet.output.append(op)
        self.router.mark_dirty(self.outlet)

    def _end(self, text: str) -> cython.int:
        """Say `text` as -ERR (nothing, when empty) and close; the parser stops."""
        self.parser.stopped = True
        if self.link is not None:
            if text:
                self.outlet.output.append(error_texts.encode_error(text))
            logger.info("client_closed client=%d peer=%s reason=%s", self.client_id, self.link.peer, text or "protocol")
            self.link.close()
        return 1


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
