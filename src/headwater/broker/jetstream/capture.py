# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The way of most messages into a stream: nothing to check, so stage it and remember whom to answer.

Hot and compiled: `take` is the callback of the router and runs once for every message on the stream's subjects. A
message with headers that demand something, a duplicate, or one for a stream that has something to check goes to `checked`,
the stream's own long way. Here nothing is refused but what the log itself refuses.
"""

from collections.abc import Callable

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.jetstream.committer import Committer
    from cython.cimports.headwater.broker.jetstream.items import Item
    from cython.cimports.headwater.broker.jetstream.publish_checks import lone_message_id
    from cython.cimports.headwater.streams.dedup import DuplicateWindow
    from cython.cimports.headwater.streams.staging import Staging
else:
    from headwater.broker.jetstream.committer import Committer
    from headwater.broker.jetstream.items import Item
    from headwater.broker.jetstream.publish_checks import lone_message_id
    from headwater.streams.dedup import DuplicateWindow
    from headwater.streams.staging import Staging

from headwater.broker.jetstream.publish_checks import MAX_HEADER_BLOCK
from headwater.errors import StorageError

Checked = Callable[[bytes, bytes, bytes, bytes], None]


class Capture:
    """`duplicates`: the ids that the stream remembers. `overhead`: what the accounting adds to a message, `header_overhead`:
    to one with headers, besides. `checked(subject, reply, header_block, payload)` and `refused(reply, error)` are the
    stream's. `is_plain`: a message whose headers demand nothing needs no look at the configuration. `last_message_id`: of
    the last message, b"" when it had none."""

    def __init__(
        self,
        staging: Staging,
        duplicates: DuplicateWindow,
        clock_ns: Callable[[], int],
        overhead: int,
        header_overhead: int,
        checked: Checked,
        refused: Callable[[bytes, StorageError], None],
    ) -> None:
        self._staging = staging
        self._duplicates = duplicates
        self._clock_ns = clock_ns
        self._overhead = overhead
        self._header_overhead = header_overhead
        self._checked = checked
        self._refused = refused
        self.committer: Committer | None = None
        self.is_plain = False
        self.last_message_id = b""

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """Store the message and answer when it is durable."""
        committer: Committer | None = self.committer
        assert committer is not None
        if not self.is_plain or committer.full:
            self._checked(subject, reply, header_block, payload)
            return
        now: cython.longlong = self._clock_ns()
        size: cython.Py_ssize_t = self._overhead + len(subject) + len(payload)
        message_id: bytes = b""
        if header_block:
            size += self._header_overhead + len(header_block)
            alone: bytes | None = lone_message_id(header_block) if len(header_block) <= MAX_HEADER_BLOCK else None
            if alone is None or (alone and self._duplicates.seen(alone, now) is not None):
                self._checked(subject, reply, header_block, payload)
                return
            message_id = alone
        offset: cython.longlong
        try:
            offset = self._staging.stage(subject, header_block, payload, now)
        except StorageError as error:
            self._refused(reply, error)
            return
        self.last_message_id = message_id
        if message_id:
            self._duplicates.remember(message_id, offset, now)
        # offset + 1: sequence_of, without the call
        committer.add(Item(reply, b"", subject, offset + 1, size, message_id, None))
