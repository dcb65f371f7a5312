"""Fast-ingest batch publishing (`jetstream_state/fast_batch.py`): stores each message at once and answers some of them.

    Capture ─▶ take ─▶ a gap, an error: answered in turn ─▶ staged ─▶ (durable) ─▶ every N-th, and the last, answered

An answer that reports how far the batch is stored is sent once those messages are durable: with the message that it
concerns, or in order among the acknowledgements. When a write fails, every batch with messages in that write ends with
the error.
"""

import asyncio
from collections.abc import Callable

from headwater.errors import JetStreamError, StorageError
from headwater.group_commit.committer import Committer
from headwater.jetstream_documents.api_errors import api_error, store_error
from headwater.jetstream_publishing.publish_answers import PublishAnswers
from headwater.jetstream_publishing.publish_rules import PublishRules
from headwater.jetstream_state.atomic_batch import BatchSoFar, is_supported
from headwater.jetstream_state.fast_batch import (
    COMMIT_WITHOUT,
    LOOK,
    PING,
    FastBatch,
    FastBatches,
    FastReply,
    error_answer,
    gap_answer,
    read_reply,
    steering_of,
)
from headwater.jetstream_state.items import Answer, Item
from headwater.jetstream_state.publish_checks import Admitted, Duplicate
from headwater.jetstream_state.sequence import sequence_of
from headwater.model.dedup import DuplicateWindow
from headwater.model.header_block import lookup
from headwater.model.header_edits import without_header
from headwater.model.timestamps import SECOND
from headwater.streams.log import Log
from headwater.version import API_LEVEL

_LEVEL = b"Nats-Required-Api-Level"
_EMPTY_BLOCK = b"NATS/1.0\r\n\r\n"
_KNOWN_ID = 10201
_NOT_STORED = JetStreamError(400, 0, "a ping, the end of a batch, and what comes behind a gap are not stored")


class _Alone(BatchSoFar):
    """The state of a batch of one: each message passes the checks of atomic batches on its own."""

    @staticmethod
    def check_headers(block: bytes) -> None:
        """Fast-ingest batches exclude no headers."""


