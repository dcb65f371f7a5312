# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The state of a consumer: what it has delivered, what is unacknowledged, what comes next. Pure decisions, no I/O, no
clock.

Three numbers of a delivery appear in its ack subject, `$JS.ACK.<stream>.<consumer>.<count>.<stream seq>.<consumer
seq>.…`: the count of deliveries of this message, its stream sequence, and the consumer sequence, which counts all
deliveries.

    position         next stream sequence to look at; everything below was delivered or does not match the filter
    selected         sequences below `position` to deliver first: what "last per subject" picked when it was made
    unacked          delivered and not settled: stream sequence -> `Unsettled`
    redeliveries     those of `unacked` that are due again, in order; they go before anything new
    attempts         stream sequence -> redeliveries so far. It outlives `unacked` when max_deliver was reached, so
                     `num_redelivered` counts messages that are never delivered again, as in nats-server
    floor            everything up to it is settled. It moves as nats-server's does: by the consumer sequence of first
                     deliveries, so a message that is redelivered holds it back until it is acknowledged

The order of first deliveries and the deadlines are in structures of their own (ack_deadlines.py). Times are nanoseconds of
a monotonic clock.

Hot and compiled: `deliver_run` and `ack` take turns with a client that acknowledges what it gets.

`events` holds the changes since it was last emptied, if the state is stored (else None): the last snapshot and these
events give the present state (`replay`). An event is [kind, first, last], of stream sequences that follow each other:
DELIVERED, ACKED, REDELIVERED and GIVEN_UP (delivered max_deliver times); in ACKED_ALL `last` is the consumer sequence.
Messages that leave the stream (`removed`, `purged`, `forget`) are no events: after a restart the stream shows what it
holds (`drop_absent`). Neither is `reset`, because a snapshot follows it.

Not decided here: where a message is delivered (jetstream/pull.py), whether it matches a filter, what is on disk.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop

import cython
import msgspec

if cython.compiled:
    from cython.cimports.headwater.jetstream_state.ack_deadlines import (
        Deadlines,
        DeliveryOrder,
        Run,
        Unsettled,
        unsettled,
    )
else:
    from headwater.jetstream_state.ack_deadlines import Deadlines, DeliveryOrder, Run, Unsettled, unsettled

from headwater.jetstream_documents.consumers import ConsumerConfig

DELIVERED, ACKED, ACKED_ALL, REDELIVERED, GIVEN_UP = range(5)  # kinds of events
NEVER = 1 << 61  # the ack wait in ns of a consumer without one
MOST_DELIVERIES = 1 << 62  # consumer sequences of a snapshot; an archive that a client sends may name higher ones


class ConsumerSnapshot(msgspec.Struct, frozen=True):
    """The stored state of a durable consumer, without deadlines (after a restart every ack wait starts again)."""

    position: int
    selected: list[int]
    delivered_consumer: int
    delivered_stream: int
    floor_consumer: int
    floor_stream: int
    unacked: dict[int, int]
    attempts: dict[int, int]


