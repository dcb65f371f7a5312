# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Walking a control line: blanks, tokens, numbers. Shared by the parsers of both directions.

Also the look at a header block that says whether its message may have to be traced.

Blanks are SP and HTAB, nothing else: Python's own notion of whitespace has VT, FF and more, and its `int()` takes
signs, underscores and digits of other scripts.

`PublishLine` recognises the one form in which nearly every client writes PUB and HPUB, in one pass; whatever else the
protocol allows is left to the general parser, which must come to the same result for this form too.
"""

import re

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.libc.string import memchr, memcmp


def _interpreted(pattern: bytes) -> re.Pattern[bytes]:
    """What walks a line where no compiler is; compiled, the walk is written out, and a start need not wait for these."""
    return re.compile(b"" if cython.compiled else pattern)


_BLANK = _interpreted(rb"[ \t]")
PLAIN_PUBLISH = _interpreted(rb"PUB ([^\0- ]+) (?:([^\0- ]+) )?([0-9]{1,9})\r\n")
_HPUB = _interpreted(rb"HPUB ([^\0- ]+) (?:([^\0- ]+) )?([0-9]{1,9}) ([0-9]{1,9})\r\n")
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


def trace_mark(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """Whether the header block `buffer[start:end]` may ask for a trace: 1 by `Nats-Trace-Dest`, 2 only by `traceparent`, 0
    not at all. Needs 0 <= start <= end <= len(buffer).

    Runs for every message with headers, so it looks at the first characters of lines only, and says too much rather than too
    little: `model.message_trace` reads the block then."""
    at: cython.Py_ssize_t = start + 10  # NATS/1.0 CRLF
    last: cython.Py_ssize_t = end - 14  # where the last line that is long enough begins: `traceparent:`, CRLF
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
    """`trace_mark` of the first of `count` blocks, each `stride` bytes behind the one before, that has one; 2 counts as none
    unless `sampled`. A block that repeats the one before it is not walked again."""
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
    """The number written in ASCII digits in `buffer[start:end]`, or -1 when it is none or has over 9 digits."""
    if start >= end or end - start > 9:  # MAX_DIGITS; its name would be a Python object here
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
    """The end of a control line with a payload behind it, `[reply] <size>␍␊` or `[reply] <header size> <size>␍␊`.

    After `read_sizes` said yes: the reply ends at `reply_end`, the payload, or the header block, begins at `body`.
    """

    def __init__(self) -> None:
        self.reply_end = 0
        self.header_size = 0
        self.size = 0
        self.body = 0
        self.with_headers = False

    def read_sizes(self, buffer: bytearray, at: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.bint:
        """Whether such an end stands behind the word that ends at `at`, in single spaces; `reply_end` is `at` where there is
        no reply. `with_headers` says which form. Compiled only; needs 0 <= at <= filled <= len(buffer).
        """
        if cython.compiled:
            base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
            before: cython.Py_ssize_t = at
            word: cython.Py_ssize_t
            words: cython.int = 0
            digit: cython.uint
            value: cython.Py_ssize_t = 0
            numbers: cython.int = 0  # how many of the last words are numbers, one after the other
            self.reply_end = at
            while at < filled and base[at] == 32 and words < 3:
                at += 1
                word = at
                self.header_size = value
                value = 0
                numbers += 1
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
    """`PUB <subject> [reply] <size>␍␊` or `HPUB <subject> [reply] <header size> <size>␍␊`, in capitals and single spaces.

    After `read` said yes: the subject is `buffer[subject:subject_end]`, the reply, when there is one,
    `buffer[subject_end + 1 : reply_end]` (none when `reply_end` is no greater), the payload begins at `body`. No relation
    between the sizes is checked here.
    """

    def __init__(self) -> None:
        SizedLine.__init__(self)
        self.subject = 0
        self.subject_end = 0

    def read(self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.bint:
        """Whether such a line stands at `buffer[start:filled]`, complete. Needs 0 <= start <= filled <= len(buffer)."""
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
            while at < filled and base[at] > 32:
                at += 1
            if at == filled or at == self.subject or base[at] != 32:
                return False
            self.subject_end = at
            if self.with_headers:
                return self.read_sizes(buffer, at, filled)
            # Most often there is no reply, and one number ends the line.
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
