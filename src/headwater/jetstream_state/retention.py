"""The limits of a log, and how many of its oldest records exceed them. Pure.

A limit of 0 or less is none. The oldest records always go first. No record after the first one that may stay is weighed.
"""

from typing import NamedTuple

import cython

if cython.compiled:
    from cython.cimports.headwater.jetstream_state.subject_table import memory_size, stored_size
    from cython.cimports.headwater.streams.log_format import StoredRecord
else:
    from headwater.jetstream_state.subject_table import memory_size, stored_size
    from headwater.streams.log_format import StoredRecord

from headwater.streams.log import Log

FRONT_RECORDS = 256  # oldest records kept in memory while limits remove them one by one
FRONT_BYTES = 1 << 20


class Limits(NamedTuple):
    """Records, bytes (as the caller weighs them), and age in nanoseconds."""

    max_records: int = 0
    max_bytes: int = 0
    max_age_ns: int = 0

    @property
    def any(self) -> bool:
        """Whether there is a limit at all."""
        return self.max_records > 0 or self.max_bytes > 0 or self.max_age_ns > 0


class Oldest:
    """The oldest records of `log`, some of them in memory. `in_memory`: how their bytes are counted."""

    def __init__(self, log: Log, *, in_memory: bool) -> None:
        self._log = log
        self._in_memory = in_memory
        self._known: list[StoredRecord] = []
        self._at = 0  # of the first in `_known` that may still be in the log

    def forget(self) -> None:
        """All records were removed."""
        self._known, self._at = [], 0

    def surplus(
        self, limits: Limits, records: cython.longlong, size: cython.longlong, now_ns: cython.longlong
    ) -> list[StoredRecord]:
        """Those that have to go, of `records` that weigh `size`, as far as they are in memory; none of them is given again.
        Ask anew until there are none. No more are weighed than have to go, and one: where each publish is a batch, looking
        at all in memory took 10 us."""
        max_records: cython.longlong = limits.max_records
        max_bytes: cython.longlong = limits.max_bytes
        max_age: cython.longlong = limits.max_age_ns
        in_memory: cython.bint = self._in_memory
        gone: list[StoredRecord] = []
        known = self._load()
        at: cython.Py_ssize_t = self._at
        record: StoredRecord
        while at < len(known):
            record = known[at]
            if not gone or not self._log.is_absent(record.offset):  # the first one is there
                over: cython.bint = (0 < max_records < records) or (0 < max_bytes < size)
                if not over and not (max_age > 0 and record.timestamp_ns <= now_ns - max_age):
                    break
                gone.append(record)
                records -= 1
                if in_memory:
                    size -= memory_size(record.subject, record.header_block, record.payload)
                else:
                    size -= stored_size(record.subject, record.header_block, record.payload)
            at += 1
        self._at = at
        return gone

    def _load(self) -> list[StoredRecord]:
        """The records in memory, the one at `_at` the first of the log."""
        known, log, at = self._known, self._log, self._at
        while at < len(known) and log.is_absent(known[at].offset):
            at += 1
        if at == len(known) or known[at].offset != log.start_offset:
            known, at = log.read(log.start_offset, FRONT_RECORDS, FRONT_BYTES), 0
        self._known, self._at = known, at
        return known


def refusal(limits: Limits, records: int, size: int, weight: int) -> str:
    """Why one more record of this weight may not come in, when what is there must stay ("discard new"); "" when it may."""
    if 0 < limits.max_records <= records:
        return "maximum messages exceeded"
    if 0 < limits.max_bytes < size + weight:
        return "maximum bytes exceeded"
    return ""
