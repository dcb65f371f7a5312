"""Atomic batches: messages that a stream stores all together or not at all (ADR-50 of NATS).

    Nats-Batch-Id, -Sequence 1, 2, ...  ─▶ kept in memory, nothing readable ─▶ -Commit ─▶ judged in order, staged as one

`OpenBatches` decides about each message. At the commit the messages are checked against the stream
(`jetstream_publishing/publish_rules.py`), with `BatchSoFar` for the effects of earlier messages of the batch; a refused
message ends the whole batch.

It is stored as one batch of the log, with one checksum. After a power loss, recovery may still salvage single records
of it (`streams/salvage.py`): `halves` finds such unacknowledged rests, so that they are removed before they are read.
"""

from collections.abc import Iterator
from typing import NamedTuple

from headwater.errors import JetStreamError
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_state.counters import Sum
from headwater.jetstream_state.publish_checks import of_batch_alone
from headwater.jetstream_state.schedules import is_schedule
from headwater.model.header_block import lookup
from headwater.model.header_edits import with_lines, without_header
from headwater.model.stream_limits import ServerLimits
from headwater.streams.log import Log, StoredRecord

BATCH_ID = b"Nats-Batch-Id"
BATCH_SEQUENCE = b"Nats-Batch-Sequence"
BATCH_COMMIT = b"Nats-Batch-Commit"

MOST_BYTES = 128 << 20  # of all open batches of a stream; nats-server has no such bound
_LONGEST_ID = 64
_LEVEL = b"Nats-Required-Api-Level"


def names_batch(block: bytes) -> bool:
    """Whether a message belongs to an atomic batch."""
    return BATCH_ID in block and bool(lookup(block, BATCH_ID))


class Message(NamedTuple):
    """One message of a batch, as received. `is_plain`: its headers demand nothing else of the stream."""

    subject: bytes
    header_block: bytes
    payload: bytes
    is_plain: bool = False


class Committed(NamedTuple):
    """A batch to be stored."""

    batch_id: bytes
    messages: list[Message]


class Abandoned(Exception):
    """A batch ended without being stored. `reason`: nats-server's term; `refusal`: the answer to the message that ended
    it."""

    def __init__(self, batch_id: bytes, reason: str, refusal: JetStreamError) -> None:
        super().__init__(reason)
        self.batch_id = batch_id
        self.reason = reason
        self.refusal = refusal


def is_supported(level: bytes, ours: int) -> bool:
    """Whether the API level that a message requires is at most `ours`; b"" requires none."""
    digits = level.removeprefix(b"-")
    return not level or (digits.isdigit() and len(digits) < 10 and int(level) <= ours)


def _parts(block: bytes) -> tuple[bytes, bytes, bytes | None]:
    """Id, sequence and commit; None where that is absent, as an empty one is wrong."""
    return lookup(block, BATCH_ID) or b"", lookup(block, BATCH_SEQUENCE) or b"", lookup(block, BATCH_COMMIT)


class _Open:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.size = 0
        self.ends_ns = 0


