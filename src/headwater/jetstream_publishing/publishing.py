"""Publishes into one stream: from the router into the log, and their answers once they are durable.

    Router ─▶ Capture ─(PublishRules)─▶ Staging, Committer ─▶ (durable) ─▶ Acknowledging ─▶ acks, `on_stored`
                  └─ refused, duplicate ─▶ PublishAnswers         └─ (failed) ─▶ refusals for the whole batch

Every publish with a reply subject gets an answer, in the order of the publishes, as from nats-server: a refusal with the
acks of those before it, a disk error as soon as it occurs, for each publish of the batch. Sequences of a failed batch are
not used again, so a stream may have gaps.

A duplicate whose original is still being written is answered together with the original, in its place among the acks,
because the write may still fail.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from headwater.errors import JetStreamError, StorageError
from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.group_commit.committer import Committer
from headwater.group_commit.writers import Writers
from headwater.jetstream_advisories.advisories import Place
from headwater.jetstream_documents.api_errors import api_error, store_error
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_publishing.acknowledging import Acknowledging
from headwater.jetstream_publishing.atomic_publish import AtomicPublish
from headwater.jetstream_publishing.capture import Capture
from headwater.jetstream_publishing.fast_publish import FastPublish
from headwater.jetstream_publishing.publish_answers import PublishAnswers
from headwater.jetstream_publishing.publish_rules import PublishRules
from headwater.jetstream_state.atomic_batch import BatchRoom, BatchSoFar
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.items import Answer, Item
from headwater.jetstream_state.publish_checks import Duplicate, lone_message_id
from headwater.jetstream_state.sequence import offset_of, sequence_of
from headwater.jetstream_state.stream_document import checkpoint, last_message_id
from headwater.jetstream_timing.schedule_timer import ScheduleTimer
from headwater.model.dedup import DuplicateWindow
from headwater.model.header_block import lookup

if TYPE_CHECKING:
    from headwater.message_tracing.message_trace import MessageTrace


_KNOWN_ID = 10201  # of a message in a batch
OnStored = Callable[[int, int, list[Item]], None]


class Publishing:
    """See the head of this module. `answers` counts refusals; `rules` decide what is refused; `router` and `committer`
    are None until the stream is attached. `on_stored`: see `Acknowledging`. `on_copies_lost(error)`: called when copies of
    another stream's messages could not be written; nothing staged after them is stored then. `positions()`: see
    `StreamDocument`."""

    def __init__(
        self,
        contents: Contents,
        consumers: Mapping[str, object],
        clock_ns: Callable[[], int],
        ticks_ns: Callable[[], int],
        place: Place,
        on_stored: OnStored,
    ) -> None:
        config, log = contents.config, contents.log
        self.answers = PublishAnswers(config.name, place.name, ticks_ns)
        self.duplicates = DuplicateWindow(config.duplicate_window)
        self.rules = PublishRules(contents, self.duplicates, ticks_ns)
        self.committer: Committer | None = None
        self._contents = contents
        self._log = log
        self._clocks = clocks = clock_ns, ticks_ns
        self._capture = Capture(log.staging, self.duplicates, clock_ns, ticks_ns, self.rules, self.answers)
        self._capture.batches = AtomicPublish(log, self.rules, self.answers, self.duplicates, clocks, place)
        self._capture.fast = FastPublish(log, self.rules, self.answers, self.duplicates, clocks)
        self._acknowledging = Acknowledging(contents, consumers, self.answers.head, on_stored)
        self.schedules = ScheduleTimer(contents, clock_ns, self._store_scheduled)
        self.router: Router | None = None
        self.on_copies_lost: Callable[[StorageError], None] | None = None
        self.positions: Callable[[], Mapping[str, tuple[int, str]]] = dict
        self._subscriptions: list[Subscription] = []
        self.choose_ways()

    # ── life ──

    def restore(self, ids: list[tuple[bytes, int, int]], last_message_id: bytes) -> None:
        """Restore the ids and the last id of a `StreamDocument`."""
        self.duplicates.load(ids, self._clocks[1](), -self.ticks_apart())
        self.last_message_id = last_message_id

    def ticks_apart(self) -> int:
        """The offset from the duplicate window's clock to the time of day, in ns."""
        return self._clocks[0]() - self._clocks[1]()

    @property
    def last_message_id(self) -> bytes:
        """The id of the last captured message, b"" when it had none."""
        return self._capture.last_message_id

    @last_message_id.setter
    def last_message_id(self, message_id: bytes) -> None:
        self._capture.last_message_id = message_id

    def attach(self, router: Router, writers: Writers | None) -> None:
        """Start capturing. Without writers, writes happen in the loop."""
        self.router = self.answers.router = self._acknowledging.router = router
        committer = Committer(self._log, writers, self._acknowledging.take, self._on_failed, self.answers.stats)
        committer.upkeep.document = self._checkpoint
        committer.answer_first = self._acknowledging.answer_first
        self._acknowledging.alone = getattr(asyncio.get_running_loop(), "finishes_alone", None)  # net.direct_loop
        self.committer = self._capture.committer = self.rules.unwritten = committer
        if self._capture.batches is not None:
            self._capture.batches.attach(router, committer)
        if self._capture.fast is not None:
            self._capture.fast.committer = committer
        self.choose_ways()
        self.subscribe()

    def _checkpoint(self) -> bytes:
        return checkpoint(self._log, self._contents, self.duplicates, self.ticks_apart(), self.positions())

    async def detach(self) -> None:
        """Stop capturing; staged messages are written and acknowledged."""
        self.unsubscribe()
        self.schedules.stop()
        if self._capture.batches is not None:
            self._capture.batches.stop()
        if self._capture.fast is not None:
            self._capture.fast.stop()
        if self.committer is not None:
            await self.committer.flush()
            self.committer.close()

    def configure(self, config: StreamConfig) -> None:
        """Apply a new configuration; called before the contents apply it."""
        self._capture.unjudged, self._capture.options = 0, None  # the slow paths are right for any configuration
        self._acknowledging.is_plain = False
        if self._capture.fast is not None:
            self._capture.fast.is_plain = False
            if not config.allow_batched:
                self._capture.fast.stop()
        resubscribe = config.subjects != self.rules.config.subjects
        self.duplicates.resize(config.duplicate_window, self._clocks[1]())
        self.rules.configure(config)
        if resubscribe and self.router is not None:
            self.unsubscribe()
            self.subscribe()

    def limit_room(
        self, has_room: Callable[[int], bool] | None, *, of_server: bool = False, batches: BatchRoom | None = None
    ) -> None:
        """Set `has_room(bytes)`, which decides before a message is stored whether the account (or the server) may hold
        it; None: no limit. `batches`: the limits of atomic batches."""
        if batches is not None and self._capture.batches is not None:
            self._capture.batches.open.use(batches)
        if of_server:
            self.rules.server_has_room = has_room
        else:
            self.rules.has_room = has_room
        self.choose_ways()

    def choose_ways(self) -> None:
        """Enable the fast paths that the configuration allows, once the contents have applied it too."""
        contents = self._contents
        plain = self.rules.is_plain
        self._capture.unjudged = 2 if plain else int(self.rules.takes_bare)
        self._capture.options = self.rules.options
        if self._capture.fast is not None:
            self._capture.fast.is_plain = plain
        self._acknowledging.subjects = contents.subjects if contents.only_counts else None
        simple = plain and self.rules.config.retention == "limits" and contents.only_counts
        self._acknowledging.is_plain = simple and not contents.is_limited

    @property
    def is_plain(self) -> bool:
        """Whether the configuration requires no check of a message without special headers, and no work after storing it."""
        return self._capture.unjudged == 2

    def subscribe(self) -> None:
        """Start capturing publishes on the stream's subjects."""
        assert self.router is not None
        for subject in self.rules.config.subjects:
            self._subscriptions.append(
                self.router.subscribe_internal(subject.encode(), self._capture.take, traced=self._take_traced)
            )

    def unsubscribe(self) -> None:
        """Stop capturing."""
        for subscription in self._subscriptions:
            assert self.router is not None
            self.router.unsubscribe(subscription)
        self._subscriptions.clear()

    # ── in ──

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """See `Capture.take`."""
        self._capture.take(subject, reply, header_block, payload)

    def check_together(self, messages: Sequence[tuple[bytes, bytes, bytes]]) -> None:
        """Judge messages that are to be appended next, in one turn: all would be stored, or are known by their ids. Raises
        JetStreamError for the first that is not."""
        rules, now = self.rules, self._clocks[0]()
        if rules.is_plain and all(not block or lone_message_id(block) is not None for _, block, _ in messages):
            rules.check_size(b"", b"")
            return
        so_far, last_id = BatchSoFar(rules.last_sequence), self.last_message_id
        for subject, block, payload in messages:
            subject = rules.moved(subject)
            try:
                judged = rules.judge(subject, block, payload, now, last_id, so_far)
            except JetStreamError as error:
                if error.err_code != _KNOWN_ID:
                    raise
                continue
            if isinstance(judged, Duplicate) or judged.message_id in so_far.message_ids:
                continue
            so_far.add(subject, judged.message_id, judged.size, judged.sum)
            so_far.note_schedule(subject, judged.header_block)
            last_id = judged.message_id

    def first_offset_of(self, blocks: Sequence[bytes]) -> int:
        """What `Stream.append` returns of messages with these header blocks."""
        known: int | None = None
        for block in blocks:
            message_id = lookup(block, b"Nats-Msg-Id") if b"Nats-Msg-Id" in block else None
            offset = self.duplicates.seen(message_id, self._clocks[1]()) if message_id else None
            if offset is None:
                return self._log.next_offset
            known = offset if known is None else known
        return self._log.next_offset if known is None else known

    def append(self, subject: bytes, header_block: bytes, payload: bytes, answer: Answer) -> None:
        """See `Stream.append`."""
        assert self.router is not None
        capture = self._capture
        capture.appending = subject, answer
        try:
            self.router.publish(subject, b"", header_block, payload)
        finally:
            missed, capture.appending = capture.appending is not None, None
        if missed:
            answer(api_error("store_failed", reason=f"stream does not capture {subject.decode('utf-8', 'replace')!r}"))

    def _take_traced(
        self, trace: "MessageTrace", subject: bytes, reply: bytes, header_block: bytes, payload: bytes
    ) -> None:
        """Take a traced message."""
        from headwater.jetstream_publishing.traced_publish import TracedPublish  # here: few messages are traced

        TracedPublish(self._capture, self.rules, self.duplicates, self._clocks).take(
            trace, (subject, reply, header_block, payload)
        )

    def store_own(self, subject: bytes, header_block: bytes) -> None:
        """Store a message that the stream itself creates, without payload; ignored once the stream has ended."""
        if self._subscriptions:
            self._capture.take(subject, b"", header_block, b"")

    def _store_scheduled(self, subject: bytes, header_block: bytes, payload: bytes, answer: Answer) -> None:
        try:
            sequence = self.copy(subject, header_block, payload, 0, 0)
        except JetStreamError as error:
            answer(error)
        except StorageError as error:
            answer(store_error(error))
        else:
            self.when_stored(sequence, answer)

    def copy(self, subject: bytes, header_block: bytes, payload: bytes, timestamp_ns: int, sequence: int) -> int:
        """See `Copying.copy`."""
        now, committer, log = self._clocks[0](), self.committer, self._log
        assert committer is not None
        subject = self.rules.moved(subject)
        admitted = self.rules.judge_copy(subject, header_block, payload, timestamp_ns or now)
        if sequence:
            if sequence < sequence_of(log.next_offset):
                raise StorageError("a message with a higher sequence is stored already", value=sequence)
            if sequence > sequence_of(log.next_offset):
                log.staging.skip_to(offset_of(sequence))
        elif admitted.message_id and self.rules.config.duplicate_window:
            ticks = self._clocks[1]()
            if self.duplicates.seen(admitted.message_id, ticks) is not None:
                return 0
            self.duplicates.remember(admitted.message_id, log.next_offset, ticks)
        offset = log.stage(subject, admitted.header_block, admitted.payload, timestamp_ns or now)
        self.rules.note_staged(subject, sequence_of(offset), admitted)
        self.last_message_id = admitted.message_id
        item = Item(b"", b"", subject, sequence_of(offset), admitted.size, admitted.message_id, admitted.particulars)
        committer.add(item, admitted.size)
        return sequence_of(offset)

    @property
    def copy_plain(self) -> Callable[[bytes, bytes, bytes, int, int], int]:
        """See `Capture.copy`."""
        return self._capture.copy

    def when_stored(self, sequence: int, answer: Answer) -> None:
        """Call `answer` once the copy with this sequence is durable, now or later, or lost."""
        if sequence <= self._log.end_offset:
            answer(None)
        else:
            assert self.committer is not None
            self.committer.add(Item(b"", b"", b"", sequence, 0, b"", None, answer), 0)

    # ── out ──

    def _on_failed(self, items: list[Item], error: StorageError) -> None:
        self.answers.refused_writes.note(len(items), error)
        assert self.committer is not None
        answers, refusal = self.answers, store_error(error)
        later_too = self.rules.config.allow_msg_counter or self.on_copies_lost is not None
        if later_too or self.rules.rests_on_unwritten():
            # Later messages build on the lost ones, expected them, or follow them in the origin.
            items = items + self.committer.give_up_waiting()
        lost = {item.sequence for item in items if item.subject}
        self.rules.note_done(items, stored=False)
        if lost and self._capture.fast is not None:
            self._capture.fast.fail(min(lost), max(lost), refusal)
        for item in items:
            if item.message_id:
                self.duplicates.withdraw(item.message_id)
        for item in items:
            if item.subject or item.sequence in lost:
                answers.refuse(item.reply, refusal, item.answer)
            else:  # a refusal, or the answer to a duplicate of an earlier, durable message
                answers.confirm_item(item)
        ack = answers.refusal(refusal)
        for item in self.committer.waiting:
            if not item.subject and item.sequence in lost:
                item.ack = ack
                if item.answer is not None:
                    item.answer = partial(_refuse_later, item.answer, refusal)
        if self.on_copies_lost is not None:
            if self.rules.config.mirror is not None:
                self._log.staging.rewind(self._log.end_offset)
            self.on_copies_lost(error)
        staged = (item.message_id for item in reversed(self.committer.waiting) if item.subject)
        self._capture.last_message_id = next(staged, last_message_id(self._log))


def _refuse_later(answer: Answer, refusal: JetStreamError, _: JetStreamError | None) -> None:
    """The answer to a duplicate whose original was lost, at its turn among the acks."""
    answer(refusal)
