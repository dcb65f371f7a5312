"""The duplicate window of a stream after a kill: also the ids of messages that were removed since.

    ids in the files ─▶ up to the first saved one ─▶ the saved ones (PositionsRecord) ─▶ those in the files behind them

A work queue removes a message when it was acknowledged. If its publisher has seen no answer, and publishes it again to the
broker that was started anew, it is a duplicate as it was before; nats-server forgets such ids. Before removed messages
leave the disk, the newest MOST_SAVED ids are saved; what was older than those, and removed, is forgotten here, too.
"""

from collections.abc import Iterator
from typing import NamedTuple

from headwater.jetstream_state.store import PositionsRecord
from headwater.model.dedup import DuplicateWindow
from headwater.model.header_block import lookup
from headwater.streams.log import Log


class StoredId(NamedTuple):
    """The Nats-Msg-Id of the message at an offset, b"" for none, and its time stamp (ns since 1970)."""

    message_id: bytes
    offset: int
    timestamp_ns: int


def learn_ids(
    window: DuplicateWindow, log: Log, start: int, saved: PositionsRecord | None, now: int, apart: int
) -> bytes | None:
    """Blocking: remember the ids of the messages from offset `start` on. `now`: time of day, ns; `apart`: from the clock of
    the window to it. Returns the id of the last message in the files, None without one. Raises StorageError."""
    oldest = now - window.window_ns
    known = [row for row in saved.ids if row[1] >= start] if saved is not None and saved.end <= log.end_offset else []
    first, end = (known[0][1], saved.end) if known and saved is not None else (log.end_offset, log.end_offset)
    last = None
    for stored in stored_ids(log, start, oldest):
        if known and stored.offset >= first:
            window.load(known, now - apart, -apart)
            known = []
        last = stored.message_id
        if last and stored.timestamp_ns > oldest and not first <= stored.offset < end:
            window.remember(last, stored.offset, min(stored.timestamp_ns, now) - apart)
    window.load(known, now - apart, -apart)
    return last


def stored_ids(log: Log, start: int, oldest: int) -> Iterator[StoredId]:
    """Blocking: what the messages from offset `start` on have, in the order of the log, without the segments before the
    first one that has a message newer than `oldest`. Raises StorageError."""
    if start >= log.end_offset:
        return  # nothing is read after a clean stop
    for cursor in log.reader.cursors_in_files(max(start, log.reader.newer_than(oldest))):
        block = cursor.header_block()
        message_id = (lookup(block, b"Nats-Msg-Id") or b"") if block else b""
        yield StoredId(message_id, cursor.offset, cursor.timestamp_ns)
