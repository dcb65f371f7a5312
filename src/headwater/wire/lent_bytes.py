# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""A part of an array as read-only bytes, without a copy: the batch of a large send, from the array in which it was received
to the checksum and into the file.

The owner of the array changes nothing in it until these bytes are gone (`wire.receive.ReceiveBuffer.leave`). They pin its
size. The checksum's function takes only what looks like `bytes`: read-only, and released without a call. Interpreted code
cannot make such an object before Python 3.12, and copies.
"""

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.cpython.buffer import PyBuffer_FillInfo
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING


class LentBytes:
    """`source[start:end]`; needs 0 <= start <= end <= len(source). It has a length and a buffer, and nothing else."""

    def __init__(self, source: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> None:
        self._source = source
        self._pin = memoryview(source)
        self._start = start
        self._size = end - start

    def __len__(self) -> int:
        return self._size

    if cython.compiled:

        def __getbuffer__(self, view: cython.pointer(Py_buffer), flags: cython.int) -> None:  # type: ignore[valid-type, name-defined]  # noqa: F821
            start: cython.p_char = PyByteArray_AS_STRING(self._source) + self._start
            PyBuffer_FillInfo(view, self, start, self._size, 1, flags)


def lend(source: bytearray, start: int, end: int) -> Any:
    """`source[start:end]` to be written and checked: these calls take it for `bytes`."""
    if cython.compiled:
        return LentBytes(source, start, end)
    return bytes(memoryview(source)[start:end])
