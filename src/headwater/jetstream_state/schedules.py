"""The schedules of a stream: messages that produce other messages at given times (ADR-51 of NATS).

    stored on s.a, Nats-Schedule  ─▶ `note` ─▶ due ─▶ `take_due` ─▶ stored on its target ─▶ `note` ─▶ the next turn, or gone

A subject has one schedule: its last message. The headers of a produced message give the schedule's next turn, or its
end, and `note` acts on them only once the message is durable. So after a crash each turn is either in the log or is
taken then: exactly once. `rows` and `restore` keep the turns for messages that have left the log, because a consumer
may have removed a produced message.

No clock: `now` comes with the call. Times are ns since 1970.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from headwater.errors import JetStreamError, StorageError
from headwater.jetstream_state.schedule_checks import NEXT, PURGE, ROLLUP, SCHEDULER, SOURCE, TARGET, TTL
from headwater.jetstream_state.schedule_times import PATTERN, Turn, next_turn
from headwater.jetstream_state.sequence import sequence_of
from headwater.model.header_block import lookup
from headwater.model.header_edits import with_lines
from headwater.model.timestamps import SECOND, parse_time
from headwater.streams.log import Log, StoredRecord

SHORTEST_DELAY = SECOND // 4  # between storing a schedule and its first turn; nats-server's
FIRST_RETRY = 2 * SECOND  # after a message could not be stored; doubled each time
LONGEST_RETRY = 64 * SECOND

_NOT_PASSED_ON = (b"Nats-Schedule", b"Nats-Expected-")  # prefixes of headers that are not copied
_REPLACED = (b"Nats-Msg-Id:", b"Nats-TTL:", b"Nats-Rollup:")

Row = tuple[bytes, int, int]


class ProducedMessage(NamedTuple):
    """A message produced by a schedule, to be stored on `target`. `schedule`: the schedule's subject."""

    schedule: bytes
    target: bytes
    header_block: bytes
    payload: bytes


class _Schedule:
    def __init__(self, sequence: int, at: int) -> None:
        self.sequence = sequence
        self.at = at
        self.taken = False
        self.retry = 0


