"""Delivery by a push consumer: sends messages to the deliver subject as soon as a client subscribes to it.

Without a subscriber the consumer waits until there is one, here or at another broker of the cluster (an ephemeral consumer
is deleted when its threshold has passed). A subscriber without permission for the message counts as none, and is tried
again every POLL. With a deliver group only members of that queue group count, and the router shares the messages among
them; without one only subscribers outside of any group count.

Flow control (`FlowControl`): when more than half of the window is unanswered, the client gets a status 100 with a reply
subject `$JS.FC.<stream>.<consumer>.<n>`, to which it replies when it has processed everything before; a full window stops
delivery. Every reply doubles the window, up to nats-server's limit. With ack policy `flow_control` the reply also
acknowledges, and a status is sent whenever there is nothing more to send, too.

Idle heartbeats go out when nothing else was sent for that long, and name the flow-control subject while its answer is
missing.
"""

import sys
from collections.abc import Callable

from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.jetstream.consumed_stream import ConsumedStream
from headwater.jetstream.delivering import (
    ALONE,
    MORE,
    NOTHING,
    TURN_BYTES,
    TURN_MESSAGES,
    DeliveringConsumer,
)
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.pull_requests import PUSH_BASED, flow_control_request, idle_heartbeat
from headwater.jetstream_state.consumer import Consumer
from headwater.jetstream_timing.slow_readers import LINK_RETRY, high_water
from headwater.model.header_block import lookup
from headwater.model.timestamps import SECOND

POLL = SECOND // 20  # ns between two tries while no subscriber may receive the message
FIRST_WINDOW = 64 << 10  # bytes
LARGEST_WINDOW = 32 << 20


