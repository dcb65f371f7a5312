"""Runs one copy: requests a consumer from the origin, stores its messages in the stream, and starts again after a fault.

    ask ─▶ (answer) ─▶ follow ─▶ take, take, … ─▶ (lost, silent, refused by this stream) ─▶ ask
     └─ no subscriber: as soon as there is one, or a little later

A flow-control request is answered once everything before it is on disk here. So the origin's window bounds the messages
in flight, and an origin that keeps messages until they are acknowledged drops none that could be lost here.

The start position comes from the stream itself, never from a number that could be ahead of it. Decided elsewhere: the
requests (origin.py), the order of messages (following.py), the times of retries (patience.py).
"""

import logging
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Protocol

from headwater.errors import JetStreamError, StorageError
from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.jetstream_documents.api_errors import api_error, store_error
from headwater.jetstream_documents.document import ApiError
from headwater.jetstream_documents.streams import SourceInfo
from headwater.jetstream_sources.following import CONTROL, Delivery, Following, Intake, read_delivery
from headwater.jetstream_sources.next_step import NextStep
from headwater.jetstream_sources.origin import OTHER_IDENTITY, UNKNOWN_TO_IT, Answered, Origin, read_answer
from headwater.jetstream_sources.patience import ANSWER, LOOK, Patience
from headwater.jetstream_sources.progress import Progress
from headwater.jetstream_sources.rewriting import Rewriting
from headwater.jetstream_sources.stamp import Position, cleaned
from headwater.jetstream_state.items import Answer
from headwater.model.header_block import lookup
from headwater.model.short_hash import LENGTH, short_name

logger = logging.getLogger(__name__)


class CopyTarget(Protocol):
    """The stream that copies."""

    @property
    def name(self) -> str:
        """The stream's name."""
        ...

    @property
    def last_sequence(self) -> int:
        """The sequence of the last durable message."""
        ...

    def copy(self, subject: bytes, header_block: bytes, payload: bytes, timestamp_ns: int, sequence: int) -> int:
        """Store a message of another stream; returns its sequence, 0 for one stored before. Raises JetStreamError and
        StorageError."""
        ...

    def begin_behind(self, sequence: int) -> None:
        """The origin's messages up to this sequence are not copied."""
        ...

    @property
    def copy_plain(self) -> Callable[[bytes, bytes, bytes, int, int], int]:
        """`copy` for a message whose headers the stream need not look at; returns 0 where it must be judged by `copy`."""
        ...

    def when_stored(self, sequence: int, answer: Answer) -> None:
        """Call `answer` once the copy with this sequence is durable, or lost."""
        ...


