"""Walking a control line: blanks, tokens, numbers. Shared by the parsers of both directions.

Blanks are SP and HTAB, nothing else: Python's own notion of whitespace has VT, FF and more, and its `int()` takes
signs, underscores and digits of other scripts.
"""

import re

import cython

_BLANK = re.compile(rb"[ \t]")
MAX_DIGITS: int = 9  # nats-server's bound on sizes and counts: 999,999,999


def skip_blanks(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Position of the first byte of `buffer[start:end]` that is no blank, or `end`."""
    byte: cython.int
    while start < end:
        byte = buffer[start]
        if byte != 32 and byte != 9:
            return start
        start += 1
    return end


def token_end(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Position of the first blank of `buffer[start:end]`, or `end`."""
    if cython.compiled:
        byte: cython.int
        while start < end:
            byte = buffer[start]
            if byte == 32 or byte == 9:
                return start
            start += 1
        return end
    found = _BLANK.search(buffer, start, end)
    return found.start() if found else end


def parse_size(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The number written in ASCII digits in `buffer[start:end]`, or -1 when it is none or has over 9 digits."""
    if start >= end or end - start > MAX_DIGITS:
        return -1
    value: cython.Py_ssize_t = 0
    byte: cython.int
    while start < end:
        byte = buffer[start]
        if byte < 48 or byte > 57:
            return -1
        value = value * 10 + (byte - 48)
        start += 1
    return value
