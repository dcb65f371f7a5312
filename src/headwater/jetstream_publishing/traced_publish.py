"""Handles a traced publish (ADR-41): reports whether the stream stores the message, and if not, why.

The message is stored with `Nats-Trace-Dest: trace disabled`, so that its deliveries start no traces. A trace-only
message is checked but neither stored nor answered, and its message id does not enter the duplicate window.

A message of an atomic batch is reported when its batch has ended, so that no report says more than is so; nats-server
reports only the one that commits.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.errors import JetStreamError, StorageError
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_publishing.atomic_publish import AtomicPublish
from headwater.jetstream_publishing.capture import Capture
from headwater.jetstream_publishing.fast_publish import FastPublish
from headwater.jetstream_publishing.publish_rules import PublishRules
from headwater.jetstream_state.atomic_batch import BatchSoFar, names_batch
from headwater.jetstream_state.fast_batch import steering_of
from headwater.jetstream_state.publish_checks import Duplicate
from headwater.jetstream_state.trace_reasons import DUPLICATE, reason_of
from headwater.model.dedup import DuplicateWindow
from headwater.model.header_block import lookup
from headwater.model.header_edits import with_header
from headwater.model.message_trace import DESTINATION, DISABLED

if TYPE_CHECKING:
    from headwater.message_tracing.message_trace import MessageTrace, StreamStep

_STORE_FAILED = 10077


class TracedPublish:
    """The traced publishes of one stream; the arguments are those of `Publishing`."""

    def __init__(
        self,
        capture: Capture,
        rules: PublishRules,
        duplicates: DuplicateWindow,
        clocks: tuple[Callable[[], int], Callable[[], int]],
    ) -> None:
        self._capture = capture
        self._rules = rules
        self._duplicates = duplicates
        self._clocks = clocks

    def take(self, trace: "MessageTrace", message: tuple[bytes, bytes, bytes, bytes]) -> None:
        """Store `message` (subject, reply, header block, payload), or for a trace-only one report whether it would be
        stored."""
        step = trace.stream(self._rules.config.name)
        subject, reply, header_block, payload = message
        if trace.only:
            self._judge(step, message)
            return
        stored = with_header(header_block, DESTINATION, DISABLED, in_place=True)
        known = self._is_duplicate(header_block)

        def answer(error: JetStreamError | None) -> None:
            if error is not None:
                self._refused(step, error, message)
            elif known:
                step.refused(DUPLICATE)
            else:
                step.stored(self._rules.moved(subject), wanted=self._is_wanted())

        batches: FastPublish | AtomicPublish | None = None
        if steering_of(reply, header_block):
            batches = self._capture.fast
        elif names_batch(header_block):
            batches = self._capture.batches
        if batches is not None:
            known = False
            batches.traced = answer
            self._capture.take(subject, reply, stored, payload)
            return
        self._capture.appending = subject, answer
        try:
            self._capture.take(subject, reply, stored, payload)
        finally:
            self._capture.appending = None

    def _judge(self, step: "StreamStep", message: tuple[bytes, bytes, bytes, bytes]) -> None:
        subject, reply, header_block, payload = message
        rules, in_batch = self._rules, not steering_of(reply, header_block) and names_batch(header_block)
        moved = rules.moved(subject)
        try:
            if in_batch and not rules.config.allow_atomic:
                raise api_error("atomic_publish_disabled")
            alone = BatchSoFar(rules.last_sequence) if in_batch else None  # not what its batch would make of it
            judged = rules.judge(moved, header_block, payload, self._clocks[0](), self._capture.last_message_id, alone)
        except (JetStreamError, StorageError) as error:
            self._refused(step, error, message)
            return
        if isinstance(judged, Duplicate):
            step.refused(DUPLICATE)
        else:
            step.stored(moved, wanted=self._is_wanted())

    def _refused(
        self, step: "StreamStep", error: JetStreamError | StorageError, message: tuple[bytes, bytes, bytes, bytes]
    ) -> None:
        subject, reply, header_block, _ = message
        if isinstance(error, JetStreamError) and error.err_code == _STORE_FAILED:
            step.refused(error.description, self._rules.moved(subject))
            return
        in_batch = bool(steering_of(reply, header_block)) or names_batch(header_block)
        step.refused(reason_of(error, header_block, in_batch=in_batch))

    def _is_duplicate(self, header_block: bytes) -> bool:
        message_id = lookup(header_block, b"Nats-Msg-Id")
        return bool(message_id) and self._duplicates.seen(message_id or b"", self._clocks[1]()) is not None

    def _is_wanted(self) -> bool:
        return self._rules.config.retention != "interest"
