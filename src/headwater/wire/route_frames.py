# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Recogniser, in one pass, of the one form in which brokers write messages to peers; `route_ops` parses all other
forms.

    RMSG <account> <subject> [reply] <size>␍␊                    v2
    HMSG <account> <subject> [reply] <header size> <size>␍␊      v2
    RMSG <account> <subject> | <queue>... <size>␍␊               v2, and HMSG with two sizes
    RMSG <account> <subject> + <reply> <queue>... <size>␍␊       v2, and HMSG with two sizes
    MSG <subject> <token> [reply] <size>␍␊                       v1
    LMSG and HMSG as in v2, without the account                  leaf nodes

In capitals and with single spaces. The general parser of `route_ops` takes everything else (other spacing, LF alone)
and must give the same result for these forms.
"""

import re

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.headwater.wire.scan import SizedLine
else:
    from headwater.wire.scan import SizedLine

_WORD = rb"([^\0- ]+)"
_RMSG = re.compile(rb"RMSG %b %b (?:%b )?([0-9]{1,9})\r\n" % (_WORD, _WORD, _WORD))
_HMSG = re.compile(rb"HMSG %b %b (?:%b )?([0-9]{1,9}) ([0-9]{1,9})\r\n" % (_WORD, _WORD, _WORD))
_MSG = re.compile(rb"MSG %b %b (?:%b )?([0-9]{1,9})\r\n" % (_WORD, _WORD, _WORD))
_LIST = rb"(?:\||\+ ([^\0- ]+)) ([^\0- ]+(?: [^\0- ]+)*)"
_RMSG_LIST = re.compile(rb"RMSG %b %b %b ([0-9]{1,9})\r\n" % (_WORD, _WORD, _LIST))
_HMSG_LIST = re.compile(rb"HMSG %b %b %b ([0-9]{1,9}) ([0-9]{1,9})\r\n" % (_WORD, _WORD, _LIST))
# Leaf nodes: the empty first group stands in for the account.
_LEAF = re.compile(rb"LMSG ()%b (?:%b )?([0-9]{1,9})\r\n" % (_WORD, _WORD))
_LEAF_HEADERS = re.compile(rb"HMSG ()%b (?:%b )?([0-9]{1,9}) ([0-9]{1,9})\r\n" % (_WORD, _WORD))
_LEAF_LIST = re.compile(rb"LMSG ()%b %b ([0-9]{1,9})\r\n" % (_WORD, _LIST))
_LEAF_HEADERS_LIST = re.compile(rb"HMSG ()%b %b ([0-9]{1,9}) ([0-9]{1,9})\r\n" % (_WORD, _LIST))


class MessageLine(SizedLine):
    """After `read` has returned True: the positions of the words. `first` is the account in v2, the subject in v1, and
    empty between leaf nodes. `second` is the subject, in v1 the token. The reply is `buffer[reply:reply_end]`, absent
    if `reply_end <= reply`. `buffer[queues:queues_end]` is the list of queue groups, or empty. The header block and
    payload begin at `body`. The sizes are not compared with each other.
    """

    def __init__(self) -> None:
        SizedLine.__init__(self)
        self.first = 0
        self.first_end = 0
        self.second = 0
        self.second_end = 0
        self.reply = 0
        self.queues = 0
        self.queues_end = 0
        self.in_v1 = False

    def read(self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.bint:
        """Whether a complete line of this form begins at `start`. Needs 0 <= start <= filled <= len(buffer)."""
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
            return self._read_rest(buffer, at + 1, filled)
        forms = (
            (_MSG, _MSG, _MSG, _MSG)
            if buffer.startswith(b"M", start, filled)
            else (_RMSG, _HMSG, _RMSG_LIST, _HMSG_LIST)
        )
        return self._read_spans(buffer, start, filled, forms)

    def read_leaf(self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.bint:
        """As `read`, for LMSG, and for HMSG between leaf nodes, which have no account."""
        if cython.compiled:
            base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
            if filled - start < 11 or (base[start] != 76 and base[start] != 72):  # L, H
                return False
            if base[start + 1] != 77 or base[start + 2] != 83 or base[start + 3] != 71 or base[start + 4] != 32:
                return False
            self.in_v1 = False
            self.with_headers = base[start] == 72
            self.first = self.first_end = start + 5
            return self._read_rest(buffer, start + 5, filled)
        return self._read_spans(buffer, start, filled, (_LEAF, _LEAF_HEADERS, _LEAF_LIST, _LEAF_HEADERS_LIST))

    def _read_rest(self, buffer: bytearray, at: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.bint:
        """The rest of `read`, from the second word at `at` on; compiled only."""
        if cython.compiled:
            base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
            self.second = at
            while at < filled and base[at] > 32:
                at += 1
            if at == filled or at == self.second or base[at] != 32:
                return False
            self.second_end = at
            if not self.in_v1 and at + 2 < filled and base[at + 2] == 32:
                if (base[at + 1] == 124 or base[at + 1] == 43) and self._read_list(buffer, at, filled):  # | +
                    return True
            self.reply = at + 1
            self.queues = self.queues_end = at
            return self.read_sizes(buffer, at, filled)
        return False

    def _read_list(self, buffer: bytearray, at: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.bint:
        """The rest of `read`, from the space at `at` before the sign of a list on; compiled only."""
        if cython.compiled:
            base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
            words: cython.int = -1 if base[at + 1] == 43 else 0  # the reply does not belong to the list
            sizes: cython.int = 2 if self.with_headers else 1
            last: cython.Py_ssize_t = 0
            before_last: cython.Py_ssize_t = 0
            at += 2
            self.reply = self.queues = at + 1
            reply_end: cython.Py_ssize_t = self.reply
            while at < filled and base[at] == 32:
                at += 1
                before_last = last
                last = at
                while at < filled and base[at] > 32:
                    at += 1
                if at == last:
                    return False
                if words == -1:
                    reply_end = at
                    self.queues = at + 1
                words += 1
            if words <= sizes:
                return False
            self.queues_end = (before_last if self.with_headers else last) - 1
            if not self.read_sizes(buffer, self.queues_end, filled):
                return False
            self.reply_end = reply_end
            return True
        return False

    def _read_spans(self, buffer: bytearray, start: int, filled: int, forms: tuple[re.Pattern[bytes], ...]) -> bool:
        """Interpreted `read`. `forms`: plain, with headers, and both again with a list of queue groups."""
        self.with_headers = buffer.startswith(b"H", start, filled)
        self.in_v1 = buffer.startswith(b"M", start, filled)
        form, list_form = (forms[1], forms[3]) if self.with_headers else (forms[0], forms[2])
        lists = None if self.in_v1 else list_form.match(buffer, start, filled)
        found = lists or form.match(buffer, start, filled)
        if found is None:
            return False
        self.first, self.first_end = found.span(1)
        self.second, self.second_end = found.span(2)
        self.reply, self.reply_end = found.span(3)
        self.queues, self.queues_end = found.span(4) if lists else (self.second_end, self.second_end)
        if self.reply < 0:
            self.reply = self.reply_end = self.second_end + 1
        numbers = found.groups()[4 if lists else 3 :]
        self.header_size = int(numbers[0]) if self.with_headers else 0
        self.size = int(numbers[len(numbers) - 1])
        self.body = found.end()
        return True
