# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""CRC32C of many short pieces, for the checksum that every record has.

google-crc32c computes 11 GB/s, but a call of it costs 100 to 250 ns, more than the checksum of a small record takes. So
this module computes the CRC of a short piece, sixteen bytes a step with as many tables (some 3 GB/s), and google-crc32c
that of a long one. Both continue the CRC32C of what came before, as `google_crc32c.extend` does. Interpreted code always
calls google-crc32c.
"""

from array import array

import cython
from google_crc32c import extend as _extend_long

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING

POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reversed
STEP = 16  # bytes
SHORT = 512  # bytes; for longer pieces the call is cheaper
_SHORT: cython.Py_ssize_t = SHORT


def _tables() -> bytes:
    """Tables of 256 numbers: what a byte contributes to the CRC, by its distance (0 to 15 bytes) from the end of a
    step."""
    tables = [[0] * 256 for _ in range(STEP)]
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (POLYNOMIAL if crc & 1 else 0)
        tables[0][byte] = crc
    for step in range(1, STEP):
        for byte in range(256):
            before = tables[step - 1][byte]
            tables[step][byte] = (before >> 8) ^ tables[0][before & 0xFF]
    return array("I", [number for table in tables for number in table]).tobytes()


_TABLES: bytes = _tables()


def extend_crc(crc: cython.uint, data: bytes) -> cython.uint:
    """The CRC32C of some bytes followed by `data`; `crc` is that of those bytes (0: there are none)."""
    if cython.compiled and len(data) <= _SHORT:
        return extend_short(crc, cython.cast(cython.p_uchar, PyBytes_AS_STRING(data)), len(data))
    extended: int = _extend_long(crc, data)
    return extended


def extend_short(crc: cython.uint, source: cython.p_uchar, size: cython.Py_ssize_t) -> cython.uint:
    """As `extend_crc`, for bytes behind a pointer. Only compiled code calls it."""
    if cython.compiled:
        table: cython.p_uint = cython.cast(cython.p_uint, PyBytes_AS_STRING(_TABLES))
        at: cython.Py_ssize_t = 0
        crc = ~crc
        while size - at >= 16:
            crc = crc ^ (
                cython.cast(cython.uint, source[at])
                | (cython.cast(cython.uint, source[at + 1]) << 8)
                | (cython.cast(cython.uint, source[at + 2]) << 16)
                | (cython.cast(cython.uint, source[at + 3]) << 24)
            )
            crc = (
                table[3840 + (crc & 0xFF)]
                ^ table[3584 + ((crc >> 8) & 0xFF)]
                ^ table[3328 + ((crc >> 16) & 0xFF)]
                ^ table[3072 + (crc >> 24)]
                ^ table[2816 + source[at + 4]]
                ^ table[2560 + source[at + 5]]
                ^ table[2304 + source[at + 6]]
                ^ table[2048 + source[at + 7]]
                ^ table[1792 + source[at + 8]]
                ^ table[1536 + source[at + 9]]
                ^ table[1280 + source[at + 10]]
                ^ table[1024 + source[at + 11]]
                ^ table[768 + source[at + 12]]
                ^ table[512 + source[at + 13]]
                ^ table[256 + source[at + 14]]
                ^ table[source[at + 15]]
            )
            at += 16
        while at < size:
            crc = (crc >> 8) ^ table[(crc ^ source[at]) & 0xFF]
            at += 1
        crc = ~crc
    return crc
