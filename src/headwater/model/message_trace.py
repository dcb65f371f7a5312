"""Message tracing (ADR-41): parses the headers that request a trace. Pure.

    Nats-Trace-Dest: <subject>     a report of each server that the message passes goes there; `trace disabled`: none do
    Nats-Trace-Only: true|1|on     the message itself is not delivered, and no stream stores it
    Nats-Trace-Hop: 1.2            written by servers: the second hop of the first
    traceparent: 00-…-…-01         sampled: counts where the account has a destination for reports

Source: nats-server 2.15, msgtrace.go. The name `traceparent` is found in any case, the others only as they are written.
"""

from typing import NamedTuple

from headwater.model.header_names import NatsHeader

DESTINATION = NatsHeader.TRACE_DEST.wire
HOP = NatsHeader.TRACE_HOP.wire
DISABLED = b"trace disabled"  # no subject: it has a blank
PLAIN, SAMPLED = 1, 2  # what `MessageView.trace_mark` finds: a destination, or only a traceparent
CLIENT, ROUTE, LEAF = 0, 1, 4  # kinds of connections in a report; 2, gateways, is not used

NO_ECHO = "Not delivered because of no echo"
DENIED = "Not delivered because publish denied for this subject"
SUBSCRIPTION_DENIED = "Not delivered because subscription denies this subject"
SUBSCRIPTION_CLOSED = "Not delivered because subscription is closed"
CLIENT_CLOSED = "Not delivered because client is closed"
ONLY_UNSUPPORTED = "Not delivered because remote does not support message tracing"
UNSUPPORTED = "Message delivered but remote does not support message tracing so no trace event generated from there"

_VERSION = b"NATS/1.0\r\n"
_PARENT = b"traceparent"


class TraceRequest(NamedTuple):
    """The headers of a message that is to be traced. `external`: only a sampled `traceparent` asks for it."""

    headers: dict[str, list[str]]
    external: bool

    def first(self, name: str) -> str:
        """The first value under exactly this name; "" without one."""
        return self.headers.get(name, [""])[0]

    @property
    def only(self) -> bool:
        """Whether the message is to be traced and not delivered."""
        return not self.external and self.first(NatsHeader.TRACE_ONLY).lower() in ("1", "true", "on")


def read_trace_request(block: bytes) -> TraceRequest | None:
    """The trace request in a header block; None if there is none. Never raises, whatever the bytes are."""
    if not block.startswith(_VERSION):
        return None
    headers: dict[str, list[str]] = {}
    wanted = sampled = False
    at, end = len(_VERSION), len(block)
    while at < end:
        colon = block.find(b":", at)
        line_end = block.find(b"\r\n", colon + 1)
        if colon < 0 or line_end < 0:
            break
        name, value = block[at:colon], block[colon + 1 : line_end].strip(b" \t")
        at = line_end + 2
        if not name or not value:
            continue
        if not sampled and name.lower() == _PARENT:
            sampled = is_sampled(value)
        elif not wanted and name == DESTINATION:
            if value == DISABLED:
                return None
            wanted = True
        headers.setdefault(_text(name), []).append(_text(value))
    return TraceRequest(headers, not wanted) if wanted or sampled else None


def is_sampled(value: bytes) -> bool:
    """Whether the flags of a `traceparent`, its fourth field, have the lowest bit."""
    fields = value.split(b"-")
    try:
        # Go reads it as a signed byte: from 80 on it is out of range, and so are two characters of which one is a sign.
        return len(fields) == 4 and len(fields[3]) == 2 and fields[3].isalnum() and int(fields[3], 16) & 0x81 == 1
    except ValueError:
        return False


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