class BatchRoom:
    """The limits on open atomic batches, per stream and of the account."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        self.streams: list[OpenBatches] = []

    def is_full(self, open_here: int) -> bool:
        """Whether a stream with `open_here` open batches may not begin another."""
        everywhere = sum(len(each) for each in self.streams)
        return open_here >= self.limits.batches_of_stream or everywhere >= self.limits.batches_of_account


class OpenBatches:
    """The open batches of one stream. `level`: the server's API level."""

    def __init__(self, level: int) -> None:
        self._room = BatchRoom(ServerLimits())
        self._level = level
        self._open: dict[bytes, _Open] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, batch_id: bytes) -> bool:
        return batch_id in self._open

    def use(self, room: "BatchRoom") -> None:
        """Apply these limits."""
        self._room = room
        room.streams.append(self)

    def leave(self) -> None:
        """The stream has ended: its batches no longer count towards the limits."""
        self._open.clear()
        if self in self._room.streams:
            self._room.streams.remove(self)

    def take(self, message: Message, now: int) -> Committed | None:
        """Take a message; None when it is kept until the commit. `now`: ns of a monotonic clock. Raises JetStreamError for
        a message that is refused, Abandoned for one that ends its batch."""
        block = message.header_block
        found = of_batch_alone(block) if message.is_plain else None
        batch_id, text, commit = _parts(block) if found is None else (found[0], found[1], found[2] or None)
        if len(batch_id) > _LONGEST_ID:
            raise api_error("batch_id_invalid")
        if not text.isdigit() or len(text) > 18:
            raise api_error("batch_sequence_missing")
        sequence = int(text)
        batch = self._batch(batch_id, sequence, commit)
        if commit not in (None, b"1", b"eob"):
            self.forget(batch_id)
            raise api_error("batch_commit_invalid")
        if found is None and not is_supported(lookup(block, _LEVEL) or b"", self._level):
            raise self._end(batch_id, "unsupported", api_error("api_level"))
        if sequence != len(batch.messages) + 1 or (sequence == 1 and commit == b"eob"):
            raise self._end(batch_id, "incomplete", api_error("batch_incomplete"))
        if sequence > self._most_messages(commit):
            raise self._end(batch_id, "large", self._too_large())
        if commit != b"eob":
            self._keep(batch_id, batch, message)
        batch.ends_ns = now + self._room.limits.batch_timeout
        if not commit:
            return None
        self.forget(batch_id)
        if commit == b"eob":
            last = batch.messages[-1]
            block = with_lines(last.header_block, BATCH_COMMIT + b": 1")
            batch.messages[-1] = last._replace(header_block=block)
        return Committed(batch_id, batch.messages)

    def expired(self, now: int) -> list[bytes]:
        """Remove the expired batches and return their ids."""
        over = [batch_id for batch_id, batch in self._open.items() if batch.ends_ns <= now]
        for batch_id in over:
            self.forget(batch_id)
        return over

    def next_end(self) -> int:
        """The time at which the next batch expires; 0: there is none."""
        return min((batch.ends_ns for batch in self._open.values()), default=0)

    def forget(self, batch_id: bytes) -> None:
        """Remove a batch, if it is open."""
        batch = self._open.pop(batch_id, None)
        if batch is not None:
            self._size -= batch.size

    def _batch(self, batch_id: bytes, sequence: int, commit: bytes | None) -> _Open:
        """The open batch; a new one for sequence 1. Raises JetStreamError."""
        batch = self._open.get(batch_id)
        if batch is not None:
            return batch
        if sequence != 1:
            # nats-server subtracts the end mark from 0, which makes it the largest number
            endless = sequence == 0 and commit == b"eob"
            too_large = endless or sequence > self._most_messages(commit)
            raise self._too_large() if too_large else api_error("batch_incomplete")
        if self._room.is_full(len(self._open)):
            raise api_error("batch_too_many")
        batch = self._open[batch_id] = _Open()
        return batch

    def _most_messages(self, commit: bytes | None) -> int:
        return self._room.limits.batch_messages + (commit == b"eob")

    def _too_large(self) -> JetStreamError:
        return api_error("batch_too_large", limit=self._room.limits.batch_messages)

    def _keep(self, batch_id: bytes, batch: _Open, message: Message) -> None:
        size = len(message.subject) + len(message.header_block) + len(message.payload)
        if self._size + size > MOST_BYTES:
            raise self._end(batch_id, "large", api_error("batch_too_large", limit=f"{MOST_BYTES} bytes"))
        if not message.is_plain:
            message = message._replace(header_block=without_header(message.header_block, _LEVEL))
        batch.messages.append(message)
        batch.size += size
        self._size += size

    def _end(self, batch_id: bytes, reason: str, refusal: JetStreamError) -> Exception:
        self.forget(batch_id)
        return Abandoned(batch_id, reason, refusal)


