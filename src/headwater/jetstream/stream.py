"""A stream: the messages of some subjects, kept in a durable log, each acknowledged once it is durable.

    Publishing   stores and answers publishes          Contents    the stored messages, and the limits
    ExpiryTimer  applies time limits                   consumers   the readers (delivering.py)

This file connects them: stored messages go to the consumers, and messages that consumers have settled are removed.

Interest retention: a message stays until every consumer whose filter matches has settled it. One that no consumer needs is
given its sequence, acknowledged, and removed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import msgspec

from headwater.compression.snappy import HINT, Compress, compressor
from headwater.errors import JetStreamError, StorageError
from headwater.exchange.router import Router
from headwater.group_commit.committer import Committer
from headwater.group_commit.shared_reads import share_reads
from headwater.group_commit.write_stats import WriteStats
from headwater.group_commit.writers import Writers
from headwater.jetstream.copying import Copying
from headwater.jetstream.delivering import DeliveringConsumer
from headwater.jetstream.domain import Domain
from headwater.jetstream.state_keeper import StateKeeper
from headwater.jetstream_documents.stream_rules import shown_metadata
from headwater.jetstream_documents.streams import LostData, StreamConfig, StreamInfo, StreamState
from headwater.jetstream_publishing.publishing import Publishing
from headwater.jetstream_state.atomic_batch import BatchRoom, halves
from headwater.jetstream_state.audience import Audience
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.expiry import marker_block
from headwater.jetstream_state.items import Answer, Item, Published
from headwater.jetstream_state.purge_reach import PurgeReach
from headwater.jetstream_state.schedules import ended_by
from headwater.jetstream_state.sequence import sequence_of
from headwater.jetstream_state.store import StreamDirectory, StreamFindings, StreamRecord
from headwater.jetstream_state.stored_batch import attend
from headwater.jetstream_state.stream_document import StreamDocument
from headwater.jetstream_state.subject_table import SubjectFilter, SubjectTable
from headwater.jetstream_timing.message_expiry import ExpiryTimer
from headwater.jetstream_timing.purging import Purge
from headwater.jetstream_timing.recounts import Recounts
from headwater.model.timestamps import format_time
from headwater.streams.finding import Finding
from headwater.streams.log import Log, StoredRecord
from headwater.streams.options import SEGMENT_OF_A_STREAM, SMALLEST_SEGMENT
from headwater.streams.recovery import Damage

logger = logging.getLogger(__name__)

MOST_DELETED_SHOWN = 100_000  # sequences in the answer to a STREAM.INFO with deleted_details


class Stream:
    """One open stream. `recover` reads its log; `attach` connects it to the router.

    `keeper` makes the states of consumers durable, None for a stream in memory. `requests_dropped`: pull requests whose
    requester had gone, or had no subscriber with permission for the messages. `copying`: copies other streams. `faults`: of
    its files.
    """

    def __init__(
        self,
        directory: StreamDirectory | None,
        record: StreamRecord,
        log: Log,
        clock_ns: Callable[[], int],
        domain: Domain = Domain(),  # noqa: B008  (a constant)
        ticks_ns: Callable[[], int] | None = None,
    ) -> None:
        """`directory` is None for memory storage; `clock_ns` is the time of day, ns since 1970; `ticks_ns` a monotonic
        clock, if there is one."""
        self.directory = directory
        self.domain = domain
        self.config = record.config
        self.created_ns = record.created_ns
        self.log = log
        self.contents = Contents(log, record.config, self._on_removed, self._on_purged)
        self.consumers: Audience[DeliveringConsumer] = Audience()
        self.keeper: StateKeeper | None = None
        self.requests_dropped = 0
        self._clock_ns = clock_ns
        self.faults = StreamFindings(record.config.name, log, directory)
        self._publishing = Publishing(
            self.contents, self.consumers, clock_ns, ticks_ns or clock_ns, domain, self._on_stored
        )
        self._expiry = ExpiryTimer(self.contents, clock_ns, self.consumers.values, self._after_removals)
        self._recounts = Recounts(self.contents.count_anew, self._on_purged)
        self.copying = Copying(self._publishing, log, domain, directory)
        log.on_damage = self._on_damage

    # ── life ──

    def recover(self) -> None:
        """Blocking: rebuild the tables of subjects and message ids, from the document of a clean stop, or a checkpoint and
        the newer part of the log, or the whole log. Ids of removed messages are found, too. Raises StorageError.
        """
        now, start = self._clock_ns(), 0
        if self.config.allow_atomic and self.config.mirror is None:  # a mirror may have copied part of a batch
            self._drop_halves()
        document = StreamDocument.decode(self.log.document)
        if document is not None and document.contents.messages == self.log.count(0, self.log.known_end):
            self.contents.restore(document.contents)
            start = self.log.known_end
        self.copying.restore(document.positions if document is not None and start else {}, start)
        if self.config.allow_msg_schedules:
            self._learn_schedules(start)
        self._learn_ids(document, now)
        if start and self.log.count(start, self.log.end_offset) == 0:
            return

        def learn(record: StoredRecord) -> None:
            if record.header_block:
                self.copying.learn(record.offset, record.header_block)

        self.contents.recover(learn, now, start)

    def _learn_ids(self, document: StreamDocument | None, now: int) -> None:
        """Blocking: find the ids of the duplicate window, and the last one. A document's ids hold whatever was removed
        later."""
        from headwater.jetstream_state.stored_ids import learn_ids  # here: a start without streams does not need it

        publishing, start = self._publishing, 0
        if document is not None:
            publishing.restore(document.ids, document.last_id)
            start = self.log.known_end
        saved = self.directory.positions if self.directory is not None else None
        last = learn_ids(publishing.duplicates, self.log, start, saved, now, publishing.ticks_apart())
        if last is not None:
            publishing.last_message_id = last

    def _drop_halves(self) -> None:
        """Blocking: durably remove the rest of an unacknowledged atomic batch that a crash has left."""
        log = self.log
        gone = [log.discard_range(start, end) for start, end in halves(log)] if log.recovery.records else []
        if any(gone) and (batch := log.seal()) is not None:
            logger.warning("half_written_batch_removed stream=%s messages=%d", self.config.name, sum(gone))
            log.write(batch)
            log.publish(batch)

    def _learn_schedules(self, start: int) -> None:
        """Blocking: find the schedules and their next turns; those before offset `start` were restored."""
        schedules, saved = self.contents.schedules, self.directory.positions if self.directory is not None else None
        if saved is not None and start < saved.end <= self.log.end_offset:
            schedules.restore(saved.schedules)
            start = saved.end
        schedules.learn(self.log, start)

    def document(self) -> bytes:
        """The document for `recover`, if the log is closed cleanly now."""
        publishing = self._publishing
        ids, last_id = publishing.duplicates.dump(publishing.ticks_apart()), publishing.last_message_id
        return msgspec.msgpack.encode(
            StreamDocument(self.contents.document(), ids, last_id, dict(self.copying.positions()))
        )

    def attach(self, router: Router, writers: Writers | None, early: Iterable[Published] = ()) -> None:
        """Start capturing. Without writers, writes happen in the loop. `early`: what was published before."""
        if writers is not None:
            share_reads(self.log)
        self._publishing.attach(router, writers)
        if self._publishing.committer is not None:
            self._publishing.committer.upkeep.before_loss = self.copying.save
        self._publishing.schedules.start()
        self.contents.expiry.leave_marker = self._leave_marker
        self.enforce()
        for message in early:
            self._publishing.take(*message)

    async def flush(self) -> None:
        """Wait until everything captured so far is durable and acknowledged, or refused."""
        if self._publishing.committer is not None:
            await self._publishing.committer.flush()

    async def written(self) -> None:
        """Wait until every message captured so far is durable, or refused; unlike `flush`, not for later ones."""
        if self._publishing.committer is not None:
            await self._publishing.committer.settle()

    async def detach(self) -> None:
        """Stop capturing; staged messages are written and acknowledged."""
        self.copying.stop()
        self._recounts.stop()
        self._expiry.stop()
        await self._publishing.detach()

    def reconfigure(self, config: StreamConfig) -> None:
        """Apply a configuration that was checked and made durable."""
        unneeded = config.retention == "interest" != self.config.retention
        schedules = self.config.allow_msg_schedules
        self.config = config
        self._publishing.configure(config)
        self.contents.reconfigure(config, self._clock_ns())
        limit_log(self.log, config)
        self._publishing.choose_ways()
        if unneeded:
            self.drop_unneeded()
        self._after_removals()
        self.copying.follow(config)
        if config.allow_msg_schedules and not schedules:
            self.contents.schedules.learn(self.log, 0)
        self._publishing.schedules.set()

    def limit_room(
        self, has_room: Callable[[int], bool] | None, *, of_server: bool = False, batches: BatchRoom | None = None
    ) -> None:
        """Set `has_room(bytes)`, which decides before a message is stored whether the account (or the server) may hold
        it; None: no limit. `batches`: the limits of atomic batches."""
        self._publishing.limit_room(has_room, of_server=of_server, batches=batches)

    def report_to(
        self,
        on_finding: Callable[[Finding], None],
        on_refused: Callable[[str, JetStreamError], None],
        stats: WriteStats | None,
    ) -> None:
        """Call `on_finding` for later findings, `on_refused(stream, error)` as `PublishAnswers` says; count writes in
        `stats` if the stream is on disk. To be called before `attach`."""
        self.faults.on_finding = on_finding
        self._publishing.answers.on_refused = on_refused
        if stats is not None:
            self._publishing.answers.stats = stats

    # ── numbers ──

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.config.name

    @property
    def subjects(self) -> SubjectTable:
        """The table of subjects with their messages."""
        return self.contents.subjects

    @property
    def weight(self) -> int:
        """Bytes of all messages, including those being written."""
        return self.subjects.size_bytes + self.waiting[1]

    @property
    def waiting(self) -> tuple[int, int]:
        """Messages that are not acknowledged yet, and their bytes."""
        committer = self._publishing.committer
        return (0, 0) if committer is None else (len(self._publishing.rules.items()), committer.unwritten_bytes)

    @property
    def refused(self) -> int:
        """Publishes that were refused."""
        return self._publishing.answers.refused

    @property
    def last_sequence(self) -> int:
        """The sequence of the last durable message."""
        return self.log.end_offset

    @property
    def first_sequence(self) -> int:
        """The sequence of the first message, or of the next in an empty stream; 0 when the stream has never held a message
        and its configuration does not set `first_seq`."""
        return sequence_of(self.log.start_offset) if self.log.end_offset or self.contents.begins else 0

    def info(self, *, full: bool = True) -> StreamInfo:
        """STREAM.INFO without its page; `full` is False in lists, whose metadata is bare."""
        config = self.config
        if full:
            sync = self.log.options.sync if config.storage == "file" else "always"
            config = msgspec.structs.replace(config, metadata=shown_metadata(config.metadata, sync))
        mirror, sources = self.copying.infos()
        return StreamInfo(
            config=config,
            created=format_time(self.created_ns),
            state=self.state(),
            domain=self.domain.name,
            mirror=mirror,
            sources=sources,
            ts=format_time(self._clock_ns()),
        )

    def state(self) -> StreamState:
        """The stream's state, from durable messages only."""
        first, last = self.log.first_timestamp_ns, self.log.last_timestamp_ns
        messages = self.subjects.messages
        state = StreamState(
            messages=messages,
            bytes=self.subjects.size_bytes,
            first_seq=self.first_sequence,
            last_seq=self.last_sequence,
            num_subjects=len(self.subjects),
            num_deleted=self.log.end_offset - self.log.start_offset - messages,
            consumer_count=sum(1 for consumer in self.consumers.values() if not consumer.config.direct),
        )
        if first is not None:
            state.first_ts = format_time(first)
        if last is not None:
            state.last_ts = format_time(last)
        lost = [damage for damage in self.log.damage if damage.certain]
        if lost:
            offsets = (offset for damage in lost for offset in range(damage.start, damage.end))
            numbers = [sequence_of(offset) for offset in islice(offsets, MOST_DELETED_SHOWN)]
            state.lost = LostData(msgs=numbers, bytes=sum(damage.size for damage in lost))
        return state

    @property
    def failure(self) -> StorageError | None:
        """Why messages, or the states of consumers, cannot be written; None while they can."""
        return self.log.failure or (self.keeper.failure if self.keeper is not None else None)

    def findings(self) -> list[Finding]:
        """Damage and losses in the stream's files."""
        return self.faults.all

    def _on_damage(self, damage: Damage) -> None:
        self.faults.note_damage(damage)
        if self._publishing.committer is not None:
            asyncio.get_running_loop().call_soon(self._count_anew, damage)

    def _count_anew(self, damage: Damage) -> None:
        self.contents.forget(damage.start, damage.end)
        self._on_purged()
        self._recounts.ask()

    # ── publishes ──

    def append(self, messages: Sequence[tuple[bytes, bytes, bytes]], answer: Answer) -> int:
        """Store messages (subject, header block, payload) that came in together through another face of this stream, and
        call `answer` once for each, now or later. Several are judged before, as those of an atomic batch: raises
        JetStreamError where one would be refused; then none is stored. Returns the offset of the first that is new; of the
        first, where all are known by their ids.

        They go through the router like every publish, so subscribers and other brokers get them too. Only the answers do
        not: a client cannot forge a callback, and a stream with `no_ack` calls it as well.
        """
        if len(messages) > 1:
            self._publishing.check_together(messages)
        first = self._publishing.first_offset_of([block for _, block, _ in messages])
        for subject, header_block, payload in messages:
            self._publishing.append(subject, header_block, payload, answer)
        return first

    def _on_stored(self, first: int, count: int, items: list[Item]) -> None:
        """`count` messages of a batch became durable, from sequence `first` on, and their publishers are answered."""
        self._publishing.rules.note_done(items)
        self.consumers.on_stored(first, count, items)
        if not self._publishing.is_plain:
            # after the consumers: a roll-up makes them recount, including what was just stored
            is_needed = self._is_needed if self.config.retention == "interest" else None
            attend(items, self.contents, is_needed, self._republish if self.config.republish is not None else None)
            if self.config.allow_msg_schedules:
                self._note_schedules(items)
        if self.config.retention == "interest":
            self._drop_unwanted(items)
        if self.contents.is_limited or self.log.has_deletions:
            self.enforce()

    def _republish(self, item: Item) -> None:
        republisher, router = self._publishing.rules.republisher, self._publishing.router
        if republisher is not None and router is not None:
            republisher.republish(router, item, self.contents.previous.get(item.sequence, 0))

    def _note_schedules(self, items: list[Item]) -> None:
        """Messages that are schedules, were made by schedules, or replaced schedules became durable."""
        schedules = self.contents.schedules
        for item in items:
            if item.subject:
                block, timestamp = (
                    (item.particulars.header_block, item.particulars.timestamp_ns) if item.particulars else (b"", 0)
                )
                if block and (ended := ended_by(block)):
                    self.contents.remove_all(ended, item.sequence)
                schedules.note(item.subject, item.sequence, block, timestamp)
        self._publishing.schedules.set()

    # ── removals ──

    def _leave_marker(self, subject: bytes) -> None:
        """Publish a marker in place of the expired last message of a subject, after the current callback."""
        block = marker_block(self.config.subject_delete_marker_ttl)
        asyncio.get_running_loop().call_soon(self._publishing.store_own, subject, block)

    def enforce(self) -> None:
        """Apply the limits now, and set the timer for the next message to expire."""
        self._expiry.enforce()

    @property
    def committer(self) -> Committer:
        """What makes removals durable, and frees their room. Only while the stream is attached."""
        committer = self._publishing.committer
        assert committer is not None
        return committer

    def purge(self, wanted: SubjectFilter | None, below: int, keep: int) -> Purge:
        """Prepare the removal of messages (see `Purge`). The caller makes it durable."""
        consumers = self.consumers
        return Purge(self.contents, wanted, below, keep, self._on_removed_many, self._on_purged if consumers else None)

    async def settle_deletions(self) -> None:
        """Wait until every message that was removed so far is removed durably. Raises StorageError."""
        committer = self._publishing.committer
        if committer is not None and (self.log.has_deletions or committer.busy):
            await committer.barrier()

    def on_settled(self, record: StoredRecord) -> None:
        """A consumer no longer needs a message: on an interest stream or a work queue it may be removed."""
        retention = self.config.retention
        if retention == "limits":
            return
        if retention == "interest" and self.consumers.is_needed(sequence_of(record.offset), record.subject):
            return
        if self.contents.remove_record(record):
            self._after_removals()

    def drop_settled(self, sequences: list[int]) -> None:
        """A work queue: remove messages that are settled according to the consumers' journal, if a crash prevented their
        removal."""
        if self.config.retention == "workqueue":
            for sequence in sequences:
                self.contents.remove(sequence)
            self._after_removals()

    def drop_unneeded(self) -> None:
        """With interest retention: remove messages that no consumer needs, after one was deleted or restored."""
        if self.config.retention == "interest":
            for record in list(self.contents.scan(0)):
                sequence = sequence_of(record.offset)
                if not self.consumers.is_needed(sequence, record.subject):
                    self.contents.remove(sequence)
            self._after_removals()

    def _is_needed(self, item: Item) -> bool:
        return self.config.retention != "interest" or self.consumers.is_needed(item.sequence, item.subject)

    def _drop_unwanted(self, items: list[Item]) -> None:
        for item in items:
            if item.subject and not self._is_needed(item):
                self.contents.remove(item.sequence)

    def _on_removed(self, sequence: int, subject: bytes) -> None:
        if not self.consumers:
            return
        for consumer in self.consumers.concerned(sequence, subject):
            consumer.on_removed(sequence, subject)

    def _on_removed_many(self, gone: Iterable[tuple[int, bytes]]) -> None:
        if self.consumers:
            pairs = list(gone)
            for consumer in list(self.consumers.values()):
                consumer.on_removed_many(pairs)

    def _on_purged(self, reach: PurgeReach | None = None) -> None:
        for consumer in list(self.consumers.values()):
            consumer.on_purged(reach)

    def _after_removals(self) -> None:
        committer = self._publishing.committer
        if committer is None:
            return
        if self.log.has_deletions:
            committer.note_deletions()
        if self.contents.is_limited:
            self._expiry.set()

    def on_clock_step(self) -> None:
        """The system clock was stepped: apply the time limits now, and reset the timer."""
        self._expiry.on_clock_step()
        self._publishing.schedules.on_clock_step()
        for consumer in list(self.consumers.values()):
            consumer.on_clock_step()


def limit_log(log: Log, config: StreamConfig) -> None:
    """Have the sizes of a log's files follow a configuration."""
    least = SEGMENT_OF_A_STREAM if config.storage == "file" else SMALLEST_SEGMENT
    log.limit_to(config.max_bytes, compress_of(config), least)


def compress_of(config: StreamConfig) -> Compress | None:
    """The function that compresses the stream's segments; None without compression. A missing package is logged."""
    if config.compression != "s2" or config.storage != "file":
        return None
    compress = compressor()
    if compress is None:
        logger.warning("stream_not_compressed stream=%s hint=%s", config.name, HINT)
    return compress


def deleted_sequences(log: Log) -> list[int]:
    """Sequences between the first and the last that no message of the stream has, at most MOST_DELETED_SHOWN."""
    absent = (offset for offset in range(log.start_offset, log.end_offset) if log.is_absent(offset))
    return [sequence_of(offset) for _, offset in zip(range(MOST_DELETED_SHOWN), absent, strict=False)]
