"""Counters: each message of such a stream is an addition and holds the sum so far (ADR-49 of NATS).

    publish   Nats-Incr: +2, no body    ─▶  body {"val":"7"}, where the last message of the subject had {"val":"5"}
    sourced   body {"val":"9"}, of which 6 were known already  ─▶  Nats-Incr: 3, and our own sum in the body

Sums are texts of any length (`model/long_numbers.py`). The last sum is read from the stream itself; only sums that are
not durable yet are kept in memory, so a counter is right after a power loss without storing anything else. A sum based
on one that could not be written is not stored either (`jetstream_publishing/publishing.py`).

A counter with sources keeps the last sum of each in the header `Nats-Counter-Sources`, so that it adds only the
difference.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import cython
import msgspec

if cython.compiled:
    from cython.cimports.headwater.jetstream_state.items import Item
else:
    from headwater.jetstream_state.items import Item

from headwater.jetstream_documents.api_errors import api_error
from headwater.model.header_block import lookup
from headwater.model.long_numbers import read_number, write_number
from headwater.model.thinning import thin_out
from headwater.streams.log import StoredRecord

INCREMENT_HEADER = b"Nats-Incr"
SOURCES_HEADER = b"Nats-Counter-Sources"
MOST_REMEMBERED = 8192  # cached sums, beside those that are not durable yet
MOST_TOTAL = 1 << 61  # `Sums.total` has no larger sums

_INCREMENT = re.compile(rb"[+-]?[0-9]+")
_FORBIDDEN = (
    b"Nats-Rollup",
    b"Nats-Expected-Stream",
    b"Nats-Expected-Last-Sequence",
    b"Nats-Expected-Last-Subject-Sequence",
    b"Nats-Expected-Last-Subject-Sequence-Subject",
    b"Nats-Expected-Last-Msg-Id",
)

Known = dict[str, dict[str, str]]  # by stream and subject of origin: the last sum copied from there


class Sum(NamedTuple):
    """The sum of a subject. `sources`: the value of Nats-Counter-Sources, b"" for none."""

    value: int = 0
    sources: bytes = b""


class Counted(NamedTuple):
    """A message of a counter as stored. `tail`: the part of its acknowledgement after the sequence."""

    header_block: bytes
    payload: bytes
    tail: bytes
    sum: Sum


def check_increment(read: Callable[[bytes], bytes | None], payload: bytes, *, allowed: bool) -> None:
    """Check a publish that is an addition: only counters accept one, and its value must be valid. `read(name)`: its
    headers. Raises JetStreamError."""
    text = read(INCREMENT_HEADER)
    if not text:
        return
    if not _INCREMENT.fullmatch(text):
        raise api_error("increment_invalid")
    if not allowed:
        raise api_error("counter_disabled")
    if payload:
        raise api_error("counter_has_payload")
    for name in _FORBIDDEN:
        if read(name):
            raise api_error("increment_invalid")


def check_is_addition(block: bytes) -> None:
    """Check that a publish to a counter is an addition; the last of the checks. Raises JetStreamError."""
    if not block or not lookup(block, INCREMENT_HEADER):
        raise api_error("increment_missing")


def added(block: bytes, last: Sum) -> Counted:
    """Apply a checked addition to the `last` sum of its subject."""
    value = last.value + read_number((lookup(block, INCREMENT_HEADER) or b"0").decode())
    if not last.sources:
        return _counted(block, value, lookup(block, SOURCES_HEADER) or b"")
    own = b"%b: %b" % (SOURCES_HEADER, last.sources)
    lines = block.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if lookup(block, SOURCES_HEADER) is None:
        lines.append(own)
    lines = [own if line.startswith(SOURCES_HEADER + b":") else line for line in lines]
    return _counted(b"\r\n".join([*lines, b"", b""]), value, last.sources)


def sourced(block: bytes, payload: bytes, stream: str, subject: bytes, last: Sum) -> Counted:
    """Apply a message copied from `subject` of another `stream`, which is a counter too. Raises JetStreamError 10172
    when its body is no sum."""
    known = _read_sources(last.sources)
    of_stream = known.setdefault(stream, {})
    name = subject.decode("utf-8", "replace")
    theirs = _read_body(payload)
    more = theirs - read_number(of_stream.get(name, "0"))
    of_stream[name] = write_number(theirs)
    sources = msgspec.json.encode(dict(sorted((origin, dict(sorted(of.items()))) for origin, of in known.items())))
    lines = block.removesuffix(b"\r\n\r\n").split(b"\r\n")
    own = (INCREMENT_HEADER + b":", SOURCES_HEADER + b":")
    kept = [line for line in lines[1:] if not line.startswith(own)]
    head = b"%b: %b" % (INCREMENT_HEADER, write_number(more).encode())
    block = b"\r\n".join([b"NATS/1.0", head, *kept, b"%b: %b" % (SOURCES_HEADER, sources), b"", b""])
    return _counted(block, last.value + more, sources)


def sum_of(record: StoredRecord) -> Sum:
    """The sum in a stored message. Raises JetStreamError 10172 when it has none."""
    block = record.header_block
    return Sum(_read_body(record.payload), lookup(block, SOURCES_HEADER) or b"" if block else b"")


class _Held:
    """The sum that the message with this sequence has."""

    sequence: int
    value: int
    sources: bytes

    def __init__(self, sequence: cython.longlong, value: int, sources: bytes) -> None:
        self.sequence = sequence
        self.value = value
        self.sources = sources


class Sums:
    """The sums of a stream. `last(subject)`: sequence of the last durable message, 0 for none; `load` reads a message."""

    def __init__(self, last: Callable[[bytes], int], load: Callable[[int], StoredRecord | None]) -> None:
        self._last = last
        self._load = load
        self._unwritten: dict[bytes, _Held] = {}
        self._written: dict[bytes, _Held] = {}

    def last(self, subject: bytes) -> Sum:
        """The sum of a subject, messages being written included. Raises JetStreamError 10172 when its last message
        holds no sum."""
        held: _Held | None = self._unwritten.get(subject)
        if held is not None:
            return Sum(held.value, held.sources)
        sequence = self._last(subject)
        if not sequence:
            return Sum()
        held = self._written.get(subject)
        if held is not None and held.sequence == sequence:
            return Sum(held.value, held.sources)
        record = self._load(sequence)
        if record is None:
            return Sum()
        found = sum_of(record)
        self._remember(subject, _Held(sequence, found.value, found.sources))
        return found

    def total(self, subject: bytes, increment: cython.longlong) -> int | None:
        """The sum with an addition below MOST_TOTAL; None where `added` is to be asked: it is long, has sources, or is not
        in memory."""
        held: _Held | None = self._unwritten.get(subject)
        if held is None:
            sequence = self._last(subject)
            if not sequence:
                return increment
            held = self._written.get(subject)
            if held is None or held.sequence != sequence:
                return None
        if held.sources or not -MOST_TOTAL < held.value < MOST_TOTAL:
            return None
        value: cython.longlong = held.value
        return value + increment

    def note_staged(self, subject: bytes, sequence: int, now: Sum) -> None:
        """The message with this sequence was staged."""
        self._unwritten[subject] = _Held(sequence, now.value, now.sources)

    def note_total(self, subject: bytes, sequence: int, value: int) -> None:
        """The same, of a `total`."""
        self._unwritten[subject] = _Held(sequence, value, b"")

    def note_done(self, subject: bytes, sequence: cython.longlong, stored: cython.bint) -> cython.int:
        """The message is durable or, if not `stored`, was lost."""
        held: _Held | None = self._unwritten.get(subject)
        if held is not None and held.sequence == sequence:
            del self._unwritten[subject]
            if stored:
                self._remember(subject, held)
        return 0

    def note_all_done(self, items: list[Item], stored: cython.bint) -> cython.int:
        """As `note_done` for each of these."""
        item: Item
        for item in items:
            self.note_done(item.subject, item.sequence, stored)
        return 0

    def _remember(self, subject: bytes, held: _Held) -> cython.int:
        if len(self._written) >= MOST_REMEMBERED and subject not in self._written:
            thin_out(self._written)
        self._written[subject] = held
        return 0


def _counted(block: bytes, value: int, sources: bytes) -> Counted:
    text = write_number(value).encode()
    return Counted(block, b'{"val":"%b"}' % text, b',"val":"%b"}' % text, Sum(value, sources))


def _read_body(payload: bytes) -> int:
    try:
        document = msgspec.json.decode(payload, type=dict[str, object])
        return read_number(str(document["val"]))
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, ValueError) as error:
        raise api_error("counter_broken") from error


def _read_sources(value: bytes) -> Known:
    """Parse the header; a client may have sent any value."""
    try:
        known = msgspec.json.decode(value, type=Known) if value else {}
        for of_stream in known.values():
            for text in of_stream.values():
                read_number(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        return {}
    return known
