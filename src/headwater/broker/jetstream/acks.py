"""The ack protocol: what a client publishes to the reply subject of a message that it was given.

    $JS.ACK.<stream>.<consumer>.<count>.<stream seq>.<consumer seq>.<timestamp ns>.<pending>

    empty, +ACK, +OK     settled                    -NAK [{"delay":ns} | 1.5s]   deliver again, now or later
    +NXT [request]       settled, and one MSG.NEXT  +WPI                         still working: the ack wait starts again
    +TERM [reason]       never deliver again

Anything else changes nothing. With a reply subject, the client is told by an empty message that the ack was taken in
(not after +NXT, where the reply subject is the inbox for the next message).
"""

from typing import Literal, NamedTuple

import msgspec

from headwater.broker.jetstream.timestamps import parse_duration

AckKind = Literal["ack", "nak", "term", "progress", "next", "unknown"]


class Ack(NamedTuple):
    """`delay`: of a nak, in ns. `request`: the payload of the MSG.NEXT that comes with +NXT."""

    kind: AckKind
    delay: int = 0
    request: bytes = b""


_SETTLED = Ack("ack")


class AckSubject(NamedTuple):
    """The two numbers of the ack subject that say which delivery is meant."""

    stream_sequence: int
    consumer_sequence: int


class _NakOptions(msgspec.Struct):
    delay: int = 0


def parse_ack(payload: bytes) -> Ack:
    """What the client says."""
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


def parse_ack_subject(subject: bytes) -> AckSubject | None:
    """None when the subject is not one that we gave out."""
    tokens = subject.split(b".")
    if len(tokens) != 9 or not (tokens[5].isdigit() and tokens[6].isdigit()):
        return None
    if len(tokens[5]) > 19 or len(tokens[6]) > 19:
        return None
    return AckSubject(int(tokens[5]), int(tokens[6]))


def _delay(text: bytes) -> int:
    if text.startswith(b"{"):
        try:
            return msgspec.json.decode(text, type=_NakOptions).delay
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return 0
    return parse_duration(text) or 0