class BatchSoFar:
    """The effects of the batch's messages that passed the checks. `last_sequence`: the stream's, before the batch."""

    def __init__(self, last_sequence: int) -> None:
        self.last_sequence = last_sequence
        self.count = 0
        self.size = 0
        self.subjects: dict[bytes, int] = {}  # number of messages by subject
        self.message_ids: set[bytes] = set()
        self.sums: dict[bytes, Sum] = {}
        self.schedules: set[bytes] = set()  # subjects whose last message is a schedule

    def add(self, subject: bytes, message_id: bytes, size: int, total: Sum | None) -> None:
        """Add a message that passed the checks."""
        self.count += 1
        self.size += size
        self.subjects[subject] = self.subjects.get(subject, 0) + 1
        if message_id:
            self.message_ids.add(message_id)
        if total is not None:
            self.sums[subject] = total

    def note_schedule(self, subject: bytes, block: bytes) -> None:
        """Record whether the message just added is a schedule."""
        (self.schedules.add if is_schedule(block) else self.schedules.discard)(subject)

    def check_rollup(self, block: bytes, subject: bytes) -> None:
        """Refuse a roll-up that would remove messages of the batch itself. Raises JetStreamError."""
        rollup = (lookup(block, b"Nats-Rollup") or b"").lower()
        if rollup == b"all" and self.count:
            raise api_error("rollup_failed", reason="batch rollup all invalid")
        if rollup == b"sub" and subject in self.subjects:
            raise api_error("rollup_failed", reason="batch rollup sub invalid")

    @staticmethod
    def check_headers(block: bytes) -> None:
        """Refuse headers that a batch does not support. Raises JetStreamError."""
        if lookup(block, b"Nats-Expected-Last-Msg-Id"):
            raise api_error("batch_header_unsupported", header="Nats-Expected-Last-Msg-Id")

    def check_expectations(self, block: bytes, subject: bytes) -> None:
        """Refuse expected sequences of messages that the batch itself writes. Raises JetStreamError."""
        expected = lookup(block, b"Nats-Expected-Last-Sequence") or b""
        if expected:
            known = expected.isdigit() and len(expected) < 20
            if not known or int(expected) != self.last_sequence + self.count:
                raise api_error("wrong_last_sequence", sequence=self.last_sequence + self.count)
            if self.count:
                raise api_error("wrong_last_sequence_constant")
        if lookup(block, b"Nats-Expected-Last-Subject-Sequence"):
            about = lookup(block, b"Nats-Expected-Last-Subject-Sequence-Subject") or subject
            if about in self.subjects:
                raise api_error("wrong_last_sequence_constant")


def halves(log: Log) -> Iterator[tuple[int, int]]:
    """Ranges of offsets that hold the unacknowledged rest of an atomic batch after a crash: damage, or the end of the
    log, is before or after them."""
    ends = {log.end_offset} | {damage.start for damage in log.recovery.damage if not damage.certain}
    starts = {damage.end for damage in log.recovery.damage if not damage.certain}
    for end in sorted(ends):
        if (start := _first_of_open(log, end)) < end:
            yield start, end
    for start in sorted(starts):
        if (end := _end_of_headless(log, start)) > start:
            yield start, end


def _first_of_open(log: Log, end: int) -> int:
    """The first offset of a batch that ends at `end` without its commit; `end` if there is none."""
    record = _at(log, end - 1)
    if record is None or _place(record)[1] == 0 or lookup(record.header_block, BATCH_COMMIT):
        return end
    batch_id, sequence = _place(record)
    start = end - 1
    while sequence > 1 and (record := _at(log, start - 1)) is not None and _place(record) == (batch_id, sequence - 1):
        start, sequence = start - 1, sequence - 1
    return start


def _end_of_headless(log: Log, start: int) -> int:
    """The end of a batch that continues at `start` but lacks its first messages; `start` if there is none."""
    record = _at(log, start)
    if record is None or _place(record)[1] <= 1:
        return start
    batch_id, sequence = _place(record)
    end = start + 1
    while not lookup(record.header_block, BATCH_COMMIT):
        following = _at(log, end)
        if following is None or _place(following) != (batch_id, sequence + 1):
            break
        record, sequence, end = following, sequence + 1, end + 1
    return end


def _at(log: Log, offset: int) -> StoredRecord | None:
    if not log.start_offset <= offset < log.end_offset or log.is_absent(offset):
        return None
    records = log.read(offset, 1, 1)
    return records[0] if records and records[0].offset == offset else None


def _place(record: StoredRecord) -> tuple[bytes, int]:
    """Batch id and position in the batch; position 0 for a message outside any batch, or copied or derived from one of
    a batch."""
    block = record.header_block
    if BATCH_ID not in block or lookup(block, b"Nats-Stream-Source") or lookup(block, b"Nats-Scheduler"):
        return b"", 0
    text = lookup(block, BATCH_SEQUENCE) or b""
    return (lookup(block, BATCH_ID) or b""), (int(text) if text.isdigit() and len(text) < 10 else 0)
