"""The contents of a stream: its log, the table of its subjects, and the rules by which messages leave.

Messages leave by a limit (count, bytes, age, count per subject), by their own TTL, by a roll-up, by a purge, by a
deletion, or because every consumer has settled them (decided in jetstream/stream.py). Whatever the reason, they go through
`_remove`: out of the log for every reader, out of the table, and the consumers are notified. The log writes the tombstone
with its next batch; the caller decides when that must be.

After a crash the limits, TTLs and roll-ups are applied again to what the log still holds, so those need not be durable at
once; deletions and purges are made durable before they are answered.

No asyncio, no clock: `now` comes with the call.
"""

from collections.abc import Callable, Generator, Iterator

import msgspec

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.expiry import Expiry
from headwater.jetstream_state.items import Item
from headwater.jetstream_state.publish_checks import rollup_of
from headwater.jetstream_state.recount import Recount
from headwater.jetstream_state.retention import Limits, Oldest, refusal
from headwater.jetstream_state.schedules import Row, Schedules, ended_by
from headwater.jetstream_state.sequence import offset_of, sequence_of
from headwater.jetstream_state.subject_table import (
    SubjectFilter,
    SubjectRow,
    SubjectTable,
    memory_size,
    no_places,
    previous_of,
    replaced_by,
    stored_size,
)
from headwater.model.subject import is_literal
from headwater.streams.log import Log, StoredRecord
from headwater.streams.record_places import RecordPlaces

SCAN_RECORDS = 1024  # per look into the log, some 4 us each
SCAN_BYTES = 1 << 20
PASSED = 8192  # records that do not match, in one turn: 10 ns each for one subject, 0.1 us for patterns
SPARSE = 100  # offsets for each message to load: where there are more, each is looked up by itself


class ContentsDocument(msgspec.Struct, array_like=True):
    """The stored form of the contents, beside the log's index."""

    messages: int
    bytes: int
    subjects: list[SubjectRow]
    expiries: list[tuple[int, int]]
    schedules: list[Row] = []


