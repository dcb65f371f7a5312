"""The common part of pull and push consumers: counts what is pending, renders messages, tracks removals from the stream,
and delivers in turns. `jetstream_state/consumer.py` decides what to deliver; `pull.py` or `push.py`, where to and when.

    Turns ─▶ _turn ─▶ _deliver (pull.py, push.py) ─▶ ReadAhead, redeliveries ─▶ Router.deliver
    Acks  ─▶ state ─▶ Turns                           Pause, OriginalPace hold deliveries back

A message is routed to an inbox but shows its own subject, and its reply subject carries the numbers for its
acknowledgement. It counts as delivered only if a subscriber received it.

Only `_turn` delivers. It runs once per loop iteration while there is work, and sends at most TURN_MESSAGES or TURN_BYTES,
so that a replay of millions does not starve the broker's other clients.

Times are nanoseconds of the loop's monotonic clock; only pauses and the times in INFO are times of day.
"""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from headwater.errors import StorageError
from headwater.exchange.router import Router
from headwater.jetstream.consumed_stream import ConsumedStream
from headwater.jetstream.consumer_acks import Acks, Activity
from headwater.jetstream.read_ahead import ReadAhead, filter_of
from headwater.jetstream_documents.consumers import ConsumerConfig, ConsumerInfo, SequencePair
from headwater.jetstream_documents.stream_rules import shown_metadata
from headwater.jetstream_ranges.outgoing import RecordSender, with_size
from headwater.jetstream_state.consumer import Consumer, ConsumerSnapshot
from headwater.jetstream_state.pausing import OriginalPace, Pause
from headwater.jetstream_state.purge_reach import PurgeReach
from headwater.jetstream_state.sequence import offset_of, sequence_of
from headwater.jetstream_state.store import ConsumerRecord
from headwater.jetstream_state.subject_table import SubjectFilter
from headwater.jetstream_timing.turns import Turns
from headwater.model.timestamps import SECOND, format_time
from headwater.streams.log import StoredRecord

logger = logging.getLogger(__name__)

TURN_MESSAGES = 256
ALONE = 4  # cost, in messages of a run, of one that is looked up by itself: some 70 us against less than 10
IN_PLACE = 4  # messages that are delivered from where they lie cost as much as one of another run
TURN_BYTES = 1 << 20
DISK_RETRY = 1.0  # seconds after a read of the log failed

NOTHING: Final = -1.0  # result of a turn: nothing to deliver until the next event
MORE: Final = 0.0  # result of a turn: there is more to deliver; a positive number: seconds until there is


