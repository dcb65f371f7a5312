"""MSG.NEXT: parsing of pull requests, and the queue of waiting ones. Pure; times are ints of any clock.

A request is answered with messages and, if it ends before its batch is full, with one status without payload. The
statuses are nats-server's (section 6.6 of the project's NATS reference); their header blocks are built here, and
nowhere else.
"""

from collections import deque
from collections.abc import Callable

import msgspec

from headwater.errors import JetStreamError
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.strict_reading import decode_request
from headwater.model.timestamps import format_duration

SHORTEST_HEARTBEAT = 10_000_000  # ns; a request for more than 100 heartbeats a second gets 100

MOST_PRIORITY = 9

NO_RESPONDERS = b"NATS/1.0 503\r\nNats-Subject: %s\r\n\r\n"
PIN_MISMATCH = b"NATS/1.0 423 Nats-Pin-Id mismatch\r\n\r\n"
NO_MESSAGES = b"NATS/1.0 404 No Messages\r\n\r\n"
REQUESTS_PENDING = b"NATS/1.0 408 Requests Pending\r\n\r\n"
CONSUMER_DELETED = b"NATS/1.0 409 Consumer Deleted\r\n\r\n"
SERVER_SHUTDOWN = b"NATS/1.0 409 Server Shutdown\r\n\r\n"
PUSH_BASED = b"NATS/1.0 409 Consumer is push based\r\n\r\n"
EXCEEDED_MAX_WAITING = b"NATS/1.0 409 Exceeded MaxWaiting\r\n\r\n"


class NextRequest(msgspec.Struct):
    """The JSON form; unknown fields are ignored, as nats-server does here."""

    batch: int = 0
    max_bytes: int = 0
    expires: int = 0
    no_wait: bool = False
    idle_heartbeat: int = 0
    group: str = ""
    id: str = ""
    min_pending: int = 0
    min_ack_pending: int = 0
    priority: int = 0


class CountRequest(NextRequest):
    """A request that is only a number: nats-server asks it for no priority group."""


_decoder = msgspec.json.Decoder(NextRequest)


def parse_request(payload: bytes) -> NextRequest | bytes:
    """The parsed request, or the header block of the status that refuses it.

    A payload that is not JSON is a number of messages; an invalid one means 1, as in nats-server.
    """
    if payload.lstrip()[:1] == b"{":
        try:
            # async-nats sends unset fields as null.
            request = _decoder.decode(payload) if b"null" not in payload else decode_request(payload, NextRequest)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, JetStreamError) as error:
            return _bad_request(str(error))
    else:
        digits = payload.strip()
        request = CountRequest(batch=int(digits) if digits.isdigit() and len(digits) < 10 else 1)
    request.batch = max(request.batch, 1)
    request.max_bytes = max(request.max_bytes, 0)
    request.idle_heartbeat = max(request.idle_heartbeat, 0)
    if request.idle_heartbeat and request.idle_heartbeat * 2 > request.expires:
        return _bad_request("heartbeat value too large")
    if request.idle_heartbeat:
        request.idle_heartbeat = max(request.idle_heartbeat, SHORTEST_HEARTBEAT)
    return request


def _refusal_by_group(request: NextRequest, policy: str, groups: list[str]) -> str:
    """Why the request does not fit the consumer's priority groups; "" when it does."""
    if policy != "overflow" and (request.min_pending or request.min_ack_pending):
        return "Not a Overflow Priority consumer"
    if policy != "pinned_client" and request.id:
        return "Not a Pinned Client Priority consumer"
    if not 0 <= request.priority <= MOST_PRIORITY:
        return f"Priority must be between 0 and {MOST_PRIORITY}"
    if policy and not request.group:
        return "Priority Group missing"
    if policy and request.group not in groups:
        return "Invalid Priority Group"
    return ""


def refusal_by_limits(request: NextRequest, config: ConsumerConfig) -> bytes | None:
    """The header block of the status for a request above the consumer's limits, or that does not fit its priority
    groups; else None. In nats-server's order."""
    if 0 < config.max_batch < request.batch:
        return b"NATS/1.0 409 Exceeded MaxRequestBatch of %d\r\n\r\n" % config.max_batch
    if 0 < config.max_expires < request.expires:
        limit = format_duration(config.max_expires).encode()
        return b"NATS/1.0 409 Exceeded MaxRequestExpires of %s\r\n\r\n" % limit
    if 0 < config.max_bytes < request.max_bytes:
        return b"NATS/1.0 409 Exceeded MaxRequestMaxBytes of %d\r\n\r\n" % config.max_bytes
    if isinstance(request, CountRequest):
        return None
    refusal = _refusal_by_group(request, config.priority_policy, config.priority_groups or [])
    return _bad_request(refusal) if refusal else None


