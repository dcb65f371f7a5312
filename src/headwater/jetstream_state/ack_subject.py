# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Reads the subjects on which deliveries are acknowledged, and the numbers in every reply subject: their one scanner.

    $JS.ACK.<stream>.<consumer>.<count>.<stream seq>.<consumer seq>.<timestamp ns>.<pending>
    $JS.ACK.<domain>.<account hash>.<stream>.<consumer>.…, the same behind; more tokens may follow      jetstream/domain.py

Hot and compiled: it runs once for every acknowledgement, and makes no objects. Where the head of the subject is known,
`read_behind` need not look at it.
"""

import cython

DOT: cython.uchar = 46
MOST_DIGITS: cython.Py_ssize_t = 19  # the most digits of a number that fits 63 bits


class AckSubject:
    """The numbers of the last subject read: the delivery that is acknowledged."""

    def __init__(self) -> None:
        self.stream_sequence = -1
        self.consumer_sequence = -1

    def read(self, subject: bytes) -> cython.bint:
        """Whether this is an ack subject, in either form."""
        fifth: cython.Py_ssize_t = 0  # where tokens begin; the first has index 0
        sixth: cython.Py_ssize_t = 0
        seventh: cython.Py_ssize_t = 0
        eighth: cython.Py_ssize_t = 0
        ninth: cython.Py_ssize_t = 0
        tokens: cython.Py_ssize_t = 1
        at: cython.Py_ssize_t
        for at in range(len(subject)):
            if subject[at] == DOT:
                if tokens == 5:
                    fifth = at + 1
                elif tokens == 6:
                    sixth = at + 1
                elif tokens == 7:
                    seventh = at + 1
                elif tokens == 8:
                    eighth = at + 1
                elif tokens == 9:
                    ninth = at + 1
                tokens += 1
        if tokens == 9:
            self.stream_sequence = number(subject, fifth, sixth - 1)
            self.consumer_sequence = number(subject, sixth, seventh - 1)
        elif tokens >= 11:
            self.stream_sequence = number(subject, seventh, eighth - 1)
            self.consumer_sequence = number(subject, eighth, ninth - 1)
        else:
            return False
        return self.stream_sequence >= 0 and self.consumer_sequence >= 0

    def read_behind(self, subject: bytes, start: cython.Py_ssize_t) -> cython.bint:
        """As `read`, for a subject in the short form whose first four tokens end before `start`."""
        size: cython.Py_ssize_t = len(subject)
        at: cython.Py_ssize_t = _token_end(subject, start, size)
        begin: cython.Py_ssize_t = at + 1
        at = _token_end(subject, begin, size)
        self.stream_sequence = number(subject, begin, at)
        begin = at + 1
        at = _token_end(subject, begin, size)
        self.consumer_sequence = number(subject, begin, at)
        at = _token_end(subject, at + 1, size)
        if at >= size or _token_end(subject, at + 1, size) < size:
            return False
        return self.stream_sequence >= 0 and self.consumer_sequence >= 0


def _token_end(subject: bytes, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the token that begins at `at` ends: at the next dot, or at `size`."""
    while at < size and subject[at] != DOT:
        at += 1
    return at


def deliveries_of(subject: bytes) -> int:
    """The delivery count in an ack subject of either form; -1 for no number."""
    tokens = subject.split(b".")
    return int(text) if (text := tokens[4 if len(tokens) == 9 else 6]).isdigit() and len(text) < 19 else -1


def number(subject: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.longlong:
    """The number written in ASCII digits in `subject[start:end]`; -1 for none, or one above 63 bits."""
    number: cython.ulonglong = 0
    digit: cython.int
    if not 0 < end - start <= MOST_DIGITS:
        return -1
    while start < end:
        digit = cython.cast(cython.int, subject[start]) - 48
        if not 0 <= digit <= 9:
            return -1
        number = number * 10 + digit
        start += 1
    if cython.compiled:
        read: cython.longlong = cython.cast(cython.longlong, number)
        return read if read >= 0 else -1  # 19 digits fit 64 bits, so one above 63 bits is negative here
    return number if number <= 0x7FFFFFFFFFFFFFFF else -1
