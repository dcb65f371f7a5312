# cython: boundscheck=True, wraparound=True
"""The state of a consumer: what it has delivered, what is unacknowledged, what comes next. Pure decisions, no I/O, no
clock.

Three numbers of a delivery appear in its ack subject, `$JS.ACK.<stream>.<consumer>.<count>.<stream seq>.<consumer
seq>.…`: the count of deliveries of this message, its stream sequence, and the consumer sequence, which counts all
deliveries.

    position         next stream sequence to look at; everything below was delivered or does not match the filter
    selected         sequences below `position` to deliver first: what "last per subject" picked when it was made
    unacked          delivered and not settled: stream sequence -> consumer sequence of the *first* delivery, and deadline
    redeliveries     those of `unacked` that are due again, in order; they go before anything new
    attempts         stream sequence -> redeliveries so far. It outlives `unacked` when max_deliver was reached, so
                     `num_redelivered` counts messages that are never delivered again, as in nats-server
    floor            everything up to it is settled. It moves as nats-server's does: by the consumer sequence of first
                     deliveries, so a message that is redelivered holds it back until it is acknowledged

Deadlines are in a queue as long as each is later than the one before, as those of deliveries are; the others are in a
heap. The order of first deliveries is in a queue, too. All may hold stale entries, which are ignored unless `unacked`
agrees with them, and are rebuilt when most entries are stale. Times are nanoseconds of a monotonic clock.

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
from heapq import heappop, heappush

import msgspec

from headwater.jetstream_documents.consumers import ConsumerConfig

DELIVERED, ACKED, ACKED_ALL, REDELIVERED, GIVEN_UP = range(5)  # kinds of events
NEVER = 1 << 61  # the ack wait in ns of a consumer without one
STALE_ENTRIES = 1024  # entries beyond twice the live ones, at which heap or queue is rebuilt


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
        self.unacked: dict[int, tuple[int, int]] = {}
        self.attempts: dict[int, int] = {}
        self.events: list[list[int]] | None = None
        self._redeliveries: deque[int] = deque()
        self._due: set[int] = set()
        self._deadlines: tuple[deque[tuple[int, int]], list[tuple[int, int]]] = (deque(), [])  # queue and heap
        self._in_order: deque[int] = deque()

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
            self._in_order.append(sequence)
        return consumer_sequence

    def deliver_run(self, sequences: list[int], now: int) -> None:
        """Note the first delivery of these, in this order: at least one; all of `selected`, its first ones, or
        none of them."""
        count = len(sequences)
        last = sequences[count - 1]
        consumer_sequence = self.delivered_consumer
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
        deadline = now + self._ack_wait(0)
        for sequence in sequences:
            consumer_sequence += 1
            self._set_deadline(sequence, consumer_sequence, deadline)
            self._in_order.append(sequence)

    def deliver_again(self, sequence: int, now: int) -> tuple[int, int]:
        """Note the redelivery that `next_redelivery` returned; returns (consumer sequence, count of deliveries)."""
        self._redeliveries.popleft()
        self._due.discard(sequence)
        self.delivered_consumer += 1
        self._note(REDELIVERED, sequence)
        attempt = self.attempts.get(sequence, 0) + 1
        self.attempts[sequence] = attempt
        first, _ = self.unacked[sequence]
        self._set_deadline(sequence, first, now + self._ack_wait(attempt))
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
        self._move_floor(sequence, entry[0])
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
                    self.floor_consumer = max(self.floor_consumer, entry[0])
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
        self._deadlines = (deque(), [])
        self._in_order.clear()

    def was_delivered(self, sequence: int) -> bool:
        """Whether the message was delivered according to this state; after a crash a client may have one that will be
        delivered again."""
        return sequence < self.position and sequence not in self.selected

    def waited(self, sequence: int, now: int) -> int:
        """Nanoseconds since the message was delivered; a +WPI restarts the count."""
        _, deadline = self.unacked[sequence]
        return max(0, now - deadline + self._ack_wait(self.attempts.get(sequence, 0)))

    # ── acknowledgements ──

    def ack(self, sequence: int, consumer_sequence: int) -> None:
        """+ACK or +TERM: the message is settled. With ack policy `all`, so is everything before it."""
        if self.config.ack_policy in ("all", "flow_control"):
            self._ack_all(sequence, consumer_sequence)
            return
        entry = self._settle(sequence)
        if entry is None:
            return
        self._note(ACKED, sequence)
        self._move_floor(sequence, entry[0])

    def nak(self, sequence: int, delay: int, now: int) -> None:
        """-NAK: deliver again, at once or after `delay` ns."""
        entry = self.unacked.get(sequence)
        if entry is None or sequence in self._due:
            return
        if delay > 0:
            self._set_deadline(sequence, entry[0], now + delay)
        else:
            self._make_due(sequence)

    def progress(self, sequence: int, now: int) -> None:
        """+WPI: the ack wait starts again."""
        entry = self.unacked.get(sequence)
        if entry is not None:
            self._set_deadline(sequence, entry[0], now + self._ack_wait(self.attempts.get(sequence, 0)))

    # ── what time does ──

    def expire(self, now: int) -> int:
        """Queue messages whose ack wait is over for redelivery; returns the next deadline, 0 for none."""
        queue, heap = self._deadlines
        while queue or heap:
            is_early = bool(heap) and (not queue or heap[0] < queue[0])
            deadline, sequence = heap[0] if is_early else queue[0]
            entry = self.unacked.get(sequence)
            waits = entry is not None and entry[1] == deadline and sequence not in self._due
            if waits and deadline > now:
                return deadline
            if is_early:
                heappop(heap)
            else:
                queue.popleft()
            if waits:
                self._make_due(sequence)
        return 0

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
            unacked={sequence: entry[0] for sequence, entry in self.unacked.items()},
            attempts=dict(self.attempts),
        )

    def restore(self, snapshot: ConsumerSnapshot, end: int, now: int) -> None:
        """Continue from the snapshot. `end`: first stream sequence that the log does not hold; a snapshot may name
        messages beyond it after a power loss under sync policies other than `always`."""
        self.position = (
            snapshot.position if self.config.deliver_policy == "by_start_sequence" else min(snapshot.position, end)
        )
        self.selected = deque(sequence for sequence in snapshot.selected if sequence < end)
        self.delivered_consumer = snapshot.delivered_consumer
        self.delivered_stream = min(snapshot.delivered_stream, end - 1)
        self.floor_consumer = snapshot.floor_consumer
        self.floor_stream = min(snapshot.floor_stream, end - 1)
        self.attempts = {sequence: n for sequence, n in snapshot.attempts.items() if sequence < end}
        for sequence, first in sorted(snapshot.unacked.items()):
            if sequence < end:
                self._set_deadline(sequence, first, now + self._ack_wait(self.attempts.get(sequence, 0)))
                self._in_order.append(sequence)

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
                    self._set_deadline(sequence, self.unacked[sequence][0], now + self._ack_wait(attempt))
                elif kind == GIVEN_UP:
                    self.unacked.pop(sequence, None)
        return settled

    def drop_absent(self, is_absent: Callable[[int], bool]) -> None:
        """Stop waiting for acks of messages that the stream no longer holds."""
        for sequence in [sequence for sequence in self.unacked if is_absent(sequence)]:
            self.removed(sequence)

    # ── inside ──

    def _note(self, kind: int, sequence: int) -> None:
        events = self.events
        if events is None:
            return
        if events:
            newest = events[len(events) - 1]
            if newest[0] == kind and kind != ACKED_ALL and newest[2] + 1 == sequence:
                newest[2] = sequence
                return
        events.append([kind, sequence, sequence])

    def _ack_wait(self, attempt: int) -> int:
        backoff = self.config.backoff
        if backoff:
            return backoff[min(attempt, len(backoff) - 1)]
        return self.config.ack_wait or NEVER

    def _set_deadline(self, sequence: int, first: int, deadline: int) -> None:
        self.unacked[sequence] = (first, deadline)
        queue, heap = self._deadlines
        entry = (deadline, sequence)
        if not queue or entry >= queue[len(queue) - 1]:
            queue.append(entry)
        else:
            heappush(heap, entry)
        # An entry goes stale with its ack and would stay for a whole ack wait: 30 s of 50,000 acks/s are 1.5 million.
        if len(queue) + len(heap) > 2 * len(self.unacked) + STALE_ENTRIES:
            self._deadlines = (deque(sorted([(entry[1], waiting) for waiting, entry in self.unacked.items()])), [])

    def _make_due(self, sequence: int) -> None:
        self._due.add(sequence)
        self._redeliveries.append(sequence)

    def _settle(self, sequence: int) -> tuple[int, int] | None:
        entry = self.unacked.pop(sequence, None)
        if self.attempts:
            self.attempts.pop(sequence, None)
        if self._due:  # a stale entry in the queue of redeliveries is skipped when its turn comes
            self._due.discard(sequence)
        return entry

    def _move_floor(self, sequence: int, first: int) -> None:
        following = self._first_unacked()
        if not following:
            self.floor_consumer, self.floor_stream = self.delivered_consumer, self.delivered_stream
        elif first == self.floor_consumer + 1:
            # Everything delivered before `sequence` is settled, so the first that is not is above it.
            self.floor_consumer, self.floor_stream = self.unacked[following][0] - 1, following - 1

    def _move_floor_past_settled(self) -> None:
        if not self.unacked:
            self.floor_consumer, self.floor_stream = self.delivered_consumer, self.delivered_stream

    def _ack_all(self, sequence: int, consumer_sequence: int) -> None:
        if sequence <= self.floor_stream or sequence > self.delivered_stream:
            return
        if self.events is not None:
            self.events.append([ACKED_ALL, sequence, consumer_sequence])
        while 0 < (oldest := self._first_unacked()) <= sequence:
            self._settle(oldest)
        self.floor_consumer, self.floor_stream = consumer_sequence, sequence
        self._move_floor_past_settled()

    def _first_unacked(self) -> int:
        """The unacked message that was delivered first; 0 when all are settled. Iterating over `unacked` would find it
        too, but a dict keeps the slots of entries deleted at its front, and each search would scan all of them."""
        order, unacked = self._in_order, self.unacked
        while order and order[0] not in unacked:
            order.popleft()
        if len(order) > 2 * len(unacked) + STALE_ENTRIES:
            order = self._in_order = deque(sorted(unacked))
        return order[0] if order else 0
