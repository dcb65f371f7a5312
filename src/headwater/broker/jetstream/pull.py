"""A pull consumer at work: requests come in, messages go out, each requester in turn.

What goes first: what is due again, then what is new. To whom: the requests take turns. A requester that has vanished
loses its place, not a message. A requester whose link is far behind is waited for.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.broker.jetstream.consumer import Consumer
from headwater.broker.jetstream.delivering import (
    LINK_HIGH_WATER,
    LINK_RETRY,
    TURN_BYTES,
    TURN_MESSAGES,
    DeliveringConsumer,
)
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
from headwater.broker.router import Router
from headwater.errors import StorageError
from headwater.streams.log import StoredRecord

if TYPE_CHECKING:
    from headwater.broker.jetstream.stream import Stream


class PullConsumer(DeliveringConsumer):
    """Delivers to whoever asks."""

    def __init__(
        self,
        stream: "Stream",
        router: Router,
        name: str,
        created_ns: int,
        state: Consumer,
        clock_ns: Callable[[], int],
        on_idle: Callable[[DeliveringConsumer], None],
        on_change: Callable[[DeliveringConsumer], None],
    ) -> None:
        self._queue = RequestQueue()
        super().__init__(stream, router, name, created_ns, state, clock_ns, on_idle, on_change)
        self._arm()

    def on_request(self, reply: bytes, payload: bytes) -> None:
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

    def _has_taker(self) -> bool:
        return len(self._queue) > 0

    def _waiting(self) -> int:
        self._drop_vanished()
        return len(self._queue)

    def _next_event(self, now: int) -> list[int]:
        return [self._queue.next_deadline()]

    def _is_idle(self) -> bool:
        self._drop_vanished()
        return not self._queue

    def _busy_until(self) -> int:
        return max((deadline for _, deadline in self.state.unacked.values()), default=0)

    def _dismiss(self, status: bytes) -> None:
        for request in self._queue.take_all():
            self._send_status(request.reply, status)

    def _drop_vanished(self) -> None:
        if self._queue:
            self._queue.keep({reply for reply in self._queue.replies() if self._router.has_interest(reply)})

    # ── the pump ──

    def _pump(self) -> None:
        now = self._now()
        self.state.expire(now)
        for request in self._queue.take_expired(now):
            self._send_status(request.reply, request.timed_out())
        try:
            again = -1.0 if self._is_paused() else self._deliver(now)
        except StorageError as error:
            again = self._read_failed(error)
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
        alone = queue.has_one_reply()  # who asks ahead of need has several requests here, and no rival
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
            if self._may_send_runs():
                most = min(messages, request.remaining) if alone else 1
                given, size = self._send_run(inbox, most, request.bytes_left if request.max_bytes else -1, now)
                messages -= given
                size_left -= size
                if given:
                    if request.took(size, now, given):
                        queue.drop_first()
                    elif not alone:
                        queue.next_turn()
                    continue
            due = self._due(now)
            if due is None:
                if state.num_pending > 0 and state.may_deliver_new:
                    delay = 0
                break
            record, again = due
            if not again and (held := self._held_back(record, now)) > 0:
                delay = held
                break
            size = self._give(request, record, again, now)
            if size > 0:
                messages -= 1
                size_left -= size
        if messages < TURN_MESSAGES:
            self._note_turn(now)
        return delay

    def _give(self, request: Waiting, record: StoredRecord, again: int, now: int) -> int:
        """Deliver `record` to `request`, for the first time or again; returns its size, 0 when it was not delivered and
        the request is gone."""
        queue = self._queue
        reply, block, payload = self._render(record, again)
        size = len(record.subject) + len(reply) + len(block) + len(payload)
        if 0 < request.max_bytes and request.bytes_left < size:
            queue.drop_first()
            self._send_status(request.reply, request.too_small())
            return 0
        if self._router.deliver(request.reply, record.subject, reply, block, payload) == 0:
            queue.drop_first()
            return 0
        self._sent(record, again, now)
        if request.took(size, now):
            queue.drop_first()
        else:
            queue.next_turn()
        return size
