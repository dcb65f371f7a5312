"""Delivery by a pull consumer: answers requests with messages, each requester in turn.

Redeliveries go before new messages, and the requests take turns. A request whose requester has vanished is dropped without
losing a message; `Stream.requests_dropped` counts these. All requests wait while the link of the next one has too much
pending output.
"""

from collections.abc import Callable

from headwater.exchange.router import Router
from headwater.jetstream.consumed_stream import ConsumedStream
from headwater.jetstream.delivering import (
    ALONE,
    MORE,
    NOTHING,
    TURN_BYTES,
    TURN_MESSAGES,
    DeliveringConsumer,
)
from headwater.jetstream_advisories.advisories import Advisories, random_id
from headwater.jetstream_documents.consumers import ConsumerConfig, ConsumerInfo
from headwater.jetstream_documents.pull_requests import (
    EXCEEDED_MAX_WAITING,
    NO_MESSAGES,
    PIN_MISMATCH,
    REQUESTS_PENDING,
    RequestQueue,
    Waiting,
    idle_heartbeat,
    parse_request,
    refusal_by_limits,
)
from headwater.jetstream_state.consumer import Consumer
from headwater.jetstream_state.priority import PriorityGroups, with_pin
from headwater.jetstream_timing.slow_readers import LINK_RETRY, high_water
from headwater.streams.log import StoredRecord


