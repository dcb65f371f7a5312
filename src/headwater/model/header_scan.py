"""One pass over a plain header block: whether it is plain (`is_plain`), and what it contains (`split_plain`,
`find_plain`).

    NATS/1.0[ SP or HTAB, then anything]␍␊     nothing here looks at the status
    Name:value␍␊                               zero or more; a name is printable ASCII without the colon, not empty
    ␍␊                                         the last two bytes of the block

Everything else (a folded line, a name that is empty or has a blank in it, a bare CR or LF, bytes after the end) is for
the scan in `header_syntax`, which reads it or says what is wrong. So no error is ever raised here, and what is plain can
be split later without a second look.

Compiled, both are loops over bytes; interpreted, a regular expression and `str.split`. The compiled half remembers some
names: to compare one costs a third of making it anew. Figures: `./hw bench headers`.
"""

import re
from typing import Final

import cython

_SLOTS: cython.Py_ssize_t = 256  # a power of two
_names: list[str] = [""] * 256  # names seen before, by a hash of their bytes; a new name replaces the one in its slot

_PLAIN: Final = re.compile(rb"NATS/1\.0(?:[ \t][^\r\n]*+)?\r\n(?:[!-9;-~]++:[^\r\n]*+\r\n)*+\r\n")


def is_plain(block: bytes) -> bool:
    """Whether `block` has the form that the head of this module draws, from its first byte to its last."""
    if not cython.compiled:
        return _PLAIN.fullmatch(block) is not None
    end: cython.Py_ssize_t = len(block)
    at: cython.Py_ssize_t = 8
    byte: cython.int
    if end < 12 or not block.startswith(b"NATS/1.0"):
        return False
    byte = block[at]
    if byte != 13 and byte != 32 and byte != 9:
        return False
    at = _line_end(block, at, end)
    while at >= 0 and at + 2 < end:
        at += 2  # past the CRLF of the line before
        if block[at] == 13:
            return at + 2 == end and block[at + 1] == 10
        at = _line_end(block, _colon(block, at, end), end)
    return False


def split_plain(block: bytes) -> list[tuple[str, str]]:
    """Name and value of every line of a block that `is_plain`, in order; values without SP and HTAB at their ends.

    UTF-8 with surrogateescape, so that each byte of a value survives.
    """
    pairs: list[tuple[str, str]] = []
    if not cython.compiled:
        text = block[block.index(b"\n") + 1 : -4].decode("utf-8", "surrogateescape")
        for line in text.split("\r\n") if text else ():
            name, _, value = line.partition(":")
            pairs.append((name, value.strip(" \t")))
        return pairs
    end: cython.Py_ssize_t = len(block)
    at: cython.Py_ssize_t = _line_end(block, 8, end)
    colon: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    while at + 4 < end:
        at += 2
        colon = _colon(block, at, end)
        start = colon + 1
        stop = _line_end(block, start, end)
        pairs.append((_name(block, at, colon), _trimmed(block, start, stop)))
        at = stop
    return pairs


def find_plain(block: bytes, name: object) -> str | None:
    """The first value under exactly `name`, a str, in a block that `is_plain`; the other lines are not looked at."""
    if not isinstance(name, str) or not name.isascii() or ":" in name or "\n" in name:
        return None  # no line has such a name, and the search below would find it across the end of one
    start: cython.Py_ssize_t = block.find(b"\r\n" + name.encode("ascii") + b":")
    if start < 0:
        return None
    start += len(name) + 3
    stop: cython.Py_ssize_t = block.find(b"\r", start)
    if not cython.compiled:
        return block[start:stop].decode("utf-8", "surrogateescape").strip(" \t")
    return _trimmed(block, start, stop)


def _trimmed(block: bytes, start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> str:
    """The value in `block[start:stop]`, without SP and HTAB at its ends."""
    while start < stop and (block[start] == 32 or block[start] == 9):
        start += 1
    while start < stop and (block[stop - 1] == 32 or block[stop - 1] == 9):
        stop -= 1
    return block[start:stop].decode("utf-8", "surrogateescape")


def _colon(block: bytes, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset of the colon behind the name that starts at `at`, or `end` when what starts there is no name."""
    start: cython.Py_ssize_t = at
    byte: cython.int
    while at < end:
        byte = block[at]
        if byte == 58:
            return at if at > start else end
        if byte <= 32 or byte >= 127:
            return end
        at += 1
    return end


def _name(block: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> str:
    """The printable ASCII `block[start:end]`, the same object as last time where it is remembered."""
    slot: cython.Py_ssize_t = end - start
    at: cython.Py_ssize_t = start
    while at < end:
        slot = slot * 31 + block[at]
        at += 1
    slot = slot & (_SLOTS - 1)
    name = _names[slot]
    if len(name) == end - start:
        at = 0
        while at < end - start and ord(name[at]) == block[start + at]:
            at += 1
        if at == end - start:
            return name
    name = block[start:end].decode("ascii")
    if end - start <= 64:
        _names[slot] = name
    return name


def _line_end(block: bytes, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset of the CRLF that ends the line around `at`, or -1 when a CR or LF stands alone or none comes."""
    byte: cython.int
    while at < end:
        byte = block[at]
        if byte <= 13:  # one comparison for nearly every byte
            if byte == 13:
                return at if at + 1 < end and block[at + 1] == 10 else -1
            if byte == 10:
                return -1
        at += 1
    return -1
