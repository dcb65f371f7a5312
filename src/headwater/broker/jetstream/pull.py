"""A pull consumer at work: requests come in, messages go out, timers run. The decisions are `consumer.py`'s.

`_pump` is the one place that delivers. It runs once per loop iteration while there is something to do, and at most
TURN_MESSAGES or TURN_BYTES at a time, so that a replay of millions leaves the broker's other clients their turns. What
goes first: what is due again, then what is new. To whom: the requests take turns.

A message goes to the requester's inbox, but under its own subject, and its reply subject carries the numbers by which
it is acknowledged. It counts as delivered only if somebody was there to take it; a requester that has vanished loses
its place, not a message. A requester whose link is far behind is waited for.

Times are the loop's clock, which never steps back, in nanoseconds.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from headwater.broker.jetstream.acks import parse_ack, parse_ack_subject
from headwater.broker.jetstream.api_types import ConsumerConfig, ConsumerInfo, SequenceInfo
from headwater.broker.jetstream.committer import Item
from headwater.broker.jetstream.consumer import Consumer, ConsumerSnapshot
from headwater.broker.jetstream.consumer_config import filters_of
from headwater.broker.jetstream.pull_requests import (
    EXCEEDED_MAX_WAITING,
    NO_MESSAGES,
    REQUESTS_PENDING,
    RequestQueue,
    Waiting,
    idle_heartbeat,
    parse_request,
    refusal_by_limits,
)
from headwater.broker.jetstream.sequence import offset_of, sequence_of
from headwater.broker.jetstream.store import ConsumerRecord
from headwater.broker.jetstream.stream_config import shown_metadata
from headwater.broker.jetstream.subject_table import SubjectFilter
from headwater.broker.jetstream.timestamps import SECOND, format_time
from headwater.broker.router import Router
from headwater.errors import StorageError
from headwater.streams.log import StoredRecord

if TYPE_CHECKING:
    from headwater.broker.jetstream.stream import Stream

logger = logging.getLogger(__name__)

TURN_MESSAGES = 256
TURN_BYTES = 1 << 20
TURN_SKIPPED = 4096  # records that the filter passes over in one turn
AHEAD_RECORDS = 256  # read from the log at once
LINK_HIGH_WATER = 4 << 20  # bytes waiting for a requester's link above which it gets no more
LINK_RETRY = 0.005  # seconds until such a link is looked at again
LONGEST_TIMER = 3600 * SECOND
DISK_RETRY = 1.0  # seconds after a read of the log failed


class PullConsumer:
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
        on_idle: Callable[["PullConsumer"], None],
        on_change: Callable[["PullConsumer"], None],
    ) -> None:
        self.name = name
        self.created_ns = created_ns
        config = state.config
        self.state = state
        self.filter = _filter_of(config)
        self._headers_only = config.headers_only
        self._stream = stream
        self._router = router
        self._clock_ns = clock_ns
        self._on_idle = on_idle
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._queue = RequestQueue()
        self._ahead: list[StoredRecord] = []
        self._ahead_at = 0
        self._pumping = False
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0
        self._active_at = self._now()
        self._delivered_ns = 0  # wall clock, for `last_active`
        self._acked_ns = 0
        head = f"$JS.ACK.{stream.name}.{name}"
        self._ack_head = head.encode() + b"."
        self._ack_subscription = None
        if config.ack_policy != "none":
            subject = f"{head}.*.*.*.*.*".encode()
            self._ack_subscription = router.subscribe_internal(subject, self._on_ack)
        self._arm()

    # ── what the API asks and changes ──

    @property
    def config(self) -> ConsumerConfig:
        return self.state.config

    @property
    def durable(self) -> bool:
        return bool(self.config.durable_name)

    def info(self, *, full: bool = True) -> ConsumerInfo:
        """CONSUMER.INFO; `full` is False in lists, whose metadata is bare."""
        self._drop_vanished()
        state, config = self.state, self.state.config
        if full:
            config = msgspec.structs.replace(config, metadata=shown_metadata(config.metadata))
        delivered = SequenceInfo(consumer_seq=state.delivered_consumer, stream_seq=state.delivered_stream)
        floor = SequenceInfo(consumer_seq=state.floor_consumer, stream_seq=state.floor_stream)
        if self._delivered_ns:
            delivered.last_active = format_time(self._delivered_ns)
        if self._acked_ns:
            floor.last_active = format_time(self._acked_ns)
        return ConsumerInfo(
            stream_name=self._stream.name,
            name=self.name,
            created=format_time(self.created_ns),
            config=config,
            delivered=delivered,
            ack_floor=floor,
            num_ack_pending=len(state.unacked),
            num_redelivered=len(state.attempts),
            num_waiting=len(self._queue),
            num_pending=state.num_pending,
            ts=format_time(self._clock_ns()),
        )

    def reconfigure(self, config: ConsumerConfig) -> None:
        """Take on a configuration that was checked; `state.num_pending` is recounted by the caller if the filter
        changed."""
        self.state.config = config
        self.filter = _filter_of(config)
        self._headers_only = config.headers_only
        self._ahead = []
        self._ahead_at = 0
        self._wake()

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
        if self._timer is not None:
            self._timer.cancel()
        if self._ack_subscription is not None:
            self._router.unsubscribe(self._ack_subscription)
        for request in self._queue.take_all():
            self._send_status(request.reply, status)

    # ── events ──

    def on_request(self, reply: bytes, payload: bytes) -> None:
        """A MSG.NEXT whose answers go to `reply`."""
        if not reply or self._closed:
            return
        now = self._now()
        self._active_at = now
        request = parse_request(payload)
        if isinstance(request, bytes):
            self._send_status(reply, request)
            return
        refusal = refusal_by_limits(request, self.config)
        if refusal is None and len(self._queue) >= self.config.max_waiting:
            self._drop_vanished()
            if len(self._queue) >= self.config.max_waiting:
                refusal = EXCEEDED_MAX_WAITING
        if refusal is None and request.no_wait:
            self.state.expire(now)
            available = self.state.num_pending + self.state.redeliveries
            if available == 0 and request.expires == 0:
                refusal = NO_MESSAGES
            elif 0 < available < self._queue.wanted():
                refusal = REQUESTS_PENDING
        if refusal is not None:
            self._send_status(reply, refusal)
            return
        self._queue.add(Waiting(reply, request, now))
        self._wake()

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
            if self._queue:
                self._wake()

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
                self.state.ack(sequence, meant.consumer_sequence)
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
        if self._queue:
            self._wake()

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_at = 0
        if self._closed:
            return
        now = self._now()
        threshold = self.config.inactive_threshold
        if threshold and now >= self._active_at + threshold:
            self._drop_vanished()
            if not self._queue:
                self._on_idle(self)
                return
            self._active_at = now
        self._pump()

    # ── the pump ──

    def _wake(self) -> None:
        if not self._pumping and not self._closed:
            self._pumping = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        if self._closed:
            return
        now = self._now()
        self.state.expire(now)
        for request in self._queue.take_expired(now):
            self._send_status(request.reply, request.timed_out())
        try:
            again = self._deliver(now)
        except StorageError as error:
            logger.error("consumer_cannot_read stream=%s consumer=%s reason=%s", self._stream.name, self.name, error)
            again = DISK_RETRY
        if again == 0:
            self._wake()
        elif again < 0:
            for request in self._queue.take_unserved():
                self._send_status(request.reply, NO_MESSAGES)
        for request in self._queue.take_heartbeats(now):
            beat = idle_heartbeat(self.state.delivered_consumer, self.state.delivered_stream)
            self._send_status(request.reply, beat)
        self._arm(again)

    def _deliver(self, now: int) -> float:
        """One turn. Returns seconds until the next one: 0 at the end of a turn with more to give, negative when nothing
        can be given until something happens."""
        state, queue, router = self.state, self._queue, self._router
        messages, size_left = TURN_MESSAGES, TURN_BYTES
        checked: set[bytes] = set()
        delay = -1.0
        while (request := queue.first()) is not None:
            if messages <= 0 or size_left <= 0:
                delay = 0
                break
            inbox = request.reply
            if inbox not in checked:
                if router.pending(inbox) > LINK_HIGH_WATER:
                    delay = LINK_RETRY
                    break
                checked.add(inbox)
            again = state.next_redelivery() if state.redeliveries else 0
            if again:
                record = self._stream.load(again)
                if record is None:
                    state.forget(again)
                    continue
            elif state.num_pending > 0 and state.may_deliver_new:
                record = self._next_new()
                if record is None:
                    delay = 0 if state.num_pending > 0 else -1
                    break
            else:
                break
            size = self._give(request, record, again, now)
            if size > 0:
                messages -= 1
                size_left -= size
        if messages < TURN_MESSAGES:
            self._active_at = now
            self._delivered_ns = self._clock_ns()
            if self.durable:
                self._on_change(self)
        return delay

    def _give(self, request: Waiting, record: StoredRecord, again: int, now: int) -> int:
        """Deliver `record` to `request`, for the first time or again; returns its size, 0 when it was not delivered and
        the request is gone."""
        state, queue = self.state, self._queue
        sequence = sequence_of(record.offset)
        subject, block, payload = record.subject, record.header_block, record.payload
        if self._headers_only:
            block, payload = _with_size(block, len(payload)), b""
        reply = b"%b%d.%d.%d.%d.%d" % (
            self._ack_head,
            state.attempts.get(again, 0) + 2 if again else 1,
            sequence,
            state.delivered_consumer + 1,
            record.timestamp_ns,
            state.num_pending if again else state.num_pending - 1,
        )
        size = len(subject) + len(reply) + len(block) + len(payload)
        if 0 < request.max_bytes and request.bytes_left < size:
            queue.drop_first()
            self._send_status(request.reply, request.too_small())
            return 0
        if self._router.deliver(request.reply, subject, reply, block, payload) == 0:
            queue.drop_first()
            return 0
        if again:
            state.deliver_again(sequence, now)
        else:
            if not state.selected:
                self._ahead_at += 1
            state.deliver_new(sequence, now)
        if request.took(size, now):
            queue.drop_first()
        else:
            queue.next_turn()
        return size

    def _next_new(self) -> StoredRecord | None:
        """The next matching message, left in place until it was delivered. None: the end of the log, or of this turn's
        patience with what does not match."""
        state, wanted = self.state, self.filter
        if state.selected:
            return self._next_selected()
        for _ in range(TURN_SKIPPED):
            if self._ahead_at >= len(self._ahead):
                self._ahead = self._stream.log.read(offset_of(state.position), AHEAD_RECORDS, TURN_BYTES)
                self._ahead_at = 0
                if not self._ahead:
                    state.num_pending = 0  # what was counted is not readable: damaged since, and reported by the log
                    return None
            record = self._ahead[self._ahead_at]
            if wanted is None or wanted.matches(record.subject):
                return record
            self._ahead_at += 1
            state.position = sequence_of(record.offset) + 1
        return None

    def _next_selected(self) -> StoredRecord | None:
        """The next of those that "last per subject" picked; None in the turn in which the last of them is found
        gone."""
        selected = self.state.selected
        while selected:
            record = self._stream.load(selected[0])
            if record is not None:
                return record
            selected.popleft()
            self.state.num_pending -= 1
        return None

    # ── inside ──

    def _now(self) -> int:
        return int(self._loop.time() * SECOND)

    def _send_status(self, reply: bytes, header_block: bytes) -> None:
        self._router.publish(reply, b"", header_block, b"")

    def _drop_vanished(self) -> None:
        if self._queue:
            self._queue.keep({reply for reply in self._queue.replies() if self._router.has_interest(reply)})

    def _arm(self, again: float = -1.0) -> None:
        """Have `_on_timer` called when the next thing is due: a status, a heartbeat, a redelivery, the end of
        patience."""
        if self._closed:
            return
        now = self._now()
        deadlines = [self._queue.next_deadline()]
        if self._queue:  # nobody waits: what becomes due is found when somebody does
            deadlines.append(self.state.expire(now))
            if again < 0 and self.state.redeliveries:
                self._wake()
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


def _filter_of(config: ConsumerConfig) -> SubjectFilter | None:
    patterns = filters_of(config)
    return SubjectFilter(patterns) if patterns else None


def _everything(_subject: bytes) -> bool:
    return True


def _with_size(header_block: bytes, size: int) -> bytes:
    """The header block of a headers-only delivery: it says how large the payload was."""
    line = b"Nats-Msg-Size: %d\r\n\r\n" % size
    return header_block.removesuffix(b"\r\n") + line if header_block else b"NATS/1.0\r\n" + line
