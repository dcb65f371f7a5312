"""SendMessages and the answer to a poll in the eras C1 to C3: messages behind headers of fixed size.

    SendMessages   | metadata size u32 | stream | topic | partitioning | count u32 | count x index | messages |
                   metadata size counts stream, topic, partitioning and count
    index          | offset u32 = 0 | end of the message u32, from the first | timestamp u64 = 0 |
    message        | checksum u64 | id u128 | offset u64 | timestamp u64 | origin timestamp u64
                   | headers size u32 | payload size u32 | reserved u64 = 0, C3 only | payload | headers |
    answer         | partition u32 | current offset u64 | count u32 | messages |

Headers are in the seed's form up to C2, with typed keys in C3. The checksum is the server's: XXH3-64 of what follows it.
"""

import struct
from collections.abc import Sequence
from typing import Final

from headwater.iggy_wire.batches import Part, xxh3_64
from headwater.iggy_wire.command_codec import SEND_ADDRESS_COUNTED
from headwater.iggy_wire.commands import SendMessages
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.layout import U32, Reader
from headwater.iggy_wire.seed_codec import string_keys
from headwater.model.typed_headers import TOTAL_LIMIT_LATER, HeaderForm, TypedHeaders, check_total
from headwater.streams.iggy_batch import batch_fields, frames

PAYLOAD_LIMIT: Final = 64_000_000  # bytes of one message
INDEX = struct.Struct("<IIQ")
PREFIX = struct.Struct("<IQI")
_REST: Final = "16sQQQII"
_HEAD = struct.Struct("<Q" + _REST)
_HEAD_C3 = struct.Struct("<Q" + _REST + "Q")


def head_of(era: Era) -> struct.Struct:
    """56 bytes, 64 in C3."""
    return _HEAD_C3 if era is Era.C3 else _HEAD


def read_address(reader: Reader) -> SendMessages:
    """The address of a send of eras C and V; the reader is then behind it. Raises IggyError."""
    size = U32.read(reader)
    start = reader.at
    if size > reader.left:
        raise refusal("invalid_command", f"{size} bytes of metadata are announced, {reader.left} are there")
    inner = Reader(reader.data, start, start + size)
    command = SEND_ADDRESS_COUNTED.read(inner)
    inner.finish()
    reader.at = start + size
    return command


def write_address(command: SendMessages) -> bytes:
    """The inverse of `read_address`."""
    address = SEND_ADDRESS_COUNTED.write(command)
    return U32.write(len(address)) + address


def read_messages(reader: Reader, count: int, era: Era) -> list[Part]:
    """The messages of a send, for a batch of today. Raises IggyError, HeaderError."""
    if count == 0 or count * INDEX.size > reader.left:
        raise refusal("invalid_messages_count", f"{count} messages cannot follow in {reader.left} bytes")
    ends = [INDEX.unpack(reader.take(INDEX.size))[1] for _ in range(count)]
    origin = reader.at
    head = head_of(era)
    found = []
    for end in ends:
        fields = head.unpack(reader.take(head.size))
        _, message_id, _, _, created, headers_size, payload_size, *reserved = fields
        if any(reserved):
            raise refusal("invalid_reserved_field", "the reserved bytes of a message are not zero")
        if payload_size > PAYLOAD_LIMIT:
            raise refusal(
                "too_big_message_payload", f"{payload_size} bytes are more than {PAYLOAD_LIMIT}", payload_size
            )
        payload = reader.take(payload_size)
        block = reader.take(headers_size)
        if reader.at - origin != end:
            raise refusal("invalid_messages_size", f"a message ends at {reader.at - origin}, its index says {end}")
        found.append(Part(message_id, payload, _typed_block(block, era), created))
    reader.finish()
    if not any(part.payload for part in found):
        raise refusal("empty_message_payload", "there is no payload in the request")
    return found


def _typed_block(block: bytes, era: Era) -> bytes:
    """A header block of the era, checked, as it is stored."""
    if not block:
        return b""
    headers = TypedHeaders.decode(block, HeaderForm.TYPED if era.typed_keys else HeaderForm.SEED)
    check_total(len(block), TOTAL_LIMIT_LATER)
    return block if era.typed_keys else headers.encode(HeaderForm.TYPED)


def write_poll(batches: Sequence[bytes], era: Era, partition: int, current_offset: int) -> bytes:
    """The answer to a poll, from stored batches."""
    head = head_of(era)
    reserved = (0,) if era is Era.C3 else ()
    count = 0
    pieces: list[bytes] = []
    for body in batches:
        fields = batch_fields(body)
        for frame in frames(body):
            block = body[frame.headers_at : frame.end]
            if block and not era.typed_keys:
                block = string_keys(TypedHeaders.decode(block, HeaderForm.TYPED)).encode()
            payload = body[frame.payload_at : frame.headers_at]
            offset, created = fields.base_offset + frame.offset_delta, fields.origin_timestamp + frame.timestamp_delta
            times = (fields.base_timestamp, created)
            packed = head.pack(0, frame.id, offset, *times, len(block), len(payload), *reserved)
            rest = b"".join((packed[8:], payload, block))
            pieces += (xxh3_64(rest).to_bytes(8, "little"), rest)
            count += 1
    return PREFIX.pack(partition, current_offset, count) + b"".join(pieces)
