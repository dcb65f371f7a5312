# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The way of most messages into a stream: nothing to check, so stage it and remember whom to answer.

Hot and compiled: `take` is the callback of the router and runs once for every message on the stream's subjects. A
message with headers, or for a stream that has something to check, goes to `checked`, the stream's own long way. Here
nothing is refused but what the log itself refuses.
"""

from collections.abc import Callable

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.jetstream.committer import Committer
    from cython.cimports.headwater.broker.jetstream.items import Item
    from cython.cimports.headwater.streams.staging import Staging
else:
    from headwater.broker.jetstream.committer import Committer
    from headwater.broker.jetstream.items import Item
    from headwater.streams.staging import Staging

from headwater.errors import StorageError

Checked = Callable[[bytes, bytes, bytes, bytes], None]


class Capture:
    """`overhead`: what the accounting adds to a message without headers. `checked(subject, reply, header_block, payload)`
    and `refused(reply, error)` are the stream's. `is_plain`: a message without headers needs no look at the
    configuration. `last_message_id`: of the last message, b"" when it had none."""

    def __init__(
        self,
        staging: Staging,
        clock_ns: Callable[[], int],
        overhead: int,
        checked: Checked,
        refused: Callable[[bytes, StorageError], None],
    ) -> None:
        self._staging = staging
        self._clock_ns = clock_ns
        self._overhead = overhead
        self._checked = checked
        self._refused = refused
        self.committer: Committer | None = None
        self.is_plain = False
        self.last_message_id = b""

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """Store the message and answer when it is durable."""
        committer: Committer | None = self.committer
        assert committer is not None
        if not self.is_plain or header_block or committer.full:
            self._checked(subject, reply, header_block, payload)
            return
        offset: cython.longlong
        try:
            offset = self._staging.stage(subject, b"", payload, self._clock_ns())
        except StorageError as error:
            self._refused(reply, error)
            return
        self.last_message_id = b""
        size: cython.Py_ssize_t = self._overhead + len(subject) + len(payload)
        # offset + 1: sequence_of, without the call
        committer.add(Item(reply, b"", subject, offset + 1, size, b"", None))
