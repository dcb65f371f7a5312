"""Trace one message (ADR-41): record what happens to it on this server, and publish a report to the subject it names.

    a message arrives ─▶ `begin` ─▶ MessageTrace ─(the router, imports, streams and peers add events)─▶ `finish` ─▶ report

Only messages whose headers may request a trace reach this module (`MessageView.trace_mark`), so none of it is hot. The
report is published once the message has been routed and each stream that captures it has reported whether it is stored.

A trace that cannot be made is logged. If the client or leaf node may not publish to the destination, it gets the usual
permissions error, and its message is dropped. A stream that has not answered within ANSWER_SECONDS, for example because
its disk stalls, is not waited for; the report says so.

Source: nats-server 2.15, msgtrace.go; compared with it in `tests/message_tracing/test_reference_traces.py`.
"""

import asyncio
import json
import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from headwater.message_tracing.seen import Peer, SeenAccount, SeenGuard, SeenOutlet, SeenSubscription
from headwater.model.header_edits import with_header
from headwater.model.header_names import NatsHeader
from headwater.model.message_trace import (
    CLIENT,
    DESTINATION,
    DISABLED,
    HOP,
    LEAF,
    ONLY_UNSUPPORTED,
    UNSUPPORTED,
    TraceRequest,
    read_trace_request,
)
from headwater.model.subject import is_literal, is_valid_subject
from headwater.model.timestamps import format_time
from headwater.wire.memory import slice_bytes
from headwater.wire.message_view import MessageView, composed

logger = logging.getLogger(__name__)

Event = dict[str, object]

ANSWER_SECONDS = 10.0


class Source(NamedTuple):
    """The connection that a message came in on: kind, number and name. `may_publish(subject)` checks its permissions."""

    kind: int
    number: int
    name: str
    may_publish: Callable[[bytes], bool]


class Beginning(NamedTuple):
    """How to proceed with a message: drop it (`skip`), trace it, or, with neither, deliver it normally. `message`: the
    message to continue with. `denied`: the destination that its sender may not publish to.
    """

    message: MessageView
    skip: bool = False
    trace: "MessageTrace | None" = None
    denied: bytes = b""


def begin(account: SeenAccount, source: Source, message: MessageView) -> Beginning:
    """Start the trace that the headers of a newly arrived message request, if any."""
    request = read_trace_request(slice_bytes(message.buffer, message.headers, message.payload))
    if request is None:
        return Beginning(message)
    origin = request.first(NatsHeader.TRACE_ORIGIN_ACCOUNT)
    if origin and not request.external:
        logger.error("trace_refused account=%s reason=%s", account.name, "a header of old versions names its account")
        return Beginning(message if request.only else _untraced(message), request.only)
    destination = request.first(NatsHeader.TRACE_DEST)
    if request.external:
        options = account.options
        if options is None or not options.trace_dest:
            return Beginning(message)
        if source.kind == CLIENT and random.randrange(100) >= options.trace_sampling:
            return Beginning(_untraced(message))  # nor do the servers it is forwarded to trace it
        destination = options.trace_dest
    wanted = destination.encode("utf-8", "surrogateescape")
    if not (is_valid_subject(wanted) and is_literal(wanted)):
        logger.error("trace_refused account=%s reason=%s", account.name, f"{destination!r} is no subject to publish to")
        return Beginning(message, request.only)
    if wanted.startswith((b"_GR_.", b"$NRG.")) or not source.may_publish(wanted):
        logger.error("trace_refused account=%s reason=%s", account.name, f"no permission to publish to {destination!r}")
        return Beginning(message, skip=True, denied=wanted)
    return Beginning(message, trace=MessageTrace(account, source, request, wanted, message))


def deliver(message: MessageView, trace: "MessageTrace | None", deliver_it: Callable[[MessageView], object]) -> None:
    """Call `deliver_it(message)`, with the trace attached if there is one, then finish the trace's routing."""
    message.trace = trace
    try:
        deliver_it(message)
    finally:
        message.trace = None
        if trace is not None:
            trace.finish()


