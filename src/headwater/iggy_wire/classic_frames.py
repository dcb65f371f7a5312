"""The classic framing, eras S to C3, over TCP and in QUIC streams.

    request    | length u32 = 4 + payload size | code u32 | payload |
    response   | status u32, 0 or an error's number | length u32 | payload, none with an error |

One request is in flight at a time; the answers come in the order of the requests.
"""

import struct
from typing import Final, NamedTuple

from headwater.iggy_wire.error_numbers import refusal

HEAD = struct.Struct("<II")
MAX_FRAME: Final = 64 << 20


class Request(NamedTuple):
    """A request in a buffer: its payload is `[start, end)`."""

    code: int
    start: int
    end: int


def find_request(buffer: bytes | bytearray, at: int, filled: int, limit: int = MAX_FRAME) -> Request | int:
    """The request at `at`, or the number of bytes needed to parse further. Raises IggyError for an invalid length,
    after which nothing can be trusted."""
    if filled - at < HEAD.size:
        return HEAD.size
    length, code = HEAD.unpack_from(buffer, at)
    if not 4 <= length <= limit:
        raise refusal("invalid_command", f"a request of {length} bytes", length)
    end = at + 4 + length
    return Request(code, at + HEAD.size, end) if end <= filled else 4 + length


def request(code: int, payload: bytes) -> bytes:
    """A request in its frame."""
    return HEAD.pack(4 + len(payload), code) + payload


def response(status: int, payload: bytes = b"") -> bytes:
    """A response in its frame."""
    return HEAD.pack(status, len(payload)) + payload
