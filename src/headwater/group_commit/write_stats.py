# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Durations of disk writes and of publishers' waits, for /varz, /jsz and /metrics.

    Committer ─▶ `writes`   one batch written and made durable       ─▶ quantiles of the last one to two minutes, sums since
              ─▶ `acks`     its oldest publish, from arrival to ack      the start
    Stream    ─▶ `refused`  publishes that were answered with an error

A quantile is exact to a tenth: durations are counted in eight steps per doubling. It costs two calls per batch and none
per message. The caller passes the time, in seconds of a monotonic clock.
"""

import cython

if cython.compiled:
    from cython.cimports.libc.math import log2
else:
    from math import log2

SHORTEST: cython.double = 1e-6  # seconds; shorter durations count as this
STEPS: cython.int = 8  # per doubling
COUNTS: cython.int = 28 * STEPS  # up to four minutes
WINDOW: cython.double = 60.0  # seconds after which a new window begins; the one before it still counts


class Latency:
    """A histogram of durations. `count` and `total` (seconds) are since the start."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self._recent = [0] * COUNTS
        self._before = [0] * COUNTS
        self._begun = 0.0

    def note(self, seconds: cython.double, now: cython.double) -> cython.int:
        """Count one duration."""
        place: cython.Py_ssize_t = 0
        if now - self._begun > WINDOW:
            stale = now - self._begun > 2 * WINDOW
            self._before = [0] * COUNTS if stale else self._recent
            self._recent, self._begun = [0] * COUNTS, now
        self.count += 1
        self.total += seconds
        if seconds > SHORTEST:
            place = cython.cast(cython.Py_ssize_t, STEPS * log2(seconds / SHORTEST))
        if place >= COUNTS:
            place = COUNTS - 1
        self._recent[place] += 1
        return 0

    def counts(self, now: cython.double) -> list[int]:
        """How many durations of the last one to two windows fell into each step."""
        age: cython.double = now - self._begun
        if age > 2 * WINDOW:
            return [0] * COUNTS
        if age > WINDOW:
            return self._recent
        return [one + other for one, other in zip(self._recent, self._before, strict=True)]


class WriteStats:
    """The durations of the streams of one account."""

    def __init__(self) -> None:
        self.writes = Latency()
        self.acks = Latency()
        self.refused = 0


def quantile(latencies: list[Latency], share: float, now: float) -> float:
    """The duration, in seconds, below which this share of the recent ones lies; 0 when there are none."""
    counts = [sum(column) for column in zip(*(latency.counts(now) for latency in latencies), strict=True)]
    wanted = share * sum(counts)
    passed = 0
    for place, count in enumerate(counts):
        passed += count
        if count and passed >= wanted:
            return float(SHORTEST * 2 ** ((place + 0.5) / STEPS))
    return 0.0
