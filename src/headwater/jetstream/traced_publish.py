"""Handles a traced publish (ADR-41): reports whether the stream stores the message, and if not, why.

The message is stored with `Nats-Trace-Dest: trace disabled`, so that its deliveries start no traces. A trace-only
message is checked but neither stored nor answered, and its message id does not enter the duplicate window.
"""

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.errors import JetStreamError, StorageError
from headwater.jetstream.capture import Capture
from headwater.jetstream.publish_rules import Duplicate, PublishRules
from headwater.jetstream_state.atomic_batch import names_batch
from headwater.jetstream_state.fast_batch import SUFFIX as FAST_SUFFIX
from headwater.model.header_block import lookup
from headwater.model.header_edits import with_header
from headwater.model.message_trace import DESTINATION, DISABLED
from headwater.streams.dedup import DuplicateWindow

if TYPE_CHECKING:
    from headwater.message_tracing.message_trace import MessageTrace, StreamStep

DUPLICATE = "msgid is duplicate"
_WRONG_SEQUENCE, _WRONG_LAST_ID = 10071, 10070
_OF_SUBJECT = b"Nats-Expected-Last-Subject-Sequence"


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
            self._judge(step, subject, header_block, payload)
            return
        stored = with_header(header_block, DESTINATION, DISABLED, in_place=True)
        if names_batch(header_block) or reply.endswith(FAST_SUFFIX):
            # One answer covers many messages of a batch; errors of single messages are in that answer.
            step.stored(self._rules.moved(subject))
            self._capture.take(subject, reply, stored, payload)
            return
        known = self._is_duplicate(header_block)

        def answer(error: JetStreamError | None) -> None:
            if error is not None:
                step.refused(reason_of(error, header_block))
            elif known:
                step.refused(DUPLICATE)
            else:
                step.stored(self._rules.moved(subject), wanted=self._is_wanted())

        self._capture.appending = subject, answer
        try:
            self._capture.take(subject, reply, stored, payload)
        finally:
            self._capture.appending = None

    def _judge(self, step: "StreamStep", subject: bytes, header_block: bytes, payload: bytes) -> None:
        moved = self._rules.moved(subject)
        try:
            judged = self._rules.judge(moved, header_block, payload, self._clocks[0](), self._capture.last_message_id)
        except (JetStreamError, StorageError) as error:
            step.refused(reason_of(error, header_block))
            return
        if isinstance(judged, Duplicate):
            step.refused(DUPLICATE)
        else:
            step.stored(moved, wanted=self._is_wanted())

    def _is_duplicate(self, header_block: bytes) -> bool:
        message_id = lookup(header_block, b"Nats-Msg-Id")
        return bool(message_id) and self._duplicates.seen(message_id or b"", self._clocks[1]()) is not None

    def _is_wanted(self) -> bool:
        return self._rules.config.retention != "interest"


def reason_of(error: JetStreamError | StorageError, header_block: bytes) -> str:
    """Why a message is not stored, in nats-server's words."""
    if not isinstance(error, JetStreamError):
        return str(error)
    said = error.description
    if error.err_code == _WRONG_LAST_ID:
        expected = lookup(header_block, b"Nats-Expected-Last-Msg-Id") or b""
        return (
            f"last msgid mismatch: {_quoted(expected.decode('utf-8', 'replace'))} vs {_quoted(said.partition(': ')[2])}"
        )
    actual = re.search(r"\d+$", said)
    if error.err_code == _WRONG_SEQUENCE and actual:
        of_subject = lookup(header_block, _OF_SUBJECT)
        expected = of_subject or lookup(header_block, b"Nats-Expected-Last-Sequence") or b""
        what = "last sequence by subject" if of_subject else "last sequence"
        return f"{what} mismatch: {expected.decode('ascii', 'replace')} vs {actual[0]}"
    return said


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
