"""The ack protocol: the payloads that a client publishes to the reply subject of a delivered message
(`jetstream_state/ack_subject.py` reads that).

    empty, +ACK, +OK     settled                    -NAK [{"delay":ns} | 1.5s]   deliver again, now or later
    +NXT [request]       settled, and one MSG.NEXT  +WPI                         still working: the ack wait starts again
    +TERM [reason]       never deliver again

Any other payload is ignored. An acknowledgement with a reply subject is answered by an empty message once it is
durable; after +NXT the reply subject is the inbox for the next message instead.
"""

from typing import Literal, NamedTuple

import msgspec

from headwater.model.timestamps import parse_duration

AckKind = Literal["ack", "nak", "term", "progress", "next", "unknown"]


class Ack(NamedTuple):
    """`delay`: of a nak, in ns. `request`: the payload of the MSG.NEXT that comes with +NXT."""

    kind: AckKind
    delay: int = 0
    request: bytes = b""


_SETTLED = Ack("ack")


class _NakOptions(msgspec.Struct):
    delay: int = 0


def parse_ack(payload: bytes) -> Ack:
    """The kind of an acknowledgement, from its payload."""
    if payload in (b"", b"+ACK", b"+OK"):
        return _SETTLED
    if payload.startswith(b"+NXT"):
        return Ack("next", request=payload[4:].strip())
    if payload.startswith(b"-NAK"):
        return Ack("nak", delay=_delay(payload[4:].strip()))
    if payload.startswith(b"+WPI"):
        return Ack("progress")
    if payload.startswith(b"+TERM"):
        return Ack("term")
    return Ack("unknown")


def _delay(text: bytes) -> int:
    if text.startswith(b"{"):
        try:
            return msgspec.json.decode(text, type=_NakOptions).delay
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return 0
    return max(parse_duration(text) or 0, 0)