def allowed_by(guard: SeenGuard | None) -> Callable[[bytes], bool]:
    """A function that checks whether a client or a leaf node may publish to a subject."""
    return lambda subject: guard is None or bool(guard.may_publish(composed(subject, b"", b"", b"")))


class MessageTrace:
    """The events of one message on this server. `account`: where the report is published. `here`: the account that
    routes the message at the moment. `only`: the message is traced but not delivered.
    """

    def __init__(
        self, account: SeenAccount, source: Source, request: TraceRequest, destination: bytes, message: MessageView
    ) -> None:
        self.account = account
        self.here = account.name
        self.only = request.only
        self.destination = destination
        self._request = request
        self._size = message.end - message.headers
        self._hop = request.first(NatsHeader.TRACE_HOP) if source.kind != CLIENT else ""
        self._hops = 0
        self._events: list[Event] = []
        self._to_peers: list[Event] = []  # appended after all other events, because nats-server forwards last
        self._undecided = 1  # the number of streams that have not answered, plus one for the routing itself
        self._ingress = self._note("in", kind=source.kind, cid=source.number)
        if source.name:
            self._ingress["name"] = source.name
        self._ingress["acc"] = account.name
        self._ingress["subj"] = _text(message.subject_bytes())

    # ── events ──

    def refused(self, reason: str) -> None:
        """The sender may not publish this message."""
        self._ingress["error"] = reason

    def mapped(self, subject: bytes) -> None:
        """The account's mappings changed the subject."""
        self._note("sm", to=_text(subject))

    def exported(self, account: str, subject: bytes) -> None:
        """A stream import of `account` receives the message, under `subject`."""
        self._note("se", acc=account, to=_text(subject))

    def imported(self, account: str, subject: bytes, there: bytes) -> None:
        """A service import passes the message to `account`, where its subject is `there`."""
        self._note("si", acc=account, **{"from": _text(subject)}, to=_text(there))

    def asks_system(self, subject: bytes, there: bytes) -> bool:
        """The message is a request to the server, which nats-server records as an import from the system account.
        Returns False when it must not be answered, because it is only traced.
        """
        self.imported(self.account.system_account, subject, there)
        return not self.only

    def delivered(self, subscription: SeenSubscription, error: str = "", subject: bytes = b"") -> None:
        """The message went to a client, or failed to with `error`. `subject`: the subscribed subject, if it differs from
        the one that the client sent.
        """
        outlet = subscription.outlet
        assert outlet is not None
        client = outlet.link.owner
        event = self._note("eg", kind=CLIENT, cid=client.client_id)
        if client.terms.name:
            event["name"] = client.terms.name
        account = client.membership.account
        if account is not None and account is not self.account:
            event["acc"] = account.name
        event["sub"] = _text(subject or subscription.subject)
        if subscription.queue:
            event["queue"] = _text(subscription.queue)
        if error:
            event["error"] = error

    def stream(self, name: str) -> "StreamStep":
        """A stream captures the message; the report waits until the step ends."""
        self._undecided += 1
        return StreamStep(self, self._note("js", stream=name))

    def to_peer(self, outlet: SeenOutlet, kind: int, message: MessageView, error: str = "") -> MessageView | None:
        """The message for this peer, with the hop number that the peer's own report will contain; None when it must not
        be sent.
        """
        peer: Peer = outlet.link.owner
        self._hops += 1
        hop = f"{self._hop}.{self._hops}" if self._hop else str(self._hops)
        event: Event = {"type": "eg", "ts": format_time(time.time_ns()), "kind": kind, "cid": peer.number}
        if peer.traced_name:
            event["name"] = peer.traced_name
        event["hop"] = hop
        if kind == LEAF and self.here != self.account.name:
            event["acc"] = self.here
        self._to_peers.append(event)
        if not error and not peer.traces:
            error = ONLY_UNSUPPORTED if self.only else UNSUPPORTED
        if error:
            event["error"] = error
            if error != UNSUPPORTED:
                return None
        return _with(message, HOP, hop.encode())

    def _note(self, step: str, **fields: object) -> Event:
        event: Event = {"type": step, "ts": format_time(time.time_ns()), **fields}
        self._events.append(event)
        return event

    @contextmanager
    def within(self, account: str, destination: bytes) -> Iterator[None]:
        """While the message is routed in another account: record that account, and have other servers report to
        `destination` there.
        """
        before, self.here = self.here, account
        outside, self._to_peers = self._to_peers, []
        reported, self.destination = self.destination, destination
        try:
            yield
        finally:
            self._events += self._to_peers
            self.here, self._to_peers, self.destination = before, outside, reported

    # ── the report ──

    def finish(self) -> None:
        """The message has been routed."""
        self._events += self._to_peers
        self.decided()

    def decided(self) -> None:
        """Count one of the pending parts as done; after the last, publish the report."""
        self._undecided -= 1
        if not self._undecided:
            document = self._document()
            self.account.router.publish(self.destination, b"", *_encoded(document, self._request))

    def _document(self) -> Event:
        request: Event = {"header": dict(sorted(self._request.headers.items())), "msgsize": self._size}
        document: Event = {"server": self.account.describe_server(), "request": request}
        if self._hops:
            document["hops"] = self._hops
        return {**document, "events": self._events}


