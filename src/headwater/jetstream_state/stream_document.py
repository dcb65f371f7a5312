"""The stream's state stored with its log's index, so that a start need not read the messages.

It is written at a clean stop, and with each checkpoint of the log.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

import msgspec

from headwater.errors import StorageError
from headwater.jetstream_state.contents import Contents, ContentsDocument
from headwater.model.dedup import DuplicateWindow
from headwater.model.header_block import lookup
from headwater.streams.log import Log, StoredRecord

MOST_IN_A_CHECKPOINT = 20_000  # subjects, messages of the history, ids and expiries together


class StreamDocument(msgspec.Struct, array_like=True):
    """`ids`: the window of message ids. `last_id`: of the last captured message. `positions`: for each source, sequence
    and identity of the last copied message."""

    contents: ContentsDocument
    ids: list[tuple[bytes, int, int]]
    last_id: bytes
    positions: dict[str, tuple[int, str]] = {}

    @classmethod
    def decode(cls, document: bytes | None) -> Self | None:
        """Decode a document; None if it is missing or invalid."""
        if not document:
            return None
        try:
            return msgspec.msgpack.decode(document, type=cls)
        except msgspec.MsgspecError:
            return None


def checkpoint(
    log: Log,
    contents: Contents,
    duplicates: DuplicateWindow,
    apart_ns: int,
    positions: Mapping[str, tuple[int, str]] = MappingProxyType({}),
) -> bytes:
    """The document of everything durable at this moment (`apart_ns`: from the window's clock to the time of day); b""
    during removals, or if encoding it would block the loop for more than some 20 ms (a start after a crash then reads
    all records, but not their batches)."""
    subjects, end = contents.subjects, log.end_offset
    kept = subjects.messages if subjects.with_history else 0
    times = len(contents.expiry.entries) + len(contents.schedules)
    if len(subjects) + kept + len(duplicates) + times > MOST_IN_A_CHECKPOINT:
        return b""
    if subjects.messages != log.record_count:
        return b""
    ids = [item for item in duplicates.dump(apart_ns) if item[1] < end]
    last = log.read(end - 1, 1, 1)
    last_id = message_id_of(last[0]) if last else b""
    return msgspec.msgpack.encode(StreamDocument(contents.document(), ids, last_id, dict(positions)))


def last_message_id(log: Log) -> bytes:
    """The Nats-Msg-Id of the last durable message; b"" if it had none, was removed, or cannot be read."""
    try:
        last = log.read(log.end_offset - 1, 1, 1)
    except StorageError:
        return b""
    return message_id_of(last[0]) if last else b""


def message_id_of(record: StoredRecord) -> bytes:
    """The Nats-Msg-Id of a message; b"" if it has none."""
    return (lookup(record.header_block, b"Nats-Msg-Id") or b"") if record.header_block else b""
