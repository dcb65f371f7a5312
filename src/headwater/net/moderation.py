# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False, cdivision=True
"""Decides whether the loop pauses between two rounds of reads, so that each read finds more: what drivers of network cards
do with interrupts.

    usual ── rounds come fast ──▶ measured ──▶ trial ── a byte costs less ──▶ pausing ── LEASE is over ──▶ usual
      ▲                                          │ no                            │ no more
      └──── the next trial waits twice as long ──┴───────────────────────────────┘

A publisher that sends each message alone (a write each) wakes the loop for each of them: one read, one write and one
wake-up of the subscriber for 128 bytes. After a pause of 0.1 ms one read finds twenty or fifty. But a client that waits for
an answer sends nothing meanwhile, and would only be slowed down. The loop cannot know which it is, so it tries, and goes by
what it measures without and with pauses, over all links:

- *Rate.* As many bytes a second have to arrive as without pauses (KEEP). What is missing adds up, what is more makes up for
  it, and a few ms of it (LOST) end the pauses. One short time decides nothing: 200 clients of one process write for some ms
  and read for some, and each of these alone looks like a flood or like its end.
- *Rounds* have to find more (FIND_MORE), or the pauses are over long before ms are lost: after two where a trial begins,
  after eight in a row that was kept. So a conversation of requests and answers is paused twenty times a second at most, once
  some trials have failed.
- *Cost.* The thread's own CPU time for a byte has to fall (CHEAPER), or nothing is worth the delay.
- *Room.* Where reads are large, pauses are only tried if what arrives from one read to the next fits into one (`room`). A
  flood of 1 KiB messages without a listener is read 46 KiB at a time, and 550 KiB after a pause: the kernel then has fewer
  segments and acknowledgements to handle. A reader that takes 128 KiB of it at most would only be slowed down.

Pure: times are passed in, and nothing here sleeps. A *round* is one question to epoll that found links to read, a *look* is
a measurement of what they will find.
"""

import cython

GLANCE: cython.Py_ssize_t = 64  # reads, after which it is looked whether they come fast
FAST: cython.Py_ssize_t = 50_000  # ns from one read to the next; with more in the mean, the loop has time to sleep
# Bytes; larger reads are worth their system call, unless there is room for far larger ones.
LARGE: cython.Py_ssize_t = 16_384
PAUSED: cython.Py_ssize_t = 100_000  # ns that a pause takes
MEASURED: cython.Py_ssize_t = 5_000_000  # ns without pauses that are measured; a look costs 0.2 us a link
FIND_MORE: cython.double = 3  # times the bytes that a round found without pauses
POOR: cython.Py_ssize_t = 8  # rounds in a row that find little end the pauses; a better one makes up for two
TRIAL: cython.Py_ssize_t = 2  # of them, at the beginning of a trial
KEEP: cython.double = 0.95  # of the bytes a second that arrived without pauses; the rest is noise of so short a time
FADES: cython.double = 0.8  # of the rate measured before counts if less arrives now: the publisher may not have run
LOST: cython.Py_ssize_t = 4_000_000  # ns of that rate, which may be missing
CHEAPER: cython.double = 0.8  # of the CPU time of a byte without pauses
JUDGED: cython.Py_ssize_t = 64  # rounds after pauses of which the cost is judged
LEASE: cython.Py_ssize_t = 200_000_000  # ns of pauses, after which reads without pauses are measured again
FIRST_BACKOFF: cython.Py_ssize_t = 10_000_000  # ns from a trial that failed to the next one
# A conversation loses 0.2 % of its rate, two pauses for each trial. With a second, a flood that follows it would wait 0.5 s
# in the mean for its first trial, which is longer than many last.
LONGEST_BACKOFF: cython.Py_ssize_t = 100_000_000
# With large reads, of which a trial that fails costs up to LOST.
LONGEST_LARGE: cython.Py_ssize_t = 400_000_000