class DeliveringConsumer(ABC):
    """One consumer. `on_idle(consumer)` is called when it has been inactive for its threshold; `on_change` when the state
    of a durable one should be stored soon."""

    def __init__(
        self,
        stream: ConsumedStream,
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
        self._stream = stream
        self._router = router
        self._clock_ns = clock_ns
        self._on_idle = on_idle
        self._on_change = on_change
        self._turns = Turns(self._turn, self._on_alarm)
        self._ahead = ReadAhead(stream, state)
        self._pause = Pause(clock_ns)
        self._pace = OriginalPace()
        self._activity = Activity(self._turns.now())
        if stream.keeper is not None and (self.durable or stream.config.retention != "limits"):
            state.events = []
        self._acks = Acks(stream, router, self, self._turns, self._activity, clock_ns)
        self._configure(state.config)

    # ── hooks of the two kinds ──

    @abstractmethod
    def on_request(self, reply: bytes, payload: bytes) -> None:
        """A MSG.NEXT whose answers go to `reply`."""

    @abstractmethod
    def _deliver(self, now: int) -> float:
        """Deliver for one turn. Returns NOTHING, MORE, or seconds until the next turn. Raises StorageError."""

    @abstractmethod
    def _before_turn(self, now: int) -> None:
        """Called at the start of a turn."""

    @abstractmethod
    def _after_turn(self, now: int, again: float) -> None:
        """Called at the end of a turn; `again`: the result of `_deliver`."""

    @abstractmethod
    def _has_taker(self) -> bool:
        """Whether a receiver is ready for a message."""

    @abstractmethod
    def _next_event(self, now: int) -> list[int]:
        """The times of the next events other than ack deadlines; 0 for none."""

    @abstractmethod
    def _dismiss(self, status: bytes) -> None:
        """The consumer has ended: answer the waiting requests."""

    @abstractmethod
    def _is_idle(self) -> bool:
        """Whether no client uses the consumer."""

    def _busy_until(self) -> int:
        """The time until which clients may be processing deliveries without any sign of activity."""
        return 0

    def _waiting(self) -> int:
        """The number of waiting requests."""
        return 0

    def unpin(self, group: str) -> bool:
        """Unpin the client of this priority group. False when there is no such group."""
        return False

    def start(self) -> None:
        """Start delivering. The API calls this after its answer, so that a client gets the pending count before the first
        message."""
        self._turns.wake()

    # ── API ──

    @property
    def config(self) -> ConsumerConfig:
        """The configuration, checked and complete."""
        return self.state.config

    @property
    def filter(self) -> SubjectFilter | None:
        """Which subjects are delivered; None for all."""
        return self._ahead.filter

    @property
    def durable(self) -> bool:
        """Whether every change is stored as it happens."""
        return bool(self.config.durable_name)

    @property
    def is_kept(self) -> bool:
        """Whether the state is stored. On a work queue that includes an ephemeral consumer's acknowledgements, which decide
        what is still in the queue."""
        return self.state.events is not None

    @property
    def is_bound(self) -> bool:
        """Whether a client subscribes to the deliver subject of a push consumer, in its deliver group if it has one."""
        return False

    @property
    def has_interest(self) -> bool:
        """The same, in whatever queue group."""
        return False

    def is_replaying(self, since_ns: int) -> bool:
        """Whether this consumer was created after `since_ns` (time of day) and still has to send messages pending then."""
        return False

    def info(self, *, full: bool = True) -> ConsumerInfo:
        """CONSUMER.INFO; `full` is False in lists, whose metadata is bare."""
        self._acks.intake.report()
        waiting = self._waiting()
        state, config, activity = self.state, self.state.config, self._activity
        if full:
            config = msgspec.structs.replace(config, metadata=shown_metadata(config.metadata))
        delivered = SequencePair(consumer_seq=state.delivered_consumer, stream_seq=state.delivered_stream)
        floor = SequencePair(consumer_seq=state.floor_consumer, stream_seq=state.floor_stream)
        if activity.delivered_ns:
            delivered.last_active = format_time(activity.delivered_ns)
        if activity.acked_ns:
            floor.last_active = format_time(activity.acked_ns)
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
        remaining = self._pause.remaining
        if remaining:
            info.paused, info.pause_remaining = True, remaining
        return info

    @property
    def pause_remaining(self) -> int:
        """Nanoseconds until deliveries resume; 0 when the consumer is not paused."""
        return self._pause.remaining

    def reconfigure(self, config: ConsumerConfig) -> None:
        """Change to a configuration that was checked; `state.num_pending` is recounted by the caller if the filter
        changed."""
        self._stream.consumers.filter_changes(self)
        self.state.config = config
        self._ahead.filter = filter_of(config)
        self._ahead.forget()
        self._configure(config)
        self._turns.wake()

    def _configure(self, config: ConsumerConfig) -> None:
        self._pause.configure(config)
        self._acks.configure(config)

    def reset(self, sequence: int) -> int:
        """Restart delivery at `sequence` (0: after the ack floor); returns the starting sequence."""
        sequence = sequence or self.state.floor_stream + 1
        self.state.reset(sequence)
        self._activity.delivered_ns = self._activity.acked_ns = 0
        self._ahead.forget()
        self._turns.wake()
        return sequence

    def record(self, frame: int) -> ConsumerRecord:
        """The stored form of a consumer, whose state includes the journal up to this frame."""
        return ConsumerRecord(self.name, self.config, self.created_ns, self.state.snapshot(), frame)

    def restore(self, snapshot: ConsumerSnapshot, events: Iterable[list[int]]) -> list[int]:
        """Restore the state of an earlier run and apply the events after it was saved; returns the sequences that those
        settled."""
        state, end, now = self.state, self._stream.last_sequence + 1, self._turns.now()
        kept, state.events = state.events, None
        state.restore(snapshot, end, now)
        settled = state.replay(events, end, now)
        state.drop_absent(lambda sequence: self._stream.log.is_absent(offset_of(sequence)))
        state.events = kept
        self._stream.consumers.filter_changes(self)
        self._arm()
        return settled

    def close(self, status: bytes) -> None:
        """Stop delivering; waiting requests are answered with `status`."""
        self._turns.close()
        self._acks.close()
        self._dismiss(status)

    # ── events ──

    def on_new(self, count: int) -> None:
        """`count` messages that match the filter became durable."""
        self.state.num_pending += count
        if self._has_taker():
            self._turns.wake()

    def on_removed(self, sequence: int, subject: bytes) -> None:
        """A message has left the stream."""
        state = self.state
        if state.selected and sequence in state.selected:
            state.selected.remove(sequence)
            state.num_pending -= 1
            self._ahead.forget_removed(sequence)
        elif sequence >= state.position and (self.filter is None or self.filter.matches(subject)):
            state.num_pending = max(0, state.num_pending - 1)
            self._ahead.forget_removed(sequence)
        if sequence in state.unacked and state.removed(sequence):
            self._note_settled()
            self._turns.wake()

    def on_removed_many(self, gone: list[tuple[int, bytes]]) -> None:
        """These (sequence, subject) have left the stream as part of a purge; `on_purged(reach)` follows."""
        state, wanted = self.state, self.filter
        self._ahead.forget()
        ahead = (subject for sequence, subject in gone if sequence >= state.position)
        count = sum(1 for subject in ahead if wanted is None or wanted.matches(subject))
        state.num_pending = max(0, state.num_pending - count)

    def on_purged(self, reach: PurgeReach | None = None) -> None:
        """Many messages have left the stream; with `reach` the pending count excludes them already."""
        self._ahead.forget()
        state, log = self.state, self._stream.log
        waited, selected = len(state.unacked), len(state.selected)
        state.purged(max(self._stream.first_sequence, 1) if reach is None else reach.start(self.filter))
        for sequence in [sequence for sequence in state.unacked if log.is_absent(offset_of(sequence))]:
            state.removed(sequence)
        if len(state.unacked) < waited:
            self._note_settled()
        if state.selected:
            state.selected = deque(sequence for sequence in state.selected if not log.is_absent(offset_of(sequence)))
        if reach is not None:
            state.num_pending = max(0, state.num_pending - selected + len(state.selected))
        else:
            state.num_pending = len(state.selected) + self._stream.contents.counted_from(state.position, self.filter)
        self._turns.wake()

    def on_progress(self) -> None:
        """Acknowledgements have changed the state."""
        self._note_change()
        if self._has_taker():
            self._turns.wake()

    def on_clock_step(self) -> None:
        """The system clock was stepped: a pause may have ended."""
        if self._pause.until:
            self._turns.wake()

    def needs(self, sequence: int, subject: bytes) -> bool:
        """Whether this consumer has yet to deliver the message, or is waiting for its ack."""
        if self.filter is not None and not self.filter.matches(subject):
            return False
        return sequence >= self.state.position or sequence in self.state.unacked

    def _note_change(self) -> None:
        """Have the state stored soon, if it is kept."""
        if self.is_kept:
            self._on_change(self)

    def _note_settled(self) -> None:
        """Some deliveries no longer await an ack."""
        self._activity.acked_ns = self._clock_ns()
        self._note_change()

    # ── messages ──

    def _may_send_runs(self) -> bool:
        """Whether new messages can be sent in runs: without delay, and with no redelivery due."""
        config, state = self.config, self.state
        return (
            not state.redeliveries
            and config.replay_policy == "instant"
            and (config.ack_policy != "none" or self._stream.config.retention == "limits")
        )

    def _send_run(self, inbox: bytes, most: int, turn: int, room: int, now: int) -> tuple[int, int, int]:
        """Deliver new messages, at most `most`, at most what there is time for in a turn with `turn` left, and at most
        `room` bytes (-1: any number); returns how many, their bytes, and what it took of the turn. (0, 0, 0): no subscriber
        took one, it is larger than `room`, or the end of the log; the caller finds that out by itself."""
        state, ahead = self.state, self._ahead
        most = min(most, state.num_pending, state.deliverable)
        if most <= 0:
            return 0, 0, 0
        given, size = self._send_stored(inbox, min(most, turn * IN_PLACE), room, now)
        if given:
            return given, size, -(-given // IN_PLACE)
        if ahead.next() is None:
            return 0, 0, 0
        most = min(most, turn)
        delivered: list[int] = []
        numbers = state.delivered_consumer, state.num_pending, room
        sender = RecordSender(self._router, inbox, self._acks.head, *numbers, state.config.headers_only)
        size = sender.send(ahead.records, ahead.at, most, delivered)
        if delivered:
            ahead.at += len(delivered)
            state.deliver_run(delivered, now)
        return len(delivered), size, len(delivered)

    def _send_stored(self, inbox: bytes, most: int, room: int, now: int) -> tuple[int, int]:
        """Deliver messages from where they lie; returns how many, and their bytes. (0, 0): the general way has to tell."""
        from headwater.jetstream_ranges.stored_run import only_reader  # here: a start needs it not

        state = self.state
        reader = only_reader(self._router, inbox) if not state.config.headers_only else None
        run = self._ahead.run() if reader is not None else None
        if reader is None or run is None:
            return 0, 0
        first = run.offset
        size = run.send(self._router, reader, self._acks.head, state.delivered_consumer, state.num_pending, most, room)
        if run.offset > first:
            state.deliver_span(sequence_of(first), sequence_of(run.offset) - 1, now)
        return run.offset - first, size

    def _next_due(self, now: int) -> tuple[StoredRecord, int] | float:
        """The next message to send, and its sequence if it is a redelivery; if there is none, the value for `_deliver` to
        return. Raises StorageError."""
        state = self.state
        while state.redeliveries and (again := self._next_redelivery()):
            record = self._stream.contents.load(again)
            if record is not None:
                return record, again
            state.forget(again)
        if not (state.num_pending > 0 and state.may_deliver_new):
            return NOTHING
        record = self._ahead.next()
        if record is None:
            return MORE if state.num_pending > 0 else NOTHING
        held = self._pace.held_back(record, now)
        return held if held > 0 else (record, 0)

    def _next_redelivery(self) -> int:
        """As `Consumer.next_redelivery`; sends an advisory for each message that is given up."""
        given_up: list[tuple[int, int]] = []
        sequence = self.state.next_redelivery(given_up)
        for number, deliveries in given_up:
            self._acks.advisories.given_up(self._stream.name, self.name, number, deliveries)
        return sequence

    def _render(self, record: StoredRecord, again: int) -> tuple[bytes, bytes, bytes]:
        """(ack subject, header block, payload) of a delivery."""
        state = self.state
        block, payload = record.header_block, record.payload
        if state.config.headers_only:
            block, payload = with_size(block, len(payload)), b""
        reply = b"%b%d.%d.%d.%d.%d" % (
            self._acks.head,
            state.attempts.get(again, 0) + 2 if again else 1,
            sequence_of(record.offset),
            state.delivered_consumer + 1,
            record.timestamp_ns,
            state.num_pending if again else state.num_pending - 1,
        )
        return reply, block, payload

    def _sent(self, record: StoredRecord, again: int, now: int) -> None:
        """Record a delivery."""
        state, sequence = self.state, sequence_of(record.offset)
        if again:
            state.deliver_again(sequence, now)
            return
        self._ahead.at += 1
        state.deliver_new(sequence, now)
        if self.config.replay_policy == "original":
            self._pace.note(record, now)
        if self.config.ack_policy == "none" and self._stream.config.retention != "limits":
            self._stream.on_settled(record)

    def _note_turn(self, now: int) -> None:
        """Record that this turn has delivered."""
        self._activity.at = now
        self._activity.delivered_ns = self._clock_ns()
        self._note_change()

    def _send_status(self, reply: bytes, header_block: bytes) -> None:
        self._router.publish(reply, b"", header_block, b"")

    # ── time ──

    def _turn(self) -> None:
        """Run one turn of delivery."""
        now = self._turns.now()
        self.state.expire(now)
        self._before_turn(now)
        until = self._pause.until
        try:
            paused = self._pause.holds()
            if until and not paused:
                self._acks.advisories.paused(self._stream.name, self.name, False, format_time(until))
            again = NOTHING if paused else self._deliver(now)
        except StorageError as error:
            logger.error("consumer_cannot_read stream=%s consumer=%s reason=%s", self._stream.name, self.name, error)
            again = DISK_RETRY
        if again == MORE:
            self._turns.wake()
        self._after_turn(now, again)
        self._arm(again)

    def _on_alarm(self) -> None:
        now = self._turns.now()
        threshold, activity = self.config.inactive_threshold, self._activity
        if threshold and now >= activity.at + threshold:
            busy_until = self._busy_until() if self._is_idle() else now
            if now >= busy_until + threshold:
                self._on_idle(self)
                return
            activity.at = busy_until
        self._turn()

    def _arm(self, again: float = NOTHING) -> None:
        """Set the alarm for the next event: a status, a heartbeat, a redelivery, the end of a pause or of the inactive
        threshold."""
        if self._turns.closed:
            return
        now = self._turns.now()
        deadlines = self._next_event(now)
        if self._has_taker():  # otherwise the next request or subscriber triggers a turn
            deadlines.append(self.state.expire(now))
            if again < 0 and self.state.redeliveries and not self._pause.until:
                self._turns.wake()
        if self._pause.until:
            deadlines.append(now + self._pause.remaining)
        if self.config.inactive_threshold:
            deadlines.append(self._activity.at + self.config.inactive_threshold)
        if again > 0:
            deadlines.append(now + int(again * SECOND))
        self._turns.set_alarm(deadlines)
