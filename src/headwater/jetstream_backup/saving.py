"""Reads a stream as the pieces of an archive, while the stream is in use.

The archive has the state at the call of `pieces`, without later messages. A message that leaves the stream meanwhile
may be missing; the archive is valid all the same.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence

from headwater.archive.entries import CONSUMERS, END, MAGIC, STATE, Entry, encode
from headwater.archive.s2_frames import FrameWriter
from headwater.compression.snappy import compressor
from headwater.jetstream_state.sequence import sequence_of
from headwater.streams.log import Log, StoredRecord

TURN_RECORDS = 1024
TURN_BYTES = 1 << 20


async def pieces(log: Log, state: bytes, consumers: Sequence[tuple[str, bytes]], now_ns: int) -> AsyncIterator[bytes]:
    """Framed bytes of the archive. `state`: JSON that counts the `consumers` (name, payload). Raises StorageError when the
    log cannot be read."""
    writer = FrameWriter(compressor())
    offset, end = log.start_offset, log.end_offset
    head = [Entry(STATE, now_ns, 0, b"", state)]
    head += [Entry(CONSUMERS + name.encode(), now_ns, 0, b"", payload) for name, payload in consumers]
    yield writer.feed(MAGIC + b"".join(map(encode, head)))
    while offset < end and (records := log.read(offset, TURN_RECORDS, TURN_BYTES)):
        offset = records[-1].offset + 1
        yield await asyncio.to_thread(_framed, writer, [record for record in records if record.offset < end])
    yield writer.feed(encode(END)) + writer.finish()


def _framed(writer: FrameWriter, records: list[StoredRecord]) -> bytes:
    return writer.feed(b"".join([encode(_entry(record)) for record in records]))


def _entry(record: StoredRecord) -> Entry:
    sequence = sequence_of(record.offset)
    return Entry(record.subject, record.timestamp_ns, sequence, record.header_block, record.payload)