class Moderation:
    """`pausing`: the loop pauses before it asks epoll again. All times are nanoseconds: `now` of one monotonic clock, `cpu`
    of the thread's CPU time."""

    def __init__(self) -> None:
        self.is_off = False  # nothing is looked at, and nothing pauses
        self.pausing = False
        self.counting = False  # looks are to measure bytes
        self._usual = _Usual()
        # With pauses: bytes that are missing, poor rounds in a row, and when their lease ends.
        self._missing = 0.0
        self._poor = 0
        self._lease = 0
        self._is_kept = False  # a trial has brought something
        self._unseen = 0  # reads since the last look
        self._last = 0  # when that was
        self._began = _Counts()
        self._next_try = 0
        self._backoff = FIRST_BACKOFF

    def wants_look(self, reads: cython.Py_ssize_t) -> cython.bint:
        """Count a round of `reads` links. Whether `look` is to be called for it, before they are read."""
        self._unseen += reads
        return not self.is_off and (self.counting or self._unseen >= GLANCE)

    def look(
        self,
        now: cython.Py_ssize_t,
        cpu: cython.Py_ssize_t,
        reads: cython.Py_ssize_t,
        size: cython.Py_ssize_t,
        room: cython.Py_ssize_t,
    ) -> cython.bint:
        """This round will find `size` bytes in `reads` links, and could take `room`; both count only while `counting`.
        Returns `pausing`."""
        began: _Counts = self._began
        began.rounds += 1
        began.reads += reads
        began.size += size
        began.room += room
        if self.pausing:
            self._judge_pauses(now, cpu, size)
        elif self.counting:
            self._judge_usual(now, cpu)
        else:
            self.counting = 0 < began.now and now - began.now < FAST * self._unseen and now >= self._next_try
            began.begin(now, cpu)
        self._unseen = 0
        self._last = now
        return self.pausing

    def _judge_usual(self, now: cython.Py_ssize_t, cpu: cython.Py_ssize_t) -> cython.int:
        began: _Counts = self._began
        took: cython.Py_ssize_t = now - began.now
        if took < MEASURED or began.reads < GLANCE:
            return 0
        if took >= FAST * began.reads:
            return self._stop(now, cpu)
        size: cython.double = max(began.size, 1)
        used: cython.double = cpu - began.cpu
        usual: _Usual = self._usual
        is_large: cython.bint = size >= LARGE * began.reads
        if usual.is_large != is_large:
            usual.rate = 0.0  # this is another flood: what arrived of the one before counts no more
        usual.is_large = is_large
        # Bytes of a read: what arrives in a pause and while they are read, which takes `used / size` for each.
        if usual.is_large and size * PAUSED * began.rounds > (took - CHEAPER * used) * began.room:
            usual.is_large = False  # nothing was tried
            usual.rate = 0.0
            return self._stop(now, cpu)
        usual.rate = max(size / took, FADES * usual.rate)
        usual.size = size / began.rounds
        usual.cost = used / size
        self._missing = 0.0
        self._poor = POOR - TRIAL
        self._lease = now + LEASE
        self.pausing = True
        self._is_kept = False
        return began.begin(now, cpu)

    def _judge_pauses(self, now: cython.Py_ssize_t, cpu: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
        began: _Counts = self._began
        usual: _Usual = self._usual
        self._poor = self._poor + 1 if size < FIND_MORE * usual.size else max(0, self._poor - 2)
        self._missing = max(0.0, self._missing + KEEP * usual.rate * (now - self._last) - size)
        if self._poor == POOR or now - self._last > LOST:
            if self._is_kept:
                self._backoff = FIRST_BACKOFF  # it was a flood, and is over
                usual.rate = 0.0
            return self._stop(now, cpu)
        if self._missing > LOST * usual.rate:
            return self._stop(now, cpu)
        if began.rounds < JUDGED:
            return 0
        if cpu - began.cpu > CHEAPER * usual.cost * began.size:
            return self._stop(now, cpu)
        self._is_kept = True
        if now >= self._lease:
            self.pausing = False
            self._backoff = FIRST_BACKOFF
        return began.begin(now, cpu)

    def _stop(self, now: cython.Py_ssize_t, cpu: cython.Py_ssize_t) -> cython.int:
        self.pausing = self.counting = False
        self._next_try = now + self._backoff
        self._backoff = min(2 * self._backoff, LONGEST_LARGE if self._usual.is_large else LONGEST_BACKOFF)
        return self._began.begin(now, cpu)


class _Usual:
    """Without pauses: bytes in a nanosecond, bytes of a round, CPU time of a byte, and whether the reads are large."""

    def __init__(self) -> None:
        self.rate = 0.0
        self.size = 0.0
        self.cost = 0.0
        self.is_large = False


class _Counts:
    """What was counted since a moment, `now` and `cpu`."""

    def __init__(self) -> None:
        self.now = 0
        self.cpu = 0
        self.rounds = 0
        self.reads = 0
        self.size = 0
        self.room = 0

    def begin(self, now: cython.Py_ssize_t, cpu: cython.Py_ssize_t) -> cython.int:
        """What follows is counted anew."""
        self.now = now
        self.cpu = cpu
        self.rounds = self.reads = self.size = self.room = 0
        return 0
