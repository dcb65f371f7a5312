# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Walking a control line: blanks, tokens, numbers. Shared by the parsers of both directions.

Also `trace_mark`, a quick test whether a header block may request a trace.

Blanks are SP and HTAB only. Python's `split()` also splits at VT, FF and more, and its `int()` accepts signs,
underscores and digits of other scripts, so neither is used here.

`PublishLine` recognises, in one pass, the one form in which nearly every client writes PUB and HPUB. The general parser
takes everything else that the protocol allows, and must give the same result for this form.
"""

import re

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.libc.string import memchr, memcmp, memcpy


def _interpreted(pattern: bytes) -> re.Pattern[bytes]:
    """A pattern for the interpreted path. The compiled path loops over bytes instead, so start-up does not compile the
    pattern.
    """
    return re.compile(b"" if cython.compiled else pattern)


_BLANK = _interpreted(rb"[ \t]")
PLAIN_PUBLISH = _interpreted(rb"PUB ([^\0- ]+) (?:([^\0- ]+) )?([0-9]{1,9})\r\n")
_HPUB = _interpreted(rb"HPUB ([^\0- ]+) (?:([^\0- ]+) )?([0-9]{1,9}) ([0-9]{1,9})\r\n")
MAX_DIGITS: int = 9  # nats-server's bound on sizes and counts: 999,999,999


def skip_blanks(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Position of the first byte of `buffer[start:end]` that is not a blank, or `end`."""
    byte: cython.int
    while start < end:
        byte = buffer[start]
        if byte != 32 and byte != 9:
            return start
        start += 1
    return end


