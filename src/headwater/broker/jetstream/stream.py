"""A stream: the messages of some subjects, kept in a durable log, each acknowledged once it is durable.

The way of a publish (`Capture.take`, a callback of the router, so it must not block):

    header checks ─▶ duplicate? ─▶ log.stage ─▶ committer ─▶ (durable) ─▶ PubAck, contents, limits, consumers

What the client hears is decided here, what is written when is the committer's, what is kept is `contents.py`'s. A refusal
is answered at once; an error of the disk as soon as it is known, to every publish of the batch: never silence. Sequences
that a failed batch was given are not used again, so a stream may have gaps.

A duplicate whose original is still being written gets its answer together with the original's fate, in its place
among the acks: "duplicate" must not be said of a message that may yet be lost.

Retention by interest: a message stays while a consumer needs it, that is, until all whose filter matches have settled it.
One that nobody needs is given its sequence, acknowledged, and gone.
"""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from headwater.broker.jetstream.acknowledging import Acknowledging
from headwater.broker.jetstream.api_errors import api_error
from headwater.broker.jetstream.api_types import (
    ApiError,
    ClusterInfo,
    LostData,
    StreamConfig,
    StreamInfo,
    StreamState,
    error_document,
)
from headwater.broker.jetstream.capture import Capture
from headwater.broker.jetstream.committer import Committer
from headwater.broker.jetstream.contents import Contents, ContentsDocument
from headwater.broker.jetstream.delivering import DeliveringConsumer
from headwater.broker.jetstream.expiry import marker_block, with_ttl_of_at_least
from headwater.broker.jetstream.items import Item, Particulars
from headwater.broker.jetstream.outgoing import send_acks
from headwater.broker.jetstream.publish_checks import (
    MAX_HEADER_BLOCK,
    Allowed,
    Demands,
    check_after_id,
    check_before_id,
    lone_message_id,
)
from headwater.broker.jetstream.republish import Republisher
from headwater.broker.jetstream.sequence import offset_of, sequence_of
from headwater.broker.jetstream.store import StreamDirectory, StreamRecord
from headwater.broker.jetstream.stream_config import shown_metadata
from headwater.broker.jetstream.subject_table import SubjectFilter, SubjectTable
from headwater.broker.jetstream.timestamps import SECOND, format_time
from headwater.broker.jetstream.writers import Writers
from headwater.broker.router import Router
from headwater.broker.sublist import Subscription
from headwater.errors import DiskFull, JetStreamError, StorageError
from headwater.model.header_block import lookup
from headwater.model.subject import matches
from headwater.streams.dedup import DuplicateWindow
from headwater.streams.log import Log, StoredRecord

logger = logging.getLogger(__name__)

MOST_DELETED_SHOWN = 100_000  # sequences in the answer to a STREAM.INFO with deleted_details
SHORTEST_EXPIRY_TIMER = 0.01  # seconds
LONGEST_EXPIRY_TIMER = 3600.0


class PublishRefusal(msgspec.Struct):
    """The answer to a publish that was not stored."""

    error: ApiError
    stream: str
    seq: int = 0


class StreamDocument(msgspec.Struct, array_like=True):
    """What a clean stop keeps of a stream beside its log's index."""

    contents: ContentsDocument
    ids: list[tuple[bytes, int, int]]
    last_id: bytes