class FlowControl:
    """The flow-control window of one consumer. `awaited`: the subject on which a reply is missing, b"" for none.
    `on_answer(header_block)` is called when the client has caught up."""

    def __init__(
        self, router: Router, heads: tuple[bytes, bytes, bytes], enabled: bool, on_answer: Callable[[bytes], None]
    ) -> None:
        short, long, self._head = heads
        self._router = router
        self._on_answer = on_answer
        self._window = FIRST_WINDOW
        self._out = 0  # unanswered bytes
        self._awaited_bytes = 0  # the part of these that the awaited reply covers
        self._requests = 0
        self.awaited = b""
        self._subscriptions: list[Subscription] = []
        if enabled:
            self._subscriptions = [router.subscribe_internal(head + b"*", self._on_flow) for head in (short, long)]

    @property
    def is_full(self) -> bool:
        """Whether the client has to reply before anything more is sent."""
        return bool(self._subscriptions) and self._out >= self._window

    @property
    def room(self) -> int:
        """Bytes that may be sent before the next request or reply is due; -1 for no limit."""
        if not self._subscriptions:
            return -1
        return max(0, (self._window if self.awaited else self._window // 2) - self._out)

    def note_sent(self, target: bytes, size: int) -> None:
        """Count bytes sent to `target`, and send it a request when they exceed half a window."""
        if not self._subscriptions:
            return
        self._out += size
        if self._out > self._window // 2:
            self.ask(target)

    def ask(self, target: bytes) -> None:
        """Send the client a flow-control request, unless one is unanswered."""
        if not self.awaited:
            self._requests += 1
            self.awaited = b"%b%d" % (self._head, self._requests)
            self._awaited_bytes = self._out
            self._router.publish(target, self.awaited, flow_control_request(), b"")

    def begin_anew(self) -> None:
        """Reset the window for a new subscriber."""
        self._out = self._awaited_bytes = 0
        self.awaited = b""

    def close(self) -> None:
        """Take no more answers."""
        for subscription in self._subscriptions:
            self._router.unsubscribe(subscription)

    def _on_flow(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        if subject != self.awaited:
            return
        self._out = max(0, self._out - self._awaited_bytes)
        self._window = min(self._window * 2, LARGEST_WINDOW)
        self.awaited = b""
        self._on_answer(header_block)


class PushConsumer(DeliveringConsumer):
    """Delivers to the configured deliver subject."""

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
        self._target = state.config.deliver_subject.encode()
        self._group = state.config.deliver_group.encode()
        self._started = False
        self._caught_up = False
        self._awaited = b""  # the deliver subject that we wait for a subscriber on
        self._beat_at = 0
        self._poll_at = 0
        self._free_at = 0  # rate limit: time of the next delivery
        heads = stream.domain.heads("FC", stream.name, name)
        self._flow = FlowControl(router, heads, state.config.flow_control, self._on_caught_up)
        super().__init__(stream, router, name, created_ns, state, clock_ns, on_idle, on_change)
        self._arm()

    def start(self) -> None:
        self._started = True
        self._set_beat(self._turns.now())
        self._turns.wake()

    @property
    def is_bound(self) -> bool:
        return self._router.has_listener(self._target, self._group)

    @property
    def has_interest(self) -> bool:
        return self._router.has_interest(self._target)

    def is_replaying(self, since_ns: int) -> bool:
        # Without a subscriber, too: async-nats subscribes once it has the answer.
        return self.created_ns > since_ns and not self._caught_up

    def on_request(self, reply: bytes, payload: bytes) -> None:
        if reply:
            self._send_status(reply, PUSH_BASED)

    def _has_taker(self) -> bool:
        return self._started and not self._turns.closed

    def _is_idle(self) -> bool:
        return not self.is_bound

    def _next_event(self, now: int) -> list[int]:
        return [self._beat_at, self._poll_at]

    def _dismiss(self, status: bytes) -> None:
        """Send nothing to the deliver subject, as nats-server: clients pass a status that they do not know to the
        application, as an empty message."""
        self._flow.close()
        self._await_subscriber(b"")

    def _configure(self, config: ConsumerConfig) -> None:
        super()._configure(config)
        if config.deliver_subject.encode() != self._target:
            self._flow.begin_anew()
            self._await_subscriber(b"")
        self._target = config.deliver_subject.encode()
        self._group = config.deliver_group.encode()

    def _await_subscriber(self, target: bytes) -> None:
        """Wake when a client subscribes to `target`; b"" cancels that."""
        if self._awaited != target:
            if self._awaited:
                self._router.awaited.remove(self._awaited, self._on_subscriber)
            if target:
                self._router.awaited.add(target, self._on_subscriber)
            self._awaited = target

    def _on_subscriber(self) -> None:
        self._awaited = b""
        self._turns.wake()

    # ── turns ──

    def _before_turn(self, now: int) -> None:
        self._poll_at = 0

    def _after_turn(self, now: int, again: float) -> None:
        if self._beat_at and now >= self._beat_at:
            if self.is_bound:
                state = self.state
                beat = idle_heartbeat(state.delivered_consumer, state.delivered_stream, self._flow.awaited)
                self._send_status(self._target, beat)
            self._set_beat(now)
        if self.config.ack_policy == "flow_control" and self.state.unacked and again != MORE and self.is_bound:
            self._flow.ask(self._target)

    def reset(self, sequence: int) -> int:
        self._flow.begin_anew()
        return super().reset(sequence)

    def _deliver(self, now: int) -> float:
        state, router, target = self.state, self._router, self._target
        if not self._started or not (state.num_pending > 0 or state.redeliveries):
            self._caught_up = self._caught_up or self._started
            return NOTHING
        if not self.is_bound:
            self._await_subscriber(target)
            return NOTHING
        if router.pending(target) > high_water(router):
            return LINK_RETRY
        messages, size_left, delay = TURN_MESSAGES, TURN_BYTES, NOTHING
        while True:
            if messages <= 0 or size_left <= 0:
                delay = MORE
                break
            if self._flow.is_full:
                break
            if now < self._free_at:
                delay = (self._free_at - now) / SECOND
                break
            if not self.config.rate_limit_bps and self._may_send_runs():
                given, size, spent = self._send_run(target, sys.maxsize, messages, self._flow.room, now)
                if given:
                    messages -= spent
                    size_left -= size
                    self._count_out(size, now)
                    continue
            due = self._next_due(now)
            if isinstance(due, float):
                delay = due
                break
            record, again = due
            reply, block, payload = self._render(record, again)
            if router.deliver(target, record.subject, reply, block, payload) == 0:
                self._poll_at = now + POLL
                break
            self._sent(record, again, now)
            messages -= ALONE
            size = len(record.subject) + len(reply) + len(block) + len(payload)
            size_left -= size
            self._count_out(size, now)
        if messages < TURN_MESSAGES:
            self._note_turn(now)
            self._set_beat(now)
        return delay

    def _count_out(self, size: int, now: int) -> None:
        if self.config.rate_limit_bps:
            self._free_at = max(now, self._free_at) + size * 8 * SECOND // self.config.rate_limit_bps
        self._flow.note_sent(self._target, size)

    def _on_caught_up(self, header_block: bytes) -> None:
        """The client has answered a flow-control request."""
        self._activity.at = self._turns.now()
        if self.config.ack_policy == "flow_control":
            last = lookup(header_block, b"Nats-Last-Stream") or b""
            count = lookup(header_block, b"Nats-Last-Consumer") or b""
            if last.isdigit() and count.isdigit() and max(len(last), len(count)) < 20:
                self._acks.settle_up_to(int(last), int(count))
        self._turns.wake()

    def _set_beat(self, now: int) -> None:
        self._beat_at = now + self.config.idle_heartbeat if self.config.idle_heartbeat else 0
