"""The new messages of a consumer, read from the log in batches and kept until they are delivered."""

from itertools import islice
from typing import TYPE_CHECKING

from headwater.jetstream.consumed_stream import ConsumedStream
from headwater.jetstream_documents.consumer_rules import filters_of
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_state.consumer import Consumer
from headwater.jetstream_state.sequence import offset_of, sequence_of
from headwater.jetstream_state.subject_table import SubjectFilter
from headwater.streams.log import StoredRecord

if TYPE_CHECKING:
    from headwater.jetstream_ranges.large_records import LargeRecords
    from headwater.jetstream_ranges.stored_run import StoredRun

RECORDS = 256  # read from the log at once
BYTES = 1 << 20
SKIPPED = 4096  # records that the filter may skip in one turn, plus the rest of a batch


class ReadAhead:
    """`filter`: the subjects that the consumer delivers, None for all. `records[at:]` are read but not delivered yet; while
    messages are selected, they are the first of these."""

    def __init__(self, stream: ConsumedStream, state: Consumer) -> None:
        self.filter = filter_of(state.config)
        self.records: list[StoredRecord] = []
        self.at = 0
        self._stream = stream
        self._state = state
        self._large: LargeRecords | None = None
        self._run: StoredRun | None = None

    def next(self) -> StoredRecord | None:
        """The next matching message. None at the end of the log, or when one turn has skipped its limit of records. Raises
        StorageError."""
        if self.at >= len(self.records) and not (self._read_selected() if self._state.selected else self._read()):
            return None
        return self.records[self.at]

    def run(self) -> "StoredRun | None":
        """The next messages as a run of records of one batch; None where they have to be taken by `next`. Raises
        StorageError."""
        state = self._state
        if self.at < len(self.records) or self.filter is not None or state.selected or self._has_large():
            return None
        offset = offset_of(state.position)
        if self._run is None or self._run.is_over or self._run.offset != offset:
            from headwater.jetstream_ranges.stored_run import find_run  # here: a start needs it not

            self._run = find_run(self._stream.log, offset)
        return self._run

    def forget(self) -> None:
        """Discard what was read: the consumer's position, the filter or the log has changed."""
        self.records = []
        self.at = 0
        self._run = None

    def forget_removed(self, sequence: int) -> None:
        """Discard what was read, if it may include the message that left the stream."""
        last = self.records[-1].offset if self.records else -1
        if offset_of(sequence) < max(last + 1, self._run.end if self._run is not None else 0):
            self.forget()

    def _has_large(self) -> bool:
        """Whether the last record that was read is a large one."""
        return bool(self.records) and len(self.records[-1].payload) > BYTES // RECORDS

    def _read(self) -> bool:
        state, log = self._state, self._stream.log
        subjects = self.filter.wanted if self.filter is not None else None
        known = self._stream.contents.known_from(state.position, self.filter) if self.filter is not None else None
        if known is not None:  # a subject may have one message in a million: the others need not be read
            state.position = max(state.position, known[0] if known else sequence_of(log.end_offset))
        may_be_large, self.records, self.at = not self.records or self._has_large(), [], 0
        if may_be_large:
            from headwater.jetstream_ranges.large_records import LargeRecords  # here: a start needs it not

            self._large = self._large or LargeRecords(log)
            self.records = self._large.read(offset_of(state.position), subjects)
        if not self.records:
            self.records, end = log.read_matching(offset_of(state.position), subjects, RECORDS, BYTES, SKIPPED)
        if self.records:
            return True
        state.position = max(state.position, sequence_of(end))
        if end >= log.end_offset:
            state.num_pending = 0  # the rest is unreadable: damaged since the count, and reported by the log
        return False

    def _read_selected(self) -> bool:
        """Read the next of the messages selected by "last per subject"; False in the turn in which the last of them turns
        out to be gone."""
        state = self._state
        self.records, self.at = [], 0
        wanted = list(islice(state.selected, RECORDS))
        size = 0
        for sequence, record in zip(wanted, self._stream.contents.load_all(wanted, BYTES), strict=True):
            if record is None:
                state.selected.remove(sequence)  # near the front
                state.num_pending -= 1
                continue
            size += len(record.subject) + len(record.header_block) + len(record.payload)
            if self.records and size > BYTES:
                break
            self.records.append(record)
        return bool(self.records)


def filter_of(config: ConsumerConfig) -> SubjectFilter | None:
    """The subjects that a consumer delivers; None for all."""
    patterns = filters_of(config)
    return SubjectFilter(patterns) if patterns else None
