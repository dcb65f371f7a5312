# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The open end of a log: records that were given an offset and wait for the next write.

    stage ─▶ open batch ─▶ (full) closed batches ─▶ seal: all of it, to be written together

Hot and compiled: `stage` runs once for every message that a stream captures. Belongs to the loop thread. Decided
elsewhere: when batches are written, and whether the log can be written to (writer.py).
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.log_format import BatchBuilder
    from cython.cimports.headwater.streams.writer import LogWriter
else:
    from headwater.streams.log_format import BatchBuilder
    from headwater.streams.writer import LogWriter

from headwater.streams.iggy_records import ReadyBatch


class Staging:
    """What was staged since the last `seal`. `batch_bytes`: a batch is closed when its body reaches this. Offsets go on
    from `end_offset`. While `writer` has failed, nothing may be staged."""

    def __init__(self, end_offset: cython.longlong, batch_bytes: cython.Py_ssize_t, writer: LogWriter) -> None:
        self._open = BatchBuilder(end_offset)
        self._full: list[BatchBuilder | ReadyBatch] = []
        self._batch_bytes = batch_bytes
        self._writer = writer

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._open.base_offset + self._open.record_count

    def following(self) -> cython.Py_ssize_t:
        """`end_offset`, for compiled callers."""
        return self._open.base_offset + self._open.record_count

    @property
    def size(self) -> int:
        """The bytes staged."""
        return sum([batch.size for batch in self._full]) + self._open.size

    def waits_for_segment(self, size: int) -> bool:
        """Whether a batch of this size opens a new segment durably."""
        return self._writer.begins_segment(size) and not self._writer.never_synced

    def prepare(self, size: int) -> None:
        """As `LogWriter.prepare`. Call it while nothing is written."""
        self._writer.prepare(size)

    def is_due(self, now_ns: int) -> bool:
        """Whether a batch of this time will be synced with its write. Call it while none is written."""
        return self._writer.is_due(now_ns)

    def stage(
        self, subject: bytes, header_block: bytes, payload: bytes, timestamp_ns: cython.longlong
    ) -> cython.Py_ssize_t:
        """Add a record; returns its offset. Raises StorageError when it does not fit the format, WriteFailed when the writer
        has failed."""
        if self._writer.failure is not None:
            raise self._writer.failure
        if self._open.size >= self._batch_bytes:
            self._full.append(self._open)
            self._open = BatchBuilder(self._open.base_offset + self._open.record_count)
        return self._open.append(subject, header_block, payload, timestamp_ns)

    def stage_together(self, records: list[tuple[bytes, bytes, bytes]], timestamp_ns: int) -> int:
        """Add records (subject, header block, payload) as one batch of the log, with one checksum for all of them; returns
        the offset of the first. Raises StorageError when they do not fit, WriteFailed when the writer has failed."""
        if self._writer.failure is not None:
            raise self._writer.failure
        together = BatchBuilder(self.end_offset)
        for subject, header_block, payload in records:
            together.append(subject, header_block, payload, timestamp_ns)
        if self._open.record_count:
            self._full.append(self._open)
        self._full.append(together)
        self._open = BatchBuilder(together.base_offset + together.record_count)
        return together.base_offset

    def stage_iggy(self, body: bytes, count: int, timestamp_ns: int) -> int:
        """Add a batch of Iggy's with `count` messages, stamped with `end_offset`; returns that offset. Raises
        WriteFailed when the writer has failed."""
        if self._writer.failure is not None:
            raise self._writer.failure
        if self._open.record_count:
            self._full.append(self._open)
        ready = ReadyBatch(self.end_offset, count, body, timestamp_ns)
        self._full.append(ready)
        self._open = BatchBuilder(ready.end_offset)
        return ready.base_offset

    def skip_to(self, offset: int) -> None:
        """The next record gets `offset`, which is not below `end_offset`; those between hold none."""
        if self._open.record_count:
            self._full.append(self._open)
        self._open = BatchBuilder(offset)

    def seal(self) -> list[BatchBuilder | ReadyBatch]:
        """Everything staged since the last time, in order."""
        sealed = self._full
        if self._open.record_count:
            sealed.append(self._open)
        if sealed:
            self._full = []
            self._open = BatchBuilder(self._open.base_offset + self._open.record_count)
        return sealed

    def restart(self, end_offset: int) -> None:
        """Drop the waiting records; numbering continues at this offset."""
        self._full = []
        self._open = BatchBuilder(end_offset)

    def rewind(self, end_offset: int) -> None:
        """Drop the waiting records and assign skipped offsets after the end of the log again. For the copy of another
        log, whose offsets always refer to the origin's records. Call it only while nothing is being written."""
        self.restart(end_offset)
        self._writer.rewind(end_offset)