class PullConsumer(DeliveringConsumer):
    """Delivers to the reply subjects of MSG.NEXT requests."""

    def __init__(
        self,
        stream: ConsumedStream,
        router: Router,
        name: str,
        created_ns: int,
        state: Consumer,
        clock_ns: Callable[[], int],
        on_idle: Callable[[DeliveringConsumer], None],
        on_change: Callable[[DeliveringConsumer], None],
    ) -> None:
        self._queue = RequestQueue()
        self._advisories = Advisories(router, clock_ns, stream.domain)
        self._groups = PriorityGroups(random_id, self._on_pinned, self._on_unpinned, self._on_lost_pin)
        super().__init__(stream, router, name, created_ns, state, clock_ns, on_idle, on_change)
        self._arm()

    def on_request(self, reply: bytes, payload: bytes) -> None:
        if not reply or self._turns.closed:
            return
        now = self._turns.now()
        self._activity.at = now
        request = parse_request(payload)
        if isinstance(request, bytes):
            self._send_status(reply, request)
            return
        refusal = refusal_by_limits(request, self.config)
        if refusal is None and not self._groups.note_request(request.id, now):
            refusal = PIN_MISMATCH
        if refusal is None and len(self._queue) >= self.config.max_waiting:
            self._drop_vanished()
        if refusal is None and request.no_wait:
            self.state.expire(now)
            available = self.state.num_pending + self.state.redeliveries
            if available == 0 and request.expires == 0:
                refusal = NO_MESSAGES
            elif 0 < available < self._queue.wanted():
                refusal = REQUESTS_PENDING
        if refusal is None and len(self._queue) >= self.config.max_waiting:
            if request.idle_heartbeat:
                return  # the client would ask again at once, and so for ever; now it does when it misses heartbeats
            refusal = EXCEEDED_MAX_WAITING
        if refusal is not None:
            self._send_status(reply, refusal)
            return
        self._queue.add(Waiting(reply, request, now))
        self._turns.wake()

    def info(self, *, full: bool = True) -> ConsumerInfo:
        info = super().info(full=full)
        info.priority_groups = self._groups.shown()
        return info

    # ── priority groups ──

    def unpin(self, group: str) -> bool:
        if not self._groups.has(group):
            return False
        self._groups.unpin(group)
        self._turns.wake()
        return True

    def _configure(self, config: ConsumerConfig) -> None:
        super()._configure(config)
        self._groups.configure(config)

    def _on_pinned(self, pin: str) -> None:
        for group in (self.config.priority_groups or [])[:1]:
            self._advisories.pinned(self._stream.name, self.name, group, pin)

    def _on_unpinned(self, group: str, reason: str) -> None:
        self._advisories.unpinned(self._stream.name, self.name, group, reason)

    def _on_lost_pin(self, request: Waiting) -> None:
        self._send_status(request.reply, request.wrong_pin())

    def _first(self) -> Waiting | None:
        """The request whose turn it is."""
        if not self._groups.active:
            return self._queue.first()
        state = self.state
        return self._groups.choose(self._queue, state.num_pending, len(state.unacked))

    # ── waiting ──

    def _has_taker(self) -> bool:
        return len(self._queue) > 0

    def _waiting(self) -> int:
        self._drop_vanished()
        return len(self._queue)

    def _next_event(self, now: int) -> list[int]:
        return [self._queue.next_deadline(), self._groups.next_end()]

    def _is_idle(self) -> bool:
        self._drop_vanished()
        return not self._queue

    def _busy_until(self) -> int:
        return max((waiting.deadline for waiting in self.state.unacked.values()), default=0)

    def _dismiss(self, status: bytes) -> None:
        for request in self._queue.take_all():
            self._send_status(request.reply, status)

    def _drop_vanished(self) -> None:
        if self._queue:
            before = len(self._queue)
            self._queue.keep({reply for reply in self._queue.replies() if self._router.has_interest(reply)})
            self._stream.requests_dropped += before - len(self._queue)

    # ── turns ──

    def _before_turn(self, now: int) -> None:
        self._groups.expire(now)
        for request in self._queue.take_expired(now):
            self._send_status(request.reply, request.timed_out())

    def _after_turn(self, now: int, again: float) -> None:
        if again < 0:
            for request in self._queue.take_unserved(now if self.state.awaits_acks else 0):
                self._send_status(request.reply, NO_MESSAGES)
        for request in self._queue.take_heartbeats(now):
            beat = idle_heartbeat(self.state.delivered_consumer, self.state.delivered_stream)
            self._send_status(request.reply, beat)

    def _deliver(self, now: int) -> float:
        queue, router = self._queue, self._router
        messages, size_left = TURN_MESSAGES, TURN_BYTES
        checked: set[bytes] = set()
        behind, delay = 0, NOTHING
        runs = self._may_send_runs() and not self._groups.active
        alone = queue.has_one_reply()  # one client with several requests ahead, and no other
        while (request := self._first()) is not None:
            if messages <= 0 or size_left <= 0:
                delay = MORE
                break
            inbox = request.reply
            if inbox not in checked:
                if router.pending(inbox) > high_water(router):
                    behind, delay = behind + 1, LINK_RETRY
                    if self._groups.active or behind >= len(queue):
                        break
                    queue.next_turn()  # others do not wait for a client that does not read
                    continue
                checked.add(inbox)
            behind = 0
            if runs:
                most, room = request.remaining if alone else 1, request.bytes_left if request.max_bytes else -1
                given, size, spent = self._send_run(inbox, most, messages, room, now)
                messages -= spent
                size_left -= size
                if given:
                    if request.took(size, now, given):
                        queue.drop_first()
                    elif not alone:
                        queue.next_turn()
                    continue
            due = self._next_due(now)
            if isinstance(due, float):
                delay = due
                break
            record, again = due
            size = self._give(request, record, again, now)
            if size > 0:
                messages -= ALONE
                size_left -= size
        if messages < TURN_MESSAGES:
            self._note_turn(now)
        return delay

    def _give(self, request: Waiting, record: StoredRecord, again: int, now: int) -> int:
        """Deliver `record` to `request`, for the first time or again; returns its size, 0 when it was not delivered and
        the request is gone."""
        queue = self._queue
        if self._groups.needs_pin and not self._router.has_interest(request.reply):
            queue.drop_first()  # before it is pinned: a pinned client that is gone would block all others
            self._stream.requests_dropped += 1
            return 0
        reply, block, payload = self._render(record, again)
        if self._groups.active:
            self._groups.pinned(request, now, self._clock_ns())
            if self._groups.pin:
                block = with_pin(block, self._groups.pin)
        size = len(record.subject) + len(reply) + len(block) + len(payload)
        if 0 < request.max_bytes and request.bytes_left < size:
            queue.drop_first()
            self._send_status(request.reply, request.too_small())
            return 0
        if self._router.deliver(request.reply, record.subject, reply, block, payload) == 0:
            queue.drop_first()
            self._stream.requests_dropped += 1
            return 0
        self._sent(record, again, now)
        if request.took(size, now):
            queue.drop_first()
        else:
            queue.next_turn()
        return size
