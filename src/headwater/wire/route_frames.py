# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The one form in which brokers write messages for peers, recognised in one pass; what else is allowed is `route_ops`'s.

    RMSG <account> <subject> [reply] <size>␍␊                    v2
    HMSG <account> <subject> [reply] <header size> <size>␍␊      v2
    MSG <subject> <token> [reply] <size>␍␊                       v1

in capitals and single spaces. `route_ops` must come to the same result for these, and does so for all others: lists of
queue groups, other spacing, LF alone.
"""

import re

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING

_WORD = rb"([^\0- ]+)"
_RMSG = re.compile(rb"RMSG %b %b (?:%b )?([0-9]{1,9})\r\n" % (_WORD, _WORD, _WORD))
_HMSG = re.compile(rb"HMSG %b %b (?:%b )?([0-9]{1,9}) ([0-9]{1,9})\r\n" % (_WORD, _WORD, _WORD))
_MSG = re.compile(rb"MSG %b %b (?:%b )?([0-9]{1,9})\r\n" % (_WORD, _WORD, _WORD))


class MessageLine:
    """After `read` said yes: where the words are. The first of the line is the account in v2, the subject in v1.

    `second` is the subject in v2, the token in v1. The reply is `buffer[second_end + 1 : reply_end]`, and there is none
    when `reply_end` is no greater. The header block and payload begin at `body`. No relation of the sizes is checked.
    """

    def __init__(self) -> None:
        self.first = 0
        self.first_end = 0
        self.second = 0
        self.second_end = 0
        self.reply_end = 0
        self.header_size = 0
        self.size = 0
        self.body = 0
        self.with_headers = False
        self.in_v1 = False

    def read(self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.bint:
        """Whether such a line stands at `buffer[start:filled]`, complete. Needs 0 <= start <= filled <= len(buffer)."""
        if cython.compiled:
            base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
            at: cython.Py_ssize_t = start
            if filled - start < 12:
                return False
            self.in_v1 = base[at] == 77  # M
            self.with_headers = base[at] == 72  # H
            if not self.in_v1:
                if base[at] != 82 and base[at] != 72:  # R, H
                    return False
                at += 1
            if base[at] != 77 or base[at + 1] != 83 or base[at + 2] != 71 or base[at + 3] != 32:
                return False
            at += 4
            self.first = at
            while at < filled and base[at] > 32:
                at += 1
            if at == filled or at == self.first or base[at] != 32:
                return False
            self.first_end = at
            at += 1
            self.second = at
            while at < filled and base[at] > 32:
                at += 1
            if at == filled or at == self.second or base[at] != 32:
                return False
            self.second_end = at
            return self._read_sizes(buffer, at, filled)
        return self._read_spans(buffer, start, filled)

    def _read_sizes(self, buffer: bytearray, at: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.bint:
        """What follows the two words, up to the end of the line; compiled only."""
        if cython.compiled:
            base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
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
                self.reply_end = self.second_end
            if not self.with_headers:
                self.header_size = 0
            return (words == 0 or words == 1) and numbers >= (2 if self.with_headers else 1)
        return False

    def _read_spans(self, buffer: bytearray, start: int, filled: int) -> bool:
        self.with_headers = buffer.startswith(b"H", start, filled)
        self.in_v1 = buffer.startswith(b"M", start, filled)
        form = _HMSG if self.with_headers else _MSG if self.in_v1 else _RMSG
        found = form.match(buffer, start, filled)
        if found is None:
            return False
        self.first, self.first_end = found.span(1)
        self.second, self.second_end = found.span(2)
        self.reply_end = max(self.second_end, found.end(3))
        self.header_size = int(found[4]) if self.with_headers else 0
        self.size = int(found[5 if self.with_headers else 4])
        self.body = found.end()
        return True
