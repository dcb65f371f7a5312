"""The framing of generation V: a 256-byte header, then the body.

    request                                             reply
      0  checksum u128 = 0                                48  size u32
     16  checksum of the body u128 = 0                    60  command u8 = 8
     48  size u32, header and body                       128  request checksum u128, as it came
     60  command u8 = 5                                  144  context u128 = 0
    128  client u128, random                             160  client u128, as it came
    144  request checksum u128                           176  op u64, commit u64, timestamp u64
    168  request u64                                     200  request u64, as it came
    176  operation u8                                    208  operation u8, as it came
    184  login number u64, 0 before                      216  status u32, 0 or an error's number and no body
    192  user id u32
    196  code u32, where the operation is 2             220  W: u8 1 where a change is made for good
    200  W: incarnation of the partition u64            224  W: incarnation u64, as it came

The request checksum is XXH3-64 of the body for a login and the operations 128 to 149, and zero for all others; from W on it
is any number. Replies to those, and to stored and deleted offsets, begin with a result section: a u32, 0 here, since
refusals are in the status field.
"""

import struct
from typing import Final, NamedTuple

from headwater.iggy_wire.command_codec import LOGOUT, NON_REPLICATED, OPERATION_OF, REGISTER
from headwater.iggy_wire.commands import Code
from headwater.iggy_wire.eras import NEWEST_PROTOCOL, PROTOCOL
from headwater.iggy_wire.error_numbers import refusal

HEADER_SIZE: Final = 256
MAX_FRAME: Final = 64 << 20  # upstream's message_bus.max_message_size
REQUEST, REPLY, EVICTION = 5, 8, 13

BAD_CREDENTIALS, BAD_TOKEN, INACTIVE, STALE, BAD_PROTOCOL, MALFORMED_LOGIN = 9, 10, 11, 13, 14, 15  # evictions

_SIZE_AND_COMMAND = struct.Struct("<48xI8xB")
_REQUEST = struct.Struct("<128x16s16s8xQB7xQ4xIQ48x")
_REPLY = struct.Struct("<48xI8xB67x16s16x16sQQQQB7xIB3xQ24x")
_REQUEST_OUT = struct.Struct("<48xI8xB67x16s16s8xQB7xQII56x")


class Request(NamedTuple):
    """A request's header, and where its body lies: `[start, end)`."""

    client: bytes
    checksum: bytes
    number: int
    operation: int
    login: int
    code: int
    incarnation: int
    start: int
    end: int


class Reply(NamedTuple):
    """A reply's header, and where its body lies."""

    request: int
    operation: int
    status: int
    start: int
    end: int


def has_result_section(operation: int) -> bool:
    """Whether the reply begins with a result section. Operations 64 to 127 are those of a server itself: upstream's
    replies to created topics (64), created partitions (65) and deleted segments (68) have them instead of the requested
    one."""
    return operation == REGISTER or 64 <= operation < 160 or operation in (161, 162)


def find_request(buffer: bytes | bytearray, at: int, filled: int, limit: int = MAX_FRAME) -> Request | int:
    """The request at `at`, or the number of bytes needed to parse further. Raises IggyError for an invalid one."""
    size = _size(buffer, at, filled, REQUEST, limit)
    if at + size > filled:
        return size
    return Request._make((*_REQUEST.unpack_from(buffer, at), at + HEADER_SIZE, at + size))


def find_reply(buffer: bytes | bytearray, at: int, filled: int) -> Reply | int:
    """As `find_request`, on the client's side. An eviction is raised as IggyError."""
    if filled - at >= HEADER_SIZE and buffer[at + 60] == EVICTION:
        reason = buffer[at + 255]
        names = {BAD_CREDENTIALS: "invalid_credentials", BAD_TOKEN: "invalid_personal_access_token"}
        names |= {INACTIVE: "user_inactive", BAD_PROTOCOL: "incompatible_protocol_version"}
        raise refusal(names.get(reason, "stale_client"), f"the server ended the session, reason {reason}", reason)
    size = _size(buffer, at, filled, REPLY, MAX_FRAME)
    if at + size > filled:
        return size
    *_, number, operation, status, _, _ = _REPLY.unpack_from(buffer, at)
    return Reply(number, operation, status, at + HEADER_SIZE, at + size)


def _size(buffer: bytes | bytearray, at: int, filled: int, command: int, limit: int) -> int:
    if filled - at < HEADER_SIZE:
        return HEADER_SIZE
    size, found = _SIZE_AND_COMMAND.unpack_from(buffer, at)
    if found != command or not HEADER_SIZE <= size <= limit:
        raise refusal("invalid_command", f"a header with command {found} and size {size}", size)
    return int(size)


def request(code: Code, body_size: int, client: bytes, number: int, login: int, checksum: int = 0) -> bytes:
    """The header of a request; the body follows it."""
    operation = OPERATION_OF.get(code, NON_REPLICATED)
    sent = code if operation == NON_REPLICATED else 0
    size = HEADER_SIZE + body_size
    return _REQUEST_OUT.pack(size, REQUEST, client, checksum.to_bytes(16, "little"), number, operation, login, 0, sent)


def needs_checksum(code: Code) -> bool:
    """Whether the request checksum is that of the body."""
    operation = OPERATION_OF.get(code, NON_REPLICATED)
    return operation == REGISTER or 128 <= operation <= 150


def reply(to: Request, op: int, size: int, status: int = 0, proves: bool = False) -> bytes:
    """The header of a reply with a body of `size` bytes. `proves`: set the flag by which W's clients recognize that a
    change is permanent."""
    final = int(proves and not status and to.operation not in (REGISTER, NON_REPLICATED, LOGOUT))
    head = (HEADER_SIZE + size, REPLY, to.checksum, to.client, op, op, 0, to.number, to.operation, status)
    return _REPLY.pack(*head, final, to.incarnation if proves else 0)


def eviction(reason: int, client: bytes) -> bytes:
    """The last frame to a client: the reason; for an unsupported protocol also the highest and lowest supported ones."""
    frame = bytearray(HEADER_SIZE)
    struct.pack_into("<I8xB", frame, 48, HEADER_SIZE, EVICTION)
    frame[128:144] = client
    if reason == BAD_PROTOCOL:
        struct.pack_into("<II", frame, 144, NEWEST_PROTOCOL, PROTOCOL)
    frame[255] = reason
    return bytes(frame)
