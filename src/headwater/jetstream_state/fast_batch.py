# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Fast-ingest batches: many publishes with few acknowledgements (`allow_batched`, ADR-50 of NATS).

    reply subject of each message: <prefix>.<id>.<flow>.<gap>.<sequence>.<operation>.$FI

The stream stores each message on arrival, and answers every `flow` messages, at a gap, at an error and at the end. A
single batch may have `flow` unanswered messages, at most MOST_UNANSWERED; several batches start with one each, double
that with each answer, and share the maximum.

This file decides about each message and builds the answers; `jetstream_publishing/fast_publish.py` stores and sends. No
clock: `now` comes with the call, in ns of a monotonic clock.

`FastBatch` is compiled: of a hundred messages nearly all continue the batch of the message before, and need no answer.
`is_next` recognises them without parsing their reply subjects again.
"""

from typing import NamedTuple

import cython
import msgspec

if cython.compiled:
    from cython.cimports.headwater.jetstream_state.ack_subject import number
else:
    from headwater.jetstream_state.ack_subject import number

from headwater.errors import JetStreamError
from headwater.jetstream_documents.answers import error_document
from headwater.jetstream_documents.api_errors import api_error
from headwater.model.header_block import lookup
from headwater.model.timestamps import SECOND

SUFFIX = b".$FI"
LENT = b"_R_."  # the reply subjects that an import puts in place of a publisher's (exchange/replies.py)
MOST_UNANSWERED = 500  # messages
MOST_OPEN = 1000  # batches of a stream
TIMEOUT = 10 * SECOND  # without a message of the batch
LOOK = SECOND  # between two looks at the batches
_DEFAULT_FLOW = 10
_MOST_FLOW = 65_535
_LONGEST_ID = 64
_PARTS = 7

_APPENDED: bytes = b".1.$FI"  # operation 1, APPEND

START, APPEND, COMMIT, COMMIT_WITHOUT, PING = range(5)


class FastReply(NamedTuple):
    """The parsed reply subject of a message."""

    batch_id: bytes
    flow: int
    gap_ok: bool
    sequence: int
    operation: int
    head: bytes = b""  # the reply subject up to the sequence

    @property
    def commits(self) -> bool:
        """Whether this message commits the batch, being its last message or only the end mark."""
        return self.operation in (COMMIT, COMMIT_WITHOUT)


class _Requester(msgspec.Struct):
    reply: str = ""


def steering_of(reply: bytes, header_block: bytes) -> bytes:
    """The reply subject that the publisher wrote: an import replaces it, and keeps one of a batch in Nats-Request-Info;
    b"" for a message of no batch."""
    if reply.endswith(SUFFIX):
        return reply
    if not reply.startswith(LENT) or b"Nats-Request-Info" not in header_block:
        return b""
    try:
        requester = msgspec.json.decode(lookup(header_block, b"Nats-Request-Info") or b"{}", type=_Requester)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return b""
    return requester.reply.encode() if requester.reply.endswith(SUFFIX.decode()) else b""


def read_reply(reply: bytes) -> FastReply:
    """Raises JetStreamError 10206 for a reply subject of another form, 10207 for an id that is too long."""
    parts = reply.rsplit(b".", _PARTS - 1)
    if len(parts) < _PARTS:
        raise api_error("fast_batch_pattern")
    _, batch_id, flow, gap, digits, operation, _ = parts
    sequence, code = _number(digits), _number(operation)
    wrong = not START <= code <= PING or sequence < 1 or gap not in (b"ok", b"fail")
    wrong = wrong or (code == START and sequence != 1) or (code in (APPEND, COMMIT_WITHOUT) and sequence == 1)
    if wrong:
        raise api_error("fast_batch_pattern")
    if len(batch_id) > _LONGEST_ID:
        raise api_error("fast_batch_id")
    most = _number(flow)
    head = reply[: len(reply) - len(digits) - len(operation) - len(SUFFIX) - 1]
    return FastReply(batch_id, min(most, _MOST_FLOW) if most > 0 else _DEFAULT_FLOW, gap == b"ok", sequence, code, head)


class FastBatch:
    """One batch. `sequence`: of the last message received. `answered`: the sequence of the last flow answer. `stored`:
    the stream sequence of its last stored message, durable or not, 0 for none; `first`: that of the first one.
    `committed`: later messages are ignored. `last_reply`: of the last message. `head`: the reply subjects of its messages
    up to their numbers. `over`: it was forgotten. `appended`: a message was appended since `ends_ns` was set."""

    def __init__(self, batch_id: bytes, *, gap_ok: bool, most: int, flow: int, head: bytes = b"") -> None:
        self.batch_id = batch_id
        self.head = head
        self.over = False
        self.gap_ok = gap_ok
        self.sequence = 0
        self.answered = 0
        self.first = self.stored = 0
        self.committed = False
        self.ends_ns = 0
        self.appended = False
        self.last_reply = b""
        self._most = most
        self.flow = flow

    def is_next(self, reply: bytes) -> cython.bint:
        """Whether a message with this reply subject comes in turn, is appended, and needs no answer."""
        start: cython.Py_ssize_t = len(self.head)
        if self.over or self.committed or start == 0:
            return False
        if not (reply.startswith(self.head) and reply.endswith(_APPENDED)):
            return False
        sequence: cython.longlong = number(reply, start, len(reply) - len(_APPENDED))
        return sequence == self.sequence + 1 and sequence < self.answered + self.flow

    def append(self, reply: bytes, stream_sequence: cython.longlong) -> cython.int:
        """The message of which `is_next` was true was stored under this sequence of the stream. It costs no look at the
        clock: see `FastBatches.drop_expired`."""
        self.sequence += 1
        self.last_reply = reply
        self.appended = True
        if self.first == 0:
            self.first = stream_sequence
        self.stored = stream_sequence
        return 0

    def flow_answer(self) -> bytes:
        """The flow answer: the batch's progress, and the messages per answer."""
        return b'{"type":"ack","seq":%d,"msgs":%d}' % (self.answered, self.flow)

    def due_answer(self, batches: int) -> bytes:
        """The flow answer if one is due after the last message, else b"". `batches`: the number of open batches."""
        if self.sequence < self.answered + self.flow:
            return b""
        self.answered += (self.sequence - self.answered) // self.flow * self.flow
        most = min(max(MOST_UNANSWERED // batches, 1), self._most)
        if self.flow < most:
            self.flow = min(self.flow * 2, most)
        elif self.flow > most:
            self.flow = max(self.flow // 2, most)
        return self.flow_answer()

    def end_answer(self, head: bytes) -> bytes:
        """The acknowledgement of the whole batch. `head`: an ordinary one up to its sequence."""
        batch_id = msgspec.json.encode(self.batch_id.decode("utf-8", "replace"))
        return b'%b%d,"batch":%b,"count":%d}' % (head, self.stored, batch_id, self.sequence)

    def note_stored(self, sequence: int) -> None:
        """The last message was given this sequence of the stream."""
        self.first = self.first or sequence
        self.stored = sequence


class FastBatches:
    """The open batches of a stream."""

    def __init__(self) -> None:
        self._open: dict[bytes, FastBatch] = {}

    def __len__(self) -> int:
        return len(self._open)

    def find(self, wanted: FastReply, now: int) -> FastBatch:
        """The batch of a message, created with its first one. Raises JetStreamError 10208 for an unknown batch, 10211
        for too many."""
        batch = self._open.get(wanted.batch_id)
        if batch is None:
            if wanted.sequence != 1 or wanted.operation == PING:
                raise api_error("fast_batch_unknown")
            if len(self._open) >= MOST_OPEN:
                raise api_error("fast_batch_too_many")
            flow = 1 if self._open else min(MOST_UNANSWERED, wanted.flow)
            batch = FastBatch(wanted.batch_id, gap_ok=wanted.gap_ok, most=wanted.flow, flow=flow, head=wanted.head)
            self._open[wanted.batch_id] = batch
        batch.ends_ns = now + TIMEOUT
        return batch

    def forget(self, batch: FastBatch) -> None:
        """Remove a batch that has ended."""
        batch.over = True
        if self._open.get(batch.batch_id) is batch:
            del self._open[batch.batch_id]

    def drop_expired(self, now: int) -> None:
        """Remove the expired batches. A message counts from the next call on, so an open batch needs one each LOOK."""
        for batch in self._open.values():
            if batch.appended:
                batch.ends_ns, batch.appended = now + TIMEOUT, False
        for batch in [one for one in self._open.values() if one.ends_ns <= now and not one.committed]:
            self.forget(batch)

    def next_end(self) -> int:
        """The time at which the next batch expires; 0: there is none."""
        return min((batch.ends_ns for batch in self._open.values() if not batch.committed), default=0)

    def with_messages(self, first: int, last: int) -> list[FastBatch]:
        """The batches that may have stored messages with these stream sequences."""
        return [batch for batch in self._open.values() if batch.first and batch.first <= last and batch.stored >= first]

    def clear(self) -> None:
        """Remove all batches."""
        for batch in list(self._open.values()):
            self.forget(batch)


def gap_answer(expected: int, came: int) -> bytes:
    """The answer that reports the messages from `expected` up to, not including, `came` as missing."""
    return b'{"type":"gap","last_seq":%d,"seq":%d}' % (expected, came)


class _Failed(msgspec.Struct, tag_field="type", tag="err"):
    seq: int
    error: object


def error_answer(sequence: int, error: JetStreamError) -> bytes:
    """The answer that refuses the message with this sequence of the batch."""
    return msgspec.json.encode(_Failed(sequence, error_document(error)))


def _number(text: bytes) -> int:
    """Parse a number; -1 for other text."""
    return int(text) if text.isdigit() and len(text) < 19 else -1