class StreamStep:
    """A stream's event in the trace; only the first outcome is recorded."""

    def __init__(self, trace: MessageTrace, event: Event) -> None:
        self._trace = trace
        self._event = event
        self._open = True
        self._late = asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._is_late)

    def stored(self, subject: bytes, *, wanted: bool = True) -> None:
        """The message is stored on `subject`, or would be if it were delivered. `wanted` False: no consumer is
        interested, so it is not stored.
        """
        if self._open:
            self._event["ts"] = format_time(time.time_ns())
            self._event["subject"] = _text(subject)
            if not wanted:
                self._event["nointerest"] = True
            self._end()

    def refused(self, reason: str, subject: bytes = b"") -> None:
        """The stream did not store the message. `subject`: where it was to be, when only the store refused it."""
        if self._open:
            if subject:
                self._event["subject"] = _text(subject)
            self._event["error"] = reason
            self._end()

    def _is_late(self) -> None:
        self.refused(f"no answer within {ANSWER_SECONDS:g} s: it may yet be stored")

    def _end(self) -> None:
        self._open = False
        self._late.cancel()
        self._trace.decided()


def _encoded(document: Event, request: TraceRequest) -> tuple[bytes, bytes]:
    """Header block and payload of a report, compressed according to `Accept-Encoding`."""
    body = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogateescape")
    accepted = request.first(NatsHeader.ACCEPT_ENCODING).lower()
    if "snappy" in accepted or "s2" in accepted:
        from headwater.archive.s2_frames import FrameWriter
        from headwater.compression.snappy import compressor

        frames = FrameWriter(compressor(), snappy=True)
        return b"NATS/1.0\r\nContent-Encoding: snappy\r\n\r\n", frames.feed(body) + frames.finish()
    if "gzip" in accepted:
        import gzip

        return b"NATS/1.0\r\nContent-Encoding: gzip\r\n\r\n", gzip.compress(body, 6)
    return (b"NATS/1.0\r\nContent-Encoding: identity\r\n\r\n" if accepted else b""), body


def _untraced(message: MessageView) -> MessageView:
    """The message with a mark that keeps every server from tracing it."""
    return _with(message, DESTINATION, DISABLED)


def _with(message: MessageView, name: bytes, value: bytes) -> MessageView:
    block = with_header(slice_bytes(message.buffer, message.headers, message.payload), name, value)
    payload = slice_bytes(message.buffer, message.payload, message.end)
    return composed(message.subject_bytes(), message.reply_bytes(), block, payload)


def _text(subject: bytes) -> str:
    return subject.decode("utf-8", "replace")
