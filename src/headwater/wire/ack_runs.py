# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""One acknowledgement for a run of publishes, for a publisher whose reply subjects say that it takes them.

    HPUB orders.new _INBOX.HWRUNS.<random>.41 …      ─┐
    HPUB orders.new _INBOX.HWRUNS.<random>.42 …       ├─▶  MSG _INBOX.HWRUNS.<random>.43 …  {"stream":"S","seq":107,"run":3}
    HPUB orders.new _INBOX.HWRUNS.<random>.43 …      ─┘

Headwater's broker answers publishes that became durable together with one message, if they came one behind the other and
their reply subjects begin with `RUNS` and end in consecutive numbers. `run` is how many there are; the answer goes to the
last of them and has its sequence. A refusal, a duplicate and a number of another length end a run, so those are answered
as ever; and so is everything by servers that know nothing of this. What is acknowledged, and when, is not changed by it.
"""

import cython

RUNS: bytes = b"_INBOX.HWRUNS."
RUN_MEMBER: bytes = b',"run":'


def is_next(before: bytes, reply: bytes) -> cython.bint:
    """Whether `reply` is `before` but for a number at the end, which is one more and as long."""
    at: cython.Py_ssize_t = len(before) - 1
    if len(reply) != len(before) or at < 0:
        return False
    while at > 0 and before[at] == 57 and reply[at] == 48:  # 9 and 0
        at -= 1
    if before[at] < 48 or before[at] > 56 or reply[at] != before[at] + 1:
        return False
    while at > 0:
        at -= 1
        if before[at] != reply[at]:
            return False
    return True
