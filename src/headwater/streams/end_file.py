"""The format of `log.end`, the durable end of the log in a file beside its segments.

    | magic "HWE1" | crc u32 | identity 8 bytes | end offset u64 | base offset of the newest segment u64 | its size u64 |

The CRC32C covers all that follows it. Written in place after every fdatasync of a segment and never synced itself: one
write into the page cache. So it is exact after a kill; after a power loss it is as old as the kernel's last write-back,
but never ahead of the segments. Its purpose: recorded_end.py.
"""

import struct
from typing import NamedTuple

from google_crc32c import value as crc32c

from headwater.durable_files.documents import NO_IDENTITY

END_FILE = "log.end"
MAGIC = b"HWE1"
HEAD = struct.Struct("<4sI")
REST = struct.Struct("<8sQQQ")
END_FILE_SIZE = HEAD.size + REST.size


class RecordedEnd(NamedTuple):
    """A lower bound of the log's end: `offset`, and the size in bytes of its newest segment, that of `base_offset` (0:
    unknown)."""

    offset: int = 0
    base_offset: int = 0
    size: int = 0


def encode_end(identity: bytes, end: int, base_offset: int, size: int) -> bytes:
    """The file's contents."""
    rest = REST.pack(identity, end, base_offset, size)
    return HEAD.pack(MAGIC, crc32c(rest)) + rest


def decode_end(content: bytes) -> tuple[bytes, RecordedEnd] | None:
    """(identity, recorded end); NO_IDENTITY where the file is damaged. None for one that was never written."""
    if not any(content):
        return None
    if len(content) < END_FILE_SIZE:
        return NO_IDENTITY, RecordedEnd()
    magic, crc = HEAD.unpack_from(content)
    if magic != MAGIC or crc32c(content[HEAD.size : END_FILE_SIZE]) != crc:
        return NO_IDENTITY, RecordedEnd()
    identity, end, base_offset, size = REST.unpack_from(content, HEAD.size)
    return identity, RecordedEnd(end, base_offset, size)
