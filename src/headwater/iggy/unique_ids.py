"""Recently stored message ids, so that a repeated send is stored once: an option of this server (Iggy 0.9 has none).

A partition keeps the ids of its messages for a while, also across a restart, because they are in its log. A message
with a known id is left out of its batch, and the answer waits until the original is durable: it joins the same commit.
A message without an id (0) is always new. This needs a pass over every message of a send, so it is off by default.
"""

from typing import NamedTuple

from headwater.errors import StorageError
from headwater.iggy_wire.batches import Part, build
from headwater.model.dedup import DuplicateWindow
from headwater.streams.iggy_batch import Frame, batch_fields, frames
from headwater.streams.iggy_records import NANOSECONDS
from headwater.streams.log import Log
from headwater.streams.log_format import DIALECT_IGGY

NO_ID = bytes(16)


class Admitted(NamedTuple):
    """The new messages of a batch: None when there are none, b"" when all are. `original`: offset of the first known one."""

    batch: bytearray | None
    checksums: bytes
    ids: list[bytes]
    original: int


class UniqueIds:
    """The ids of one partition."""

    def __init__(self, log: Log, window_ns: int, now_ns: int) -> None:
        """Blocking: reads the ids in the log that are within the window. Raises StorageError."""
        self._window = DuplicateWindow(window_ns)
        for stored in log.batches(log.offset_at(now_ns - window_ns)):
            if stored.header.dialect == DIALECT_IGGY:
                base, when = stored.header.base_offset, min(stored.header.last_timestamp_ns, now_ns)
                for frame in frames(stored.body):
                    if frame.id != NO_ID:
                        self._window.remember(frame.id, base + frame.offset_delta, when)

    def admit(self, body: bytes, base_offset: int, now_us: int) -> Admitted:
        """The new messages of a checked batch; their ids are recorded."""
        now_ns = now_us * NANOSECONDS
        new: list[Frame] = []
        ids: list[bytes] = []
        original = -1
        found = frames(body)
        for frame in found:
            known = self._window.seen(frame.id, now_ns) if frame.id != NO_ID else None
            if known is not None:
                original = known if original < 0 else original
                continue
            if frame.id != NO_ID:
                self._window.remember(frame.id, base_offset + len(new), now_ns)
                ids.append(frame.id)
            new.append(frame)
        if not new:
            return Admitted(None, b"", [], original)
        if len(new) == len(found):
            return Admitted(bytearray(), b"", ids, -1)
        origin = batch_fields(body).origin_timestamp
        parts = [
            Part(f.id, body[f.payload_at : f.headers_at], body[f.headers_at : f.end], origin + f.timestamp_delta)
            for f in new
        ]
        return Admitted(*build(parts), ids, original)

    def forget(self, ids: list[bytes], error: StorageError | None) -> None:
        """With an `error`, the batch with these ids was not stored: they may be sent again."""
        if error is not None:
            for message_id in ids:
                self._window.withdraw(message_id)
