"""Where a JSON value ends in a text, without an object for anything in it.

`checked_end` judges while it goes: what it passes is JSON in ASCII, by the whole grammar of RFC 8259 but for `\\uXXXX` and
more than 61 levels. `trusted_end` counts brackets, which is correct if the value is JSON.
Both need a byte that belongs to no value behind the text: the NUL behind every bytes object, or the bracket around it.
"""

from typing import Final

import cython

Characters = bytes  # compiled, a pointer

BLANK: Final = 1
NAME: Final = 2  # a-z and 0-9, of which the names of attributes are made
VISIBLE: Final = 4  # printable ASCII that stands for itself in a string
DIGIT: Final = 8
ESCAPED: Final = 16  # what may follow a backslash, but for u


def _kind_of(byte: int) -> int:
    kind = BLANK if byte in b" \t\r\n" else 0
    if 0x20 <= byte < 0x7F and byte not in b'"\\':
        kind |= VISIBLE
    if byte in b"0123456789":
        kind |= DIGIT | NAME
    if 0x61 <= byte <= 0x7A:
        kind |= NAME
    return kind | ESCAPED if byte in b'"\\/bfnrt' else kind


KINDS: Final = bytes(_kind_of(byte) for byte in range(256))  # a look-up takes half of what comparisons take


def blanks_end(text: Characters, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset of the first byte from `at` on that is no white space."""
    while text[at] <= 0x20 and (text[at] == 0x20 or text[at] == 0x0A or text[at] == 0x0D or text[at] == 0x09):
        at += 1
    return at


def run_end(text: Characters, at: cython.Py_ssize_t, kind: cython.int) -> cython.Py_ssize_t:
    """Offset of the first byte from `at` on that is not of this kind."""
    kinds = KINDS
    while kinds[text[at]] & kind:
        at += 1
    return at


def checked_end(text: Characters, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset after the value that begins at `at`; -1 when it is no JSON, or not of the kind described above."""
    inside: cython.ulonglong = 1  # a bit for each open bracket, set for an object; the highest set bit is a mark
    byte: cython.int
    while True:
        byte = text[at]
        if byte == 0x22:
            at = _string_end(text, at + 1)
        elif byte == 0x7B or byte == 0x5B:
            if inside >> 61:
                return -1
            inside = inside << 1 | (byte == 0x7B)
            at = blanks_end(text, at + 1)
            if text[at] != byte + 2:  # brackets close two characters after those that open
                if byte == 0x7B:
                    at = _member_start(text, at)
                if at < 0:
                    return -1
                continue
            inside >>= 1
            at += 1
        else:
            at = _word_end(text, at)
        if at < 0:
            return -1
        while inside != 1:
            at = blanks_end(text, at)
            byte = text[at]
            if byte == 0x2C:
                at = blanks_end(text, at + 1)
                break
            if byte != (0x7D if inside & 1 else 0x5D):
                return -1
            inside >>= 1
            at += 1
        else:
            return at
        if inside & 1:
            at = _member_start(text, at)
            if at < 0:
                return -1


def _member_start(text: Characters, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset of the value of the member whose name begins at `at`, or -1."""
    if text[at] != 0x22:
        return -1
    at = _string_end(text, at + 1)
    if at < 0:
        return -1
    at = blanks_end(text, at)
    return blanks_end(text, at + 1) if text[at] == 0x3A else -1


def _string_end(text: Characters, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset after the quote that closes a string, or -1."""
    kinds = KINDS
    while True:
        while kinds[text[at]] & VISIBLE:
            at += 1
        if text[at] == 0x22:
            return at + 1
        if text[at] != 0x5C or not kinds[text[at + 1]] & ESCAPED:
            return -1
        at += 2


def _word_end(text: Characters, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset after a number, true, false or null, or -1."""
    if text[at] == 0x74:
        return at + 4 if text[at + 1] == 0x72 and text[at + 2] == 0x75 and text[at + 3] == 0x65 else -1
    if text[at] == 0x6E:
        return at + 4 if text[at + 1] == 0x75 and text[at + 2] == 0x6C and text[at + 3] == 0x6C else -1
    if text[at] == 0x66:
        if text[at + 1] != 0x61 or text[at + 2] != 0x6C or text[at + 3] != 0x73:
            return -1
        return at + 5 if text[at + 4] == 0x65 else -1
    if text[at] == 0x2D:
        at += 1
    if text[at] == 0x30:
        at += 1
    else:
        at = _digits_end(text, at)
    if at >= 0 and text[at] == 0x2E:
        at = _digits_end(text, at + 1)
    if at < 0 or text[at] | 0x20 != 0x65:
        return at
    at += 1
    return _digits_end(text, at + 1 if text[at] == 0x2B or text[at] == 0x2D else at)


def _digits_end(text: Characters, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset after one digit or more, or -1."""
    end: cython.Py_ssize_t = run_end(text, at, DIGIT)
    return end if end > at else -1


def trusted_end(text: Characters, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset after the value that starts at `at`, assuming that it is JSON; -1 when it does not end before `end`."""
    depth: cython.Py_ssize_t = 0
    byte: cython.int
    while at < end:
        byte = text[at]
        if byte == 0x22:
            at += 1
            while at < end and text[at] != 0x22:
                at += 2 if text[at] == 0x5C else 1
            if depth == 0:
                return at + 1 if at < end else -1
        elif byte == 0x7B or byte == 0x5B:
            depth += 1
        elif byte == 0x7D or byte == 0x5D:
            if depth == 0:
                return at
            depth -= 1
            if depth == 0:
                return at + 1
        elif depth == 0 and (byte == 0x2C or byte <= 0x20):
            return at
        at += 1
    return -1
