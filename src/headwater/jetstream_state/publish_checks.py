# cython: boundscheck=True, wraparound=True
"""What the headers of a publish demand before it may be stored, in nats-server's order and words.

    1. Nats-Batch-Id where it is off; Nats-Incr (`counters.py`)
    2. Nats-Expected-Stream, Nats-TTL (where it is off), Nats-Expected-Last-Subject-Sequence, Nats-Expected-Last-Sequence,
       Nats-Schedule (`schedule_checks.py`), Nats-Stream-Source (of the server's making)
    3. Nats-Msg-Id: a duplicate is answered with the sequence of the original (`jetstream/publish_rules.py` does that)
    4. Nats-Expected-Last-Msg-Id, Nats-Rollup, and the Nats-TTL itself

All of these begin with `Nats-`, so a block without a line that does costs one search; one whose only such line is the
message id, the common case of a careful publisher, costs four; one that names the stream too, some more. `lone_message_id`
is hot and compiled.
"""

from collections.abc import Callable
from typing import NamedTuple

from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_state.counters import INCREMENT_HEADER, check_increment
from headwater.jetstream_state.schedule_checks import ScheduleRules, check_schedule
from headwater.model.header_block import lookup
from headwater.model.timestamps import SECOND, parse_duration

MAX_HEADER_BLOCK = 65_535  # bytes

_LINE = b"\r\nNats-"
_ID = b"Nats-Msg-Id"
_EXPECTED = b"Nats-Expected-Stream"
_ID_LINE = b"\r\n" + _ID + b":"


def naming(stream: str) -> bytes:
    """How a publisher that names the stream has it in its header block: for `lone_message_id`."""
    return b"\r\n%b: %b\r\n" % (_EXPECTED, stream.encode())


def lone_message_id(block: bytes, named: bytes = b"") -> bytes | None:
    """The message id when no other header concerns the stream (b"" for no id either); None when there is more to
    check. `named`: the one line that may stand there as well, for what it demands is so (`naming`)."""
    first = block.find(_LINE)
    if first < 0:
        return b""
    second = block.find(_LINE, first + len(_LINE))
    if named and (second >= 0 or not block.startswith(_ID_LINE, first)):
        at = block.find(named)
        if at < 0 or block.find(_EXPECTED) != at + 2:  # the name may stand in a value before
            return None
        if at == first:
            if second < 0:
                return b""
            first, second = second, block.find(_LINE, second + len(_LINE))
        elif at == second:
            second = block.find(_LINE, second + len(_LINE))
    if second >= 0 or not block.startswith(_ID_LINE, first):
        return None
    if block.find(_ID) < first:  # the name may stand in a value: `lookup` distinguishes the two
        return lookup(block, _ID) or b""
    start = first + len(_ID_LINE)
    end = block.find(b"\r\n", start)
    return block[start : len(block) if end < 0 else end].lstrip(b" ")


class Allowed(NamedTuple):
    """What the stream's configuration allows a header to demand."""

    rollup: bool = False
    ttl: bool = False
    counter: bool = False
    schedules: ScheduleRules | None = None
    in_batch: Callable[[], None] | None = None  # checks more, of a message of an atomic batch; raises JetStreamError


class Demands(NamedTuple):
    """What remains to be checked after the first two groups: the id (b"" for none), and the fourth group. `rollup`:
    b"sub", b"all", or b"". `ttl`: as it was written. `adds_rollup`: a schedule, which gets a roll-up of its
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
    """Groups 1 and 2; what is left to check afterwards.

    `last_sequence`: the last that was given out. `last_of_subject(pattern)`: the same for a subject. Raises
    JetStreamError.
    """
    if allowed.in_batch is None and lookup(block, b"Nats-Batch-Id"):
        raise api_error("atomic_publish_disabled")
    check_increment(block, payload, allowed=allowed.counter)
    expected_stream = lookup(block, b"Nats-Expected-Stream")
    if expected_stream and expected_stream != stream.encode():
        raise api_error("expected_stream")
    ttl = lookup(block, b"Nats-TTL") or b""
    if ttl and not allowed.ttl and (allowed.in_batch is not None or _ttl(ttl) is not None):
        raise api_error("ttl_disabled")
    if allowed.in_batch is not None:
        allowed.in_batch()
    expected = lookup(block, b"Nats-Expected-Last-Subject-Sequence")
    pattern = lookup(block, b"Nats-Expected-Last-Subject-Sequence-Subject")
    if expected:
        last = last_of_subject(pattern or subject)
        if _number(expected) != last:
            raise api_error("wrong_last_sequence", sequence=last)
    elif pattern:
        raise api_error("sequence_for_subject_missing")
    expected = lookup(block, b"Nats-Expected-Last-Sequence")
    if expected and _number(expected) != last_sequence:
        raise api_error("wrong_last_sequence", sequence=last_sequence)
    adds_rollup = allowed.schedules is not None and check_schedule(block, subject, allowed.schedules)
    if lookup(block, b"Nats-Stream-Source"):
        raise api_error("source_header")
    return Demands(
        lookup(block, b"Nats-Msg-Id") or b"",
        lookup(block, b"Nats-Expected-Last-Msg-Id") or None,
        (lookup(block, b"Nats-Rollup") or b"").lower(),
        lookup(block, b"Nats-TTL") or b"",
        lookup(block, INCREMENT_HEADER) or b"",
        adds_rollup,
    )


def rollup_of(block: bytes) -> bytes:
    """b"sub" or b"all" when the message demands a roll-up, else b""."""
    if b"Nats-Rollup" not in block:
        return b""
    kind = (lookup(block, b"Nats-Rollup") or b"").lower()
    return kind if kind in (b"sub", b"all") else b""


def ttl_of(block: bytes) -> int | None:
    """Nanoseconds that the message is to live: None when it names no time, 0 for `never`. Raises JetStreamError 10165."""
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
    """Whether it is a time to live: a duration of a second or more, or `never`."""
    return _ttl(text) is not None


def _ttl(text: bytes) -> int | None:
    """Nanoseconds, 0 for `never` (in any case of letters), None for what is no time to live."""
    if text.lower() == b"never":
        return 0
    ttl = int(text) * SECOND if text.isdigit() and len(text) < 12 else parse_duration(text) or 0
    return ttl if ttl >= SECOND else None


def check_after_id(demands: Demands, last_message_id: bytes, allowed: Allowed = Allowed()) -> None:  # noqa: B008
    """Group 4. `last_message_id`: of the last message that was given a sequence, b"" if it had none."""
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
    """-1 for text that is no number: no sequence equals it."""
    return int(text) if text.isdigit() and len(text) < 20 else -1
