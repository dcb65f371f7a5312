"""Decides whether a stream accepts a publish: checks its headers, duplicates, and the limits of stream and account.

    full, sealed, too large ─▶ headers before the id ─▶ duplicate? ─▶ headers after the id ─▶ room

`Capture` calls `judge` for the messages that need a check. The order of the checks is nats-server's, so that a publish with
two faults gets the same answer from both.

With "discard new" and a limit, messages that have a sequence but are not durable yet count as stored: `note_staged` and
`note_done` keep that sum.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_documents.source_rules import transform_of
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.atomic_batch import BatchSoFar
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.counters import Counted, Sums, added, check_is_addition, sourced
from headwater.jetstream_state.expiry import with_ttl_of_at_least
from headwater.jetstream_state.items import Item, ItemsBySubject, Particulars
from headwater.jetstream_state.publish_checks import (
    MAX_HEADER_BLOCK,
    Admitted,
    Allowed,
    Demands,
    Duplicate,
    Unwritten,
    check_after_id,
    check_before_id,
    is_ttl,
    lone_message_id,
    rollup_of,
    without_status,
)
from headwater.jetstream_state.publish_options import PublishOptions
from headwater.jetstream_state.schedule_checks import ScheduleRules
from headwater.jetstream_state.schedules import is_schedule, with_rollup
from headwater.jetstream_state.sequence import offset_of, sequence_of
from headwater.model.dedup import DuplicateWindow
from headwater.model.header_block import lookup
from headwater.model.request_info import without_request_info

if TYPE_CHECKING:
    from headwater.jetstream_sources.republish import Republisher


_EXPECTS = b"Nats-Expected-Last-"  # begins the headers that name a message before
_CAPPED = {
    "memory": "streams in memory have reached the server's max_memory_store",
    "file": "streams on disk have reached the server's max_file_store",
}


class PublishRules:
    """The rules of one stream. `ticks_ns`: the monotonic clock of `duplicates`. `has_room(bytes)`: whether the account may
    store that much more; None without a limit. `server_has_room`: the same for the server. `unwritten`: set when the
    stream is attached."""

    def __init__(self, contents: Contents, duplicates: DuplicateWindow, ticks_ns: Callable[[], int]) -> None:
        self.has_room: Callable[[int], bool] | None = None
        self.server_has_room: Callable[[int], bool] | None = None
        self.unwritten: Unwritten | None = None
        self._contents = contents
        self._duplicates = duplicates
        self._ticks_ns = ticks_ns
        self.sums = Sums(lambda subject: contents.subjects.last(subject), contents.load)
        self._by_subject = ItemsBySubject()
        self._in_flight = 0, 0  # messages with a sequence that are not durable yet, and their bytes
        self._follower = 0  # sequence of the newest message that expected one which was not durable yet
        self.configure(contents.config)

    def configure(self, config: StreamConfig) -> None:
        """Apply a new configuration."""
        self.config = config
        bounded = config.discard_new_per_subject or config.max_msgs > 0 or config.max_bytes > 0
        self._refuses_new = config.discard == "new" and bounded  # or there is nothing that "new" could refuse
        self.republisher = _republisher(config)
        self._allowed = Allowed(config.allow_rollup_hdrs, config.allow_msg_ttl, config.allow_msg_counter)
        self.transform = transform_of(config.subject_transform) if config.subject_transform is not None else None
        unwritten = self.items()
        self._in_flight = _weighed(unwritten)

    @property
    def is_plain(self) -> bool:
        """Whether the configuration requires no check of a message without headers."""
        config = self.config
        special = config.allow_rollup_hdrs or config.allow_msg_ttl
        return self.takes_bare and not special

    @property
    def takes_bare(self) -> bool:
        """Whether the configuration requires no check of a message without a header block."""
        config = self.config
        special = config.republish is not None or config.allow_msg_counter or self.transform is not None
        has_bounds = self.has_room is not None or self.server_has_room is not None
        limited = self._refuses_new or config.max_msg_size > 0 or has_bounds
        return not config.no_ack and not limited and not special and not config.sealed

    @property
    def options(self) -> PublishOptions | None:
        """What reads the headers of publishes that need no other judgement; None where the configuration has each judged."""
        config = self.config
        bounded = self.has_room is not None or self.server_has_room is not None or config.max_msg_size > 0
        raises_ttl = config.subject_delete_marker_ttl and config.max_msgs_per_subject != 1
        judged = config.no_ack or config.sealed or config.allow_msg_schedules or self.transform is not None
        return None if bounded or raises_ttl or judged or self._refuses_new else PublishOptions(config, self.sums)

    @property
    def last_sequence(self) -> int:
        """The last assigned sequence; that of the last durable message while nothing is being written."""
        busy = self.unwritten is not None and self.unwritten.busy
        log = self._contents.log
        return log.next_offset if busy else log.end_offset

    def plain_block(self, header_block: bytes) -> bytes:
        """The header block as stored, as far as that depends on the message's headers alone."""
        config, header_block = self.config, without_request_info(without_status(header_block))
        if header_block and config.subject_delete_marker_ttl and config.max_msgs_per_subject != 1:
            return with_ttl_of_at_least(header_block, config.subject_delete_marker_ttl)
        return header_block

    def judge(
        self,
        subject: bytes,
        header_block: bytes,
        payload: bytes,
        now: int,
        last_message_id: bytes,
        so_far: BatchSoFar | None = None,
    ) -> Admitted | Duplicate:
        """Judge a publish at `now` (time of day, ns). `last_message_id`: of the previous message. `so_far`: the state of the
        atomic batch that it belongs to. Raises JetStreamError to refuse it."""
        config = self.config
        header_block = self.plain_block(header_block)
        self.check_size(header_block, payload)
        message_id = b""
        particulars = demands = None
        if header_block:
            alone = lone_message_id(header_block)  # the common case of a careful publisher
            if alone is None:
                demands = self._check_headers(header_block, subject, payload, now, so_far)
                if demands.adds_rollup:
                    header_block, demands = with_rollup(header_block), demands._replace(rollup=b"sub")
            message_id = alone or b"" if demands is None else demands.message_id
            if message_id:
                original = self._duplicates.seen(message_id, self._ticks_ns())
                if original is not None:
                    return Duplicate(sequence_of(original))
            if demands is not None:
                check_after_id(demands, last_message_id, self._allowed)
                if so_far is not None:
                    so_far.check_rollup(header_block, subject)
        counted: Counted | None = None
        if config.allow_msg_counter:
            check_is_addition(header_block)
            last = so_far.sums.get(subject) if so_far is not None else None
            counted = added(header_block, last or self.sums.last(subject))
            header_block, payload = counted.header_block, counted.payload
        if demands is not None and (demands.rollup or config.allow_msg_ttl or config.allow_msg_schedules):
            particulars = Particulars(demands.rollup, header_block, payload, now)
        size = self._contents.size_of(subject, header_block, payload)
        self._check_room(subject, size, so_far)
        if particulars is None and self.republisher is not None:
            particulars = Particulars(b"", header_block, payload, now)
        if counted is None:
            return Admitted(header_block, payload, message_id, size, particulars)
        return Admitted(header_block, payload, message_id, size, particulars, counted.tail, counted.sum)

    def judge_copy(self, subject: bytes, header_block: bytes, payload: bytes, now: int) -> Admitted:
        """As `judge`, for a message copied from another stream: only the limits apply. Roll-ups and TTLs are applied if this
        stream allows them."""
        self.check_size(header_block, payload)
        config = self.config
        message_id = rollup = b""
        if header_block:
            message_id = lookup(header_block, b"Nats-Msg-Id") or b""
            rollup = rollup_of(header_block) if config.allow_rollup_hdrs else b""
        counted: Counted | None = None
        if config.allow_msg_counter and (stamp := lookup(header_block, b"Nats-Stream-Source")):
            origin = stamp.split(b" ")
            theirs = origin[4] if len(origin) > 4 else subject
            counted = sourced(header_block, payload, origin[0].decode(), theirs, self.sums.last(subject))
            header_block, payload = counted.header_block, counted.payload
        size = self._contents.size_of(subject, header_block, payload)
        self._check_room(subject, size)
        particulars = None
        follows_headers = config.allow_msg_ttl or config.allow_msg_schedules
        if rollup or self.republisher is not None or (header_block and follows_headers):
            particulars = Particulars(rollup, header_block, payload, now)
        total = counted.sum if counted is not None else None
        return Admitted(header_block, payload, message_id, size, particulars, b"", total)

    def is_durable(self, sequence: int) -> bool:
        """Whether the message with this sequence is durable."""
        return offset_of(sequence) < self._contents.log.end_offset

    def note_staged(self, subject: bytes, sequence: int, admitted: Admitted) -> None:
        """An admitted publish was given its sequence."""
        if admitted.sum is not None:
            self.sums.note_staged(subject, sequence, admitted.sum)
        if self._refuses_new:
            count, weight = self._in_flight
            self._in_flight = count + 1, weight + admitted.size

    def note_done(self, items: list[Item], *, stored: bool = True) -> None:
        """These messages are durable or, if not `stored`, lost."""
        self._by_subject.forget()
        if self.config.allow_msg_counter:
            self.sums.note_all_done(items, stored)
        if self._refuses_new:
            (count, weight), (fewer, less) = self._in_flight, _weighed(items)
            self._in_flight = max(0, count - fewer), max(0, weight - less)

    def rests_on_unwritten(self) -> bool:
        """Whether a message that waits for its write expected one before it, which was not durable yet."""
        waiting = self.unwritten.waiting if self.unwritten is not None else []
        return any(item.subject and item.sequence <= self._follower for item in waiting)

    def items(self) -> list[Item]:
        """The messages that are staged or being written, oldest first."""
        return [] if self.unwritten is None else [*self.unwritten.writing, *self.unwritten.waiting]

    def moved(self, subject: bytes) -> bytes:
        """The subject under which a message is stored (subject_transform)."""
        if self.transform is None:
            return subject
        return self.transform.apply(subject, random.randrange) or subject

    def size_of(self, subject: bytes, header_block: bytes, payload: bytes) -> int:
        """The bytes that a message adds to the stream."""
        return self._contents.size_of(subject, header_block, payload)

    def check_size(self, header_block: bytes, payload: bytes) -> None:
        """Raises JetStreamError for a message that is too large, or while the stream can take none."""
        self.check_open(header_block, payload)
        if len(header_block) > MAX_HEADER_BLOCK:
            raise api_error("header_too_large")

    def check_open(self, header_block: bytes, payload: bytes) -> None:
        """As `check_size`, without the bound on headers: a batch is refused for that when it is committed."""
        config = self.config
        if self.unwritten is not None and self.unwritten.full:
            raise api_error("too_many_requests")
        if config.sealed:
            raise api_error("sealed")
        if 0 < config.max_msg_size < len(header_block) + len(payload):
            raise api_error("message_too_large")

    def _check_headers(
        self, header_block: bytes, subject: bytes, payload: bytes, now: int, so_far: BatchSoFar | None
    ) -> Demands:
        name, allowed = self.config.name, self._allowed
        if header_block.find(b"Nats-Schedule") >= 0:
            allowed = allowed._replace(schedules=self._schedule_rules(now, so_far))
        if so_far is not None:
            so_far.check_headers(header_block)
            allowed = allowed._replace(in_batch=partial(self._check_in_batch, header_block, subject, so_far))
        last = self.last_sequence  # the expected sequence may be that of a staged message
        if last > self._contents.log.end_offset and _EXPECTS in header_block:
            self._follower = last + 1
        return check_before_id(header_block, subject, name, last, self._last_of_subject, allowed, payload)

    def _schedule_rules(self, now: int, so_far: BatchSoFar | None) -> ScheduleRules:
        config, subjects = self.config, [subject.encode() for subject in self.config.subjects]
        is_other = partial(self._is_no_schedule, so_far=so_far)
        return ScheduleRules(config.allow_msg_schedules, config.allow_msg_ttl, subjects, is_other, now, is_ttl)

    def _is_no_schedule(self, subject: bytes, so_far: BatchSoFar | None) -> bool:
        """Whether the subject has a last message and that message is not a schedule."""
        if so_far is not None and subject in so_far.subjects:
            return subject not in so_far.schedules
        item = self._newest(subject)
        if item is not None:
            return item.particulars is None or not is_schedule(item.particulars.header_block)
        last = self._contents.subjects.last(subject)
        message = self._contents.load(last) if last else None
        return message is not None and not is_schedule(message.header_block)

    def _check_in_batch(self, header_block: bytes, subject: bytes, so_far: BatchSoFar) -> None:
        message_id = lookup(header_block, b"Nats-Msg-Id") or b""
        seen = message_id and self._duplicates.seen(message_id, self._ticks_ns()) is not None
        if seen or message_id in so_far.message_ids:
            raise api_error("batch_duplicate")
        if lookup(header_block, b"Nats-Stream-Source"):
            raise api_error("source_header")
        if self.config.allow_msg_counter:
            check_is_addition(header_block)
        so_far.check_expectations(header_block, subject)

    def _last_of_subject(self, pattern: bytes) -> int:
        item = self._newest(pattern)
        return item.sequence if item is not None else self._contents.subjects.last(pattern)

    def _newest(self, pattern: bytes) -> Item | None:
        """The newest of the matching messages that are staged or being written."""
        unwritten = self.unwritten
        return (
            self._by_subject.newest((unwritten.waiting, unwritten.writing), pattern) if unwritten is not None else None
        )

    def _check_room(self, subject: bytes, size: int, so_far: BatchSoFar | None = None) -> None:
        count, weight = (so_far.count, so_far.size) if so_far is not None else (0, 0)
        if self.has_room is not None and not self.has_room(size + weight):
            raise api_error("account_resources_exceeded")
        if self.server_has_room is not None and not self.server_has_room(size):
            raise api_error("insufficient_resources", reason=_CAPPED[self.config.storage])
        if not self._refuses_new:
            return
        of_subject = 0
        # What is in flight is searched only where the durable ones alone do not reach the limit: not for keys that exist.
        if self._contents.subjects.total(subject) < self.config.max_msgs_per_subject:
            if self.unwritten is not None:
                of_subject = self._by_subject.count((self.unwritten.waiting, self.unwritten.writing), subject)
            of_subject += so_far.subjects.get(subject, 0) if so_far is not None else 0
        in_flight, in_flight_bytes = self._in_flight
        reason = self._contents.refusal(subject, size, in_flight + count, in_flight_bytes + weight, of_subject)
        if reason:
            raise api_error("store_failed", reason=reason)


def _weighed(items: list[Item]) -> tuple[int, int]:
    """The number of messages among the items, and the bytes of all."""
    return sum(1 for item in items if item.subject), sum(item.size for item in items)


def _republisher(config: StreamConfig) -> "Republisher | None":
    if config.republish is None:
        return None
    from headwater.jetstream_sources.republish import Republisher  # here: a start needs it not

    return Republisher.of(config)
