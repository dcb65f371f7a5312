# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Whether a subject is one of those that a pattern stands for; `model.subject` has their rules.

    pattern   grow.*.events     one look at each byte, compiled: some 20 ns, less than it takes to ask a cache for the
    subject   grow.17.events    answer. Split into tokens it takes 0.7 us.

Who checks every message against a few patterns (permissions, filters of consumers) needs no cache then. A cache of 1,024
subjects that is cleared when it is full answers nothing where 1,025 take turns.

`is_plain` is the same for the check of what a program publishes to.
"""

from collections.abc import Sequence

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING


def matches(pattern: bytes, subject: bytes) -> cython.bint:
    """Whether a message published to the literal `subject` reaches a subscription to `pattern`.

    A subject with an empty token matches no subscription, not even `>`, as in nats-server.
    """
    if cython.compiled:
        return _compare(
            cython.cast(cython.p_uchar, PyBytes_AS_STRING(pattern)),
            len(pattern),
            cython.cast(cython.p_uchar, PyBytes_AS_STRING(subject)),
            len(subject),
        )
    wanted = pattern.split(b".")
    tokens = subject.split(b".")
    if b"" in tokens:
        return False
    for position, token in enumerate(wanted):
        if token == b">" and position == len(wanted) - 1:
            return len(tokens) > position
        if position >= len(tokens) or (token != b"*" and token != tokens[position]):
            return False
    return len(tokens) == len(wanted)


def matches_one(patterns: Sequence[bytes], subject: bytes) -> cython.bint:
    """Whether one of the patterns matches."""
    pattern: bytes
    for pattern in patterns:
        if matches(pattern, subject):
            return True
    return False


def is_plain(subject: bytes) -> cython.bint:
    """Whether a program may publish to this subject, which is of printable ASCII characters; False also of others, and
    interpreted. Who gets False asks `model.subject.validate_subject`, which says why."""
    if cython.compiled:
        name: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(subject))
        size: cython.Py_ssize_t = len(subject)
        start: cython.Py_ssize_t = 0  # of a token
        at: cython.Py_ssize_t
        for at in range(size + 1):
            if at == size or name[at] == 46:
                if at == start or (at == start + 1 and (name[start] == 42 or name[start] == 62)):  # nothing, * or >
                    return False
                start = at + 1
            elif name[at] <= 32 or name[at] >= 127:
                return False
        return True
    return False


def _compare(
    pattern: cython.p_uchar, size: cython.Py_ssize_t, subject: cython.p_uchar, length: cython.Py_ssize_t
) -> cython.bint:
    """`matches`, of a pattern that has a 0 behind it; whatever is behind the subject may be read, and makes no difference.
    Compiled only."""
    if cython.compiled:
        at: cython.Py_ssize_t = 0  # in the pattern, and
        place: cython.Py_ssize_t = 0  # in the subject, where a token begins
        while place < length and subject[place] != 46:  # no empty token
            if pattern[at] == 62 and at + 1 == size:  # > is the last token
                while place < length:  # the others may not be empty
                    if subject[place] == 46 and (subject[place + 1] == 46 or place + 1 == length):
                        return False
                    place += 1
                return True
            if pattern[at] == 42 and (at + 1 == size or pattern[at + 1] == 46):  # *
                at += 1
                while place < length and subject[place] != 46:
                    place += 1
            else:
                while at < size and pattern[at] != 46:
                    if place == length or subject[place] != pattern[at]:
                        return False
                    at += 1
                    place += 1
                if place < length and subject[place] != 46:
                    return False
            if at == size or place == length:
                return at == size and place == length
            at += 1
            place += 1
    return False
