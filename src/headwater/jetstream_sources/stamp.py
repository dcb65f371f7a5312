"""The header `Nats-Stream-Source`, which gives the origin of a sourced message. Pure.

    P2 3 p2.> > p2.a GIwlYNxL
    stream[:<hash of the API>], sequence there, filters, destinations, subject there, identity of that stream

The identity is a hash of the time at which the origin was created: a stream that was deleted and created again has
another one. Older servers wrote `<stream> <sequence>`, or the ack subject of the delivery; both are read.
"""

import re
from typing import NamedTuple

from headwater.jetstream_state.ack_subject import AckSubject
from headwater.jetstream_state.publish_checks import without_status
from headwater.model.header_block import lookup
from headwater.model.header_edits import with_lines
from headwater.model.short_hash import short_hash
from headwater.model.timestamps import format_time

NAME = b"Nats-Stream-Source"
DROPPED = (b"Nats-Expected-", b"Nats-Batch-")  # headers that concern the origin alone
_DROPPED_BY_SOURCE = (NAME + b":", *DROPPED)
_LINE = b"\r\nNats-"
_NUMBER = re.compile(r"[0-9]{1,19}")


class Position(NamedTuple):
    """The last message copied from an origin, and the identity of that stream ("" for none)."""

    sequence: int
    identity: str = ""


def identity_of(created_ns: int) -> str:
    """The identity that distinguishes streams of the same name. `created_ns`: creation time, ns since 1970."""
    return short_hash(format_time(created_ns))


def cleaned(block: bytes, *, of_stamp: bool = False) -> bytes:
    """The headers of a message without those that concern its origin alone, and without a status, which older servers have
    stored. `of_stamp`: also without the stamp that it has from there: a source writes its own, a mirror keeps it."""
    block = without_status(block)
    dropped = _DROPPED_BY_SOURCE if of_stamp else DROPPED
    if _LINE not in block or not any(name in block for name in dropped):
        return block
    lines = block.split(b"\r\n")
    kept = [line for line in lines if not line.startswith(dropped)]
    return b"\r\n".join(kept) if len(kept) > 3 else b""  # the version line and the two line ends


def stamped(block: bytes, index: bytes, sequence: int, subject: bytes, identity: bytes) -> bytes:
    """The headers with the stamp added. `index`: the name, filters and destinations of the source."""
    before, between, behind = marks(index, identity)
    return with_lines(block, b"%b%d%b%b%b" % (before, sequence, between, subject, behind))


def marks(index: bytes, identity: bytes) -> tuple[bytes, bytes, bytes]:
    """The parts of the stamp's line before the sequence, before the subject, and after it."""
    name, _, rest = index.partition(b" ")
    return b"Nats-Stream-Source: %b " % name, b" %b " % rest, b" " + identity if identity else b""


def read_stamp(block: bytes) -> tuple[str, Position] | None:
    """The index name of the source (of an older stamp: its stream), and the position; None without a stamp."""
    if NAME not in block:
        return None
    value = lookup(block, NAME)
    if not value:
        return None
    if value.startswith(b"$JS.ACK."):
        return _of_ack_subject(value)
    fields = value.decode("utf-8", "replace").split(" ")  # the value must be storable in a JSON document
    if len(fields) < 2 or len(fields) == 3 or not _NUMBER.fullmatch(fields[1]):
        return None
    if len(fields) == 2:
        return fields[0], Position(int(fields[1]))
    identity = fields[5] if len(fields) > 5 else ""
    return " ".join((fields[0], fields[2], fields[3])), Position(int(fields[1]), identity)


def _of_ack_subject(subject: bytes) -> tuple[str, Position] | None:
    where, tokens = AckSubject(), subject.split(b".")
    if not where.read(subject):
        return None
    stream = tokens[2] if len(tokens) == 9 else tokens[4]
    return stream.decode("utf-8", "replace"), Position(where.stream_sequence)