class FastPublish:
    """The fast-ingest batches of one stream. `clocks`: the time of day, and a monotonic clock. `committer`: None until
    the stream is attached. `is_plain`: see `Capture`. `current`: the batch of the last message, None if it was refused;
    `Capture` stores the messages that simply continue it."""

    def __init__(
        self,
        log: Log,
        rules: PublishRules,
        answers: PublishAnswers,
        duplicates: DuplicateWindow,
        clocks: tuple[Callable[[], int], Callable[[], int]],
    ) -> None:
        self.committer: Committer | None = None
        self.is_plain = False
        self.current: FastBatch | None = None
        self.traced: Answer | None = None  # waits for what becomes of the message that `take` gets next
        self._log = log
        self._rules = rules
        self._answers = answers
        self._duplicates = duplicates
        self._clock_ns, self._ticks_ns = clocks
        self._open = FastBatches()
        self._timer: asyncio.TimerHandle | None = None
        self._commits: dict[FastBatch, Item] = {}  # commits that are not durable yet

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes, last_id: bytes) -> bytes:
        """Take a message whose reply subject names a batch. `last_id`: message id of the stream's last message; returns its
        new value."""
        config = self._rules.config
        refusing = b"" if config.no_ack else reply
        traced, self.traced = self.traced, None
        self.current = None
        try:
            self._rules.check_size(header_block, payload)
            if not config.allow_batched:
                raise api_error("fast_batch_disabled")
            wanted = read_reply(steering_of(reply, header_block))
            batch = self._open.find(wanted, self._ticks_ns())
            if level := lookup(header_block, _LEVEL) if header_block else None:
                if not is_supported(level, API_LEVEL):
                    self._open.forget(batch)
                    raise api_error("api_level")
                header_block = without_header(header_block, _LEVEL)
                header_block = b"" if header_block == _EMPTY_BLOCK else header_block
        except JetStreamError as error:
            self._answers.refuse(refusing, error, traced, self.committer)
            return last_id
        self.current = batch
        self._set_timer()
        if wanted.operation == PING:
            self._ping(batch, wanted, reply)
        elif not batch.committed and self._comes_in_turn(batch, wanted, reply):
            if wanted.operation == COMMIT_WITHOUT:
                batch.sequence -= 1
                self._end(batch, reply)
            else:
                if wanted.sequence == 1 and refusing and not wanted.commits:
                    self._answer(reply, batch.flow_answer())
                return self._store(batch, wanted, reply, (subject, header_block, payload), last_id, traced)
        if traced is not None:
            traced(_NOT_STORED)
        return last_id

    def stop(self) -> None:
        """Discard the open batches."""
        self._open.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def fail(self, first: int, last: int, refusal: JetStreamError) -> None:
        """The messages `first` to `last` of the stream could not be written: end the batches that contain any of them."""
        text = self._answers.refusal(refusal)
        for batch in self._open.with_messages(first, last):
            self._open.forget(batch)
            commit = self._commits.pop(batch, None)
            if commit is not None:
                commit.ack = text
            elif batch.last_reply:
                self._answers.confirm(batch.last_reply, text, None)

    # ── one message ──

    def _comes_in_turn(self, batch: FastBatch, wanted: FastReply, reply: bytes) -> bool:
        batch.last_reply = reply
        batch.sequence += 1
        if wanted.sequence == batch.sequence:
            return True
        self._answer(reply, gap_answer(batch.sequence, wanted.sequence))
        if batch.gap_ok and wanted.sequence > batch.sequence:
            batch.sequence = wanted.sequence
            return True
        batch.sequence -= 1
        self._end(batch, reply)
        return False

    def _ping(self, batch: FastBatch, wanted: FastReply, reply: bytes) -> None:
        if wanted.sequence > batch.sequence:
            self._answer(reply, gap_answer(batch.sequence + 1, wanted.sequence + 1))
            if not batch.gap_ok:
                self._end(batch, reply)
                return
            batch.sequence = wanted.sequence
            if answer := batch.due_answer(len(self._open)):
                self._answer_in_turn(batch, reply, answer)
                return
        self._answer(reply, batch.flow_answer())

    def _store(
        self,
        batch: FastBatch,
        wanted: FastReply,
        reply: bytes,
        message: tuple[bytes, bytes, bytes],
        last_id: bytes,
        traced: Answer | None,
    ) -> bytes:
        committer, now = self.committer, self._clock_ns()
        assert committer is not None
        subject = message[0]
        try:
            judged = self._judge(message, now, last_id)
            if isinstance(judged, Duplicate):
                self._pass_over(batch, wanted, reply, judged.sequence)
                if traced is not None:
                    traced(api_error("batch_duplicate"))
                return last_id
            offset = self._log.staging.stage(subject, judged.header_block, judged.payload, now)
        except (JetStreamError, StorageError) as error:
            self._refuse(batch, wanted, reply, error)
            if traced is not None:
                traced(error if isinstance(error, JetStreamError) else store_error(error))
            return last_id
        sequence, message_id = sequence_of(offset), judged.message_id
        self._rules.note_staged(subject, sequence, judged)
        if message_id:
            self._duplicates.remember(message_id, offset, self._ticks_ns())
        batch.note_stored(sequence)
        text = batch.end_answer(self._answers.head) if wanted.commits else batch.due_answer(len(self._open))
        answered = reply if text else b""
        item = Item(answered, text, subject, sequence, judged.size, message_id, judged.particulars, traced)
        if wanted.commits:
            batch.committed = True
            item.answer = lambda error: self._on_committed(batch, error, traced)
            self._commits[batch] = item
        committer.add(item, judged.size)
        return message_id

    def _judge(self, message: tuple[bytes, bytes, bytes], now: int, last_id: bytes) -> Admitted | Duplicate:
        subject, header_block, payload = message
        rules, committer = self._rules, self.committer
        assert committer is not None
        if self.is_plain and not header_block and not committer.full:
            return Admitted(b"", payload, b"", rules.size_of(subject, b"", payload), None)
        try:
            alone = _Alone(rules.last_sequence)
            return rules.judge(subject, rules.plain_block(header_block), payload, now, last_id, alone)
        except JetStreamError as error:
            if error.err_code != _KNOWN_ID:
                raise
            message_id = lookup(header_block, b"Nats-Msg-Id") or b""
            original = self._duplicates.seen(message_id, self._ticks_ns())
            return Duplicate(sequence_of(original) if original is not None else 0)

    def _pass_over(self, batch: FastBatch, wanted: FastReply, reply: bytes, original: int) -> None:
        """The stream has stored this message before."""
        if answer := batch.due_answer(len(self._open)):
            self._answer_in_turn(batch, reply, answer)
        if not wanted.commits:
            return
        if not batch.gap_ok and batch.sequence == 1:
            text = batch.end_answer(self._answers.head).partition(b',"batch"')[2]
            duplicate = self._answers.duplicate(original).removesuffix(b"}") + b',"batch"' + text
            self._open.forget(batch)
            self._answer(reply, duplicate)
            return
        self._end(batch, reply)

    def _refuse(self, batch: FastBatch, wanted: FastReply, reply: bytes, error: JetStreamError | StorageError) -> None:
        if not batch.gap_ok and batch.sequence == 1:
            self._open.forget(batch)
            self._answers.refuse(reply, error, None, self.committer)
            return
        self._answer(reply, error_answer(wanted.sequence, self._answers.count_refused(error)))
        if not batch.gap_ok or wanted.commits:
            batch.sequence -= 1
            self._end(batch, reply)

    # ── answers ──

    def _end(self, batch: FastBatch, reply: bytes) -> None:
        """End the batch with the messages stored so far."""
        batch.committed = True
        text = batch.end_answer(self._answers.head)
        if batch.stored <= self._log.end_offset:
            self._open.forget(batch)
            self._answer(reply, text)
            return
        item = self._item_in_turn(batch, reply, text)
        item.answer = lambda error: self._on_committed(batch)
        self._commits[batch] = item

    def _on_committed(
        self, batch: FastBatch, error: JetStreamError | None = None, traced: Answer | None = None
    ) -> None:
        self._commits.pop(batch, None)
        self._open.forget(batch)
        if traced is not None:
            traced(error)

    def _answer_in_turn(self, batch: FastBatch, reply: bytes, text: bytes) -> None:
        """Send `text` once the messages that the batch has stored so far are durable."""
        if batch.stored <= self._log.end_offset:
            self._answer(reply, text)
        else:
            self._item_in_turn(batch, reply, text)

    def _item_in_turn(self, batch: FastBatch, reply: bytes, text: bytes) -> Item:
        assert self.committer is not None
        item = Item(reply, text, b"", batch.stored, 0, b"")
        self.committer.add(item, 0)
        return item

    def _answer(self, reply: bytes, text: bytes) -> None:
        self._answers.reply_in_turn(self.committer, reply, text)

    def _set_timer(self) -> None:
        """Set the timer for the next look at the open batches."""
        if self._timer is None and (ends := self._open.next_end()):
            delay = min(LOOK, max(0, ends - self._ticks_ns())) / SECOND
            self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._open.drop_expired(self._ticks_ns())
        self._set_timer()