class Copier:
    """One mirror or source. `origin`: builds the requests to the origin. `position`: the last message of the origin
    that is durable here, None for none."""

    def __init__(self, origin: Origin, target: CopyTarget, router: Router, position: Position | None) -> None:
        self.origin = origin
        self._target = target
        self._router = router
        self._next = NextStep(router)
        self._patience = Patience(random.random)
        self._progress = Progress(position)
        self._rewriting = Rewriting(origin.source)
        self._followed: tuple[Following, Intake] | None = None
        self._subscriptions: list[Subscription] = []
        self._is_durable = False  # the origin's consumer
        self._lag = 0
        self._error: ApiError | None = None
        self._flow_request = b""
        self._plain = False
        self._closed = False

    # ── what others see ──

    @property
    def index(self) -> str:
        """The index name of the source."""
        return self.origin.index

    @property
    def position(self) -> Position | None:
        """The last message of the origin that is durable here; None for none."""
        return self._progress.position(self._target.last_sequence)

    def info(self) -> SourceInfo:
        """The source's entry in STREAM.INFO."""
        source = self.origin.source
        self._note_intake()
        return SourceInfo(
            name=source.name,
            external=source.external,
            lag=self._lag,
            seq=0 if self.origin.is_mirror else self._progress.taken,
            active=self._patience.active_ns(self._next.now()),
            error=self._error,
            filter_subject=source.filter_subject,
            subject_transforms=source.subject_transforms,
        )

    # ── life ──

    def start(self) -> None:
        """Start copying, or start again after the last copied message."""
        self._leave()
        if not self._closed:
            self._ask()

    def stop(self, *, for_good: bool = False) -> None:
        """Stop copying. `for_good`: the origin may delete the consumer."""
        self._leave()
        self._closed = True
        if for_good and self._is_durable and self.origin.source.consumer is None:
            request = self.origin.deletion()
            self._router.publish(request.subject, b"", request.header_block, request.payload)

    def hurry(self) -> None:
        """The origin was just created: start again at once."""
        if not self._closed:
            self._leave()
            self._next.later(0, self.start)

    def on_lost(self, error: StorageError) -> None:
        """Staged messages could not be written: fetch them again."""
        self._progress.forget_staged(self._target.last_sequence)
        self._fail(_document(store_error(error)))

    def _leave(self) -> None:
        for subscription in self._subscriptions:
            self._router.unsubscribe(subscription)
        self._subscriptions.clear()
        self._note_intake()
        self._followed = None
        self._flow_request = b""
        self._next.cancel()

    def _fail(self, error: ApiError | None, awaited: bytes = b"") -> None:
        """Try again later, or as soon as `awaited` has a subscriber; `error`: shown in INFO until then."""
        if error is not None and error != self._error:
            names = self._target.name, self.origin.source.name
            logger.warning(
                "copy_stopped stream=%s origin=%s error=%d reason=%s", *names, error.err_code, error.description
            )
        self._error = error or self._error
        self._leave()
        if not self._closed:
            self._next.later(self._patience.next_try(), self.start, awaited)

    # ── asking ──

    def _ask(self) -> None:
        request = self.origin.request(self._progress.after(), short_name(os.urandom(LENGTH)), plain=self._plain)
        if not self._router.has_interest(request.subject):
            self._fail(self._setup_error(f"there is no subscriber for {self.origin.api}"), request.subject)
            return
        inbox = f"$JSC.R.{short_name(os.urandom(LENGTH))}".encode()
        self._subscriptions.append(self._router.subscribe_internal(inbox, self._on_answer))
        self._next.later(ANSWER, self._on_no_answer)
        self._router.publish(request.subject, inbox, request.header_block, request.payload)

    def _setup_error(self, reason: str) -> ApiError:
        kind = "mirror" if self.origin.is_mirror else "source"
        return _document(api_error(f"{kind}_consumer_setup", reason=reason))

    def _on_no_answer(self) -> None:
        self._fail(self._setup_error(f"no answer from {self.origin.api} within {ANSWER:g} s"))

    def _on_answer(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        if header_block.startswith(b"NATS/1.0 503"):
            self._fail(self._setup_error(f"there is no responder for {self.origin.api}"))
            return
        answered = read_answer(header_block, payload)
        if answered is None:
            return
        error = answered.error
        if error is None:
            self._follow(answered)
        elif error.err_code == OTHER_IDENTITY:
            logger.warning("origin_made_anew stream=%s origin=%s", self._target.name, self.origin.source.name)
            self._progress.begin_anew()
            self._next.later(0, self.start)
        elif error.err_code in UNKNOWN_TO_IT and not self._plain:
            self._plain = True
            self._next.later(0, self.start)
        else:
            self._fail(error)

    def _follow(self, answered: Answered) -> None:
        origin = self.origin
        if origin.source.consumer is not None and answered.ack_policy != "flow_control":
            kind = "mirror" if origin.is_mirror else "source"
            self._fail(_document(api_error(f"{kind}_consumer_needs_flow_acks")))
            return
        self._leave()
        self._patience.begin(self._next.now())
        if origin.is_mirror:
            self._target.begin_behind(answered.delivered)
        following = Following(answered.consumer, self._progress.taken)
        self._is_durable = answered.is_durable
        self._error = self._mixture(answered.identity)
        identity = self._progress.identity = answered.identity or self._progress.identity
        marks = None if origin.is_mirror else self._rewriting.marks(identity)
        moved = self._rewriting.subject if self._rewriting.moves else None
        now, others = self._next.now, self._on_message
        intake = Intake(following, self._progress, self._target.copy_plain, marks, moved, now, others)
        self._followed = following, intake
        self._lag = answered.pending
        self._next.later(LOOK, self._look)
        self._subscriptions.append(self._router.subscribe_internal(answered.deliver_subject.encode(), intake.receive))

    def _mixture(self, identity: str) -> ApiError | None:
        """A mirror keeps the origin's sequences, so it goes on behind what it has of a former stream of that name, as
        nats-server's does: the error says what it lacks of the new one, until it starts again."""
        known, taken = self._progress.identity, self._progress.taken
        if not self.origin.is_mirror or not taken or not known or identity in ("", known):
            return None
        names = self._target.name, self.origin.source.name
        logger.warning("origin_made_anew stream=%s origin=%s not_copied=1-%d", *names, taken)
        return self._setup_error(f"the origin was deleted and made anew: of this one, 1 to {taken} are not copied")

    def _note_intake(self) -> None:
        """What the intake has taken since the last time is a sign of life, and tells how far behind the copy is."""
        if self._followed is not None:
            following, intake = self._followed
            if intake.taken:
                self._patience.note_life(intake.received_at)
                self._lag, intake.taken = following.pending, 0

    def _look(self) -> None:
        """Check whether the origin has fallen silent."""
        self._note_intake()
        if self._patience.is_silent(self._next.now()):
            self.start()
        else:
            self._patience.succeeded()
            self._next.later(LOOK, self._look)

    # ── following ──

    def _on_message(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """A message that the intake leaves to us."""
        if self._followed is None:
            return
        following, _ = self._followed
        self._note_intake()
        self._patience.note_life(self._next.now())
        delivery = read_delivery(reply)
        if delivery is None:  # a message that an older server has stored may begin like a control
            if header_block.startswith(CONTROL) and not payload:
                self._on_control(following, reply, header_block)
            return
        verdict = following.judge(delivery)
        if verdict == "lost":
            self._fail(None)
        elif verdict == "take":
            following.learn(reply)
            self._take(delivery, delivery.shown or subject, header_block, payload)

    def _on_control(self, following: Following, reply: bytes, header_block: bytes) -> None:
        if not reply and not following.is_in_step(header_block):
            self._fail(None)
            return
        flow_reply = reply or lookup(header_block, b"Nats-Consumer-Stalled") or b""
        if flow_reply and flow_reply != self._flow_request:
            self._flow_request = flow_reply
            answer = partial(self._answer_flow, flow_reply, following.flow_answer())
            self._target.when_stored(self._progress.last_here, answer)

    def _answer_flow(self, flow_reply: bytes, answer: bytes, error: JetStreamError | None) -> None:
        if error is None and not self._closed:
            if self._flow_request == flow_reply:
                self._flow_request = b""
            self._progress.position(self._target.last_sequence)
            self._router.publish(flow_reply, b"", answer, b"")

    def _take(self, delivery: Delivery, subject: bytes, header_block: bytes, payload: bytes) -> None:
        timestamp = sequence = 0
        if self.origin.is_mirror:
            block = cleaned(header_block) if header_block else b""
            timestamp, sequence = delivery.timestamp_ns, delivery.sequence
        else:
            block = self._rewriting.stamped(header_block, delivery.sequence, subject, self._progress.identity)
        try:
            stored = self._target.copy(self._rewriting.subject(subject), block, payload, timestamp, sequence)
        except JetStreamError as error:
            self._refused(delivery, error)
        except StorageError as error:
            self._refused(delivery, store_error(error))
        else:
            self._lag = delivery.pending
            if stored:
                self._progress.note(stored, delivery.sequence)

    def _refused(self, delivery: Delivery, error: JetStreamError) -> None:
        self._lag = delivery.pending + 1
        self._fail(_document(error))


def _document(error: JetStreamError) -> ApiError:
    return ApiError(code=error.code, err_code=error.err_code, description=error.description)