class Stream:
    """One stream, open. Made by `recover`, which reads the log; `attach` connects it to the router."""

    def __init__(
        self, directory: StreamDirectory | None, record: StreamRecord, log: Log, clock_ns: Callable[[], int]
    ) -> None:
        """`directory` is None for a stream with memory storage."""
        self.directory = directory
        self.config = record.config
        self.created_ns = record.created_ns
        self._begins = record.config.first_seq > 0
        self.log = log
        self.contents = Contents(log, record.config, self._on_removed, self._on_purged)
        self._duplicates = DuplicateWindow(record.config.duplicate_window)
        overheads = self.contents.overhead, self.contents.size_of(b"", b"\0", b"") - self.contents.overhead - 1
        ways = self._capture_checked, self._refuse_unstored
        self._capture = Capture(log.staging, self._duplicates, clock_ns, *overheads, *ways)
        self.consumers: dict[str, DeliveringConsumer] = {}
        self._clock_ns = clock_ns
        self._router: Router | None = None
        self._committer: Committer | None = None
        self._subscriptions: list[Subscription] = []
        self._in_flight = 0  # messages that were given a sequence and are not durable yet, and what they weigh
        self._in_flight_bytes = 0
        self._expiry: asyncio.TimerHandle | None = None
        self._expiry_at = 0
        self._republisher = Republisher.of(record.config)
        self._ack_head = b'{"stream":%s,"seq":' % msgspec.json.encode(record.config.name)
        self._acknowledging = Acknowledging(log, self.consumers, self._ack_head, self._on_durable)
        self._has_room: Callable[[int], bool] | None = None
        self._choose_ways()

    # ── life ──

    def recover(self) -> None:
        """Blocking: learn what is known by subject and by message id, from what a clean stop left or from the log.

        All of the log, also for the ids: where the clock was set back, old and new time stamps are mixed.
        """
        now = self._clock_ns()
        document = _decode_document(self.log.document)
        if document is not None:
            self.contents.restore(document.contents)
            self._duplicates.load(document.ids, now)
            self._capture.last_message_id = document.last_id
            return
        oldest = now - self.config.duplicate_window
        last: list[StoredRecord] = []

        def learn(record: StoredRecord) -> None:
            last[:] = [record]
            if record.timestamp_ns > oldest and record.header_block:
                message_id = lookup(record.header_block, b"Nats-Msg-Id")
                if message_id:
                    self._duplicates.remember(message_id, record.offset, min(record.timestamp_ns, now))

        self.contents.recover(learn, now)
        if last and last[0].header_block:
            self._capture.last_message_id = lookup(last[0].header_block, b"Nats-Msg-Id") or b""

    def document(self) -> bytes:
        """What `recover` will find if the log is closed cleanly now."""
        contents = self.contents.document()
        return msgspec.msgpack.encode(StreamDocument(contents, self._duplicates.dump(), self._capture.last_message_id))

    def attach(self, router: Router, writers: Writers | None) -> None:
        """Start to capture. Without writers, writes happen in the loop."""
        self._router = router
        self._committer = self._capture.committer = Committer(
            self.log, writers, self._acknowledging.take, self._on_failed
        )
        self._acknowledging.router = router
        self._choose_ways()
        self._subscribe()
        self.contents.expiry.leave_marker = self._leave_marker
        self.enforce()

    def limit_room(self, has_room: Callable[[int], bool]) -> None:
        """From now on ask before a message is stored; `has_room(bytes)` knows what the account holds."""
        self._has_room = has_room
        self._choose_ways()

    def _choose_ways(self) -> None:
        """Tell those who do most of the work whether the configuration leaves them anything else to do."""
        plain = self._capture.is_plain = self._is_plain()
        simple = plain and self.config.retention == "limits" and self.contents.keeps_no_history
        self._acknowledging.is_plain = simple and not self.contents.is_limited
        self._acknowledging.subjects = self.contents.subjects

    def _is_plain(self) -> bool:
        """Whether a message without headers needs no look at the configuration."""
        config = self.config
        special = config.republish is not None or config.allow_rollup_hdrs or config.allow_msg_ttl
        limited = config.discard != "old" or config.max_msg_size > 0 or self._has_room is not None
        return not config.no_ack and not limited and not special

    async def detach(self) -> None:
        """Capture nothing more; what was staged is written and acknowledged."""
        self._unsubscribe()
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self._committer is not None:
            await self._committer.flush()
            self._committer.close()

    def reconfigure(self, config: StreamConfig) -> None:
        """Take on a configuration that was checked and made durable."""
        self._duplicates.resize(config.duplicate_window, self._clock_ns())
        resubscribe = config.subjects != self.config.subjects
        unneeded = config.retention == "interest" != self.config.retention
        self.config = config
        self._capture.is_plain = self._acknowledging.is_plain = False  # the long ways are right for any configuration
        self._republisher = Republisher.of(config)
        unwritten = self._unwritten()
        self._in_flight = sum(1 for item in unwritten if item.subject)
        self._in_flight_bytes = sum(item.size for item in unwritten)
        if resubscribe and self._router is not None:
            self._unsubscribe()
            self._subscribe()
        self.contents.reconfigure(config, self._clock_ns())
        self._choose_ways()
        if unneeded:
            self.drop_unneeded()
        self._after_removals()

    def _subscribe(self) -> None:
        assert self._router is not None
        for subject in self.config.subjects:
            self._subscriptions.append(self._router.subscribe_internal(subject.encode(), self._capture.take))

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
    def subjects(self) -> SubjectTable:
        """What is held of which subject."""
        return self.contents.subjects

    @property
    def weight(self) -> int:
        """Bytes of all messages, those on their way to the disk included."""
        return self.subjects.size_bytes + (self._committer.unwritten_bytes if self._committer is not None else 0)

    @property
    def last_sequence(self) -> int:
        """Of the last durable message."""
        return self.log.end_offset

    @property
    def first_sequence(self) -> int:
        """Of the first message that is there, or of the next in an empty stream; 0 when it has never held a message and
        was not told where to begin."""
        return sequence_of(self.log.start_offset) if self.log.end_offset or self._begins else 0

    @property
    def _last_given_sequence(self) -> int:
        """Of the last message that will be stored unless the disk fails: what a publisher may expect it to be."""
        assert self._committer is not None
        return self.log.next_offset if self._committer.busy else self.log.end_offset

    def info(self, *, full: bool = True) -> StreamInfo:
        """STREAM.INFO without its page; `full` is False in lists, whose metadata is bare."""
        config = self.config
        if full:
            sync = self.log.options.sync if config.storage == "file" else "always"
            config = msgspec.structs.replace(config, metadata=shown_metadata(config.metadata, sync))
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
            bytes=self.subjects.size_bytes,
            first_seq=self.first_sequence,
            last_seq=self.last_sequence,
            num_subjects=len(self.subjects),
            num_deleted=self.log.end_offset - self.log.start_offset - messages,
            consumer_count=len(self.consumers),
        )
        if first is not None:
            state.first_ts = format_time(first)
        if last is not None:
            state.last_ts = format_time(last)
        lost = [damage for damage in self.log.damage if damage.certain and damage.end > self.log.start_offset]
        if lost:
            numbers = [sequence_of(o) for damage in lost for o in range(damage.start, damage.end)][:MOST_DELETED_SHOWN]
            state.lost = LostData(msgs=numbers, bytes=sum(damage.size for damage in lost))
        return state

    def deleted(self) -> list[int]:
        """Sequences between the first and the last that no message has."""
        log = self.log
        absent = (offset for offset in range(log.start_offset, log.end_offset) if log.is_absent(offset))
        return [sequence_of(offset) for _, offset in zip(range(MOST_DELETED_SHOWN), absent, strict=False)]

    def problems(self) -> list[str]:
        """What health checks should know: why the stream is read-only, what was lost."""
        found = [f"stream {self.name} is read-only: {self.log.failure}"] if self.log.failure is not None else []
        return found + [f"stream {self.name}: {damage}" for damage in self.log.damage if damage.certain]

    # ── capturing ──

    def _capture_checked(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """As `Capture.take`, for a message with headers or a stream that has something to check."""
        config, committer = self.config, self._committer
        assert committer is not None
        if config.no_ack:
            reply = b""
        now = self._clock_ns()
        if header_block and config.subject_delete_marker_ttl and config.max_msgs_per_subject != 1:
            header_block = with_ttl_of_at_least(header_block, config.subject_delete_marker_ttl)
        message_id = b""
        particulars = None
        size = self.contents.size_of(subject, header_block, payload)
        try:
            if committer.full:
                raise api_error("too_many_requests")
            if config.sealed:
                raise api_error("sealed")
            if 0 < config.max_msg_size < len(header_block) + len(payload):
                raise api_error("message_too_large")
            if len(header_block) > MAX_HEADER_BLOCK:
                raise api_error("header_too_large")
            if header_block:
                demands = None
                alone = lone_message_id(header_block)  # the common case of a careful publisher
                if alone is None:
                    demands = self._check(header_block, subject)
                message_id = alone or b"" if demands is None else demands.message_id
                if message_id:
                    original = self._duplicates.seen(message_id, now)
                    if original is not None:
                        self._answer_duplicate(reply, sequence_of(original))
                        return
                if demands is not None:
                    check_after_id(demands, self._capture.last_message_id, self._allowed)
                    if demands.rollup or config.allow_msg_ttl:
                        particulars = Particulars(demands.rollup, header_block, payload, now)
            if self._has_room is not None and not self._has_room(size):
                raise api_error("account_resources_exceeded")
            if config.discard == "new":
                self._check_room(subject, size)
            offset = self.log.stage(subject, header_block, payload, now)
        except JetStreamError as error:
            self._refuse(reply, error)
            return
        except StorageError as error:
            self._refuse_unstored(reply, error)
            return
        sequence = sequence_of(offset)
        if config.discard == "new":
            self._in_flight += 1
            self._in_flight_bytes += size
        self._capture.last_message_id = message_id
        if message_id:
            self._duplicates.remember(message_id, offset, now)
        if particulars is None and self._republisher is not None:
            particulars = Particulars(b"", header_block, payload, now)
        committer.add(Item(reply, b"", subject, sequence, size, message_id, particulars))

    @property
    def _allowed(self) -> Allowed:
        return Allowed(self.config.allow_rollup_hdrs, self.config.allow_msg_ttl)

    def _check(self, header_block: bytes, subject: bytes) -> Demands:
        last = self._last_given_sequence
        return check_before_id(header_block, subject, self.name, last, self._last_given_of_subject, self._allowed)

    def _check_room(self, subject: bytes, size: int) -> None:
        """Discard new: what is in flight counts, for it will be stored."""
        of_subject = 0
        if self.config.max_msgs_per_subject > 0:
            of_subject = sum(1 for item in self._unwritten() if item.subject == subject)
        reason = self.contents.refusal(subject, size, self._in_flight, self._in_flight_bytes, of_subject)
        if reason:
            raise api_error("store_failed", reason=reason)

    def _unwritten(self) -> list[Item]:
        assert self._committer is not None
        return [*self._committer.writing, *self._committer.waiting]

    def _answer_duplicate(self, reply: bytes, sequence: int) -> None:
        assert self._committer is not None and self._router is not None
        ack = b'%s%d,"duplicate": true}' % (self._ack_head, sequence)
        if offset_of(sequence) < self.log.end_offset:
            if reply:
                self._router.publish(reply, b"", b"", ack)
        else:
            self._committer.add(Item(reply, ack, b"", sequence, 0, b""))

    def _last_given_of_subject(self, pattern: bytes) -> int:
        for item in reversed(self._unwritten()):
            if item.subject and (item.subject == pattern or matches(pattern, item.subject)):
                return item.sequence
        return self.subjects.last(pattern)

    def _refuse(self, reply: bytes, error: JetStreamError) -> None:
        assert self._router is not None
        if reply:
            self._router.publish(reply, b"", b"", self._refusal(error))

    def _refuse_unstored(self, reply: bytes, error: StorageError) -> None:
        self._refuse(reply, _store_error(error))

    def _refusal(self, error: JetStreamError) -> bytes:
        return msgspec.json.encode(PublishRefusal(error_document(error), self.name))

    # ── what became of a batch ──

    def _on_durable(self, items: list[Item]) -> None:
        contents = self.contents
        assert self._router is not None
        if contents.keeps_no_history:
            first, stored = contents.subjects.add_all(items)
        else:
            first, stored = contents.added_all(items)
        send_acks(self._router, items, self._ack_head)
        special = [] if self._capture.is_plain else [item for item in items if item.particulars is not None]
        if self.config.discard == "new":
            self._in_flight = max(0, self._in_flight - stored)
            self._in_flight_bytes = max(0, self._in_flight_bytes - sum(item.size for item in items))
        if stored:
            for consumer in list(self.consumers.values()):
                consumer.on_stored(first, stored, items)
            if special:  # behind the consumers: a roll-up has them count anew, what has just been stored included
                self._attend_to(special)
            if self.config.retention == "interest":
                self._drop_unwanted(items)
            if contents.is_limited or self.log.has_deletions:
                self.enforce()

    def _attend_to(self, items: list[Item]) -> None:
        """Roll-ups, TTLs and republishing of what became durable."""
        for item in items:
            assert item.particulars is not None and self._router is not None
            rollup, block, _, timestamp = item.particulars
            if rollup:
                self.contents.roll_up(rollup, item.subject, item.sequence)
            if block and self.config.allow_msg_ttl:
                self.contents.expiry.note(item.sequence, block, timestamp)
            if self._republisher is not None:
                last = self.contents.previous(item.subject, item.sequence)
                self._republisher.republish(self._router, item, last)

    def _on_failed(self, items: list[Item], error: StorageError) -> None:
        logger.error("stream_write_refused stream=%s messages=%d reason=%s", self.name, len(items), error)
        assert self._committer is not None
        refusal = _store_error(error)
        lost = {item.sequence for item in items if item.subject}
        if self.config.discard == "new":
            self._in_flight = max(0, self._in_flight - len(lost))
            self._in_flight_bytes = max(0, self._in_flight_bytes - sum(item.size for item in items))
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
        for item in self._committer.waiting:
            if not item.subject and item.sequence in lost:
                item.ack = answer
        staged = (item.message_id for item in reversed(self._committer.waiting) if item.subject)
        self._capture.last_message_id = next(staged, b"")

    # ── what leaves ──

    def _leave_marker(self, subject: bytes) -> None:
        """Publish a marker in place of the last message of a subject, whose time is over; behind what runs now."""
        block = marker_block(self.config.subject_delete_marker_ttl)
        asyncio.get_running_loop().call_soon(self._store_marker, subject, block)

    def _store_marker(self, subject: bytes, block: bytes) -> None:
        if self._subscriptions:  # else the stream has ended meanwhile
            self._capture_checked(subject, b"", block, b"")

    def enforce(self) -> None:
        """Apply the limits now, and again when time makes the next message too old."""
        self.contents.enforce(self._clock_ns())
        self._after_removals()

    async def delete_message(self, sequence: int, *, erase: bool) -> bool:
        """Remove one message, durably once this returns; False when it is not there. `erase`: have it leave the disk
        too, soon after. Raises StorageError."""
        assert self._committer is not None
        if not self.contents.remove(sequence):
            return False
        await self._committer.barrier()
        if erase:
            self._committer.erase(offset_of(sequence))
        return True

    async def purge(self, wanted: SubjectFilter | None, below: int, keep: int) -> int:
        """Remove messages (see `Contents.purge`), durably once this returns; returns how many. Raises StorageError."""
        assert self._committer is not None
        count = self.contents.purge(wanted, below=below, keep=keep)
        self._begins = self._begins or not (wanted or below or keep)
        if count:
            await self._committer.barrier()
            self._committer.note_deletions()
        return count

    def on_settled(self, sequence: int, subject: bytes) -> None:
        """A consumer has no more need of a message: with retention by interest or as a work queue it may go."""
        retention = self.config.retention
        if retention == "limits":
            return
        if retention == "interest" and any(c.needs(sequence, subject) for c in self.consumers.values()):
            return
        if self.contents.remove(sequence):
            self._after_removals()

    def drop_unneeded(self) -> None:
        """With retention by interest: remove what no consumer needs, after one has gone or come back."""
        if self.config.retention == "interest":
            consumers = list(self.consumers.values())
            for record in list(self.contents.scan(0)):
                sequence = sequence_of(record.offset)
                if not any(consumer.needs(sequence, record.subject) for consumer in consumers):
                    self.contents.remove(sequence)
            self._after_removals()

    def _drop_unwanted(self, items: list[Item]) -> None:
        consumers = list(self.consumers.values())
        for item in items:
            if item.subject and not any(consumer.needs(item.sequence, item.subject) for consumer in consumers):
                self.contents.remove(item.sequence)

    def _on_removed(self, sequence: int, subject: bytes) -> None:
        for consumer in self.consumers.values():
            consumer.on_removed(sequence, subject)

    def _on_purged(self) -> None:
        for consumer in list(self.consumers.values()):
            consumer.on_purged()

    def _after_removals(self) -> None:
        if self.log.has_deletions and self._committer is not None:
            self._committer.note_deletions()
        at = self.contents.next_expiry()
        if at == self._expiry_at and self._expiry is not None:
            return
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self._expiry_at = at
        if at and self._committer is not None:
            delay = (at - self._clock_ns()) / SECOND
            delay = min(max(delay, SHORTEST_EXPIRY_TIMER), LONGEST_EXPIRY_TIMER)
            self._expiry = asyncio.get_running_loop().call_later(delay, self._on_expiry)

    def _on_expiry(self) -> None:
        self._expiry = None
        try:
            self.enforce()
        except StorageError as error:
            logger.error("stream_cannot_expire stream=%s reason=%s", self.name, error)


def _decode_document(document: bytes | None) -> StreamDocument | None:
    """None when there is none, or none of ours."""
    if not document:
        return None
    try:
        return msgspec.msgpack.decode(document, type=StreamDocument)
    except msgspec.MsgspecError:
        return None


def _store_error(error: StorageError) -> JetStreamError:
    """What a publisher hears: nats-server's answer to a full disk, and to everything else that a store may say."""
    if isinstance(error, DiskFull):
        return api_error("insufficient_resources")
    return api_error("store_failed", reason=f"stream store failed: {error}")
