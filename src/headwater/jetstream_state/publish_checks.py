# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Checks the headers of a publish before it is stored, in nats-server's order and with its texts.

    1. Nats-Batch-Id where it is off; Nats-Incr (`counters.py`)
    2. Nats-Expected-Stream, Nats-TTL (where it is off), Nats-Expected-Last-Subject-Sequence, Nats-Expected-Last-Sequence,
       Nats-Schedule (`schedule_checks.py`), Nats-Stream-Source (of the server's making)
    3. Nats-Msg-Id: a duplicate is answered with the sequence of the original (by `jetstream_publishing/publish_rules.py`)
    4. Nats-Expected-Last-Msg-Id, Nats-Rollup, and the Nats-TTL itself

All of these begin with `Nats-`. A block without such a line, one whose only such line is the message id, the common case,
and one that also names the stream cost one walk over their bytes. `lone_message_id` is hot and compiled; interpreted, and
for long or other blocks, it searches. `of_batch_alone` is its like for messages of atomic batches.

A status in the first line (`NATS/1.0 503`) is not stored: a pull consumer's client would take the message for the end of its
request. nats-server leaves it out, too.

`Admitted` and `Duplicate` are what `jetstream_publishing/publish_rules.py` then decides.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, Protocol

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.headwater.wire.memory import part_of
    from cython.cimports.libc.string import memchr, memcmp
else:
    from headwater.wire.memory import part_of

from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_state.counters import INCREMENT_HEADER, Sum, check_increment
from headwater.jetstream_state.items import Item, Particulars
from headwater.jetstream_state.schedule_checks import ScheduleRules, check_schedule
from headwater.model.header_block import finder, lookup
from headwater.model.timestamps import SECOND, parse_duration

MAX_HEADER_BLOCK = 65_535  # bytes

_VERSION = b"NATS/1.0"
_LINE = b"\r\nNats-"
_ID = b"Nats-Msg-Id"
_EXPECTED = b"Nats-Expected-Stream"
_ID_LINE = b"\r\n" + _ID + b":"
_SEARCH = -2  # of `_walk`
LONGEST_REMEMBERED = 64  # bytes of a TTL; a header may have a thousand times as many
LONGEST_WALK = 1024  # bytes; a search takes less for each byte and more for each call


class Admitted(NamedTuple):
    """A publish to be stored. `size`: the bytes it adds to the stream. `particulars`: see `Item`. `tail`: the part of its
    acknowledgement after the sequence; b"" for the ordinary one. `sum`: the new value of a counter."""

    header_block: bytes
    payload: bytes
    message_id: bytes
    size: int
    particulars: Particulars | None
    tail: bytes = b""
    sum: Sum | None = None


class Duplicate(NamedTuple):
    """A publish whose message is already stored, or being written, with this sequence."""

    sequence: int


class Unwritten(Protocol):
    """The messages that are staged or being written (`Committer`)."""

    @property
    def full(self) -> bool:
        """Whether further messages would only pile up in memory."""
        ...

    @property
    def busy(self) -> bool:
        """Whether anything is staged or being written."""
        ...

    @property
    def waiting(self) -> list[Item]:
        """The staged messages."""
        ...

    @property
    def writing(self) -> list[Item]:
        """The messages being written."""
        ...


def naming(stream: str) -> bytes:
    """The header line with which a publisher names the stream, for `lone_message_id`."""
    return b"\r\n%b: %b\r\n" % (_EXPECTED, stream.encode())


def lone_message_id(block: bytes, named: bytes = b"") -> bytes | None:
    """The message id if no other header concerns the stream (b"" for no id); None if there is more to check. `named`: a
    line that is also accepted, because its condition holds (`naming`)."""
    start: cython.Py_ssize_t
    if has_status(block):
        return None
    if not cython.compiled or len(block) > LONGEST_WALK:
        return _searched(block, named)
    start = _walk(block, named)
    if start == _SEARCH:
        return _searched(block, named)
    return value_at(block, len(block), start) if start >= 0 else b""


def has_status(block: bytes) -> cython.bint:
    """Whether anything follows the version in the first line."""
    return len(block) > 8 and block[8] != 13 and block.startswith(_VERSION)


def without_status(block: bytes) -> bytes:
    """`block` with a first line that has the version alone; b"" if no header remains. A block without an end of line is left
    as it is, as nats-server leaves it."""
    if not has_status(block):
        return block
    end = block.find(b"\r")
    return block if end < 0 else _VERSION + block[end:] if len(block) - end > len(b"\r\n\r\n") else b""


def _walk(block: bytes, named: bytes) -> cython.Py_ssize_t:
    """Where the value of the one id line begins, -1 where there is no such line; `_SEARCH` when anything else begins with
    `Nats-`, or stands twice."""
    size: cython.Py_ssize_t = len(block)
    named_size: cython.Py_ssize_t = len(named)
    found: cython.Py_ssize_t = -1
    was_named: cython.bint = False
    at: cython.Py_ssize_t = mention(block, size, 0)
    while at >= 0:
        if at < 2 or block[at - 1] != 10 or block[at - 2] != 13:
            return _SEARCH
        if found < 0 and stands(block, size, at, b"Nats-Msg-Id:"):
            at += 12
            found = at
        elif named_size and not was_named and stands(block, size, at - 2, named):
            was_named = True
            at += named_size - 4  # onto the CR LF, which is the next line's too
        else:
            return _SEARCH
        at = mention(block, size, at)
    return found


def mention(block: bytes, size: cython.Py_ssize_t, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where `Nats-` stands next, from `at` on; -1 for nowhere. `block` has `size` bytes."""
    if cython.compiled:
        data: cython.p_char = PyBytes_AS_STRING(block)
        # An `N` is seldom anything else: to search for it and look is a quarter of the instructions of a look at each byte.
        while at + 5 <= size:
            found: cython.p_char = cython.cast(cython.p_char, memchr(data + at, 78, size - at - 4))
            if found == cython.NULL:
                return -1
            at = found - data
            if data[at + 1] == 97 and stands(block, size, at, b"Nats-"):
                return at
            at += 1
        return -1
    return block.find(b"Nats-", at)


def stands(block: bytes, size: cython.Py_ssize_t, at: cython.Py_ssize_t, text: bytes) -> cython.bint:
    """Whether `text` stands at `block[at]`; `block` has `size` bytes."""
    if cython.compiled:
        length: cython.Py_ssize_t = len(text)
        return at + length <= size and memcmp(PyBytes_AS_STRING(block) + at, PyBytes_AS_STRING(text), length) == 0
    return block.startswith(text, at)


def value_at(block: bytes, size: cython.Py_ssize_t, start: cython.Py_ssize_t) -> bytes:
    """The value that begins behind a colon, as `lookup` gives it. `block` has `size` bytes."""
    end: cython.Py_ssize_t
    while start < size and block[start] == 32:
        start += 1
    end = start
    while end < size and not (block[end] == 13 and end + 1 < size and block[end + 1] == 10):
        end += 1
    return part_of(block, start, end)


def _searched(block: bytes, named: bytes) -> bytes | None:
    first = block.find(_LINE)
    if first < 0:
        return b""
    second = block.find(_LINE, first + len(_LINE))
    if named and (second >= 0 or not block.startswith(_ID_LINE, first)):
        at = block.find(named)
        if at < 0 or block.find(_EXPECTED) != at + 2:  # the name may also occur in an earlier value
            return None
        if at == first:
            if second < 0:
                return b""
            first, second = second, block.find(_LINE, second + len(_LINE))
        elif at == second:
            second = block.find(_LINE, second + len(_LINE))
    if second >= 0 or not block.startswith(_ID_LINE, first):
        return None
    if block.find(_ID) < first:  # the name may occur in a value: `lookup` distinguishes the two
        return lookup(block, _ID) or b""
    start = first + len(_ID_LINE)
    end = block.find(b"\r\n", start)
    return block[start : len(block) if end < 0 else end].lstrip(b" ")


def of_batch_alone(block: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Id, sequence and commit (b"" where absent) of a message of an atomic batch, when no other header concerns the stream;
    None when there is more to check."""
    batch_id: bytes = b""
    sequence: bytes = b""
    commit: bytes = b""
    at: cython.Py_ssize_t = block.find(_LINE)
    colon: cython.Py_ssize_t
    end: cython.Py_ssize_t
    if has_status(block):
        return None
    while at >= 0:
        colon = block.find(b":", at)
        if colon < 0:
            return None
        name: bytes = block[at + 2 : colon]
        if block.find(name) != at + 2:  # it may stand in a value before, or twice
            return None
        end = block.find(b"\r\n", colon)
        if end < 0:
            return None
        value: bytes = block[colon + 1 : end].lstrip(b" ")
        if name == b"Nats-Batch-Sequence":
            sequence = value
        elif name == b"Nats-Batch-Id":
            batch_id = value
        elif name == b"Nats-Batch-Commit" and value:
            commit = value
        else:
            return None
        at = block.find(_LINE, end)
    return batch_id, sequence, commit


class Allowed(NamedTuple):
    """The headers that the stream's configuration allows."""

    rollup: bool = False
    ttl: bool = False
    counter: bool = False
    schedules: ScheduleRules | None = None
    in_batch: Callable[[], None] | None = None  # further checks of a message of an atomic batch; raises JetStreamError


class Demands(NamedTuple):
    """The values that remain to be checked after the first two groups: the id (b"" for none), and the fourth group.
    `rollup`: b"sub", b"all", or b"". `ttl`: as it was written. `adds_rollup`: a schedule, which gets a roll-up of its
    subject."""

    message_id: bytes
    last_message_id: bytes | None = None
    rollup: bytes = b""
    ttl: bytes = b""
    increment: bytes = b""
    adds_rollup: bool = False


def check_before_id(
    block: bytes,
    subject: bytes,
    stream: str,
    last_sequence: int,
    last_of_subject: Callable[[bytes], int],
    allowed: Allowed = Allowed(),  # noqa: B008  (a constant)
    payload: bytes = b"",
) -> Demands:
    """Check groups 1 and 2; returns what is left to check.

    `last_sequence`: the last assigned sequence. `last_of_subject(pattern)`: the same for a subject. Raises
    JetStreamError.
    """
    read = finder(block, b"Nats-")
    if allowed.in_batch is None and read(b"Nats-Batch-Id"):
        raise api_error("atomic_publish_disabled")
    check_increment(read, payload, allowed=allowed.counter)
    expected_stream = read(b"Nats-Expected-Stream")
    if expected_stream and expected_stream != stream.encode():
        raise api_error("expected_stream")
    ttl = read(b"Nats-TTL") or b""
    if ttl and not allowed.ttl and (allowed.in_batch is not None or _ttl(ttl) is not None):
        raise api_error("ttl_disabled")
    if allowed.in_batch is not None:
        if ttl and _ttl(ttl) is None:
            raise api_error("ttl_invalid")
        allowed.in_batch()
    expected = read(b"Nats-Expected-Last-Subject-Sequence")
    pattern = read(b"Nats-Expected-Last-Subject-Sequence-Subject")
    if expected:
        last = last_of_subject(pattern or subject)
        if _number(expected) != last:
            raise api_error("wrong_last_sequence", sequence=last)
    elif pattern:
        raise api_error("sequence_for_subject_missing")
    expected = read(b"Nats-Expected-Last-Sequence")
    if expected and _number(expected) != last_sequence:
        raise api_error("wrong_last_sequence", sequence=last_sequence)
    adds_rollup = allowed.schedules is not None and check_schedule(block, subject, allowed.schedules)
    if read(b"Nats-Stream-Source"):
        raise api_error("source_header")
    return Demands(
        read(b"Nats-Msg-Id") or b"",
        read(b"Nats-Expected-Last-Msg-Id") or None,
        (read(b"Nats-Rollup") or b"").lower(),
        ttl,
        read(INCREMENT_HEADER) or b"",
        adds_rollup,
    )


def rollup_of(block: bytes) -> bytes:
    """b"sub" or b"all" when the message demands a roll-up, else b""."""
    if b"Nats-Rollup" not in block:
        return b""
    kind = (lookup(block, b"Nats-Rollup") or b"").lower()
    return kind if kind in (b"sub", b"all") else b""


def ttl_of(block: bytes) -> int | None:
    """The message's TTL in nanoseconds: None without the header, 0 for `never`. Raises JetStreamError 10165."""
    if b"Nats-TTL" not in block:
        return None
    text = lookup(block, b"Nats-TTL")
    if not text:
        return None
    ttl = _ttl(text)
    if ttl is None:
        raise api_error("ttl_invalid")
    return ttl


def is_ttl(text: bytes) -> bool:
    """Whether the text is a valid TTL: a duration of a second or more, or `never`."""
    return _ttl(text) is not None


def valid_ttl(text: bytes) -> int | None:
    """A TTL in nanoseconds, 0 for `never`, None for an invalid one."""
    return _ttl(text)


def _ttl(text: bytes) -> int | None:
    """The TTL in nanoseconds, 0 for `never` (in any case of letters), None for an invalid one."""
    return _remembered_ttl(text) if len(text) <= LONGEST_REMEMBERED else _read_ttl(text)


def _read_ttl(text: bytes) -> int | None:
    if text.lower() == b"never":
        return 0
    ttl = int(text) * SECOND if text.isdigit() and len(text) < 12 else parse_duration(text) or 0
    return ttl if ttl >= SECOND else None


_remembered_ttl = lru_cache(1024)(_read_ttl)


def check_after_id(demands: Demands, last_message_id: bytes, allowed: Allowed = Allowed()) -> None:  # noqa: B008
    """Check group 4. `last_message_id`: of the last message with an assigned sequence, b"" if it had none."""
    if demands.last_message_id is not None and demands.last_message_id != last_message_id:
        raise api_error("wrong_last_msg_id", id=last_message_id.decode("utf-8", "replace"))
    if demands.rollup and not allowed.rollup:
        raise api_error("rollup_failed", reason="rollup not permitted")
    if demands.rollup not in (b"", b"sub", b"all"):
        kind = demands.rollup.decode("utf-8", "replace")
        raise api_error("rollup_failed", reason=f'rollup value invalid: "{kind}"')
    if allowed.counter and not demands.increment:
        raise api_error("increment_missing")
    if demands.ttl and _ttl(demands.ttl) is None:
        raise api_error("ttl_invalid")


def _number(text: bytes) -> int:
    """Parse a number; -1, which equals no sequence, for other text."""
    return int(text) if text.isdigit() and len(text) < 20 else -1
