# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Little-endian integers in a buffer, for the decoders of stored and polled batches. Bounds are the caller's to check."""

import cython


def u32(buffer: bytearray, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Little-endian u32 at `at`; the caller checks bounds."""
    if cython.compiled:
        low: cython.Py_ssize_t = buffer[at]
        second: cython.Py_ssize_t = buffer[at + 1]
        third: cython.Py_ssize_t = buffer[at + 2]
        high: cython.Py_ssize_t = buffer[at + 3]
        return low | (second << 8) | (third << 16) | (high << 24)
    return int.from_bytes(buffer[at : at + 4], "little")


def u64(buffer: bytearray, at: cython.Py_ssize_t) -> cython.longlong:
    """Little-endian u64 at `at`; negative from 2**63 on."""
    if cython.compiled:
        low: cython.ulonglong = u32(buffer, at)
        high: cython.ulonglong = u32(buffer, at + 4)
        signed: cython.longlong = cython.cast(cython.longlong, low | (high << 32))
        return signed
    return int.from_bytes(buffer[at : at + 8], "little", signed=True)
