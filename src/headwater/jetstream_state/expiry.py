"""Messages that have expired: by the stream's max_age, or by a TTL of their own (`Nats-TTL`).

A message with `Nats-TTL: never` outlives max_age. Where a stream leaves markers (subject_delete_marker_ttl), the last
message of a subject is not just removed: a marker is published to the subject, which rolls up what was there, has no
payload, names the reason in `Nats-Marker-Reason`, and expires after its own TTL without leaving another. So a key-value
watcher sees that the key ended.

No clock: `now` comes with the call. A marker that could not be stored (full disk) is tried again MARKER_RETRY later.
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from headwater.errors import JetStreamError
from headwater.jetstream_state.publish_checks import ttl_of
from headwater.jetstream_state.sequence import sequence_of
from headwater.model.header_block import lookup
from headwater.model.timestamps import SECOND, format_duration
from headwater.streams.log import StoredRecord

if TYPE_CHECKING:
    from headwater.jetstream_state.contents import Contents

MARKER_RETRY = 2 * SECOND
SHORTEST_TIMER = 0.01  # seconds
LONGEST_TIMER = 3600.0
REPLAY_GRACE = 2 * SECOND  # seconds by which a replay in progress may delay the expiry of a message


class Reader(Protocol):
    """The part of a consumer that expiry needs."""

    def is_replaying(self, since_ns: int) -> bool:
        """Whether it was created after `since_ns` and still has to send messages pending then."""
        ...


class Patience:
    """The time up to which messages expire. It stands still while a new push consumer still has to send the messages
    pending at its creation: a key-value watcher counts down to its last key, and would wait for ever for one that
    expired.
    """

    def __init__(self) -> None:
        self._until = 0

    def time(self, now: int, contents: "Contents", consumers: "Iterable[Reader]") -> int:
        """The time to use as `now` when limits are applied to `contents`."""
        if not 0 < contents.next_expiry() <= now:
            return now
        since = now - REPLAY_GRACE
        return self.expire_until(now, any(consumer.is_replaying(since) for consumer in consumers))

    def expire_until(self, now: int, replaying: bool) -> int:
        """The same, given that something is due."""
        self._until = max(self._until, now - REPLAY_GRACE) if replaying else now
        return self._until


class Expiry:
    """When messages of `contents` expire. `leave_marker(subject)` publishes a marker; None while the stream is detached."""

    def __init__(self, contents: "Contents") -> None:
        self.entries: list[tuple[int, int]] = []  # (time, sequence) of messages with a TTL of their own
        self.leave_marker: Callable[[bytes], None] | None = None
        self._contents = contents
        self._next_age = 0  # nothing reaches max_age earlier; 0: unknown

    def forget(self) -> None:
        """All messages were removed, or the configuration has changed."""
        self._next_age = 0

    def note(self, sequence: int, block: bytes, timestamp_ns: int) -> None:
        """Record the expiry of the message, if it has a TTL of its own."""
        ttl = _ttl(block)
        if ttl:
            heappush(self.entries, (timestamp_ns + ttl, sequence))

    def next_age(self) -> int:
        """When the next message reaches max_age, if some may outlive it; 0: never."""
        return self._next_age if self._contents.subjects.messages else 0

    def enforce(self, now: int) -> None:
        """Remove expired messages, or publish markers in their place."""
        contents, entries = self._contents, self.entries
        max_age = contents.config.max_age
        if max_age > 0 and contents.config.allow_msg_ttl and now >= self._next_age:
            self._enforce_age(max_age, now)
        while entries and entries[0][0] <= now:
            _, sequence = heappop(entries)
            record = contents.load(sequence)
            if record is not None and not self._end(record):
                heappush(entries, (now + MARKER_RETRY, sequence))

    def _enforce_age(self, max_age: int, now: int) -> None:
        """Expire by age from the oldest message on, skipping those that outlive max_age: each turn looks at every
        skipped one."""
        self._next_age = now + max_age  # for later messages
        retry = 0
        for record in self._contents.scan(self._contents.log.start_offset):
            if record.timestamp_ns + max_age > now:
                self._next_age = record.timestamp_ns + max_age
                break
            if (not record.header_block or _ttl(record.header_block) != 0) and not self._end(record):
                retry = now + MARKER_RETRY
        if retry:
            self._next_age = min(self._next_age, retry)

    def _end(self, record: StoredRecord) -> bool:
        """Remove an expired message; False when it stays until a marker has replaced it."""
        contents = self._contents
        marks = contents.config.subject_delete_marker_ttl > 0 and not _is_marker(record.header_block)
        if not marks or contents.subjects.total(record.subject) > 1:
            contents.remove(sequence_of(record.offset))
            return True
        if self.leave_marker is not None:
            self.leave_marker(record.subject)
        return False


def marker_block(ttl_ns: int) -> bytes:
    """The header block of a marker."""
    ttl = format_duration(ttl_ns // SECOND * SECOND).encode()
    return b"NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\nNats-TTL: %b\r\nNats-Rollup: sub\r\n\r\n" % ttl


def with_ttl_of_at_least(block: bytes, least_ns: int) -> bytes:
    """`block`, its TTL raised to whole seconds of `least_ns`: a shorter TTL could end before its marker is wanted."""
    ttl = _ttl(block)
    if not ttl or ttl // SECOND >= least_ns // SECOND:
        return block
    lines = [line for line in block.removesuffix(b"\r\n\r\n").split(b"\r\n") if not line.startswith(b"Nats-TTL:")]
    return b"\r\n".join([*lines, b"Nats-TTL: %d" % (least_ns // SECOND), b"", b""])


def _ttl(block: bytes) -> int | None:
    try:
        return ttl_of(block)
    except JetStreamError:
        return None  # stored unchecked, while the setting was off


def _is_marker(block: bytes) -> bool:
    return bool(block) and bool(lookup(block, b"Nats-Marker-Reason") or lookup(block, b"KV-Operation") == b"PURGE")
