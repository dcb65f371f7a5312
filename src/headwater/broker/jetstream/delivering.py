"""What every consumer at work does, pull or push: it takes acks, counts what is pending, renders messages, follows what
leaves the stream, and sleeps while paused. Decisions are `consumer.py`'s; to whom and when, `pull.py`'s or `push.py`'s.

A message goes to an inbox, but under its own subject, and its reply subject carries the numbers by which it is
acknowledged. It counts as delivered only if somebody was there to take it.

`_pump` is the one place that delivers. It runs once per loop iteration while there is something to do, and at most
TURN_MESSAGES or TURN_BYTES at a time, so that a replay of millions leaves the broker's other clients their turns.

Times are the loop's clock, which never steps back, in nanoseconds; only pauses and what INFO shows are times of day.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from headwater.broker.jetstream.ack_intake import AckIntake
from headwater.broker.jetstream.acks import parse_ack, parse_ack_subject
from headwater.broker.jetstream.api_types import ConsumerConfig, ConsumerInfo, SequenceInfo
from headwater.broker.jetstream.consumer import Consumer, ConsumerSnapshot
from headwater.broker.jetstream.consumer_config import filters_of
from headwater.broker.jetstream.items import Item
from headwater.broker.jetstream.outgoing import send_records
from headwater.broker.jetstream.sequence import offset_of, sequence_of
from headwater.broker.jetstream.store import ConsumerRecord
from headwater.broker.jetstream.stream_config import shown_metadata
from headwater.broker.jetstream.subject_table import SubjectFilter
from headwater.broker.jetstream.timestamps import SECOND, ZERO, format_time, parse_time
from headwater.broker.router import Router
from headwater.errors import StorageError
from headwater.streams.log import StoredRecord

if TYPE_CHECKING:
    from headwater.broker.jetstream.stream import Stream

logger = logging.getLogger(__name__)

TURN_MESSAGES = 256
TURN_BYTES = 1 << 20
TURN_SKIPPED = 4096  # records that the filter passes over in one turn, and what is left of a batch
AHEAD_RECORDS = 256  # read from the log at once
LINK_HIGH_WATER = 4 << 20  # bytes waiting for a client's link above which it gets no more
LINK_RETRY = 0.005  # seconds until such a link is looked at again
LONGEST_TIMER = 3600 * SECOND
DISK_RETRY = 1.0  # seconds after a read of the log failed


class DeliveringConsumer(ABC):
    """One consumer. `on_idle(consumer)` is called when it was inactive for its threshold; `on_change` when the state
    of a durable one should be stored soon."""

    def __init__(
        self,
        stream: "Stream",
        router: Router,
        name: str,
        created_ns: int,
        state: Consumer,
        clock_ns: Callable[[], int],
        on_idle: Callable[["DeliveringConsumer"], None],
        on_change: Callable[["DeliveringConsumer"], None],
    ) -> None:
        self.name = name
        self.created_ns = created_ns
        self.state = state
        self.filter = _filter_of(state.config)
        self._stream = stream
        self._router = router
        self._clock_ns = clock_ns
        self._on_idle = on_idle
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._ahead: list[StoredRecord] = []
        self._ahead_at = 0
        self._pumping = False
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0
        self._active_at = self._now()
        self._delivered_ns = 0  # wall clock, for `last_active`
        self._acked_ns = 0
        self._paused_until = 0  # time of day, ns; 0: not paused
        self._replayed: tuple[int, int] | None = None  # replay policy original: (delivered at, time stamp) of the last
        head = f"$JS.ACK.{stream.name}.{name}"
        self._ack_head = head.encode() + b"."
        self._intake = AckIntake(stream, state, self._on_settled, self._on_ack, self._loop)
        self._ack_subscription = None
        if state.config.ack_policy != "none":
            subject = f"{head}.*.*.*.*.*".encode()
            self._ack_subscription = router.subscribe_internal(subject, self._intake.take)
        self._take_on(state.config)

    # ── what differs ──

    @abstractmethod
    def on_request(self, reply: bytes, payload: bytes) -> None:
        """A MSG.NEXT whose answers go to `reply`."""

    @abstractmethod
    def _pump(self) -> None:
        """One turn of delivering."""

    @abstractmethod
    def _has_taker(self) -> bool:
        """Whether a message could go out now if there were one."""

    @abstractmethod
    def _next_event(self, now: int) -> list[int]:
        """When something is due that is not an ack deadline; 0 among them: nothing."""

    @abstractmethod
    def _dismiss(self, status: bytes) -> None:
        """The consumer is over: tell who waits."""

    @abstractmethod
    def _is_idle(self) -> bool:
        """Whether nobody uses the consumer."""

    def _busy_until(self) -> int:
        """How long somebody may work on what was delivered without being heard of."""
        return 0

    def _waiting(self) -> int:
        """Requests that wait."""
        return 0

    def start(self) -> None:
        """Nothing is delivered before this: whoever makes a push consumer hears first how much is pending."""
        self._wake()

    # ── what the API asks and changes ──

    @property
    def config(self) -> ConsumerConfig:
        return self.state.config

    @property
    def durable(self) -> bool:
        return bool(self.config.durable_name)

    @property
    def is_bound(self) -> bool:
        """Whether somebody listens to the deliver subject of a push consumer."""
        return False

    def info(self, *, full: bool = True) -> ConsumerInfo:
        """CONSUMER.INFO; `full` is False in lists, whose metadata is bare."""
        self._intake.tell()
        waiting = self._waiting()
        state, config = self.state, self.state.config
        if full:
            config = msgspec.structs.replace(config, metadata=shown_metadata(config.metadata))
        delivered = SequenceInfo(consumer_seq=state.delivered_consumer, stream_seq=state.delivered_stream)
        floor = SequenceInfo(consumer_seq=state.floor_consumer, stream_seq=state.floor_stream)
        if self._delivered_ns:
            delivered.last_active = format_time(self._delivered_ns)
        if self._acked_ns:
            floor.last_active = format_time(self._acked_ns)
        info = ConsumerInfo(
            stream_name=self._stream.name,
            name=self.name,
            created=format_time(self.created_ns),
            config=config,
            delivered=delivered,
            ack_floor=floor,
            num_ack_pending=len(state.unacked),
            num_redelivered=len(state.attempts),
            num_waiting=waiting,
            num_pending=state.num_pending,
            push_bound=self.is_bound,
            ts=format_time(self._clock_ns()),
        )
        remaining = self.pause_remaining
        if remaining:
            info.paused, info.pause_remaining = True, remaining
        return info

    @property
    def pause_remaining(self) -> int:
        """Nanoseconds until deliveries go on; 0 when the consumer is not paused."""
        return max(0, self._paused_until - self._clock_ns()) if self._paused_until else 0

    def reconfigure(self, config: ConsumerConfig) -> None:
        """Take on a configuration that was checked; `state.num_pending` is recounted by the caller if the filter
        changed."""
        self.state.config = config
        self.filter = _filter_of(config)
        self._forget_ahead()
        self._take_on(config)
        self._wake()

    def _take_on(self, config: ConsumerConfig) -> None:
        self._headers_only = config.headers_only
        self._paused_until = parse_time(config.pause_until) if config.pause_until not in ("", ZERO) else 0

    def reset(self, sequence: int) -> int:
        """Deliver from `sequence` on as if for the first time (0: from behind the ack floor); returns where."""
        sequence = sequence or self.state.floor_stream + 1
        self.state.reset(sequence)
        self._delivered_ns = self._acked_ns = 0
        self._forget_ahead()
        self._wake()
        return sequence

    def record(self) -> ConsumerRecord:
        """What is stored of a durable consumer."""
        return ConsumerRecord(self.name, self.config, self.created_ns, self.state.snapshot())

    def restore(self, snapshot: ConsumerSnapshot) -> None:
        """Take up the state of an earlier run."""
        self.state.restore(snapshot, self._stream.last_sequence + 1, self._now())
        self._arm()

    def close(self, status: bytes) -> None:
        """No more deliveries; whoever waits is told why."""
        self._closed = True
        self._intake.closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._ack_subscription is not None:
            self._router.unsubscribe(self._ack_subscription)
        self._dismiss(status)

    # ── events ──

    def on_stored(self, first: int, count: int, items: list[Item]) -> None:
        """`count` messages became durable, from sequence `first` on; `items` may hold others than these."""
        state = self.state
        wanted = self.filter
        if wanted is None and first >= state.position:
            new = count
        else:
            matches = wanted.matches if wanted is not None else _everything
            new = sum(1 for item in items if item.subject and item.sequence >= state.position and matches(item.subject))
        if new:
            state.num_pending += new
            if self._has_taker():
                self._wake()

    def on_removed(self, sequence: int, subject: bytes) -> None:
        """A message has left the stream."""
        state = self.state
        if state.selected and sequence in state.selected:
            state.selected.remove(sequence)
            state.num_pending -= 1
        elif sequence >= state.position and (self.filter is None or self.filter.matches(subject)):
            state.num_pending = max(0, state.num_pending - 1)
            if self._ahead and sequence <= sequence_of(self._ahead[-1].offset):
                self._forget_ahead()
        if sequence in state.unacked and state.removed(sequence):
            self._note_settled()
            self._wake()

    def on_purged(self) -> None:
        """Many messages have left the stream."""
        self._forget_ahead()
        state, log = self.state, self._stream.log
        waited = len(state.unacked)
        state.purged(max(self._stream.first_sequence, 1))
        for sequence in [sequence for sequence in state.unacked if log.is_absent(offset_of(sequence))]:
            state.removed(sequence)
        if len(state.unacked) < waited:
            self._note_settled()
        state.selected = deque(sequence for sequence in state.selected if not log.is_absent(offset_of(sequence)))
        state.num_pending = len(state.selected) + self._count_from(state.position)
        self._wake()

    def needs(self, sequence: int, subject: bytes) -> bool:
        """Whether this consumer has still to deliver the message, or waits for its ack."""
        if self.filter is not None and not self.filter.matches(subject):
            return False
        return sequence >= self.state.position or sequence in self.state.unacked

    def _count_from(self, position: int) -> int:
        contents = self._stream.contents
        known = contents.count_from(position, self.filter)
        if known is not None:
            return known
        wanted = self.filter
        assert wanted is not None
        return sum(1 for record in contents.scan(offset_of(position)) if wanted.matches(record.subject))

    def _on_ack(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        meant = parse_ack_subject(subject)
        if meant is None or self._closed:
            return
        now = self._now()
        self._active_at = now
        sequence = meant.stream_sequence
        ack = parse_ack(payload)
        match ack.kind:
            case "ack" | "term" | "next":
                self._settle(sequence, meant.consumer_sequence)
                self._acked_ns = self._clock_ns()
            case "nak":
                self.state.nak(sequence, ack.delay, now)
            case "progress":
                self.state.progress(sequence, now)
            case "unknown":
                pass
        if ack.kind == "next":
            self.on_request(reply, ack.request)
        elif reply:
            self._router.publish(reply, b"", b"", b"")
        if self.durable:
            self._on_change(self)
        if self._has_taker():
            self._wake()

    def _on_settled(self) -> None:
        """The intake has taken in acks since it said so last."""
        self._active_at = self._now()
        self._note_settled()
        if self._has_taker():
            self._wake()

    def _note_settled(self) -> None:
        """Some of what was delivered waits for its ack no longer."""
        self._acked_ns = self._clock_ns()
        if self.durable:
            self._on_change(self)

    def _settle(self, sequence: int, consumer_sequence: int) -> None:
        if self._stream.config.retention == "limits":
            self.state.ack(sequence, consumer_sequence)
            return
        before = list(self.state.unacked) if self.config.ack_policy == "all" else [sequence]
        known = [number for number in before if number in self.state.unacked]
        self.state.ack(sequence, consumer_sequence)
        for number in known:
            if number not in self.state.unacked:
                self._gone(number)

    def _gone(self, sequence: int) -> None:
        record = self._stream.contents.load(sequence)
        if record is not None:
            self._stream.on_settled(sequence, record.subject)

    # ── messages ──

    def _may_send_runs(self) -> bool:
        """Whether messages can go out without a look at each: first deliveries, as they are, at once."""
        config, state = self.config, self.state
        return (
            not (state.selected or state.redeliveries or self._headers_only)
            and config.replay_policy == "instant"
            and (config.ack_policy != "none" or self._stream.config.retention == "limits")
        )

    def _send_run(self, inbox: bytes, most: int, room: int, now: int) -> tuple[int, int]:
        """Deliver what is at hand, at most so many, and so many bytes (-1: any number); returns how many, and their bytes.
        (0, 0): nobody took it, it is larger than `room`, or the end of the log; the caller finds that out by itself."""
        state = self.state
        most = min(most, state.num_pending, state.deliverable)
        if most <= 0 or self._next_new() is None:
            return 0, 0
        first, given, pending = self._ahead_at, state.delivered_consumer, state.num_pending
        delivered: list[int] = []
        size = send_records(
            self._router, inbox, self._ahead, first, most, self._ack_head, given, pending, room, delivered
        )
        if delivered:
            self._ahead_at += len(delivered)
            state.deliver_run(delivered, now)
        return len(delivered), size

    def _due(self, now: int) -> tuple[StoredRecord, int] | None:
        """The next message to go out, and its sequence if it goes out again; None when there is none now."""
        state = self.state
        while state.redeliveries and (again := state.next_redelivery()):
            record = self._stream.contents.load(again)
            if record is not None:
                return record, again
            state.forget(again)
        if state.num_pending > 0 and state.may_deliver_new:
            record = self._next_new()
            if record is not None:
                return record, 0
        return None

    def _held_back(self, record: StoredRecord, now: int) -> float:
        """Seconds for which replay policy `original` keeps a new message back."""
        if self._replayed is None:
            return 0.0
        at, timestamp = self._replayed
        return max(0, at + record.timestamp_ns - timestamp - now) / SECOND

    def _render(self, record: StoredRecord, again: int) -> tuple[bytes, bytes, bytes]:
        """(ack subject, header block, payload) of a delivery."""
        state = self.state
        block, payload = record.header_block, record.payload
        if self._headers_only:
            block, payload = _with_size(block, len(payload)), b""
        reply = b"%b%d.%d.%d.%d.%d" % (
            self._ack_head,
            state.attempts.get(again, 0) + 2 if again else 1,
            sequence_of(record.offset),
            state.delivered_consumer + 1,
            record.timestamp_ns,
            state.num_pending if again else state.num_pending - 1,
        )
        return reply, block, payload

    def _sent(self, record: StoredRecord, again: int, now: int) -> None:
        """A delivery has gone out."""
        state, sequence = self.state, sequence_of(record.offset)
        if again:
            state.deliver_again(sequence, now)
            return
        if not state.selected:
            self._ahead_at += 1
        state.deliver_new(sequence, now)
        if self.config.replay_policy == "original":
            self._replayed = (now, record.timestamp_ns)
        if self.config.ack_policy == "none" and self._stream.config.retention != "limits":
            self._stream.on_settled(sequence, record.subject)

    def _note_turn(self, now: int) -> None:
        """Something went out in this turn."""
        self._active_at = now
        self._delivered_ns = self._clock_ns()
        if self.durable:
            self._on_change(self)

    def _next_new(self) -> StoredRecord | None:
        """The next matching message, left in place until it was delivered. None: the end of the log, or of this turn's
        patience with what does not match."""
        state, wanted = self.state, self.filter
        if state.selected:
            return self._next_selected()
        if self._ahead_at >= len(self._ahead):
            log, position = self._stream.log, offset_of(state.position)
            subjects = wanted.matches if wanted is not None else None
            self._ahead, end = log.read_matching(position, subjects, AHEAD_RECORDS, TURN_BYTES, TURN_SKIPPED)
            self._ahead_at = 0
            if not self._ahead:
                state.position = max(state.position, sequence_of(end))
                if end >= log.end_offset:
                    state.num_pending = 0  # what was counted is not readable: damaged since, and reported by the log
                return None
        return self._ahead[self._ahead_at]

    def _next_selected(self) -> StoredRecord | None:
        """The next of those that "last per subject" picked; None in the turn in which the last of them is found
        gone."""
        selected = self.state.selected
        while selected:
            record = self._stream.contents.load(selected[0])
            if record is not None:
                return record
            selected.popleft()
            self.state.num_pending -= 1
        return None

    def _forget_ahead(self) -> None:
        self._ahead = []
        self._ahead_at = 0

    # ── time ──

    def _now(self) -> int:
        return int(self._loop.time() * SECOND)

    def _send_status(self, reply: bytes, header_block: bytes) -> None:
        self._router.publish(reply, b"", header_block, b"")

    def _wake(self) -> None:
        if not self._pumping and not self._closed:
            self._pumping = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._pumping = False
        if not self._closed:
            self._pump()

    def _read_failed(self, error: StorageError) -> float:
        logger.error("consumer_cannot_read stream=%s consumer=%s reason=%s", self._stream.name, self.name, error)
        return DISK_RETRY

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_at = 0
        if self._closed:
            return
        now = self._now()
        threshold = self.config.inactive_threshold
        if threshold and now >= self._active_at + threshold:
            busy_until = self._busy_until() if self._is_idle() else now
            if now >= busy_until + threshold:
                self._on_idle(self)
                return
            self._active_at = busy_until
        self._pump()

    def _arm(self, again: float = -1.0) -> None:
        """Have `_on_timer` called when the next thing is due: a status, a heartbeat, a redelivery, the end of a pause or
        of patience."""
        if self._closed:
            return
        now = self._now()
        deadlines = self._next_event(now)
        if self._has_taker():  # nobody waits: what becomes due is found when somebody does
            deadlines.append(self.state.expire(now))
            if again < 0 and self.state.redeliveries and not self._paused_until:
                self._wake()
        if self._paused_until:
            deadlines.append(now + self.pause_remaining)
        if self.config.inactive_threshold:
            deadlines.append(self._active_at + self.config.inactive_threshold)
        if again > 0:
            deadlines.append(now + int(again * SECOND))
        # At most LONGEST_TIMER ahead: a client may name an expiry that no event loop can count to.
        at = min((deadline for deadline in deadlines if deadline), default=0)
        at = min(at, now + LONGEST_TIMER)
        if not at or (self._timer is not None and self._timer_at <= at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        # Rounded up: a timer that fires a hair early would find nothing due and be armed again, over and over.
        self._timer = self._loop.call_at(at / SECOND + 0.0005, self._on_timer)

    def _is_paused(self) -> bool:
        """Whether deliveries rest; the end of the pause is noticed here."""
        if self._paused_until and self._clock_ns() >= self._paused_until:
            self._paused_until = 0
        return self._paused_until > 0


def _filter_of(config: ConsumerConfig) -> SubjectFilter | None:
    patterns = filters_of(config)
    return SubjectFilter(patterns) if patterns else None


def _everything(_subject: bytes) -> bool:
    return True


def _with_size(header_block: bytes, size: int) -> bytes:
    """The header block of a headers-only delivery: it says how large the payload was."""
    line = b"Nats-Msg-Size: %d\r\n\r\n" % size
    return header_block.removesuffix(b"\r\n") + line if header_block else b"NATS/1.0\r\n" + line
