"""A stream: the messages of some subjects, kept in a durable log, each acknowledged once it is durable.

The way of a publish (`capture`, a callback of the router, so it must not block):

    header checks ─▶ duplicate? ─▶ log.stage ─▶ committer ─▶ (durable) ─▶ PubAck, subject table, consumers

What the client hears is decided here, what is written when is the committer's. A refusal is answered at once; an
error of the disk as soon as it is known, to every publish of the batch: never silence. Sequences that a failed batch
was given are not used again, so a stream may have gaps.

A duplicate whose original is still being written gets its answer together with the original's fate, in its place
among the acks: "duplicate" must not be said of a message that may yet be lost.
"""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor

import msgspec

from headwater.broker.jetstream.api_errors import api_error
from headwater.broker.jetstream.api_types import (
    ApiError,
    ClusterInfo,
    StreamConfig,
    StreamInfo,
    StreamState,
    error_document,
)
from headwater.broker.jetstream.committer import Committer, Item
from headwater.broker.jetstream.publish_checks import (
    MAX_HEADER_BLOCK,
    Demands,
    check_after_id,
    check_before_id,
    lone_message_id,
)
from headwater.broker.jetstream.pull import PullConsumer
from headwater.broker.jetstream.sequence import offset_of, sequence_of
from headwater.broker.jetstream.store import StreamDirectory, StreamRecord
from headwater.broker.jetstream.stream_config import shown_metadata
from headwater.broker.jetstream.subject_table import SubjectFilter, SubjectTable, stored_size
from headwater.broker.jetstream.timestamps import format_time
from headwater.broker.router import Router
from headwater.broker.sublist import Subscription
from headwater.errors import DiskFull, JetStreamError, StorageError
from headwater.model.header_block import lookup
from headwater.model.subject import matches
from headwater.streams.dedup import DuplicateWindow
from headwater.streams.log import Log, StoredRecord

logger = logging.getLogger(__name__)

SCAN_RECORDS = 4096  # per look into the log
SCAN_BYTES = 4 << 20


class PublishRefusal(msgspec.Struct):
    """The answer to a publish that was not stored."""

    error: ApiError
    stream: str
    seq: int = 0


