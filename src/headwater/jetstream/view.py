"""A stream that is written by another face and read through JetStream.

    the other's log ─▶ `SubjectedLog`: its records under a subject ─▶ Stream, Contents, consumers as ever
    the other       ─▶ `follow`: something was stored, or dropped

It has one subject. For JetStream it is sealed: no message is captured, deleted or purged here, no limit is applied; the
other face decides about retention. Consumers of every kind work, and durable ones keep their state in a directory of
JetStream's store. No stream captures a publish to its subject.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import cast

from headwater.exchange.router import Router
from headwater.group_commit.writers import Writers
from headwater.jetstream.stream import Stream
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.items import Item, Published
from headwater.jetstream_state.sequence import sequence_of
from headwater.jetstream_state.store import StreamDirectory, StreamRecord
from headwater.jetstream_state.subject_table import SubjectFilter, SubjectRow
from headwater.streams.finding import Finding
from headwater.streams.iggy_records import records
from headwater.streams.log import Log, StoredRecord
from headwater.streams.log_format import DIALECT_IGGY
from headwater.streams.log_reader import Wanted

USUAL_RECORD = 1 << 10  # bytes; only used to size reads from the disk


class SubjectedLog:
    """A log of batches in the Iggy dialect as a stream reads it: each record has `subject`. Nothing is written this way."""

    def __init__(self, log: Log, subject: bytes) -> None:
        self._log = log
        self._subject = subject

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    @property
    def reader(self) -> "SubjectedLog":
        """What reads single records: not the log's own reader, whose records have no subject."""
        return self

    def record(self, offset: int) -> StoredRecord | None:
        """As `LogReader.record`."""
        found = self.read(offset, 1, 1)
        return found[0] if found and found[0].offset == offset else None

    def close(self, document: bytes = b"") -> None:
        """Do nothing: the other face closes the log."""

    def sync(self) -> None:
        """Do nothing: the other face makes durable what it writes."""

    def read(self, offset: int, max_records: int, max_bytes: int) -> list[StoredRecord]:
        """As `Log.read`."""
        log, subject = self._log, self._subject
        found: list[StoredRecord] = []
        offset = max(offset, log.start_offset)
        if max_records <= 0:
            return found
        for batch in log.batches(offset, min(max_bytes, max_records * USUAL_RECORD)):
            if batch.header.dialect != DIALECT_IGGY:
                continue
            for record in records(batch.body, offset):
                if log.is_absent(record.offset):
                    continue
                size = len(record.header_block) + len(record.payload)
                if len(found) >= max_records or (found and size > max_bytes):
                    return found
                block = record.header_block
                found.append(StoredRecord(record.offset, record.timestamp_ns, subject, block, record.payload))
                max_bytes -= size
            if len(found) >= max_records or max_bytes <= 0:
                break
        return found

    def read_matching(
        self, offset: int, wanted: Wanted | None, max_records: int, max_bytes: int, max_passed: int
    ) -> tuple[list[StoredRecord], int]:
        """As `Log.read_matching`: all records have one subject."""
        is_wanted = wanted == self._subject if isinstance(wanted, bytes) else wanted is None or wanted(self._subject)
        if not is_wanted:
            return [], self._log.end_offset
        found = self.read(offset, max_records, max_bytes)
        return found, found[-1].offset + 1 if found else self._log.end_offset


class _Contents(Contents):
    """The contents of one subject, so counting matches needs no scan of the messages."""

    def count_from(self, sequence: int, wanted: SubjectFilter | None) -> int | None:
        if wanted is not None and not wanted.matches(self.config.subjects[0].encode()):
            return 0
        return super().count_from(sequence, None)

    def known_from(self, sequence: int, wanted: SubjectFilter) -> list[int] | None:
        return None


class ViewStream(Stream):
    """See the head of this module. `name` and `subject` are those that JetStream's clients use."""

    def __init__(
        self,
        name: str,
        subject: str,
        log: Log,
        directory: StreamDirectory,
        created_ns: int,
        clock_ns: Callable[[], int],
        description: str = "",
    ) -> None:
        config = StreamConfig(
            name=name,
            description=description,
            subjects=[subject],
            allow_direct=True,
            sealed=True,
            deny_delete=True,
            deny_purge=True,
        )
        self.origin = log
        directory.identity = log.identity
        self._subject = subject.encode()
        shown = cast(Log, SubjectedLog(log, self._subject))
        super().__init__(directory, StreamRecord(config, created_ns), shown, clock_ns)
        self._router: Router | None = None
        self.contents = _Contents(shown, config, lambda sequence, subject: None, lambda: None)
        self._seen_end, self._seen_records = log.end_offset, log.record_count
        self._following = False
        self._count()

    def attach(self, router: Router, writers: Writers | None, early: Iterable[Published] = ()) -> None:
        """Connect to the router; the stream captures nothing."""
        self._router = router

    def findings(self) -> list[Finding]:
        """Findings about the documents of its consumers; the log's owner reports those about the log."""
        return self.directory.findings if self.directory is not None else []

    async def detach(self) -> None:
        """Do nothing: no messages are staged here."""
        self._router = None

    def follow_soon(self) -> None:
        """Messages were stored, dropped or found unreadable: notify the consumers, once in this turn of the loop."""
        if not self._following:
            self._following = True
            asyncio.get_running_loop().call_soon(self.follow)

    def follow(self) -> None:
        """Notify the consumers of messages stored and dropped since the last call."""
        self._following = False
        if self._router is None:
            return
        log = self.origin
        seen, self._seen_end = self._seen_end, log.end_offset
        dropped = log.record_count - log.count(seen, self._seen_end) < self._seen_records
        self._seen_records = log.record_count
        self._count()
        if dropped:
            for consumer in list(self.consumers.values()):
                consumer.on_purged()
        elif self._seen_end > seen:
            stored, first = log.count(seen, self._seen_end), sequence_of(seen)
            one_by_one = any(c.filter is not None or c.state.position > first for c in self.consumers.values())
            items = self._items(seen) if one_by_one else []
            self.consumers.on_stored(first, stored, items)

    def _items(self, start: int) -> list[Item]:
        there = (offset for offset in range(start, self._seen_end) if not self.origin.is_absent(offset))
        return [Item(b"", b"", self._subject, sequence_of(offset), 0, b"", None) for offset in there]

    def _count(self) -> None:
        log, subjects = self.origin, self.subjects
        subjects.clear()
        if log.record_count:
            row = SubjectRow(self._subject, log.record_count, log.end_offset, [])
            subjects.restore([row], log.record_count, log.size_bytes)
