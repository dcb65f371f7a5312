"""Batches of the Iggy dialect in a log: how they are stored, and how a reader of records sees them.

A producer's batch is stored as it came (`ReadyBatch`): one batch of the log is one batch of Iggy's, the offset span is
its number of messages, and nothing is done per message. A reader of records instead of batches gets each message as the
NATS face shows it: headers translated by `model.header_mapping`, the message's id, which producers choose, as
`Iggy-Message-Id`; there is no subject.
"""

from collections.abc import Iterator

from google_crc32c import value as crc32c

from headwater.model.headers import Headers
from headwater.streams.iggy_batch import BATCH_HEADER_SIZE, FRAME, FRAME_SIZE, batch_fields, skip_frames
from headwater.streams.log_format import DIALECT_IGGY, BatchHeader, StoredRecord, encode_batch_header

MESSAGE_ID = "Iggy-Message-Id"
NANOSECONDS = 1000  # Iggy counts in microseconds


class ReadyBatch:
    """A stamped Iggy batch that waits to be written; it has the attributes of `BatchBuilder` that the writer uses."""

    __slots__ = ("_body", "base_offset", "first_timestamp_ns", "last_timestamp_ns", "record_count", "size")

    def __init__(self, base_offset: int, record_count: int, body: bytes, timestamp_ns: int) -> None:
        self.base_offset = base_offset
        self.record_count = record_count
        self.size = len(body)
        self.first_timestamp_ns = self.last_timestamp_ns = timestamp_ns
        self._body = body

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.record_count

    def encode_apart(self, identity: bytes) -> tuple[BatchHeader, bytes, list[bytes]]:
        """The batch as (header, header bytes, pieces of the body)."""
        body = self._body
        header = BatchHeader(  # by position, as in `BatchBuilder.encode`
            DIALECT_IGGY,
            0,
            self.record_count,
            self.record_count,
            self.size,
            self.base_offset,
            self.first_timestamp_ns,
            self.last_timestamp_ns,
            crc32c(body),
        )
        return header, encode_batch_header(header, identity), [body]


def records(body: bytes, offset: int = 0) -> Iterator[StoredRecord]:
    """The messages of a checked batch from `offset` on, as records."""
    fields = batch_fields(body)
    # Later than the batch's, if this is part of one.
    begins = fields.base_offset + FRAME.unpack_from(body, BATCH_HEADER_SIZE)[2]
    at, end = skip_frames(body, BATCH_HEADER_SIZE, len(body), max(0, offset - begins)), len(body)
    while at < end:
        _, raw_id, delta, _, headers_size, payload_size, _ = FRAME.unpack_from(body, at)
        payload_at = at + FRAME_SIZE
        headers_at = payload_at + payload_size
        at = headers_at + headers_size
        headers = _translated(body[headers_at:at]) if headers_size else Headers()
        message_id = int.from_bytes(raw_id, "little")
        if message_id:
            headers.discard(MESSAGE_ID)  # of two, neither would be read as the id again
            headers.append(MESSAGE_ID, str(message_id))
        yield StoredRecord(
            fields.base_offset + delta,
            fields.base_timestamp * NANOSECONDS,
            b"",
            bytes(headers) if headers else b"",
            body[payload_at:headers_at],
        )


def _translated(typed: bytes) -> Headers:
    from headwater.model.header_mapping import typed_to_nats  # here: a store without Iggy's headers does without it
    from headwater.model.typed_headers import HeaderForm, TypedHeaders

    return typed_to_nats(TypedHeaders.decode(typed, HeaderForm.TYPED))
