# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Walks over small batches to the one that has a record.

    header │ body │ header │ body │ header │ body         4 KiB behind an entry of the index: a dozen batches of one message
    ──── step_over ─────────────▶ the first that may have the offset

A stream whose publishers send a message now and then has one in each batch. A get walks over half a dozen of their headers,
and to make an object of each took longer than all the rest of it.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.headwater.compression.checksum import extend_short
    from cython.cimports.headwater.streams.log_format import _u32
    from cython.cimports.libc.string import memcmp

from headwater.streams.log_format import (
    BATCH_HEADER_SIZE,
    BATCH_MAGIC,
    DIALECT_TOMBSTONES,
    HEADER_REST_AT,
    IDENTITY_SIZE,
    MARKER_SIZE,
    VERSION,
)

_HEADER_SIZE: cython.Py_ssize_t = BATCH_HEADER_SIZE
_MAGIC: bytes = BATCH_MAGIC
_MAGIC_SIZE: cython.Py_ssize_t = MARKER_SIZE - IDENTITY_SIZE
_IDENTITY_SIZE: cython.Py_ssize_t = IDENTITY_SIZE
_CRC_AT: cython.Py_ssize_t = MARKER_SIZE
_REST_AT: cython.Py_ssize_t = HEADER_REST_AT
# Behind it (log_format.HEADER_REST):
_SPAN_AT: cython.Py_ssize_t = 8
_SIZE_AT: cython.Py_ssize_t = 12
_BASE_AT: cython.Py_ssize_t = 16
_VERSION: cython.int = VERSION
_LAST_DIALECT: cython.int = DIALECT_TOMBSTONES


def step_over(buffer: bytes, at: cython.Py_ssize_t, identity: bytes, offset: cython.longlong) -> cython.Py_ssize_t:
    """How many bytes the batches from `buffer[at:]` on take that end at `offset` or below, as far as their headers are
    there, intact and of this version. 0 interpreted: then all are left to `decode_batch_header`."""
    start: cython.Py_ssize_t = at
    if cython.compiled:
        size: cython.Py_ssize_t = len(buffer)
        raw: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(buffer))
        rest: cython.Py_ssize_t
        base: cython.longlong
        while 0 <= at and at + _HEADER_SIZE <= size:
            rest = at + _REST_AT
            if (
                memcmp(raw + at, PyBytes_AS_STRING(_MAGIC), _MAGIC_SIZE) != 0
                or memcmp(raw + at + _MAGIC_SIZE, PyBytes_AS_STRING(identity), _IDENTITY_SIZE) != 0
                or raw[rest] != _VERSION
                or raw[rest + 1] > _LAST_DIALECT
            ):
                break
            base = cython.cast(
                cython.longlong, _u32(buffer, rest + _BASE_AT) | (_u32(buffer, rest + _BASE_AT + 4) << 32)
            )
            if base + cython.cast(cython.longlong, _u32(buffer, rest + _SPAN_AT)) > offset:
                break
            if extend_short(0, raw + rest, _HEADER_SIZE - _REST_AT) != _u32(buffer, at + _CRC_AT):
                break
            at += _HEADER_SIZE + cython.cast(cython.Py_ssize_t, _u32(buffer, rest + _SIZE_AT))
    return at - start
