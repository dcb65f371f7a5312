"""Stored batches on the wire: the answer to a request for a range of a stream, as bytes. `docs/stored-batches.md`.

    answer = head and batches, back to back; all integers little-endian
      | magic "HWR1" | batches u32              how many follow
      | created i64                             of the stream, ns since 1970
      | requested u64 | next u64                all that is kept of the sequences [requested, next) is in this answer
      | first u64 | end u64                     of the stream when it was answered: sequences [first, end)
    batch = head and records
      | base offset u64 | body size u32 | records u32 | version u8 | seven zeros
      | records of the log, of that version      (streams/log_format.py)

The records are the bytes of the log, with their CRCs, which the server has checked or written itself; TCP has carried them.
A batch may begin before `requested` and reach beyond `next`: a reader leaves out what it did not want. Here is the
layout alone: `jetstream_ranges` fills it, `columns.stored_columns` reads it.
"""

import struct
from typing import NamedTuple

from headwater.streams.log_format import LOW_HALF, RECORD_HEAD, StoredRecord

RANGE_VERSION = 1  # that STREAM.INFO shows as `stored_batches`
READS_RANGES = b"Headwater-Range"  # header of a STREAM.INFO whose sender wants to see it; without, it is nats-server's
RANGE_MAGIC = b"HWR1"
ANSWER_HEAD = struct.Struct("<4sIqQQQQ")
BATCH_HEAD = struct.Struct("<QIIB7x")


class AnswerHead(NamedTuple):
    """See above."""

    batches: int
    created_ns: int
    requested: int
    next: int
    first: int
    end: int

    def encode(self) -> bytes:
        return ANSWER_HEAD.pack(RANGE_MAGIC, *self)


def decode_head(payload: bytes) -> AnswerHead | None:
    """The head of an answer; None for bytes that are none."""
    if len(payload) < ANSWER_HEAD.size or not payload.startswith(RANGE_MAGIC):
        return None
    return AnswerHead(*ANSWER_HEAD.unpack_from(payload)[1:])


def encode_records(records: list[StoredRecord]) -> bytes:
    """Records one by one, for a batch of which not all may be sent: as version 2 without CRC and tag, which are not read
    there."""
    pieces: list[bytes] = []
    for record in records:
        low = record.offset & LOW_HALF
        sizes = len(record.subject), 0, len(record.header_block), len(record.payload)
        pieces += (RECORD_HEAD.pack(0, record.timestamp_ns, low, *sizes), record.subject, record.header_block)
        pieces.append(record.payload)
    return b"".join(pieces)
