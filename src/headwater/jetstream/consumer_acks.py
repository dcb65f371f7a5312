"""The acknowledgements of one consumer: the subjects on which they arrive, and the effect of each kind.

Most just settle a message and are handled by `ack_intake.py`; all others by `Acks` itself.
"""

import logging
import random
from collections.abc import Callable
from typing import Protocol, assert_never

from headwater.errors import StorageError
from headwater.exchange.router import Router
from headwater.jetstream.ack_intake import AckIntake
from headwater.jetstream.consumed_stream import ConsumedStream
from headwater.jetstream.journal_writer import refusal_block
from headwater.jetstream.state_keeper import KeptConsumer
from headwater.jetstream_advisories.advisories import Advisories
from headwater.jetstream_documents.acks import parse_ack
from headwater.jetstream_documents.consumer_rules import sampled_percent
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_state.ack_subject import AckSubject, deliveries_of
from headwater.jetstream_timing.turns import Turns

logger = logging.getLogger(__name__)


class AckedConsumer(KeptConsumer, Protocol):
    """What acknowledgements need from their consumer."""

    @property
    def is_kept(self) -> bool:
        """Whether acknowledgements are made durable."""
        ...

    def on_request(self, reply: bytes, payload: bytes) -> None:
        """The MSG.NEXT that came with an acknowledgement."""
        ...

    def on_progress(self) -> None:
        """The state has changed: messages may be due for redelivery, or no longer be held back."""
        ...


class Activity:
    """When a consumer was last used (`at`, nanoseconds of the loop's clock), when it last delivered and when it last got an
    acknowledgement (time of day in ns; 0: never)."""

    def __init__(self, now: int) -> None:
        self.at = now
        self.delivered_ns = 0
        self.acked_ns = 0


class Acks:
    """`head`: the prefix of the ack subjects in deliveries. `intake`: the fast path for most acknowledgements."""

    def __init__(
        self,
        stream: ConsumedStream,
        router: Router,
        consumer: AckedConsumer,
        turns: Turns,
        activity: Activity,
        clock_ns: Callable[[], int],
    ) -> None:
        self._stream = stream
        self._router = router
        self._consumer = consumer
        self._turns = turns
        self._activity = activity
        self._clock_ns = clock_ns
        self.advisories = Advisories(router, clock_ns, stream.domain)
        self._where = AckSubject()
        short, long, self.head = stream.domain.heads("ACK", stream.name, consumer.name)
        self._no_listener_at = -1  # the generation of the router's interest in which the advisory had no listener
        self.intake = AckIntake(
            stream, consumer.state, short, self._on_taken, self._has_listener, self._on_ack, turns.loop
        )
        self._subscriptions = []
        if consumer.state.config.ack_policy != "none":
            self._subscriptions = [
                router.subscribe_internal(short + b">", self.intake.take),
                router.subscribe_internal(long + b"*.*.*.*.>", self._on_ack),
            ]

    def configure(self, config: ConsumerConfig) -> None:
        """Take from a configuration whether acknowledgements are sampled."""
        self.intake.sampled = config.ack_policy == "explicit" and sampled_percent(config.sample_freq) > 0

    def close(self) -> None:
        """Take no more acknowledgements."""
        self.intake.closed = True
        for subscription in self._subscriptions:
            self._router.unsubscribe(subscription)

    def _on_taken(self, settled: bool) -> None:
        """The intake has taken acknowledgements since its last call. `settled`: some have settled a message."""
        self._activity.at = self._turns.now()
        if settled:
            self._activity.acked_ns = self._clock_ns()
        self._consumer.on_progress()

    def _has_listener(self) -> bool:
        """Whether the advisory of a -NAK has a listener. Without one there is none until the interest changes."""
        router = self._router
        if router.forwarding is None and router.sublist.generation == self._no_listener_at:
            return False
        wanted = self.advisories.is_wanted(f"CONSUMER.MSG_NAKED.{self._stream.name}.{self._consumer.name}")
        self._no_listener_at = -1 if wanted else router.sublist.generation
        return wanted

    def _on_ack(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        where = self._where
        if not where.read(subject) or self._turns.closed:
            return
        consumer, state, now = self._consumer, self._consumer.state, self._turns.now()
        self._activity.at = now
        ack = parse_ack(payload)
        if ack.kind == "term" or (ack.kind == "nak" and where.stream_sequence in state.unacked):
            reason = payload[len(b"+TERM") :].strip().decode("utf-8", "replace") if ack.kind == "term" else None
            delivery = where.consumer_sequence, where.stream_sequence, deliveries_of(subject)
            self.advisories.refused(self._stream.name, consumer.name, delivery, reason)
        if ack.kind in ("ack", "next") and self.intake.sampled and where.stream_sequence in state.unacked:
            self._sample((where.consumer_sequence, where.stream_sequence, deliveries_of(subject)), now)
        match ack.kind:
            case "ack" | "term" | "next":
                self._activity.acked_ns = self._clock_ns()
                try:
                    self._settle(where.stream_sequence, where.consumer_sequence)
                except StorageError as error:  # of a read-only log, as the log and /healthz say: it removes no message
                    if reply:  # with `next` nothing is delivered either: the request ends with this status
                        self._router.publish(reply, b"", refusal_block(error), b"")
                    consumer.on_progress()
                    return
            case "nak":
                state.nak(where.stream_sequence, ack.delay, now)
            case "progress":
                state.progress(where.stream_sequence, now)
            case "unknown":
                pass
            case _:
                assert_never(ack.kind)
        if ack.kind == "next":
            consumer.on_request(reply, ack.request)
        elif reply and ack.kind in ("ack", "term") and not state.was_delivered(where.stream_sequence):
            # It will come (again), after a crash or a reset: to confirm would be a promise that is not kept. nats-server
            # answers nothing either, so the client runs into its timeout.
            logger.warning("ack_not_confirmed consumer=%s sequence=%d", consumer.name, where.stream_sequence)
        elif reply and ack.kind in ("ack", "term") and consumer.is_kept and self._stream.keeper is not None:
            self._stream.keeper.confirm(consumer, reply)
        elif reply:
            self._router.publish(reply, b"", b"", b"")
        consumer.on_progress()

    def _sample(self, delivery: tuple[int, int, int], now: int) -> None:
        """Send the metric of an acknowledgement, with the probability that `sample_freq` gives."""
        state = self._consumer.state
        if random.random() * 100 < sampled_percent(state.config.sample_freq):
            waited = state.waited(delivery[1], now)
            self.advisories.acknowledged(self._stream.name, self._consumer.name, delivery, waited)

    def settle_up_to(self, sequence: int, consumer_sequence: int) -> None:
        """The client has answered a flow-control request: it has received everything up to here."""
        self._settle(sequence, consumer_sequence)
        self._on_taken(settled=True)

    def _settle(self, sequence: int, consumer_sequence: int) -> None:
        state = self._consumer.state
        if self._stream.config.retention == "limits":
            state.ack(sequence, consumer_sequence)
            return
        before = list(state.unacked) if state.config.ack_policy in ("all", "flow_control") else [sequence]
        known = [number for number in before if number in state.unacked]
        state.ack(sequence, consumer_sequence)
        for number in known:
            if number not in state.unacked:
                self._settled(number)

    def _settled(self, sequence: int) -> None:
        record = self._stream.contents.load(sequence)
        if record is not None:
            self._stream.on_settled(record)