class Contents:
    """See the head of this module. `on_removed(sequence, subject)` is called for each message that leaves,
    `on_purged()` when many have left at once. `begins`: the stream reports its first sequence even before its first
    message."""

    def __init__(
        self,
        log: Log,
        config: StreamConfig,
        on_removed: Callable[[int, bytes], None],
        on_purged: Callable[[], None],
    ) -> None:
        self.log = log
        self.config = config
        self.begins = config.first_seq > 0
        self.previous: dict[int, int] = {}  # of the messages that were added last, when they are republished
        self.replaced: dict[int, tuple[int, int]] = {}  # by roll-ups that were added last, see `replaced_by`
        self.size_of = memory_size if config.storage == "memory" else stored_size
        self.subjects = self._new_table(config)
        self._limits = limits_of(config)
        self._on_removed = on_removed
        self._on_purged = on_purged
        self._oldest = Oldest(log, in_memory=config.storage == "memory")
        self.expiry = Expiry(self)
        self.schedules = Schedules(self.load, lambda subject: self.subjects.last(subject))
        self._recount: Recount | None = None  # while it runs

    def _new_table(self, config: StreamConfig) -> SubjectTable:
        return SubjectTable(with_history=config.max_msgs_per_subject > 0, find_before=self._find_before)

    # ── over a restart ──

    def recover(self, each: Callable[[StoredRecord], None], now: int, offset: int = 0) -> None:
        """Blocking: read the log once from `offset` on (the part before was restored), and apply limits again whose
        effect a crash may have undone. `each` is called with every record."""
        rollups: list[tuple[bytes, bytes, int]] = []
        ends: list[tuple[bytes, int]] = []
        for record in self.scan(offset):
            each(record)
            block = record.header_block
            self.added(record.subject, sequence_of(record.offset), self._size(record), block, record.timestamp_ns)
            if block and self.config.allow_rollup_hdrs and (kind := rollup_of(block)):
                rollups.append((kind, record.subject, sequence_of(record.offset)))
            if block and self.config.allow_msg_schedules and (ended := ended_by(block)):
                ends.append((ended, sequence_of(record.offset)))
        for kind, subject, sequence in rollups:
            self.roll_up(kind, subject, sequence)
        for subject, sequence in ends:
            self.remove_all(subject, sequence)
        self.enforce(now)

    def document(self) -> ContentsDocument:
        """The state that `recover` would build from the log."""
        return ContentsDocument(
            self.subjects.messages,
            self.subjects.size_bytes,
            self.subjects.rows(),
            self.expiry.entries,
            self.schedules.rows(),
        )

    def restore(self, document: ContentsDocument) -> None:
        """Restore what `document` returned; the log holds the records that it counts."""
        self.subjects.restore(document.subjects, document.messages, document.bytes)
        self.expiry.entries = sorted(document.expiries)
        self.schedules.restore(document.schedules)

    def reconfigure(self, config: StreamConfig, now: int) -> None:
        """Apply other limits."""
        per_subject = config.max_msgs_per_subject
        self.config = config
        self._limits = limits_of(config)
        self.expiry.forget()
        if (per_subject > 0) != self.subjects.with_history:
            old, self.subjects = self.subjects, self._new_table(config)
            self._recount = None
            if per_subject > 0:
                for record in self.scan(0):
                    self.added(record.subject, sequence_of(record.offset), self._size(record))
            else:
                self.subjects.restore(old.rows(), old.messages, old.size_bytes)
        elif per_subject > 0:
            for row in self.subjects.rows():
                for sequence, size in row.history[: max(0, row.count - per_subject)]:
                    self._remove(row.subject, sequence, size)
        self.enforce(now)

    # ── what comes in ──

    @property
    def only_counts(self) -> bool:
        """Whether `added_all` does no more than `subjects.add_all`, for messages without particulars."""
        config = self.config
        return not self.subjects.with_history and config.republish is None and not config.allow_rollup_hdrs

    def refusal(self, subject: bytes, size: int, in_flight: int, in_flight_bytes: int, of_subject: int) -> str:
        """Why "discard new" refuses one more message; "" when it does not. `of_subject`: in flight to this subject."""
        config = self.config
        per_subject = config.max_msgs_per_subject
        replaces = 0 < per_subject <= self.subjects.total(subject) + of_subject
        if replaces and config.discard_new_per_subject:
            return "maximum messages per subject exceeded"
        if replaces:
            return ""
        return refusal(
            self._limits, self.subjects.messages + in_flight, self.subjects.size_bytes + in_flight_bytes, size
        )

    def added(self, subject: bytes, sequence: int, size: int, block: bytes = b"", timestamp_ns: int = 0) -> None:
        """A message became durable. The limit per subject is applied at once, the others by `enforce`."""
        self.subjects.add(subject, sequence, size)
        if self.subjects.with_history and (over := self.subjects.total(subject) - self.config.max_msgs_per_subject) > 0:
            for oldest in self.subjects.history(subject)[:over]:
                if not self._remove(subject, *oldest):
                    break  # at a damaged record, which the log no longer has and `forget` takes from the table
        if block and self.config.allow_msg_ttl:
            self.expiry.note(sequence, block, timestamp_ns)

    def added_all(self, items: list[Item]) -> tuple[int, int]:
        """As `added` for each that has a subject; returns the first sequence and how many."""
        self.previous = previous_of(items, self.subjects) if self.config.republish is not None else {}
        rolls_up = self.config.allow_rollup_hdrs and self.config.retention != "interest"  # there, not every one does
        rolls_up = rolls_up and not self.subjects.with_history  # which has the sequences of all
        self.replaced = replaced_by(items, self.subjects) if rolls_up else {}
        if not self.subjects.with_history:
            return self.subjects.add_all(items)
        first, count, gone, subjects = self.subjects.replace_all(items, self.config.max_msgs_per_subject)
        if gone:
            self.log.discard(*[offset_of(sequence) for sequence in gone])
            for sequence, subject in zip(gone, subjects, strict=True):
                self._on_removed(sequence, subject)
        return first, count

    # ── what leaves ──

    @property
    def is_limited(self) -> bool:
        """Whether `enforce` may have something to do, now or later."""
        return self._limits.any or bool(self.expiry.entries)

    def enforce(self, now: int) -> None:
        """Remove messages beyond the limits of the whole stream, and those that are too old."""
        limits = self._limits
        if self.config.discard == "new":  # refuses messages above the limits, and removes none
            limits = limits._replace(max_records=0, max_bytes=0)
        if self.config.allow_msg_ttl:  # a message may outlive max_age, or leave a marker
            limits = limits._replace(max_age_ns=0)
        if limits.any and self.subjects.messages:
            over = 0 < limits.max_records < self.subjects.messages or 0 < limits.max_bytes < self.subjects.size_bytes
            if over or limits.max_age_ns > 0:
                self._remove_oldest(limits, now)
        self.expiry.enforce(now)

    def next_expiry(self) -> int:
        """When `enforce` has to run next because of time; 0: never."""
        entries = self.expiry.entries
        times = [entries[0][0]] if entries else []
        if self.config.allow_msg_ttl:
            times.append(self.expiry.next_age())
        elif self._limits.max_age_ns > 0 and (first := self.log.first_timestamp_ns) is not None:
            times.append(first + self._limits.max_age_ns)
        return min(filter(None, times), default=0)

    def remove(self, sequence: int) -> bool:
        """Remove one message; False when it is not there. Raises StorageError."""
        record = self.load(sequence)
        return record is not None and self.remove_record(record)

    def remove_record(self, record: StoredRecord) -> bool:
        """As `remove`, of a message that was read."""
        return self._remove(record.subject, sequence_of(record.offset), self._size(record))

    def roll_up(self, kind: bytes, subject: bytes, sequence: int) -> None:
        """The message at `sequence` replaces all before it: of its subject, of all subjects that it matches if it has
        wildcards (`kv.purge("hello.*")` of a client), or of the stream."""
        if kind == b"all":
            if self.log.start_offset < offset_of(sequence):
                self._replace(None, sequence)
        elif self.subjects.with_history and is_literal(subject):
            for older, size in self.subjects.history(subject):
                if older < sequence:
                    self._remove(subject, older, size)
        elif (replaced := self.replaced.get(sequence)) is not None:
            only, size = replaced
            if size:
                self._remove(subject, only, size)
            elif only:
                self.remove(only)
        elif self.subjects.total(subject) > 1 or not is_literal(subject):
            self._replace(SubjectFilter([subject]), sequence)

    def remove_known(self, known: list[tuple[int, bytes, int]]) -> None:
        """Remove messages of which sequence, subject and size are known. Raises StorageError."""
        there = set(self.log.discard(*[offset_of(sequence) for sequence, _, _ in known]))
        for sequence, subject, size in known:
            if offset_of(sequence) not in there:
                continue
            if self._recount is not None:
                self._recount.note_removed(subject, offset_of(sequence), size)
            self.subjects.remove(subject, sequence, size)
            self._on_removed(sequence, subject)

    def remove_all(self, subject: bytes, below: int) -> None:
        """Remove the messages of a subject below a sequence, which are few. Raises StorageError."""
        while 0 < (last := self.subjects.last(subject)) < below and self.remove(last):
            pass

    def clear(self) -> int:
        """Remove all messages; returns how many. Raises StorageError. Others are removed by `jetstream_timing.purging`."""
        log, count = self.log, self.subjects.messages
        self.subjects.clear()
        self._recount = None
        self._oldest.forget()
        self.expiry.entries.clear()
        self.expiry.forget()
        log.discard_range(log.start_offset, log.end_offset)
        self._on_purged()
        return count

    def _replace(self, wanted: SubjectFilter | None, below: int) -> None:
        """Remove the messages below a sequence, of all subjects or these. In one go: the next message finds them gone."""
        gone, most, end = 0, self.subjects.messages, offset_of(below)
        for record in self.scan(0):
            if gone >= most or record.offset >= end:
                break
            if wanted is None or wanted.matches(record.subject):
                self.drop([record])
                gone += 1
        if gone:
            self._on_purged()

    def drop(self, records: list[StoredRecord]) -> list[tuple[int, bytes]]:
        """Remove these records, as part of a larger removal; returns (sequence, subject) of each: the caller notifies
        the consumers."""
        gone, present = self.log.discard(*[record.offset for record in records]), records
        if len(gone) != len(records):
            there = set(gone)
            present = [record for record in records if record.offset in there]
        if self._recount is not None:
            for record in present:
                self._recount.note_removed(record.subject, record.offset, self._size(record))
        return self.subjects.remove_records(present, in_memory=self.config.storage == "memory")

    def drop_matching(self, wanted: SubjectFilter | None, offset: int, end: int, most: int) -> tuple[RecordPlaces, int]:
        """As `drop`, of at most `most` messages in `[offset, end)` that match, as far as one turn goes, uncopied; returns
        them, and the offset to go on from. Raises StorageError."""
        places = no_places(in_memory=self.config.storage == "memory")
        subjects = wanted.compared if wanted is not None else None
        after = self.log.reader.find_places(places, offset, end, subjects, most, PASSED)
        gone = self.log.discard(*places.offsets)
        if len(gone) != len(places):
            places = places.keep(gone)
        if self._recount is not None:
            for subject, at, size in zip(places.subjects, places.offsets, places.sizes, strict=True):
                self._recount.note_removed(subject, at, size)
        self.subjects.remove_all(places)
        return places, after

    def forget(self, start: int, end: int) -> None:
        """The records in `[start, end)` are unreadable. With a history their subjects are known; otherwise the total is
        corrected now, and the counts by subject by `count_anew`."""
        if self.subjects.with_history:
            for row in self.subjects.rows():
                for sequence, size in row.history:
                    if start <= offset_of(sequence) < end:
                        self.subjects.remove(row.subject, sequence, size)
            return
        self.subjects.messages = min(self.subjects.messages, self.log.record_count)
        self.subjects.forget_lasts(sequence_of(start), sequence_of(end))

    def count_anew(self) -> Generator[None, None, None]:
        """Correct the counts by subject after `forget`, a part per step of the generator. Run one at a time; a `forget`
        during the run needs another run. Raises StorageError."""
        subjects = self.subjects
        if subjects.with_history:
            return
        known = {row.subject: row.count for row in subjects.rows()}
        recount = self._recount = Recount(known, subjects.size_bytes, self.log.end_offset)
        try:
            yield from recount.turns(self.log, self._size)
            if self._recount is recount:
                subjects.correct(recount.excess, recount.excess_bytes)
        finally:
            self._recount = None

    def _remove(self, subject: bytes, sequence: int, size: int) -> bool:
        """Remove a message; False if it is not in the log."""
        if not self.log.discard(offset_of(sequence)):
            return False
        if self._recount is not None:
            self._recount.note_removed(subject, offset_of(sequence), size)
        self.subjects.remove(subject, sequence, size)
        self._on_removed(sequence, subject)
        return True

    def _remove_oldest(self, limits: Limits, now: int) -> None:
        subjects = self.subjects
        while oldest := self._oldest.surplus(limits, subjects.messages, subjects.size_bytes, now):
            for sequence, subject in self.drop(oldest):
                self._on_removed(sequence, subject)

    # ── reading ──

    def load(self, sequence: int) -> StoredRecord | None:
        """The message with this sequence, if it is there. Raises StorageError."""
        return self.log.reader.record(offset_of(sequence))

    def load_all(self, sequences: list[int], expected_bytes: int) -> Iterator[StoredRecord | None]:
        """As `load` for each of the sequences, which ascend. Those that lie close together are read together, at most
        `expected_bytes` at once."""
        start, end, count = offset_of(sequences[0]), sequences[-1], len(sequences)
        found: dict[int, StoredRecord] = {}
        if end - start <= SPARSE * count and self.log.count(start, end) <= 2 * count:
            read = self.log.read(start, 2 * count, expected_bytes)
            found = {sequence_of(record.offset): record for record in read}
        return (found.get(sequence) or self.load(sequence) for sequence in sequences)

    def scan(self, offset: int) -> Iterator[StoredRecord]:
        """Every durable record from `offset` on."""
        while records := self.log.read(offset, SCAN_RECORDS, SCAN_BYTES):
            yield from records
            offset = records[-1].offset + 1

    def next_matching(self, sequence: int, wanted: SubjectFilter) -> StoredRecord | None:
        """The first message at or above `sequence` that matches."""
        if not self.subjects.count(wanted):
            return None
        known = self.known_from(sequence, wanted)
        if known is not None:
            return self.load(known[0]) if known else None
        return next((r for r in self.scan(max(offset_of(sequence), 0)) if wanted.matches(r.subject)), None)

    def sequence_at_time(self, time_ns: int) -> int:
        """The first sequence whose message is not older than `time_ns`; one past the last when all are older."""
        return sequence_of(self.log.offset_at(time_ns))

    def count_from(self, sequence: int, wanted: SubjectFilter | None) -> int | None:
        """Messages from `sequence` on that match; None when that requires reading each of them."""
        if sequence > self.log.end_offset:
            return 0
        if wanted is None:
            return self.log.count(max(offset_of(sequence), 0), self.log.end_offset)
        if sequence <= sequence_of(self.log.start_offset):
            return self.subjects.count(wanted)
        known = self.known_from(sequence, wanted)
        return None if known is None else len(known)

    def known_from(self, sequence: int, wanted: SubjectFilter) -> list[int] | None:
        """The sequences from `sequence` on of the messages that match, ascending; None where the log has to be read."""
        return self.subjects.sequences_from(wanted, sequence) if wanted.literals else None

    def counted_from(self, sequence: int, wanted: SubjectFilter | None) -> int:
        """As `count_from`, reading each message where that is required. Raises StorageError."""
        known = self.count_from(sequence, wanted)
        if known is not None:
            return known
        return sum(1 for r in self.scan(offset_of(sequence)) if wanted is None or wanted.matches(r.subject))

    def _size(self, record: StoredRecord) -> int:
        return self.size_of(record.subject, record.header_block, record.payload)

    def _find_before(self, subject: bytes, sequence: int) -> int:
        """The last message of a subject below `sequence`, searched backwards; 0 when there is none."""
        end = offset_of(sequence)
        while end > self.log.start_offset:
            start = max(self.log.start_offset, end - SCAN_RECORDS)
            found, offset = 0, start
            while offset < end and (records := self.log.read(offset, SCAN_RECORDS, SCAN_BYTES)):
                for record in records:
                    if record.offset < end and record.subject == subject:
                        found = sequence_of(record.offset)
                offset = records[-1].offset + 1
            if found:
                return found
            end = start
        return 0


def limits_of(config: StreamConfig) -> Limits:
    """The limits of the whole stream."""
    return Limits(config.max_msgs, config.max_bytes, config.max_age)
