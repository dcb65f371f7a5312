"""SendMessages and PollMessages as the seed document has them (crate 0.0.30), and as they stayed to iggy-py 0.4.

    message, sent      | id u128 | headers size u32 | headers | payload size u32 | payload |
    SendMessages       | stream | topic | partitioning | messages to the end |
    message, polled    | offset u64 | timestamp u64 µs | id u128 | headers size u32 | headers | payload size u32 | payload |
    answer to a poll   | count u32 | messages |

Eras A to B put `| partition u32 | current offset u64 |` in front of the count, and in each polled message `state u8`
behind the offset and `crc32 of the payload u32` behind the id. Headers have the seed's form throughout.

Limits, summed over all messages of one SendMessages: 100 KB of header values (102400), 10 MiB of payload, and at least
one byte of payload.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headwater.iggy_wire.batches import Part
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import IDENTIFIER, PARTITIONING, Identifier, Partitioning
from headwater.iggy_wire.layout import Reader
from headwater.model.typed_headers import TOTAL_LIMIT, TOTAL_LIMIT_LATER, HeaderForm, TypedHeaders, check_total
from headwater.streams.iggy_batch import batch_fields, frames

PAYLOAD_LIMIT: Final = 10 * 1024 * 1024
PAYLOAD_LIMIT_LATER: Final = 10_000_000

_U32 = struct.Struct("<I")
_POLLED = struct.Struct("<QQ16s")
_POLLED_LATER = struct.Struct("<QBQ16sI")
_PREFIX = struct.Struct("<IQI")
_AVAILABLE: Final = 1  # a message's state; no other was ever used


@dataclass(frozen=True, slots=True)
class SendMessages:
    """The seed's command: the address and the messages."""

    stream: Identifier
    topic: Identifier
    partitioning: Partitioning
    messages: tuple[Message, ...]

    def encode(self) -> bytes:
        """The payload of command 101. Raises IggyError, HeaderError."""
        return b"".join(
            (self.stream.encode(), self.topic.encode(), self.partitioning.encode(), *map(encode_message, self.messages))
        )

    @classmethod
    def decode(cls, body: bytes) -> "SendMessages":
        """Raises IggyError, HeaderError."""
        reader = Reader(body)
        stream, topic = IDENTIFIER.read(reader), IDENTIFIER.read(reader)
        partitioning = PARTITIONING.read(reader)
        return cls(stream, topic, partitioning, tuple(decode_messages(reader)))


def encode_message(message: Message) -> bytes:
    """One message as it is sent."""
    block = message.headers.encode() if message.headers else b""
    sizes = _U32.pack(len(block)), _U32.pack(len(message.payload))
    return b"".join((message.id.to_bytes(16, "little"), sizes[0], block, sizes[1], message.payload))


def decode_messages(reader: Reader, era: Era = Era.S) -> list[Message]:
    """The messages of a send, within the limits of the era. Raises IggyError, HeaderError."""
    found: list[Message] = []
    values = payloads = 0
    while reader.left:
        message_id = int.from_bytes(reader.take(16), "little")
        headers = TypedHeaders.decode(_sized(reader))
        payload = _sized(reader)
        values += headers.value_bytes
        payloads += len(payload)
        found.append(Message(payload, headers or None, message_id))
    if not found:
        raise refusal("invalid_messages_count", "there is no message in the request")
    check_total(values, TOTAL_LIMIT if era is Era.S else TOTAL_LIMIT_LATER)
    limit = PAYLOAD_LIMIT if era is Era.S else PAYLOAD_LIMIT_LATER
    if payloads > limit:
        raise refusal("too_big_message_payload", f"{payloads} bytes of payload are more than {limit}", payloads)
    if payloads == 0:
        raise refusal("empty_message_payload", "there is no payload in the request")
    return found


def _sized(reader: Reader) -> bytes:
    return reader.take(_U32.unpack(reader.take(_U32.size))[0])


def parts(messages: Sequence[Message], now_us: int) -> list[Part]:
    """The messages for a batch of today."""
    return [
        Part(
            message.id.to_bytes(16, "little"),
            message.payload,
            message.headers.encode(HeaderForm.TYPED) if message.headers else b"",
            now_us,
        )
        for message in messages
    ]


def encode_poll(messages: Sequence[Message], era: Era = Era.S, partition: int = 1, current_offset: int = 0) -> bytes:
    """The answer to a poll. Raises HeaderError for keys that the era cannot express."""
    pieces = [_U32.pack(len(messages)) if era is Era.S else _PREFIX.pack(partition, current_offset, len(messages))]
    for message in messages:
        message_id = message.id.to_bytes(16, "little")
        if era is Era.S:
            head = _POLLED.pack(message.offset, message.timestamp, message_id)
        else:
            crc = zlib.crc32(message.payload)
            head = _POLLED_LATER.pack(message.offset, _AVAILABLE, message.timestamp, message_id, crc)
        block = string_keys(message.headers).encode() if message.headers else b""
        pieces += (head, _U32.pack(len(block)), block, _U32.pack(len(message.payload)), message.payload)
    return b"".join(pieces)


def decode_poll(answer: bytes, era: Era = Era.S) -> list[Message]:
    """The messages in the answer to a poll. Raises IggyError, HeaderError."""
    reader = Reader(answer)
    prefix = _U32 if era is Era.S else _PREFIX
    count = prefix.unpack(reader.take(prefix.size))[-1]
    found = []
    for _ in range(count):
        if era is Era.S:
            offset, timestamp, raw_id = _POLLED.unpack(reader.take(_POLLED.size))
        else:
            offset, _, timestamp, raw_id, _ = _POLLED_LATER.unpack(reader.take(_POLLED_LATER.size))
        headers = TypedHeaders.decode(_sized(reader))
        payload = _sized(reader)
        message_id = int.from_bytes(raw_id, "little")
        found.append(Message(payload, headers or None, message_id, offset, timestamp))
    reader.finish()
    return found


def string_keys(headers: TypedHeaders) -> TypedHeaders:
    """The same headers for an era that has string keys only: another key becomes the text of its value."""
    return TypedHeaders((str(key), value) for key, value in headers.items())


def from_batches(batches: Sequence[bytes]) -> list[Message]:
    """The messages of stored batches, for an answer."""
    found = []
    for body in batches:
        fields = batch_fields(body)
        for frame in frames(body):
            block = body[frame.headers_at : frame.end]
            found.append(
                Message(
                    body[frame.payload_at : frame.headers_at],
                    TypedHeaders.decode(block, HeaderForm.TYPED) if block else None,
                    int.from_bytes(frame.id, "little"),
                    fields.base_offset + frame.offset_delta,
                    fields.base_timestamp,
                    fields.origin_timestamp + frame.timestamp_delta,
                )
            )
    return found