class Waiting:
    """A request in the queue. `remaining` messages and `bytes_left` (when `max_bytes`) may still be delivered."""

    __slots__ = (
        "bytes_left", "delivered", "expires_at", "heartbeat", "max_bytes", "min_ack_pending", "min_pending",
        "next_heartbeat", "no_wait", "pin", "priority", "remaining", "reply",
    )  # fmt: skip

    def __init__(self, reply: bytes, request: NextRequest, now: int) -> None:
        self.reply = reply
        self.remaining = request.batch
        self.max_bytes = request.max_bytes
        self.bytes_left = request.max_bytes
        # 0: never. A negative expiry was over before it began.
        self.expires_at = now + request.expires if request.expires else 0
        self.no_wait = request.no_wait
        self.heartbeat = request.idle_heartbeat
        self.next_heartbeat = now + self.heartbeat if self.heartbeat else 0
        self.delivered = 0
        self.min_pending = request.min_pending
        self.min_ack_pending = request.min_ack_pending
        self.priority = request.priority
        self.pin = request.id

    def took(self, size: int, now: int, count: int = 1) -> bool:
        """Count `count` deliveries of `size` bytes together; True when the request is full."""
        self.delivered += count
        self.remaining -= count
        if self.heartbeat:
            self.next_heartbeat = now + self.heartbeat
        if self.max_bytes:
            self.bytes_left -= size
            return self.remaining == 0 or self.bytes_left <= 0
        return self.remaining == 0

    def timed_out(self) -> bytes:
        """The status of an expired request."""
        return self._unfilled(b"408 Request Timeout")

    def wrong_pin(self) -> bytes:
        """The status of a request with an outdated pin id."""
        return self._unfilled(b"423 Nats-Wrong-Pin-Id")

    def too_small(self) -> bytes:
        """The status of a request whose `max_bytes` cannot hold the next message."""
        return self._unfilled(b"409 Message Size Exceeds MaxBytes")

    def _unfilled(self, status: bytes) -> bytes:
        pending = b"Nats-Pending-Messages: %d\r\nNats-Pending-Bytes: %d" % (self.remaining, self.bytes_left)
        return b"NATS/1.0 %s\r\n%s\r\n\r\n" % (status, pending)


class RequestQueue:
    """Waiting requests, served in turn, one message each, as in nats-server, so that no client starves another."""

    def __init__(self) -> None:
        self._requests: deque[Waiting] = deque()

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: Waiting) -> None:
        self._requests.append(request)

    def first(self) -> Waiting | None:
        """The request whose turn it is."""
        return self._requests[0] if self._requests else None

    def bring_first(self, suits: Callable[[Waiting], bool]) -> Waiting | None:
        """Move the first request that `suits` to the front and return it; None when there is none."""
        for position, request in enumerate(self._requests):
            if suits(request):
                if position:
                    del self._requests[position]
                    self._requests.appendleft(request)
                return request
        return None

    def lowest_priority(self) -> int:
        """The smallest priority number of the waiting requests."""
        return min((request.priority for request in self._requests), default=0)

    def next_turn(self) -> None:
        """Move the first request to the end."""
        if len(self._requests) > 1:
            self._requests.rotate(-1)

    def drop_first(self) -> None:
        """Remove the first request."""
        self._requests.popleft()

    def wanted(self) -> int:
        """The number of messages that all requests together still want."""
        return sum(request.remaining for request in self._requests)

    def has_one_reply(self) -> bool:
        """Whether all waiting requests have the same reply subject."""
        return len({request.reply for request in self._requests}) <= 1

    def replies(self) -> list[bytes]:
        """The reply subjects."""
        return [request.reply for request in self._requests]

    def keep(self, wanted: set[bytes]) -> None:
        """Drop every request whose reply subject is not in `wanted`."""
        self._requests = deque(request for request in self._requests if request.reply in wanted)

    def take_all(self) -> list[Waiting]:
        """Remove and return all requests."""
        taken, self._requests = list(self._requests), deque()
        return taken

    def take_expired(self, now: int) -> list[Waiting]:
        """Remove and return the expired requests."""
        return self.take(lambda request: 0 < request.expires_at <= now)

    def take_unserved(self, awaiting_acks_at: int = 0) -> list[Waiting]:
        """Remove and return the `no_wait` requests that end when nothing more can be delivered: those without an
        expiry, or served already. While max_ack_pending holds messages back (`awaiting_acks_at`: the time now), only
        those whose heartbeat is due: nats-server checks again then."""
        return self.take(
            lambda request: (
                request.no_wait
                and (not request.expires_at or request.delivered > 0)
                and (not awaiting_acks_at or 0 < request.next_heartbeat <= awaiting_acks_at)
            )
        )

    def take_heartbeats(self, now: int) -> list[Waiting]:
        """The requests due for a heartbeat; their next one is scheduled. They stay in the queue."""
        due = [request for request in self._requests if 0 < request.next_heartbeat <= now]
        for request in due:
            request.next_heartbeat = now + request.heartbeat
        return due

    def next_deadline(self) -> int:
        """The time at which `take_expired` or `take_heartbeats` next returns a request; 0: never."""
        times = [t for request in self._requests for t in (request.expires_at, request.next_heartbeat) if t]
        return min(times, default=0)

    def take(self, done: Callable[[Waiting], bool]) -> list[Waiting]:
        """Remove and return the requests for which `done` is true."""
        taken = [request for request in self._requests if done(request)]
        if taken:
            self._requests = deque(request for request in self._requests if not done(request))
        return taken


def _bad_request(reason: str) -> bytes:
    if "truncated" in reason:
        reason = "unexpected end of JSON input"
    text = reason.replace("\r", " ").replace("\n", " ")
    return b"NATS/1.0 400 Bad Request - %s\r\n\r\n" % text.encode("utf-8", "replace")


def idle_heartbeat(consumer_sequence: int, stream_sequence: int, stalled: bytes = b"") -> bytes:
    """The idle heartbeat: the last delivered sequences, and the flow-control subject whose answer deliveries wait
    for."""
    last = b"Nats-Last-Consumer: %d\r\nNats-Last-Stream: %d" % (consumer_sequence, stream_sequence)
    if stalled:
        last += b"\r\nNats-Consumer-Stalled: " + stalled
    return b"NATS/1.0 100 Idle Heartbeat\r\n%s\r\n\r\n" % last


def flow_control_request() -> bytes:
    """The status that requests a flow-control answer from a push consumer's client."""
    return b"NATS/1.0 100 FlowControl Request\r\n\r\n"
