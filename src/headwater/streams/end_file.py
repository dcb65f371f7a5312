"""The bytes of `log.end`: how far the log was durable, in a file beside its segments.

    | magic "HWE1" | crc u32 | identity 8 bytes | end offset u64 | base offset of the newest segment u64 | its size u64 |

The CRC32C covers all that follows it. Written in place after every fdatasync of a segment and never synced itself: one
write into the page cache. So it is exact after a kill, and after a power loss as old as what the kernel had written back,
but never ahead of the segments. What it is for: recorded_end.py.
"""

import struct
from typing import NamedTuple

from google_crc32c import value as crc32c

from headwater.streams.meta import NOBODY

END_FILE = "log.end"
MAGIC = b"HWE1"
HEAD = struct.Struct("<4sI")
REST = struct.Struct("<8sQQQ")
END_FILE_SIZE = HEAD.size + REST.size


class RecordedEnd(NamedTuple):
    """The log reached to `offset` at least; and its newest segment, that of `base_offset`, was `size` bytes long (0: not
    known)."""

    offset: int = 0
    base_offset: int = 0
    size: int = 0


def encode_end(identity: bytes, end: int, base_offset: int, size: int) -> bytes:
    """The file's contents."""
    rest = REST.pack(identity, end, base_offset, size)
    return HEAD.pack(MAGIC, crc32c(rest)) + rest


def decode_end(content: bytes) -> tuple[bytes, RecordedEnd] | None:
    """(identity, what it knows); the identity is nobody's when the file is damaged. None for one that was never written."""
    if not any(content):
        return None
    if len(content) < END_FILE_SIZE:
        return NOBODY, RecordedEnd()
    magic, crc = HEAD.unpack_from(content)
    if magic != MAGIC or crc32c(content[HEAD.size : END_FILE_SIZE]) != crc:
        return NOBODY, RecordedEnd()
    identity, end, base_offset, size = REST.unpack_from(content, HEAD.size)
    return identity, RecordedEnd(end, base_offset, size)