class Consumer:
    """The state of one consumer. It delivers `selected`, then the messages from `start` on."""

    def __init__(self, config: ConsumerConfig, start: int, selected: Iterable[int] = ()) -> None:
        self.config = config
        self.position = start
        self.selected = deque(selected)
        self.num_pending = 0  # of `selected`, and of matching messages at or above `position`; kept by the shell
        first = self.selected[0] if self.selected else start
        self.delivered_consumer = 0
        self.delivered_stream = first - 1
        self.floor_consumer = 0
        self.floor_stream = first - 1
        self.unacked: dict[int, Unsettled] = {}
        self.attempts: dict[int, int] = {}
        self.events: list[list[int]] | None = None
        self._redeliveries: deque[int] = deque()
        self._due: set[int] = set()
        self._deadlines = Deadlines(self.unacked, self._due)
        self._in_order = DeliveryOrder(self.unacked)

    # ── what may be delivered ──

    @property
    def may_deliver_new(self) -> bool:
        """False while max_ack_pending messages wait for their acks; redeliveries go on."""
        return self.deliverable > 0

    @property
    def awaits_acks(self) -> bool:
        """Whether max_ack_pending holds back new messages."""
        return self.num_pending > 0 and not self.may_deliver_new

    @property
    def deliverable(self) -> int:
        """How many new messages may be delivered before one is acknowledged."""
        limit = self.config.max_ack_pending
        return limit - len(self.unacked) if limit > 0 and self.config.ack_policy != "none" else sys.maxsize

    @property
    def redeliveries(self) -> int:
        """The number of messages due for redelivery."""
        return len(self._redeliveries)

    def next_redelivery(self, given_up: list[tuple[int, int]] | None = None) -> int:
        """The stream sequence to deliver again now; 0 when none is due. Messages delivered `max_deliver` times are
        given up here: (sequence, deliveries) is added to `given_up`."""
        while self._redeliveries:
            sequence = self._redeliveries[0]
            if sequence in self._due and sequence in self.unacked:
                limit = self.config.max_deliver
                deliveries = self.attempts.get(sequence, 0) + 1
                if limit <= 0 or deliveries < limit:
                    return sequence
                if given_up is not None:
                    given_up.append((sequence, deliveries))
                del self.unacked[sequence]
                self._note(GIVEN_UP, sequence)
            self._due.discard(sequence)
            self._redeliveries.popleft()
        return 0

    # ── what was delivered ──

    def deliver_new(self, sequence: int, now: int) -> int:
        """Note the first delivery of `sequence`; returns the consumer sequence."""
        self.delivered_consumer = consumer_sequence = self.delivered_consumer + 1
        self.delivered_stream = sequence
        if self.selected:
            self.selected.popleft()
        else:
            self.position = sequence + 1
        self.num_pending -= 1
        self._note(DELIVERED, sequence)
        if self.config.ack_policy == "none":
            self.floor_consumer = consumer_sequence
            self.floor_stream = sequence
        else:
            self._set_deadline(sequence, consumer_sequence, now + self._ack_wait(0))
            self._in_order.sequences.append(sequence)
        return consumer_sequence

    def deliver_run(self, sequences: list[int], now: int) -> None:
        """Note the first delivery of these, in this order: at least one; all of `selected`, its first ones, or
        none of them."""
        count: cython.Py_ssize_t = len(sequences)
        last = sequences[count - 1]
        consumer_sequence: cython.longlong = self.delivered_consumer
        self.delivered_consumer = consumer_sequence + count
        self.delivered_stream = last
        if self.selected:
            for _ in sequences:
                self.selected.popleft()
        else:
            self.position = last + 1
        self.num_pending -= count
        if self.events is not None:
            if last - sequences[0] == count - 1:
                self.events.append([DELIVERED, sequences[0], last])
            else:
                for sequence in sequences:
                    self._note(DELIVERED, sequence)
        if self.config.ack_policy == "none":
            self.floor_consumer = self.delivered_consumer
            self.floor_stream = last
            return
        deadline: cython.longlong = now + self._ack_wait(0)
        unacked = self.unacked
        for sequence in sequences:
            consumer_sequence += 1
            unacked[sequence] = unsettled(consumer_sequence, deadline)
        self._in_order.sequences.extend(sequences)
        self._deadlines.add_run(sequences, deadline)

    def deliver_span(self, first: int, last: int, now: int) -> None:
        """As `deliver_run`, of all from `first` to `last`, none of which is selected."""
        if self.config.ack_policy != "none":
            self.deliver_run(list(range(first, last + 1)), now)
            return
        self.delivered_consumer += last + 1 - first
        self.delivered_stream = last
        self.position = last + 1
        self.num_pending -= last + 1 - first
        if self.events is not None:
            self.events.append([DELIVERED, first, last])
        self.floor_consumer = self.delivered_consumer
        self.floor_stream = last

    def deliver_again(self, sequence: int, now: int) -> tuple[int, int]:
        """Note the redelivery that `next_redelivery` returned; returns (consumer sequence, count of deliveries)."""
        self._redeliveries.popleft()
        self._due.discard(sequence)
        self.delivered_consumer += 1
        self._note(REDELIVERED, sequence)
        attempt = self.attempts.get(sequence, 0) + 1
        self.attempts[sequence] = attempt
        self._set_deadline(sequence, self.unacked[sequence].first, now + self._ack_wait(attempt))
        return self.delivered_consumer, attempt + 1

    def forget(self, sequence: int) -> None:
        """Drop a message due for redelivery that no longer exists."""
        self._settle(sequence)
        self._move_floor_past_settled()

    def removed(self, sequence: int) -> bool:
        """A message has left the stream, so its ack is not awaited any more. Returns whether it was awaited."""
        entry = self._settle(sequence)
        if entry is None:
            return False
        self._move_floor(entry.first)
        return True

    def purged(self, first: int) -> None:
        """Everything below `first` has left the stream."""
        self.position = max(self.position, first)
        self.selected = deque(sequence for sequence in self.selected if sequence >= first)
        self.delivered_stream = max(self.delivered_stream, first - 1)
        if self.floor_stream < first - 1:
            self.floor_stream = first - 1
            for sequence in [sequence for sequence in self.unacked if sequence < first]:
                entry = self._settle(sequence)
                if entry is not None:
                    self.floor_consumer = max(self.floor_consumer, entry.first)
            self._move_floor_past_settled()

    def reset(self, position: int) -> None:
        """Begin anew at `position`."""
        self.position = position
        self.selected.clear()
        self.delivered_consumer = self.floor_consumer = 0
        self.delivered_stream = self.floor_stream = position - 1
        self.unacked.clear()
        self.attempts.clear()
        self._redeliveries.clear()
        self._due.clear()
        self._deadlines = Deadlines(self.unacked, self._due)
        self._in_order = DeliveryOrder(self.unacked)

    def was_delivered(self, sequence: int) -> bool:
        """Whether the message was delivered according to this state; after a crash a client may have one that will be
        delivered again."""
        return sequence < self.position and sequence not in self.selected

    def waited(self, sequence: int, now: int) -> int:
        """Nanoseconds since the message was delivered; a +WPI restarts the count."""
        return max(0, now - self.unacked[sequence].deadline + self._ack_wait(self.attempts.get(sequence, 0)))

    # ── acknowledgements ──

    def ack(self, sequence: cython.longlong, consumer_sequence: cython.longlong) -> None:
        """+ACK or +TERM: the message is settled. With ack policy `all`, so is everything before it."""
        if self.config.ack_policy in ("all", "flow_control"):
            self._ack_all(sequence, consumer_sequence)
            return
        entry = self._settle(sequence)
        if entry is None:
            return
        if self.events is not None:
            self._note(ACKED, sequence)
        self._move_floor(entry.first)

    def nak(self, sequence: int, delay: int, now: int) -> None:
        """-NAK: deliver again, at once or after `delay` ns."""
        entry = self.unacked.get(sequence)
        if entry is None or sequence in self._due:
            return
        if delay > 0:
            self._set_deadline(sequence, entry.first, now + min(delay, NEVER))
        else:
            self._make_due(sequence)

    def progress(self, sequence: int, now: int) -> None:
        """+WPI: the ack wait starts again."""
        entry = self.unacked.get(sequence)
        if entry is not None:
            self._set_deadline(sequence, entry.first, now + self._ack_wait(self.attempts.get(sequence, 0)))

    # ── what time does ──

    def expire(self, now: cython.longlong) -> int:
        """Queue messages whose ack wait is over for redelivery; returns the next deadline, 0 for none."""
        entry: Unsettled | None
        run: Run | None
        deadline: cython.longlong
        heap = self._deadlines.heap
        while True:
            run = self._deadlines.first_run()
            if heap and (run is None or heap[0] < (run.deadline, run.sequences[run.at])):
                deadline, sequence = heap[0]
                entry = self.unacked.get(sequence)
                waits = entry is not None and entry.deadline == deadline and sequence not in self._due
                if waits and deadline > now:
                    return deadline
                heappop(heap)
                if not waits:
                    continue
            elif run is not None:
                deadline, sequence = run.deadline, run.sequences[run.at]
                if deadline > now:
                    return deadline
                self._deadlines.step(run)
            else:
                return 0
            self._make_due(sequence)

    # ── over a restart ──

    def snapshot(self) -> ConsumerSnapshot:
        """The state that must survive a restart."""
        return ConsumerSnapshot(
            position=self.position,
            selected=list(self.selected),
            delivered_consumer=self.delivered_consumer,
            delivered_stream=self.delivered_stream,
            floor_consumer=self.floor_consumer,
            floor_stream=self.floor_stream,
            unacked={sequence: entry.first for sequence, entry in self.unacked.items()},
            attempts=dict(self.attempts),
        )

    def restore(self, snapshot: ConsumerSnapshot, end: int, now: int) -> None:
        """Continue from the snapshot. `end`: first stream sequence that the log does not hold; a snapshot may name
        messages beyond it after a power loss under sync policies other than `always`."""
        self.position = (
            snapshot.position if self.config.deliver_policy == "by_start_sequence" else min(snapshot.position, end)
        )
        self.selected = deque(sequence for sequence in snapshot.selected if sequence < end)
        self.delivered_consumer = min(snapshot.delivered_consumer, MOST_DELIVERIES)
        self.delivered_stream = min(snapshot.delivered_stream, end - 1)
        self.floor_consumer = min(snapshot.floor_consumer, MOST_DELIVERIES)
        self.floor_stream = min(snapshot.floor_stream, end - 1)
        self.attempts = {sequence: n for sequence, n in snapshot.attempts.items() if sequence < end}
        for sequence, first in sorted(snapshot.unacked.items()):
            if sequence < end:
                deadline = now + self._ack_wait(self.attempts.get(sequence, 0))
                self._set_deadline(sequence, min(first, MOST_DELIVERIES), deadline)
                self._in_order.sequences.append(sequence)

    def replay(self, events: Iterable[list[int]], end: int, now: int) -> list[int]:
        """Apply the events after the snapshot, in order; returns the sequences that they settled. `end`: as in
        `restore`. Events that are impossible, because an earlier one was lost, are skipped: a message may then be
        delivered again."""
        settled: list[int] = []
        for kind, first, last in events:
            if kind == ACKED_ALL:
                before = list(self.unacked)
                self._ack_all(first, last)
                settled += [sequence for sequence in before if sequence not in self.unacked]
                continue
            for sequence in range(first, min(last, end - 1) + 1):
                if kind == DELIVERED and (self.selected or sequence >= self.position):
                    self.deliver_new(sequence, now)
                    if self.config.ack_policy == "none":
                        settled.append(sequence)
                elif kind == ACKED:
                    settled.append(sequence)
                    self.ack(sequence, 0)
                elif kind == REDELIVERED and sequence in self.unacked:
                    self.delivered_consumer += 1
                    attempt = self.attempts[sequence] = self.attempts.get(sequence, 0) + 1
                    self._set_deadline(sequence, self.unacked[sequence].first, now + self._ack_wait(attempt))
                elif kind == GIVEN_UP:
                    self.unacked.pop(sequence, None)
        return settled

    def drop_absent(self, is_absent: Callable[[int], bool]) -> None:
        """Stop waiting for acks of messages that the stream no longer holds."""
        for sequence in [sequence for sequence in self.unacked if is_absent(sequence)]:
            self.removed(sequence)

    # ── inside ──

    def _note(self, kind: cython.int, sequence: cython.longlong) -> None:
        events = self.events
        if events is None:
            return
        if events:
            newest = events[len(events) - 1]
            if newest[0] == kind and kind != ACKED_ALL and newest[2] + 1 == sequence:
                newest[2] = sequence
                return
        events.append([kind, sequence, sequence])

    def _ack_wait(self, attempt: cython.Py_ssize_t) -> cython.Py_ssize_t:
        backoff = self.config.backoff
        if backoff:
            return min(backoff[min(attempt, len(backoff) - 1)], NEVER)
        return min(self.config.ack_wait or NEVER, NEVER)

    def _set_deadline(self, sequence: cython.longlong, first: cython.longlong, deadline: cython.longlong) -> cython.int:
        self.unacked[sequence] = unsettled(first, deadline)
        return self._deadlines.add(sequence, deadline)

    def _make_due(self, sequence: cython.longlong) -> None:
        self._due.add(sequence)
        self._redeliveries.append(sequence)

    def _settle(self, sequence: cython.longlong) -> Unsettled | None:
        entry = self.unacked.pop(sequence, None)
        if self.attempts:
            self.attempts.pop(sequence, None)
        if self._due:  # a stale entry in the queue of redeliveries is skipped when its turn comes
            self._due.discard(sequence)
        return entry

    def _move_floor(self, first: cython.longlong) -> cython.int:
        """Move the floor after a message was settled whose first delivery had this consumer sequence."""
        entry: Unsettled
        following: cython.longlong = self._in_order.first()
        if following == 0:
            self.floor_consumer, self.floor_stream = self.delivered_consumer, self.delivered_stream
        elif first == self.floor_consumer + 1:
            # Everything delivered before it is settled, so the first that is not is above it.
            entry = self.unacked[following]
            self.floor_consumer, self.floor_stream = entry.first - 1, following - 1
        return 0

    def _move_floor_past_settled(self) -> None:
        if not self.unacked:
            self.floor_consumer, self.floor_stream = self.delivered_consumer, self.delivered_stream

    def _ack_all(self, sequence: cython.longlong, consumer_sequence: cython.longlong) -> None:
        if sequence <= self.floor_stream or sequence > self.delivered_stream:
            return
        if self.events is not None:
            self.events.append([ACKED_ALL, sequence, consumer_sequence])
        oldest: cython.longlong = self._in_order.first()
        while 0 < oldest <= sequence:
            self._settle(oldest)
            oldest = self._in_order.first()
        self.floor_consumer, self.floor_stream = consumer_sequence, sequence
        self._move_floor_past_settled()
