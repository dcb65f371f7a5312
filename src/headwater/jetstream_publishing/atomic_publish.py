"""Atomic batch publishing: keeps a batch's messages until the commit, then checks and stages them all at once.

    Capture ─▶ take ─▶ kept; an empty answer ─▶ ... ─▶ commit ─▶ judged in order ─▶ one batch of the log ─▶ one answer

The decisions are in `jetstream_state/atomic_batch.py`; this file has the answers, the advisories and the timer.
"""

import asyncio
from collections.abc import Callable

import msgspec

from headwater.errors import JetStreamError, StorageError
from headwater.exchange.router import Router
from headwater.group_commit.committer import Committer
from headwater.jetstream_advisories.advisories import Advisories, Place
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_publishing.publish_answers import PublishAnswers
from headwater.jetstream_publishing.publish_rules import PublishRules
from headwater.jetstream_state.atomic_batch import BATCH_ID, Abandoned, BatchSoFar, Committed, Message, OpenBatches
from headwater.jetstream_state.items import Answer, Item, all_of
from headwater.jetstream_state.publish_checks import MAX_HEADER_BLOCK, Admitted, Duplicate, of_batch_alone
from headwater.jetstream_state.sequence import sequence_of
from headwater.model.dedup import DuplicateWindow
from headwater.model.header_block import lookup
from headwater.model.timestamps import SECOND
from headwater.streams.log import Log
from headwater.version import API_LEVEL


class AtomicPublish:
    """The atomic batches of one stream. `clocks`: the time of day, and a monotonic clock."""

    def __init__(
        self,
        log: Log,
        rules: PublishRules,
        answers: PublishAnswers,
        duplicates: DuplicateWindow,
        clocks: tuple[Callable[[], int], Callable[[], int]],
        place: Place,
    ) -> None:
        self._committer: Committer | None = None
        self._advisories: Advisories | None = None
        self._log = log
        self._rules = rules
        self._answers = answers
        self._duplicates = duplicates
        self._clock_ns, self._ticks_ns = clocks
        self._place = place
        self.open = OpenBatches(API_LEVEL)
        self.traced: Answer | None = None  # waits for what becomes of the message that `take` gets next
        self._waiting: dict[bytes, list[Answer]] = {}  # the same of messages of open batches
        self._timer: asyncio.TimerHandle | None = None

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes, last_id: bytes) -> bytes:
        """Take a message of a batch. `last_id`: message id of the stream's last message; returns its new value."""
        config = self._rules.config
        if config.no_ack:
            reply = b""
        traced, self.traced = self.traced, None
        batch_id = lookup(header_block, BATCH_ID) or b""
        if traced is not None:
            self._waiting.setdefault(batch_id, []).append(traced)
        refusal: JetStreamError | StorageError
        try:
            self._rules.check_open(header_block, payload)
            if not config.allow_atomic:
                raise api_error("atomic_publish_disabled")
            plain = of_batch_alone(header_block) is not None and len(header_block) <= MAX_HEADER_BLOCK
            block = header_block if plain else self._rules.plain_block(header_block)
            message = Message(subject, block, payload, plain)
            committed = self.open.take(message, self._ticks_ns())
            self._set_timer()
            if committed is not None:
                return self._commit(committed, reply, last_id)
            if reply:
                self._answers.reply_in_turn(self._committer, reply, b"")
            return last_id
        except Abandoned as abandoned:
            self._advise(abandoned.batch_id, abandoned.reason)
            refusal = abandoned.refusal
        except (JetStreamError, StorageError) as error:
            refusal = error
        self._answers.refuse(reply, refusal, self._concerned(batch_id, traced), self._committer)
        return last_id

    def attach(self, router: Router, committer: Committer) -> None:
        """Connect to the router and the committer: batches can be committed from now on."""
        self._committer = committer
        self._advisories = Advisories(router, self._clock_ns, self._place)

    def stop(self) -> None:
        """Drop the batches that were not committed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.open.leave()
        for batch_id in tuple(self._waiting):
            self._end_traces(batch_id, api_error("batch_incomplete"))

    def _concerned(self, batch_id: bytes, traced: Answer | None) -> Answer | None:
        """The traces of a refused message, and of its batch if that has ended with it."""
        if batch_id not in self.open:
            return all_of(self._waiting.pop(batch_id, []))
        if traced is not None:
            self._waiting[batch_id].remove(traced)
        return traced

    def _end_traces(self, batch_id: bytes, error: JetStreamError | None) -> None:
        for traced in self._waiting.pop(batch_id, ()):
            traced(error)

    def _commit(self, batch: Committed, reply: bytes, last_id: bytes) -> bytes:
        committer, now = self._committer, self._clock_ns()
        assert committer is not None
        admitted = self._judge(batch, now, last_id)
        records = [(m.subject, a.header_block, a.payload) for m, a in zip(batch.messages, admitted, strict=True)]
        offset = self._log.staging.stage_together(records, now)
        last = len(admitted) - 1
        waiting = self._waiting.pop(batch.batch_id, [])
        for number, (message, one) in enumerate(zip(batch.messages, admitted, strict=True)):
            sequence = sequence_of(offset + number)
            self._rules.note_staged(message.subject, sequence, one)
            if one.message_id:
                self._duplicates.remember(one.message_id, offset + number, self._ticks_ns())
            answered = reply if number == last else b""
            ack = self._ack(batch, sequence) if answered else b""
            answer = all_of(waiting) if number == last else None
            item = Item(answered, ack, message.subject, sequence, one.size, one.message_id, one.particulars, answer)
            committer.add(item, one.size)
        return admitted[last].message_id

    def _judge(self, batch: Committed, now: int, last_id: bytes) -> list[Admitted]:
        rules = self._rules
        so_far = BatchSoFar(rules.last_sequence)
        admitted: list[Admitted] = []
        if rules.is_plain and all(message.is_plain for message in batch.messages):
            rules.check_size(b"", b"")
            return [
                Admitted(block, payload, b"", rules.size_of(subject, block, payload), None)
                for subject, block, payload, _ in batch.messages
            ]
        for subject, block, payload, _ in batch.messages:
            judged = rules.judge(subject, block, payload, now, last_id, so_far)
            if isinstance(judged, Duplicate):
                raise api_error("batch_duplicate")
            so_far.add(subject, judged.message_id, judged.size, judged.sum)
            so_far.note_schedule(subject, judged.header_block)
            admitted.append(judged)
            last_id = judged.message_id
        return admitted

    def _ack(self, batch: Committed, sequence: int) -> bytes:
        batch_id = msgspec.json.encode(batch.batch_id.decode("utf-8", "replace"))
        return b'%b%d,"batch":%b,"count":%d}' % (self._answers.head, sequence, batch_id, len(batch.messages))

    def _advise(self, batch_id: bytes, reason: str) -> None:
        if self._advisories is not None:
            self._advisories.batch_abandoned(self._rules.config.name, batch_id, reason)

    def _set_timer(self) -> None:
        """Set the timer for the next batch to expire; messages that arrive meanwhile do not reset it."""
        if self._timer is None and (ends := self.open.next_end()):
            delay = max(0, ends - self._ticks_ns()) / SECOND
            self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        for batch_id in self.open.expired(self._ticks_ns()):
            self._advise(batch_id, "timeout")
            self._end_traces(batch_id, api_error("batch_incomplete"))
        self._set_timer()