class Schedules:
    """The schedules of one stream. `load(sequence)` returns a message, None if it is gone; `last(subject)` the sequence
    of its last message, 0 for none."""

    def __init__(self, load: Callable[[int], StoredRecord | None], last: Callable[[bytes], int]) -> None:
        self._load = load
        self._last = last
        self._schedules: dict[bytes, _Schedule] = {}
        self._due: list[tuple[int, bytes]] = []  # may have stale entries

    def __len__(self) -> int:
        return len(self._schedules)

    # ── what was stored ──

    def note(self, subject: bytes, sequence: int, block: bytes, timestamp_ns: int) -> None:
        """A message became durable, or was found in the log; `timestamp_ns`: its time stamp."""
        turn = _turn(block, timestamp_ns, timestamp_ns)
        following, scheduler = (lookup(block, NEXT), lookup(block, SCHEDULER)) if block else (None, None)
        if turn is not None:
            self._schedules[subject] = _Schedule(sequence, turn.at)
            heappush(self._due, (turn.at, subject))
        elif not scheduler:
            self._schedules.pop(subject, None)
        if not following or not scheduler:
            return
        if following == PURGE:
            self._schedules.pop(scheduler, None)
        else:
            self._set(scheduler, following)

    def learn(self, log: Log, start: int) -> None:
        """Note every message from offset `start` on, including removed ones that are still in the files."""
        for cursor in log.reader.cursors_in_files(start):
            record = cursor.record()
            self.note(record.subject, sequence_of(record.offset), record.header_block, record.timestamp_ns)

    def rows(self) -> list[Row]:
        """Subject, sequence and next turn of each, for `restore`."""
        return [(subject, one.sequence, one.at) for subject, one in self._schedules.items()]

    def restore(self, rows: Iterable[Row]) -> None:
        """Restore the result of `rows`."""
        self._schedules = {subject: _Schedule(sequence, at) for subject, sequence, at in rows}
        self._due = [(one.at, subject) for subject, one in self._schedules.items()]
        heapify(self._due)

    # ── what is due ──

    def next_due(self) -> int:
        """When the next turn is; 0: never."""
        while self._due and not self._holds(*self._due[0]):
            heappop(self._due)
        return self._due[0][0] if self._due else 0

    def take_due(self, now: int) -> list[ProducedMessage]:
        """The messages due, in the order of the schedules' sequences. A schedule is not due again until its message was
        noted, or `failed` was called."""
        due: list[tuple[int, bytes]] = []
        while (at := self.next_due()) and at <= now:
            _, subject = heappop(self._due)
            self._schedules[subject].taken = True
            due.append((self._schedules[subject].sequence, subject))
        return [produced for _, subject in sorted(due) if (produced := self._produce(subject, now)) is not None]

    def failed(self, subject: bytes, now: int) -> None:
        """A produced message could not be stored: its schedule is due again a little later."""
        schedule = self._schedules.get(subject)
        if schedule is not None and schedule.taken:
            schedule.taken = False
            schedule.retry = min(max(schedule.retry * 2, FIRST_RETRY), LONGEST_RETRY)
            schedule.at = now + schedule.retry
            heappush(self._due, (schedule.at, subject))

    def _produce(self, subject: bytes, now: int) -> ProducedMessage | None:
        schedule = self._schedules[subject]
        try:
            message = self._load(schedule.sequence)
            source = lookup(message.header_block, SOURCE) if message is not None else None
            last = self._last(source) if source else 0
            sample = self._load(last) if last else None
        except StorageError:  # the log reports it
            self.failed(subject, now)
            return None
        turn = _turn(message.header_block, schedule.at, now) if message is not None else None
        if message is None or turn is None:
            del self._schedules[subject]
            return None
        block = message.header_block
        sample = sample or message  # no sample yet: use the schedule's own content
        target = lookup(block, TARGET) or b""
        return ProducedMessage(subject, target, _passed_on(block, sample.header_block, subject, turn), sample.payload)

    def _set(self, subject: bytes, following: bytes) -> None:
        schedule = self._schedules.get(subject)
        try:
            at = parse_time(following.decode())
        except ValueError:
            return  # not written by a server
        if schedule is not None:
            schedule.at, schedule.taken, schedule.retry = at, False, 0
            heappush(self._due, (at, subject))

    def _holds(self, at: int, subject: bytes) -> bool:
        schedule = self._schedules.get(subject)
        return schedule is not None and schedule.at == at and not schedule.taken


def ended_by(block: bytes) -> bytes:
    """The subject of the schedule that a message ends; b"" for none."""
    return (lookup(block, SCHEDULER) or b"") if lookup(block, NEXT) == PURGE else b""


def is_schedule(block: bytes) -> bool:
    """Whether the message has the headers of a schedule."""
    return bool(block) and bool(lookup(block, PATTERN))


def with_rollup(block: bytes) -> bytes:
    """The header block of a schedule, which replaces the previous one of its subject."""
    return with_lines(block, b"Nats-Rollup: sub")


def _turn(block: bytes, since: int, now: int) -> Turn | None:
    if PATTERN not in block:
        return None
    try:
        return next_turn(block, since, now)
    except JetStreamError:
        return None  # stored while schedules were off


def _passed_on(block: bytes, sample: bytes, subject: bytes, turn: Turn) -> bytes:
    """The headers of a produced message: those of the sample, and those about the schedule."""
    lines = list(_lines_to_pass_on(sample or b"NATS/1.0\r\n\r\n"))
    lines.append(b"%b: %b" % (SCHEDULER, subject))
    lines.append(b"%b: %b" % (NEXT, turn.text.encode() if turn.repeats else PURGE))
    for name, value in ((b"Nats-TTL", lookup(block, TTL)), (b"Nats-Rollup", lookup(block, ROLLUP))):
        if value:
            lines.append(b"%b: %b" % (name, value))
    return b"\r\n".join([*lines, b"", b""])


def _lines_to_pass_on(block: bytes) -> Iterator[bytes]:
    first, *lines = block.removesuffix(b"\r\n\r\n").split(b"\r\n")
    yield first
    for line in lines:
        if not line.startswith(_NOT_PASSED_ON) and not line.startswith(_REPLACED):
            yield line
