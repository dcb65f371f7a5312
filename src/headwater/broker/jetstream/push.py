"""A push consumer at work: messages go to the deliver subject as soon as somebody listens there.

Nobody listening is no error: the consumer waits, looking again every POLL (an ephemeral one is deleted when its threshold
has passed). With a deliver group the listeners share the messages as a queue group does, without this file's doing.

Flow control: while more than half of a window is out without an answer, the client is asked, by a status 100 with a reply
subject `$JS.FC.<stream>.<consumer>.<n>`, to say when it has come so far; a full window stops the deliveries. Every answer
doubles the window, up to what nats-server allows. Idle heartbeats go out whenever nothing else did for so long, and name
the flow-control subject in question while the consumer is stalled.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.broker.jetstream.api_types import ConsumerConfig
from headwater.broker.jetstream.consumer import Consumer
from headwater.broker.jetstream.delivering import (
    LINK_HIGH_WATER,
    LINK_RETRY,
    TURN_BYTES,
    TURN_MESSAGES,
    DeliveringConsumer,
)
from headwater.broker.jetstream.pull_requests import PUSH_BASED, flow_control_request, idle_heartbeat
from headwater.broker.jetstream.timestamps import SECOND
from headwater.broker.router import Router
from headwater.broker.sublist import Subscription
from headwater.errors import StorageError

if TYPE_CHECKING:
    from headwater.broker.jetstream.stream import Stream

POLL = SECOND // 20  # ns between two looks for a listener
FIRST_WINDOW = 64 << 10  # bytes
LARGEST_WINDOW = 32 << 20


class PushConsumer(DeliveringConsumer):
    """Delivers to its subject."""

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
        self._target = state.config.deliver_subject.encode()
        self._started = False
        self._beat_at = 0
        self._poll_at = 0
        self._window = FIRST_WINDOW
        self._out = 0  # bytes that were sent and not answered for
        self._asked = b""  # the flow-control subject whose answer is awaited
        self._asked_for = 0
        self._asks = 0
        self._free_at = 0  # rate limit: nothing goes out before
        self._flow_head = f"$JS.FC.{stream.name}.{name}.".encode()
        self._flow: Subscription | None = None
        super().__init__(stream, router, name, created_ns, state, clock_ns, on_idle, on_change)
        if state.config.flow_control:
            self._flow = router.subscribe_internal(self._flow_head + b"*", self._on_flow)
        self._arm()

    def start(self) -> None:
        self._started = True
        self._set_beat(self._now())
        self._wake()

    @property
    def is_bound(self) -> bool:
        return self._router.has_interest(self._target)

    def on_request(self, reply: bytes, payload: bytes) -> None:
        if reply:
            self._send_status(reply, PUSH_BASED)

    def _has_taker(self) -> bool:
        return self._started and not self._closed

    def _is_idle(self) -> bool:
        return not self.is_bound

    def _next_event(self, now: int) -> list[int]:
        return [self._beat_at, self._poll_at]

    def _dismiss(self, status: bytes) -> None:
        if self._flow is not None:
            self._router.unsubscribe(self._flow)
        if self.config.idle_heartbeat and self.is_bound:
            self._send_status(self._target, status)

    def _take_on(self, config: ConsumerConfig) -> None:
        super()._take_on(config)
        self._target = config.deliver_subject.encode()

    # ── the pump ──

    def _pump(self) -> None:
        now = self._now()
        self.state.expire(now)
        self._poll_at = 0
        try:
            again = -1.0 if self._is_paused() else self._deliver(now)
        except StorageError as error:
            again = self._read_failed(error)
        if again == 0:
            self._wake()
        if self._beat_at and now >= self._beat_at:
            if self.is_bound:
                beat = idle_heartbeat(self.state.delivered_consumer, self.state.delivered_stream, self._asked)
                self._send_status(self._target, beat)
            self._set_beat(now)
        self._arm(again)

    def _deliver(self, now: int) -> float:
        """One turn; what it returns is that of `PullConsumer._deliver`."""
        state, router, target = self.state, self._router, self._target
        if not self._started or not (state.num_pending > 0 or state.redeliveries):
            return -1.0
        if not router.has_interest(target):
            self._poll_at = now + POLL
            return -1.0
        if router.pending(target) > LINK_HIGH_WATER:
            return LINK_RETRY
        messages, size_left, delay = TURN_MESSAGES, TURN_BYTES, -1.0
        while True:
            if messages <= 0 or size_left <= 0:
                delay = 0
                break
            if self._flow is not None and self._out >= self._window:
                break
            if now < self._free_at:
                delay = (self._free_at - now) / SECOND
                break
            if not self.config.rate_limit_bps and self._may_send_runs():
                given, size = self._send_run(target, messages, self._room(), now)
                if given:
                    messages -= given
                    size_left -= size
                    self._count_out(size, now)
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
            reply, block, payload = self._render(record, again)
            if router.deliver(target, record.subject, reply, block, payload) == 0:
                self._poll_at = now + POLL
                break
            self._sent(record, again, now)
            messages -= 1
            size = len(record.subject) + len(reply) + len(block) + len(payload)
            size_left -= size
            self._count_out(size, now)
        if messages < TURN_MESSAGES:
            self._note_turn(now)
            self._set_beat(now)
        return delay

    def _room(self) -> int:
        """Bytes that may go out before the client is asked how far it has come, or has answered; -1: any number."""
        if self._flow is None:
            return -1
        return max(0, (self._window if self._asked else self._window // 2) - self._out)

    def _count_out(self, size: int, now: int) -> None:
        if self.config.rate_limit_bps:
            self._free_at = max(now, self._free_at) + size * 8 * SECOND // self.config.rate_limit_bps
        if self._flow is None:
            return
        self._out += size
        if not self._asked and self._out > self._window // 2:
            self._asks += 1
            self._asked = b"%b%d" % (self._flow_head, self._asks)
            self._asked_for = self._out
            self._router.publish(self._target, self._asked, flow_control_request(), b"")

    def _on_flow(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """The client has come as far as it was asked about."""
        if subject != self._asked:
            return
        self._out = max(0, self._out - self._asked_for)
        self._window = min(self._window * 2, LARGEST_WINDOW)
        self._asked = b""
        self._active_at = self._now()
        self._wake()

    def _set_beat(self, now: int) -> None:
        self._beat_at = now + self.config.idle_heartbeat if self.config.idle_heartbeat else 0
