# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False, cdivision=True
"""Decides whether the loop pauses between two rounds of reads, so that each read finds more: what drivers of network cards
do with interrupts.

    usual ── rounds come fast, reads are small ──▶ trial ── reads found more ──▶ pausing ── LEASE is over ──▶ usual
      ▲                                              │ they did not                │ they find less again
      └────────── the next trial waits twice as long ┴─────────────────────────────┘

A publisher that sends each message alone (a write each) wakes the loop for each of them: one read, one write and one
wake-up of the subscriber for 128 bytes. After a pause of 0.1 ms one read finds twenty or fifty. But a client that waits for
an answer sends nothing meanwhile, and would only be slowed down. The loop cannot know which it is, so it tries, and goes by
what it measures: reads have to become larger (FIND_MORE), and as many bytes a second have to arrive as without pauses
(KEEP). A conversation of requests and answers is therefore paused twice a second at most, once some trials have failed.

Rates are measured over all links, and for 5 ms at least: where a publisher and the broker share a processor, many reads of
one message alternate with few of a hundred, and pauses would halve the rate.

Pure: times are passed in, and nothing here sleeps. A *round* is one question to epoll that found links to read, a *look* is
a measurement of what they will find.
"""

import cython

GLANCE: cython.Py_ssize_t = 64  # reads, after which it is looked whether they come fast
FAST: cython.Py_ssize_t = 50_000  # ns from one read to the next; with more in the mean, the loop has time to sleep
SMALL: cython.Py_ssize_t = 4096  # bytes; larger reads are worth their system call
MEASURED: cython.Py_ssize_t = 5_000_000  # ns without pauses that are measured; a look costs 0.2 us a link
FIND_MORE: cython.Py_ssize_t = 3  # times the bytes that reads found without pauses
KEEP: cython.double = 0.9  # of the bytes a second that arrived without pauses; the rest is noise of so short a time
TRIAL: cython.Py_ssize_t = 2  # rounds in a row that find little end the pauses
JUDGED: cython.Py_ssize_t = 64  # rounds after pauses of which a judgement on them is made
LEASE: cython.Py_ssize_t = 200_000_000  # ns of pauses, after which reads without pauses are measured again
FIRST_BACKOFF: cython.Py_ssize_t = 10_000_000  # ns from a trial that failed to the next one
LONGEST_BACKOFF: cython.Py_ssize_t = 1_000_000_000


class Moderation:
    """`pausing`: the loop pauses before it asks epoll again. All times are nanoseconds of one monotonic clock."""

    def __init__(self) -> None:
        self.pausing = False
        self.counting = False  # looks are to measure bytes
        self._usual = 0  # bytes of a read without pauses
        self._rate = 0.0  # bytes in a nanosecond without pauses
        self._unseen = 0  # reads since the last look
        self._began = 0
        self._rounds = 0  # since `_began`
        self._reads = 0
        self._bytes = 0
        self._poor = 0  # rounds in a row that found little after a pause
        self._lease = 0  # the end of these pauses
        self._next_try = 0
        self._backoff = FIRST_BACKOFF

    def wants_look(self, reads: cython.Py_ssize_t) -> cython.bint:
        """Count a round of `reads` links. Whether `look` is to be called for it, before they are read."""
        self._unseen += reads
        return self.counting or self._unseen >= GLANCE

    def look(self, now: cython.Py_ssize_t, reads: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
        """This round will find `size` bytes in `reads` links; the size counts only while `counting`. Returns `pausing`."""
        if self.pausing:
            self._judge_pauses(now, FIND_MORE * self._usual * reads > size)
        elif self.counting:
            self._judge_usual(now)
        else:
            self.counting = 0 < self._began and now - self._began < FAST * self._unseen and now >= self._next_try
            self._begin(now)
        self._unseen = 0
        self._rounds += 1
        self._reads += reads
        self._bytes += size
        return self.pausing

    def _judge_usual(self, now: cython.Py_ssize_t) -> cython.int:
        took: cython.Py_ssize_t = now - self._began
        if took < MEASURED or self._reads < GLANCE:
            return 0
        if took >= FAST * self._reads or self._bytes >= SMALL * self._reads:
            return self._stop(now)
        self._usual = max(self._bytes // self._reads, 1)
        self._rate = cython.cast(cython.double, self._bytes) / took
        self._lease = now + LEASE
        self.pausing = True
        return self._begin(now)

    def _judge_pauses(self, now: cython.Py_ssize_t, poor: cython.bint) -> cython.int:
        """Two rounds in a row that find little end the pauses at once: a trial that failed, or the end of a flood."""
        self._poor = self._poor + 1 if poor else 0
        if self._poor == TRIAL:
            return self._stop(now)
        if self._rounds < JUDGED:
            return 0
        if self._bytes < KEEP * self._rate * (now - self._began):
            return self._stop(now)
        self._backoff = FIRST_BACKOFF
        self.pausing = now < self._lease
        return self._begin(now)

    def _begin(self, now: cython.Py_ssize_t) -> cython.int:
        """What follows is counted anew."""
        self._rounds = self._reads = self._bytes = self._poor = 0
        self._began = now
        return 0

    def _stop(self, now: cython.Py_ssize_t) -> cython.int:
        self.pausing = self.counting = False
        self._next_try = now + self._backoff
        self._backoff = min(2 * self._backoff, LONGEST_BACKOFF)
        return self._begin(now)
