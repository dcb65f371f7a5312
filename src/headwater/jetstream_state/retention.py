"""The limits of a log, and how many of its oldest records exceed them. Pure.

A limit of 0 or less is none. The oldest records always go first. The caller supplies them and their weights lazily: no
record after the first one that may stay is read.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Limits(NamedTuple):
    """Records, bytes (as the caller weighs them), and age in nanoseconds."""

    max_records: int = 0
    max_bytes: int = 0
    max_age_ns: int = 0

    @property
    def any(self) -> bool:
        """Whether there is a limit at all."""
        return self.max_records > 0 or self.max_bytes > 0 or self.max_age_ns > 0


class Weighed(NamedTuple):
    """One of the oldest records."""

    size: int
    timestamp_ns: int


def surplus(limits: Limits, records: int, size: int, oldest: Iterable[Weighed], now_ns: int) -> int:
    """How many of the oldest records have to go, of `records` that weigh `size`."""
    max_records, max_bytes, max_age = limits
    gone = 0
    for weight, timestamp in oldest:
        over = (0 < max_records < records) or (0 < max_bytes < size)
        if not over and not (max_age > 0 and timestamp <= now_ns - max_age):
            break
        gone += 1
        records -= 1
        size -= weight
    return gone


def refusal(limits: Limits, records: int, size: int, weight: int) -> str:
    """Why one more record of this weight may not come in, when what is there must stay ("discard new"); "" when it may."""
    if 0 < limits.max_records <= records:
        return "maximum messages exceeded"
    if 0 < limits.max_bytes < size + weight:
        return "maximum bytes exceeded"
    return ""
