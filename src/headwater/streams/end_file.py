# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The format of `log.end`, the durable end of the log in a file beside its segments.

    | magic "HWE1" | crc u32 | identity 8 bytes | end offset u64 | base offset of the newest segment u64 | its size u64
    | crc u32 | id of the system's start, 16 bytes, zeros where it has none |

The first CRC32C covers what follows it in the first row; the second row is absent in files of before 2026-11-28. Written in
place after every fdatasync of a segment and never synced itself: one write into the page cache. So it is exact after a
kill, which the id proves: the system was not started since. After a power loss it is as old as the kernel's last
write-back, but never ahead of the segments. Its purpose: recorded_end.py.
"""

import struct
from typing import NamedTuple

import cython
from google_crc32c import value as crc32c

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.headwater.compression.checksum import extend_crc
    from cython.cimports.headwater.streams.log_format import _put, _put_number, _slice
else:
    from headwater.compression.checksum import extend_crc
    from headwater.streams.log_format import _put, _put_number, _slice

from headwater.durable_files.documents import NO_IDENTITY

END_FILE = "log.end"
MAGIC = b"HWE1"
HEAD = struct.Struct("<4sI")
REST = struct.Struct("<8sQQQ")
BOOT = struct.Struct("<I16s")
CRC_SIZE = 4
BOOT_AT = HEAD.size + REST.size
END_FILE_SIZE = BOOT_AT + BOOT.size
_BOOT_AT: cython.Py_ssize_t = BOOT_AT
_CRC_SIZE: cython.Py_ssize_t = CRC_SIZE
_NO_BOOT = bytes(16)


class RecordedEnd(NamedTuple):
    """A lower bound of the log's end: `offset`, below which all was durable, and the size in bytes of its newest segment,
    that of `base_offset` (0: unknown). `is_exact`: no offset at or above `offset` was ever readable in a log that is synced
    with each write."""

    offset: int = 0
    base_offset: int = 0
    size: int = 0
    is_exact: bool = False


def encode_end(
    identity: bytes, end: cython.longlong, base_offset: cython.longlong, size: cython.longlong, boot: bytes = b""
) -> bytes:
    """The file's contents. `boot`: the second row; without it what is there stays."""
    if cython.compiled:
        made: bytes = PyBytes_FromStringAndSize(cython.NULL, _BOOT_AT + len(boot))
        crc_at: cython.Py_ssize_t = _put(made, 0, MAGIC)
        rest_at: cython.Py_ssize_t = crc_at + _CRC_SIZE
        at: cython.Py_ssize_t = _put(made, rest_at, identity)
        at = _put_number(made, at, 8, end)
        at = _put_number(made, at, 8, base_offset)
        at = _put_number(made, at, 8, size)
        _put(made, at, boot)
        _put_number(made, crc_at, _CRC_SIZE, extend_crc(0, _slice(made, rest_at, _BOOT_AT)))
        return made
    rest = REST.pack(identity, end, base_offset, size)
    return HEAD.pack(MAGIC, crc32c(rest)) + rest + boot


def encode_boot(boot: bytes) -> bytes:
    """The second row, from `Files.boot`."""
    boot = boot or _NO_BOOT
    return BOOT.pack(crc32c(boot), boot)


def decode_end(content: bytes, boot: bytes = b"") -> tuple[bytes, RecordedEnd] | None:
    """(identity, recorded end); NO_IDENTITY where the file is damaged. None for one that was never written. `boot`: the id
    of the system's present start."""
    if not any(content):
        return None
    if len(content) not in (BOOT_AT, END_FILE_SIZE):
        return NO_IDENTITY, RecordedEnd()
    magic, crc = HEAD.unpack_from(content)
    written_at = content[BOOT_AT + CRC_SIZE :]
    is_whole = magic == MAGIC and crc32c(content[HEAD.size : BOOT_AT]) == crc
    if not is_whole or content[BOOT_AT:] not in (b"", encode_boot(written_at)):
        return NO_IDENTITY, RecordedEnd()
    identity, end, base_offset, size = REST.unpack_from(content, HEAD.size)
    return identity, RecordedEnd(end, base_offset, size, is_exact=boot != b"" and written_at == boot)