class Stream:
    """One stream, open. Made by `recover`, which reads the log; `attach` connects it to the router."""

    def __init__(self, directory: StreamDirectory, record: StreamRecord, log: Log, clock_ns: Callable[[], int]) -> None:
        self.directory = directory
        self.config = record.config
        self.created_ns = record.created_ns
        self.log = log
        self.subjects = SubjectTable()
        self.consumers: dict[str, PullConsumer] = {}
        self._clock_ns = clock_ns
        self._duplicates = DuplicateWindow(record.config.duplicate_window)
        self._last_message_id = b""
        self._router: Router | None = None
        self._committer: Committer | None = None
        self._subscriptions: list[Subscription] = []
        self._ack_head = b'{"stream":%s,"seq":' % msgspec.json.encode(record.config.name)

    # ── life ──

    def recover(self) -> None:
        """Blocking: read the log once, for what is known by subject and by message id.

        All of it, also for the ids: where the clock was set back, old and new time stamps are mixed.
        """
        now = self._clock_ns()
        oldest = now - self.config.duplicate_window
        last = None
        for record in self.scan(0):
            last = record
            size = stored_size(record.subject, record.header_block, record.payload)
            self.subjects.add(record.subject, sequence_of(record.offset), size)
            if record.timestamp_ns > oldest and record.header_block:
                message_id = lookup(record.header_block, b"Nats-Msg-Id")
                if message_id:
                    self._duplicates.remember(message_id, record.offset, min(record.timestamp_ns, now))
        if last is not None and last.header_block:
            self._last_message_id = lookup(last.header_block, b"Nats-Msg-Id") or b""

    def attach(self, router: Router, executor: Executor) -> None:
        """Start to capture."""
        self._router = router
        self._committer = Committer(self.log, executor, self._on_durable, self._on_failed)
        self._subscribe()

    async def detach(self) -> None:
        """Capture nothing more; what was staged is written and acknowledged."""
        self._unsubscribe()
        if self._committer is not None:
            await self._committer.flush()

    def reconfigure(self, config: StreamConfig) -> None:
        """Take on a configuration that was checked and made durable."""
        self._duplicates.resize(config.duplicate_window, self._clock_ns())
        resubscribe = config.subjects != self.config.subjects
        self.config = config
        if resubscribe and self._router is not None:
            self._unsubscribe()
            self._subscribe()

    def _subscribe(self) -> None:
        assert self._router is not None
        for subject in self.config.subjects:
            self._subscriptions.append(self._router.subscribe_internal(subject.encode(), self.capture))

    def _unsubscribe(self) -> None:
        assert self._router is not None
        for subscription in self._subscriptions:
            self._router.unsubscribe(subscription)
        self._subscriptions.clear()

    # ── numbers ──

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def last_sequence(self) -> int:
        """Of the last durable message."""
        return self.log.end_offset

    @property
    def first_sequence(self) -> int:
        """Where the stream begins; 0 when it has never held a message."""
        return sequence_of(self.log.start_offset) if self.log.end_offset else 0

    @property
    def _last_given_sequence(self) -> int:
        """Of the last message that will be stored unless the disk fails: what a publisher may expect it to be."""
        assert self._committer is not None
        return self.log.next_offset if self._committer.busy else self.log.end_offset

    def info(self, *, full: bool = True) -> StreamInfo:
        """STREAM.INFO without its page; `full` is False in lists, whose metadata is bare."""
        config = self.config
        if full:
            config = msgspec.structs.replace(config, metadata=shown_metadata(config.metadata))
        return StreamInfo(
            config=config,
            created=format_time(self.created_ns),
            state=self.state(),
            ts=format_time(self._clock_ns()),
        )

    def cluster(self, server_name: str) -> ClusterInfo:
        """Who leads: always this server."""
        return ClusterInfo(leader=server_name)

    def state(self) -> StreamState:
        """What the stream holds now; only what is durable counts."""
        first, last = self.log.first_timestamp_ns, self.log.last_timestamp_ns
        messages = self.subjects.messages
        state = StreamState(
            messages=messages,
            bytes=self.subjects.bytes,
            first_seq=self.first_sequence,
            last_seq=self.last_sequence,
            num_subjects=len(self.subjects),
            num_deleted=self.log.end_offset - self.log.start_offset - messages,
            consumer_count=len(self.consumers),
        )
        if first is not None and last is not None:
            state.first_ts, state.last_ts = format_time(first), format_time(last)
        return state

    # ── reading ──

    def load(self, sequence: int) -> StoredRecord | None:
        """The message with this sequence, if it is there. Raises StorageError."""
        offset = offset_of(sequence)
        if not self.log.start_offset <= offset < self.log.end_offset:
            return None
        records = self.log.read(offset, 1, 1)
        return records[0] if records and records[0].offset == offset else None

    def scan(self, offset: int) -> Iterator[StoredRecord]:
        """Every durable record from `offset` on."""
        while records := self.log.read(offset, SCAN_RECORDS, SCAN_BYTES):
            yield from records
            offset = records[-1].offset + 1

    def sequence_at_time(self, time_ns: int) -> int:
        """The first sequence whose message is not older than `time_ns`; one past the last when all are older.

        A binary search: time stamps ascend, but for steps of the clock, between which any answer is as good.
        """
        low, high = self.log.start_offset, self.log.end_offset
        while low < high:
            middle = (low + high) // 2
            records = self.log.read(middle, 1, 1)
            if records and records[0].timestamp_ns < time_ns:
                low = records[0].offset + 1
            else:
                high = middle
        return sequence_of(low)

    def count_from(self, sequence: int, wanted: SubjectFilter | None) -> int | None:
        """Messages from `sequence` on that match; None when only a look at each of them could tell."""
        if sequence > self.last_sequence:
            return 0
        if sequence <= self.first_sequence:
            return self.subjects.messages if wanted is None else self.subjects.count(wanted)
        without_gaps = self.subjects.messages == self.log.end_offset - self.log.start_offset
        if wanted is None and without_gaps:
            return self.last_sequence - sequence + 1
        return None

    # ── capturing ──

    def capture(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """A message on one of our subjects: store it, and answer when it is durable."""
        committer = self._committer
        assert committer is not None
        if self.config.no_ack:
            reply = b""
        now = self._clock_ns()
        message_id = b""
        try:
            if committer.full:
                raise api_error("too_many_requests")
            limit = self.config.max_msg_size
            if 0 < limit < len(header_block) + len(payload):
                raise api_error("message_too_large")
            if header_block:
                demands = None
                alone = lone_message_id(header_block)  # the common case of a careful publisher
                if alone is None or len(header_block) > MAX_HEADER_BLOCK:
                    demands = self._check(header_block, subject)
                message_id = alone or b"" if demands is None else demands.message_id
                if message_id:
                    original = self._duplicates.seen(message_id, now)
                    if original is not None:
                        self._answer_duplicate(reply, sequence_of(original))
                        return
                if demands is not None:
                    check_after_id(demands, self._last_message_id)
            offset = self.log.stage(subject, header_block, payload, now)
        except JetStreamError as error:
            self._refuse(reply, error)
            return
        except StorageError as error:
            self._refuse(reply, _store_error(error))
            return
        sequence = sequence_of(offset)
        self._last_message_id = message_id
        if message_id:
            self._duplicates.remember(message_id, offset, now)
        ack = b"%s%d}" % (self._ack_head, sequence) if reply else b""
        committer.add(Item(reply, ack, subject, sequence, stored_size(subject, header_block, payload), message_id))

    def _check(self, header_block: bytes, subject: bytes) -> Demands:
        if len(header_block) > MAX_HEADER_BLOCK:
            raise api_error("header_too_large")
        last = self._last_given_sequence
        return check_before_id(header_block, subject, self.name, last, self._last_given_of_subject)

    def _answer_duplicate(self, reply: bytes, sequence: int) -> None:
        assert self._committer is not None and self._router is not None
        ack = b'%s%d,"duplicate": true}' % (self._ack_head, sequence)
        if offset_of(sequence) < self.log.end_offset:
            if reply:
                self._router.publish(reply, b"", b"", ack)
        else:
            self._committer.add(Item(reply, ack, b"", sequence, 0, b""))

    def _last_given_of_subject(self, pattern: bytes) -> int:
        committer = self._committer
        assert committer is not None
        for items in (committer.waiting, committer.writing):
            for item in reversed(items):
                if item.subject and (item.subject == pattern or matches(pattern, item.subject)):
                    return item.sequence
        return self.subjects.last(pattern)

    def _refuse(self, reply: bytes, error: JetStreamError) -> None:
        assert self._router is not None
        if reply:
            self._router.publish(reply, b"", b"", self._refusal(error))

    def _refusal(self, error: JetStreamError) -> bytes:
        return msgspec.json.encode(PublishRefusal(error_document(error), self.name))

    # ── what became of a batch ──

    def _on_durable(self, items: list[Item]) -> None:
        router, subjects = self._router, self.subjects
        assert router is not None
        first = 0
        stored = 0
        for reply, ack, subject, sequence, size, _ in items:
            if subject:
                first = first or sequence
                stored += 1
                subjects.add(subject, sequence, size)
            if reply:
                router.publish(reply, b"", b"", ack)
        if stored:
            for consumer in list(self.consumers.values()):
                consumer.on_stored(first, stored, items)

    def _on_failed(self, items: list[Item], error: StorageError) -> None:
        logger.error("stream_write_refused stream=%s messages=%d reason=%s", self.name, len(items), error)
        assert self._committer is not None
        refusal = _store_error(error)
        lost = {item.sequence for item in items if item.subject}
        for item in items:
            if item.message_id:
                self._duplicates.withdraw(item.message_id)
        for item in items:
            if item.subject or item.sequence in lost:
                self._refuse(item.reply, refusal)
            else:  # the answer to a duplicate of an earlier, durable message
                assert self._router is not None
                if item.reply:
                    self._router.publish(item.reply, b"", b"", item.ack)
        answer = self._refusal(refusal)
        self._committer.waiting = [
            item._replace(ack=answer) if not item.subject and item.sequence in lost else item
            for item in self._committer.waiting
        ]
        staged = (item.message_id for item in reversed(self._committer.waiting) if item.subject)
        self._last_message_id = next(staged, b"")


def _store_error(error: StorageError) -> JetStreamError:
    """What a publisher hears: nats-server's answer to a full disk, and to everything else that a store may say."""
    if isinstance(error, DiskFull):
        return api_error("insufficient_resources")
    return api_error("store_failed", reason=f"stream store failed: {error}")