def word_end(base: cython.p_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Position of the first byte of `base[at:end]` that is a blank or a control character, or `end`. Compiled only."""
    if cython.compiled:
        word: cython.ulonglong = 0
        ones: cython.ulonglong = 0x01010101  # a longer literal would be a Python object
        ones |= ones << 32
        while at + 8 <= end:  # eight bytes at a time: the expression is 0 unless one of them is below 33
            memcpy(cython.address(word), base + at, 8)
            if (word - ones * 33) & ~word & (ones * 128) != 0:
                break
            at += 8
        while at < end and base[at] > 32:
            at += 1
        return at
    return end


def token_end(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Position of the first blank of `buffer[start:end]`, or `end`."""
    if cython.compiled:
        base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
        while start < end:
            start = word_end(base, start, end)
            if start == end or base[start] == 32 or base[start] == 9:
                return start
            start += 1  # a control character, which is part of the token
        return end
    found = _BLANK.search(buffer, start, end)
    return found.start() if found else end


def trace_mark(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """Whether the header block `buffer[start:end]` may request a trace: 1 with `Nats-Trace-Dest`, 2 with only
    `traceparent`, otherwise 0. Needs 0 <= start <= end <= len(buffer).

    This runs for every message with headers, so it compares only a few characters of each line. False positives are
    possible, false negatives are not: on a hit `model.message_trace` parses the block.
    """
    at: cython.Py_ssize_t = start + 10  # NATS/1.0 CRLF
    last: cython.Py_ssize_t = end - 14  # start of the last line long enough for `traceparent:` and CRLF
    mark: cython.int = 0
    if cython.compiled:
        base: cython.p_char = PyByteArray_AS_STRING(buffer)
        found: cython.p_char
        while at <= last:
            if base[at] == 78:  # N
                if base[at + 5] == 84 and base[at + 6] == 114 and base[at + 11] == 68:  # Nats-Trace-D
                    return 1
            elif (base[at] | 32) == 116 and (base[at + 4] | 32) == 101 and (base[at + 5] | 32) == 112:  # t…ep
                mark = 2
            found = cython.cast(cython.p_char, memchr(base + at, 10, end - at))
            if found == cython.NULL:
                break
            at = found - base + 1
        return mark
    while at <= last:
        if buffer[at] == 78:
            if buffer[at + 5] == 84 and buffer[at + 6] == 114 and buffer[at + 11] == 68:
                return 1
        elif (buffer[at] | 32) == 116 and (buffer[at + 4] | 32) == 101 and (buffer[at + 5] | 32) == 112:
            mark = 2
        at = buffer.find(10, at, end) + 1
        if at == 0:
            break
    return mark


def run_trace_mark(
    buffer: bytearray,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    stride: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    sampled: cython.bint,
) -> cython.int:
    """The first non-zero `trace_mark` among `count` blocks that are `stride` bytes apart; a mark of 2 counts only if
    `sampled`. A block equal to the one before it is not scanned again.
    """
    mark: cython.int = trace_mark(buffer, start, end)
    before: cython.Py_ssize_t
    while mark != 1 and not (mark == 2 and sampled):
        count -= 1
        if count <= 0:
            return 0
        before, start, end = start, start + stride, end + stride
        if cython.compiled:
            base: cython.p_char = PyByteArray_AS_STRING(buffer)
            if memcmp(base + before, base + start, end - start) != 0:
                mark = trace_mark(buffer, start, end)
        elif buffer[before : before + end - start] != buffer[start:end]:
            mark = trace_mark(buffer, start, end)
    return mark


def parse_size(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The value of the ASCII digits in `buffer[start:end]`; -1 for anything else and for more than 9 digits."""
    if start >= end or end - start > 9:  # MAX_DIGITS, which would be a Python object if used by name here
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


class SizedLine:
    """The end of the control line of an op with a payload: `[reply] <size>␍␊` or `[reply] <header size> <size>␍␊`.

    After `read_sizes` has returned True, the reply ends at `reply_end`, and the header block and payload begin at
    `body`.
    """

    def __init__(self) -> None:
        self.reply_end = 0
        self.header_size = 0
        self.size = 0
        self.body = 0
        self.with_headers = False

    def read_sizes(self, buffer: bytearray, at: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.bint:
        """Whether such an end, with single spaces, follows the word that ends at `at`; `reply_end` is `at` without a
        reply. `with_headers` selects the form. Compiled only; needs 0 <= at <= filled <= len(buffer).
        """
        if cython.compiled:
            base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
            before: cython.Py_ssize_t = at
            word: cython.Py_ssize_t
            words: cython.int = 0
            digit: cython.uint
            value: cython.Py_ssize_t = 0
            numbers: cython.int = 0  # length of the run of numbers that ends with the current word
            self.reply_end = at
            while at < filled and base[at] == 32 and words < 3:
                at += 1
                word = at
                self.header_size = value
                value = 0
                numbers += 1
                if at < filled and (base[at] < 48 or base[at] > 57):  # a reply subject, of up to a hundred bytes
                    numbers = 0
                    at = word_end(base, at, filled)
                while at < filled and base[at] > 32:
                    digit = base[at] - 48
                    if digit > 9:
                        numbers = 0
                    else:
                        value = value * 10 + digit
                    at += 1
                    if at - word > 9:
                        numbers = 0
                        value = 0
                if at == word:
                    return False
                words += 1
                if words == 1:
                    self.reply_end = at
            if at + 2 > filled or base[at] != 13 or base[at + 1] != 10:
                return False
            self.size = value
            self.body = at + 2
            words -= 2 if self.with_headers else 1
            if words == 0:
                self.reply_end = before
            if not self.with_headers:
                self.header_size = 0
            return (words == 0 or words == 1) and numbers >= (2 if self.with_headers else 1)
        return False


class PublishLine(SizedLine):
    """`PUB <subject> [reply] <size>␍␊` or `HPUB <subject> [reply] <header size> <size>␍␊`, in capitals and with single
    spaces.

    After `read` has returned True, the subject is `buffer[subject:subject_end]`, the reply `buffer[subject_end + 1 :
    reply_end]` (absent if `reply_end` is not greater), and the header block and payload begin at `body`. The sizes are
    not compared with each other.
    """

    def __init__(self) -> None:
        SizedLine.__init__(self)
        self.subject = 0
        self.subject_end = 0

    def read(self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.bint:
        """Whether a complete line of this form begins at `start`. Needs 0 <= start <= filled <= len(buffer)."""
        if cython.compiled:
            base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
            at: cython.Py_ssize_t = start + 4
            if filled - start < 8:
                return False
            self.with_headers = base[start] == 72
            if self.with_headers:
                start += 1
                at += 1
            if base[start] != 80 or base[start + 1] != 85 or base[start + 2] != 66 or base[start + 3] != 32:
                return False
            self.subject = at
            at = word_end(base, at, filled)
            if at == filled or at == self.subject or base[at] != 32:
                return False
            self.subject_end = at
            if self.with_headers:
                return self.read_sizes(buffer, at, filled)
            # The most frequent case: no reply, and one number ends the line.
            word: cython.Py_ssize_t = at + 1
            last: cython.Py_ssize_t = min(filled, word + 9)
            value: cython.Py_ssize_t = 0
            digit: cython.uint
            at = word
            while at < last:
                digit = base[at] - 48
                if digit > 9:
                    break
                value = value * 10 + digit
                at += 1
            if at == word or at + 2 > filled or base[at] != 13 or base[at + 1] != 10:
                return self.read_sizes(buffer, word - 1, filled)
            self.reply_end = word - 1
            self.header_size = 0
            self.size = value
            self.body = at + 2
            return True
        return self._read_spans(buffer, start, filled)

    def _read_spans(self, buffer: bytearray, start: int, filled: int) -> bool:
        with_headers = buffer.startswith(b"H", start, filled)
        found = (_HPUB if with_headers else PLAIN_PUBLISH).match(buffer, start, filled)
        if found is None:
            return False
        self.with_headers = with_headers
        self.subject, self.subject_end = found.span(1)
        self.reply_end = max(self.subject_end, found.end(2))
        if with_headers:
            self.header_size, self.size = int(found[3]), int(found[4])
        else:
            self.header_size, self.size = 0, int(found[3])
        self.body = found.end()
        return True
