"""One message that is traced (ADR-41): what happens to it on this server is noted, and reported to where it asks.

    a message comes in ─▶ `begin` ─▶ MessageTrace ─(the router, imports, streams and peers note events)─▶ `finish` ─▶ report

Here only messages whose headers may ask for a trace arrive (`MessageView.trace_mark`), so nothing of it is hot. A report is
published once the message was routed and, where a stream takes it, once the stream has said whether it is stored.

What cannot be traced is logged; a client or leaf node that may not publish to the destination gets the error of any
publish, and its message goes nowhere. A stream that has not answered within ANSWER_SECONDS, because its disk stalls, is not
waited for: the report says so.

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
    """The connection that a message came in on: kind, number and name. `may_publish(subject)`: as its permissions say."""

    kind: int
    number: int
    name: str
    may_publish: Callable[[bytes], bool]


class Beginning(NamedTuple):
    """What to do with a message: drop it (`skip`), trace it, or, with neither, deliver it as any other. `message`: to go on
    with. `denied`: the destination that its sender may not publish to."""

    message: MessageView
    skip: bool = False
    trace: "MessageTrace | None" = None
    denied: bytes = b""


def begin(account: SeenAccount, source: Source, message: MessageView) -> Beginning:
    """The trace that the headers of `message`, just arrived, ask for."""
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
            return Beginning(_untraced(message))  # nor by the servers that it is forwarded to
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
    """`deliver_it(message)`, traced if there is a trace; then its routing is finished."""
    message.trace = trace
    try:
        deliver_it(message)
    finally:
        message.trace = None
        if trace is not None:
            trace.finish()


def allowed_by(guard: SeenGuard | None) -> Callable[[bytes], bool]:
    """Whether a client, or a leaf node, may publish to a subject."""
    return lambda subject: guard is None or bool(guard.may_publish(composed(subject, b"", b"", b"")))


class MessageTrace:
    """The events of one message on this server. `account`: where the report goes; `here`: the account it is being routed
    in. `only`: it is not delivered."""

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
        self._to_peers: list[Event] = []  # behind all others, as nats-server forwards last
        self._undecided = 1  # streams that have not answered, and the routing itself
        self._ingress = self._note("in", kind=source.kind, cid=source.number)
        if source.name:
            self._ingress["name"] = source.name
        self._ingress["acc"] = account.name
        self._ingress["subj"] = _text(message.subject_bytes())

    # ── events ──

    def refused(self, reason: str) -> None:
        """The message may not be published."""
        self._ingress["error"] = reason

    def mapped(self, subject: bytes) -> None:
        """The account's mappings have given it another subject."""
        self._note("sm", to=_text(subject))

    def exported(self, account: str, subject: bytes) -> None:
        """A stream import of `account` takes it, under `subject`."""
        self._note("se", acc=account, to=_text(subject))

    def imported(self, account: str, subject: bytes, there: bytes) -> None:
        """A service import takes it to `account`, where its subject is `there`."""
        self._note("si", acc=account, **{"from": _text(subject)}, to=_text(there))

    def asks_system(self, subject: bytes, there: bytes) -> bool:
        """It is a request to the server, which nats-server has every account import from the system account. False: it is
        not to be served, as it is only traced."""
        self.imported(self.account.system_account, subject, there)
        return not self.only

    def delivered(self, subscription: SeenSubscription, error: str = "", subject: bytes = b"") -> None:
        """It went to a client, or did not: `error`. `subject`: what is subscribed to, if not as the client wrote it."""
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
        """A stream takes it; the report waits for the step's end."""
        self._undecided += 1
        return StreamStep(self, self._note("js", stream=name))

    def to_peer(self, outlet: SeenOutlet, kind: int, message: MessageView, error: str = "") -> MessageView | None:
        """The message as this peer is to get it, with the hop that the peer's own report will name; None: it gets none."""
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
        """It is routed in another account meanwhile; other servers report to `destination` there."""
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
        """The message was routed."""
        self._events += self._to_peers
        self.decided()

    def decided(self) -> None:
        """One of those the report waits for is done."""
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
    """What a stream does with a traced message: the first that is said of it counts."""

    def __init__(self, trace: MessageTrace, event: Event) -> None:
        self._trace = trace
        self._event = event
        self._open = True
        self._late = asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._is_late)

    def stored(self, subject: bytes, *, wanted: bool = True) -> None:
        """It is stored on `subject`, or would have been. `wanted` False: no consumer wants it, so it is not."""
        if self._open:
            self._event["ts"] = format_time(time.time_ns())
            self._event["subject"] = _text(subject)
            if not wanted:
                self._event["nointerest"] = True
            self._end()

    def refused(self, reason: str) -> None:
        """It is not stored."""
        if self._open:
            self._event["error"] = reason
            self._end()

    def _is_late(self) -> None:
        self.refused(f"no answer within {ANSWER_SECONDS:g} s: it may yet be stored")

    def _end(self) -> None:
        self._open = False
        self._late.cancel()
        self._trace.decided()


def _encoded(document: Event, request: TraceRequest) -> tuple[bytes, bytes]:
    """Header block and payload of a report, compressed as `Accept-Encoding` asks."""
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
    """The message, marked so that no server traces it."""
    return _with(message, DESTINATION, DISABLED)


def _with(message: MessageView, name: bytes, value: bytes) -> MessageView:
    block = with_header(slice_bytes(message.buffer, message.headers, message.payload), name, value)
    payload = slice_bytes(message.buffer, message.payload, message.end)
    return composed(message.subject_bytes(), message.reply_bytes(), block, payload)


def _text(subject: bytes) -> str:
    return subject.decode("utf-8", "replace")
