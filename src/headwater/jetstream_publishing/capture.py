# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Takes publishes into a stream, from the router to the committer: judges and stages them, and keeps their reply subjects.

Hot and compiled: `take` is the router's callback and runs for every message on the stream's subjects. A message is staged
unchanged when neither its headers nor the stream's configuration require a check; one whose options need no check but their
own (`jetstream_state/publish_options.py`), with what they ask for. All others go through `PublishRules.judge` first.
"""

from collections.abc import Callable

import cython

if cython.compiled:
    from cython.cimports.headwater.group_commit.clock import Clock
    from cython.cimports.headwater.group_commit.committer import Committer
    from cython.cimports.headwater.jetstream_state.fast_batch import FastBatch
    from cython.cimports.headwater.jetstream_state.items import Item, Particulars, unacknowledged, unchecked
    from cython.cimports.headwater.jetstream_state.publish_checks import has_status, lone_message_id
    from cython.cimports.headwater.jetstream_state.publish_options import PublishOptions
    from cython.cimports.headwater.jetstream_state.subject_table import memory_size, stored_size
    from cython.cimports.headwater.model.dedup import DuplicateWindow
    from cython.cimports.headwater.streams.staging import Staging
else:
    from headwater.group_commit.clock import Clock
    from headwater.group_commit.committer import Committer
    from headwater.jetstream_state.fast_batch import FastBatch
    from headwater.jetstream_state.items import Item, Particulars, unacknowledged, unchecked
    from headwater.jetstream_state.publish_checks import has_status, lone_message_id
    from headwater.jetstream_state.publish_options import PublishOptions
    from headwater.jetstream_state.subject_table import memory_size, stored_size
    from headwater.model.dedup import DuplicateWindow
    from headwater.streams.staging import Staging

from headwater.errors import JetStreamError, StorageError
from headwater.jetstream_publishing.atomic_publish import AtomicPublish
from headwater.jetstream_publishing.fast_publish import FastPublish
from headwater.jetstream_publishing.publish_answers import PublishAnswers
from headwater.jetstream_publishing.publish_rules import PublishRules
from headwater.jetstream_state.atomic_batch import names_batch
from headwater.jetstream_state.fast_batch import LENT, steering_of
from headwater.jetstream_state.fast_batch import SUFFIX as FAST_SUFFIX
from headwater.jetstream_state.items import Answer
from headwater.jetstream_state.publish_checks import MAX_HEADER_BLOCK, Admitted, Duplicate, naming

_MAX_HEADER_BLOCK: cython.Py_ssize_t = MAX_HEADER_BLOCK


class Capture:
    """`duplicates`: the ids in the duplicate window, timed by the monotonic clock `ticks_ns`. `unjudged`: what the
    configuration requires no check of: 2 for messages without special headers, 1 for those without any, 0 for none.
    `options`: what reads the headers of other messages; None where the configuration has each judged.
    `last_message_id`: of the last message, b"" when it had none. `batches`: takes the messages of atomic batches, `fast`
    those of fast ones. `appending`: subject and callback of the message that another face of the stream is publishing in
    this very call (`Stream.append`)."""

    def __init__(
        self,
        staging: Staging,
        duplicates: DuplicateWindow,
        clock_ns: Callable[[], int],
        ticks_ns: Callable[[], int],
        rules: PublishRules,
        answers: PublishAnswers,
    ) -> None:
        self._staging = staging
        self._duplicates = duplicates
        self._clock = Clock(clock_ns)
        self._ticks = Clock(ticks_ns)
        self._in_memory = rules.config.storage == "memory"
        self._rules = rules
        self._answers = answers
        self._named = naming(rules.config.name)
        self.committer: Committer | None = None
        self.unjudged = 0
        self.options: PublishOptions | None = None
        self.last_message_id = b""
        self.batches: AtomicPublish | None = None
        self.fast: FastPublish | None = None
        self.appending: tuple[bytes, Answer] | None = None

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """Store the message and answer when it is durable."""
        committer: Committer | None = self.committer
        assert committer is not None
        in_batch = reply.endswith(FAST_SUFFIX) or (reply.startswith(LENT) and steering_of(reply, header_block))
        if in_batch and self.fast is not None and self.appending is None:
            if not self._append_fast(committer, subject, reply, header_block, payload):
                subject = self._rules.moved(subject)
                self.last_message_id = self.fast.take(subject, reply, header_block, payload, self.last_message_id)
            return
        now: cython.longlong = self._clock.now()
        size: cython.Py_ssize_t = self._size_of(subject, header_block, payload)
        message_id: bytes = b""
        answer: Answer | None = None
        judged: Admitted | Duplicate | None = None
        as_it_is: cython.bint = self.unjudged >= 2 - (not header_block)
        as_it_is = as_it_is and not committer.full and self.appending is None
        if as_it_is and header_block:
            alone: bytes | None = (
                lone_message_id(header_block, self._named) if len(header_block) <= _MAX_HEADER_BLOCK else None
            )
            as_it_is = alone is not None and (
                not alone or self._duplicates.claim(alone, self._staging.following(), self._ticks.now())
            )
            message_id = alone or b""
        offset: cython.longlong
        if not as_it_is and self._take_with_options(committer, subject, reply, header_block, payload):
            return
        try:
            if not as_it_is:
                answer = self._expected_answer(subject)
                if self._rules.config.no_ack:
                    reply = b""
                subject = self._rules.moved(subject)
                if self.batches is not None and answer is None and names_batch(header_block):
                    self.last_message_id = self.batches.take(
                        subject, reply, header_block, payload, self.last_message_id
                    )
                    return
                judged = self._rules.judge(subject, header_block, payload, now, self.last_message_id)
                if isinstance(judged, Duplicate):
                    self._answer_duplicate(committer, reply, judged.sequence, answer)
                    return
                header_block, payload, message_id, size = judged[:4]
            offset = self._staging.stage(subject, header_block, payload, now)
        except (JetStreamError, StorageError) as error:
            if as_it_is and message_id:
                self._duplicates.withdraw(message_id)
            self._refuse(committer, reply, error, answer)
            return
        item: Item = unchecked(reply, subject, offset + 1, size, message_id)  # as sequence_of, without the call
        if judged is not None and isinstance(judged, Admitted):
            self._rules.note_staged(subject, offset + 1, judged)
            item.particulars, item.answer = judged.particulars, answer
            if judged.tail:
                item.ack = b"%b%d%b" % (self._answers.head, offset + 1, judged.tail)
        self.last_message_id = message_id
        if message_id and not as_it_is:
            self._duplicates.remember(message_id, offset, self._ticks.now())
        committer.add(item, size)

    def _take_with_options(
        self, committer: Committer, subject: bytes, reply: bytes, header_block: bytes, payload: bytes
    ) -> cython.bint:
        """Store a message that nothing but its own options concerns, as `PublishRules.judge` would have it. False: it is
        that one's to judge."""
        options: PublishOptions | None = self.options
        if options is None or committer.full or self.appending is not None or len(header_block) > _MAX_HEADER_BLOCK:
            return False
        if not options.read(header_block, payload):
            return False
        message_id: bytes = options.message_id
        total = None
        text: bytes = b""
        if options.counts:
            total = options.sums.total(subject, options.increment)
            if total is None:
                return False
            text = b"%d" % total
            payload = b'{"val":"' + text + b'"}'
        if message_id and not self._duplicates.claim(message_id, self._staging.following(), self._ticks.now()):
            return False
        size: cython.Py_ssize_t = self._size_of(subject, header_block, payload)
        now: cython.longlong = self._clock.now()
        offset: cython.longlong
        try:
            offset = self._staging.stage(subject, header_block, payload, now)
        except StorageError:
            if message_id:
                self._duplicates.withdraw(message_id)
            return False  # `take` is refused as well, and reports why
        item: Item = unchecked(reply, subject, offset + 1, size, message_id)
        if total is not None:
            options.sums.note_total(subject, offset + 1, total)
            item.ack = b'%b%d,"val":"%b"}' % (self._answers.head, offset + 1, text)
        if options.republishes or options.ttl_ns or options.rollup:
            item.particulars = Particulars(options.rollup, header_block, payload, now, options.ttl_ns)
        self.last_message_id = message_id
        committer.add(item, size)
        return True

    def _append_fast(
        self, committer: Committer, subject: bytes, reply: bytes, header_block: bytes, payload: bytes
    ) -> cython.bint:
        """Store a message that is the next of the fast-ingest batch that the one before it belonged to, and like any other.
        False: `FastPublish.take` is to take it."""
        assert self.fast is not None
        batch: FastBatch | None = self.fast.current
        if batch is None or self.unjudged != 2 or committer.full or not batch.is_next(reply):
            return False
        if header_block and (
            len(header_block) > _MAX_HEADER_BLOCK or lone_message_id(header_block, self._named) != b""
        ):
            return False
        sequence: cython.Py_ssize_t = self._stage_unchanged(
            committer, subject, header_block, payload, self._clock.now()
        )
        if sequence == 0:
            return False
        batch.append(reply, sequence)
        return True

    def copy(
        self,
        subject: bytes,
        header_block: bytes,
        payload: bytes,
        timestamp_ns: cython.longlong,
        sequence: cython.longlong,
    ) -> cython.Py_ssize_t:
        """Store a message of another stream whose headers demand nothing, at `sequence` and with its time if they are not 0.
        Returns its sequence; 0 where `Publishing.copy` is to store or refuse it."""
        committer: Committer | None = self.committer
        if committer is None or self.unjudged != 2 or committer.full or has_status(header_block):
            return 0
        if len(header_block) > _MAX_HEADER_BLOCK or (sequence and sequence != self._staging.end_offset + 1):
            return 0
        return self._stage_unchanged(committer, subject, header_block, payload, timestamp_ns or self._clock.now())

    def _stage_unchanged(
        self, committer: Committer, subject: bytes, header_block: bytes, payload: bytes, timestamp_ns: cython.longlong
    ) -> cython.Py_ssize_t:
        """Stage a message that gets no acknowledgement of its own. Returns its sequence; 0 where staging refuses it: the way
        of all other messages refuses it as well, and reports why."""
        size: cython.Py_ssize_t = self._size_of(subject, header_block, payload)
        offset: cython.longlong
        try:
            offset = self._staging.stage(subject, header_block, payload, timestamp_ns)
        except StorageError:
            return 0
        self.last_message_id = b""
        committer.add(unacknowledged(subject, offset + 1, size), size)
        return offset + 1

    def _size_of(self, subject: bytes, header_block: bytes, payload: bytes) -> cython.Py_ssize_t:
        if self._in_memory:
            return memory_size(subject, header_block, payload)
        return stored_size(subject, header_block, payload)

    def _expected_answer(self, subject: bytes) -> Answer | None:
        """The callback of the message that is being captured, if `Stream.append` is publishing it. A subscriber that runs
        earlier may publish into this stream too, but not on the same subject: that would be a cycle without end."""
        appending = self.appending
        if appending is None or appending[0] != subject:
            return None
        self.appending = None
        return appending[1]

    def _refuse(
        self, committer: Committer, reply: bytes, error: JetStreamError | StorageError, answer: Answer | None
    ) -> None:
        """Refuse a message; a client's behind the answers to those before it. What another stream republishes has no reply
        subject: its refusal would be in no answer and no report."""
        answered = bool(reply) or answer is not None
        self._answers.refuse(reply, error, answer, committer if answer is None else None, answered=answered)

    def _answer_duplicate(self, committer: Committer, reply: bytes, sequence: int, answer: Answer | None) -> None:
        """Answer together with the original if that is not durable, for it may yet be lost; else as a refusal."""
        ack: bytes = self._answers.duplicate(sequence)
        if not committer.keeps_places and self._rules.is_durable(sequence):
            self._answers.confirm(reply, ack, answer)
        else:
            committer.add(Item(reply, ack, b"", sequence, 0, b"", None, answer), 0)
