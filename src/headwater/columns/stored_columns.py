# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Decode stored batches of a stream from the receive buffer straight into column buffers.

The answer to a range request is one message: a head, then the log's records in their stored form
(`headwater.columns.range_answer`). One decoder reads both these answers and the deliveries of a consumer, so a range
begun in one way can be finished in the other; both advance the same `position`.

Sizes in an answer are checked against the bytes present. Checksums are not verified: the server has done that, and TCP
protected the bytes since. An inconsistent answer sets `violation`: rows before the fault are kept, none after it is
read.
"""

from collections.abc import Callable

import cython

if cython.compiled:
    from cython.cimports.headwater.columns.integers import u32, u64
    from cython.cimports.headwater.wire.columns import ColumnDecoder
    from cython.cimports.headwater.wire.memory import equals, slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView
else:
    from headwater.columns.integers import u32, u64
    from headwater.wire.columns import ColumnDecoder
    from headwater.wire.memory import equals, slice_bytes
    from headwater.wire.message_view import MessageView

from headwater.columns.range_answer import ANSWER_HEAD, BATCH_HEAD, RANGE_MAGIC, AnswerHead, decode_head
from headwater.errors import RemoteProtocolError
from headwater.streams.log_format import LOW_HALF, RECORD_CRC_SIZE, RECORD_HEAD_SIZE
from headwater.streams.log_format import VERSION as NEWEST_VERSION

HEAD: cython.Py_ssize_t = ANSWER_HEAD.size
BATCH: cython.Py_ssize_t = BATCH_HEAD.size
MAGIC: bytes = RANGE_MAGIC
RECORD: cython.Py_ssize_t = RECORD_HEAD_SIZE
OLD_RECORD: cython.Py_ssize_t = RECORD_HEAD_SIZE - RECORD_CRC_SIZE  # in version 1
NEWEST: cython.int = NEWEST_VERSION
LOW: cython.longlong = LOW_HALF

OnAnswer = Callable[[AnswerHead], bool]


class StoredDecoder(ColumnDecoder):
    """Rows of `[start, end)`, from a consumer or from answers to the subscription given to `listen`.

    `refusal` is the JSON error document of an answer without batches; b"" while no request has failed.
    """

    def __init__(self, start: cython.longlong, end: cython.longlong, *, with_map: bool, with_raw: bool) -> None:
        ColumnDecoder.__init__(self, 0, start, end, with_map=with_map, with_raw=with_raw)
        self.stored_sid = -1
        self.on_answer: OnAnswer = _take_none
        self.refusal = b""

    def listen(self, sid: cython.Py_ssize_t, on_answer: OnAnswer) -> None:
        """Read answers from the subscription `sid`. `on_answer(head)` is called before each answer is decoded, so that
        the caller can send its next request meanwhile; it returns whether to decode the answer.
        """
        self.resubscribe(-1)
        self.stored_sid = sid
        self.on_answer = on_answer
        self.refusal = b""

    def on_message(self, message: MessageView) -> cython.int:
        buffer: bytearray = message.buffer
        at: cython.Py_ssize_t = message.payload
        if message.sid != self.stored_sid:
            return ColumnDecoder.on_message(self, message)
        if message.headers < at:
            self.statuses.append(slice_bytes(buffer, message.headers, at))
            return 0
        if message.end - at < HEAD or not equals(buffer, at, at + 4, MAGIC):
            self.refusal = slice_bytes(buffer, at, message.end)
            return 0
        head = decode_head(slice_bytes(buffer, at, at + HEAD))
        if self.violation is None and head is not None and self.on_answer(head):
            self.take_answer(buffer, at + HEAD, message.end, head.batches, head.next)
        return 0

    def take_answer(
        self,
        buffer: bytearray,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        batches: cython.Py_ssize_t,
        following: cython.longlong,
    ) -> cython.int:
        """Decode the batches in `buffer[at:end]`; afterwards every row below `following` counts as received."""
        size: cython.Py_ssize_t
        version: cython.int
        _batch: cython.Py_ssize_t
        for _batch in range(batches):
            if end - at < BATCH:
                return self.refuse("a batch head is cut off", end - at)
            size = u32(buffer, at + 8)
            version = buffer[at + 16]
            if size > end - at - BATCH or version < 1 or version > NEWEST:
                return self.refuse(f"a batch of version {version} and {size} bytes cannot follow", size)
            if not self.take_batch(buffer, u64(buffer, at), version, at + BATCH, at + BATCH + size):
                return 0
            at += BATCH + size
        if at != end:
            return self.refuse("bytes follow the last batch", end - at)
        if following - 1 > self.position:
            if self.first_gap < 0 and self.position + 1 < self.end:
                self.first_gap = self.position + 1
            self.position = following - 1
        if self.position + 1 >= self.end:
            self.complete = True
        return 0

    def take_batch(
        self,
        buffer: bytearray,
        base: cython.longlong,
        version: cython.int,
        at: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
    ) -> cython.bint:
        """Append the records in `buffer[at:stop]`; False when they are malformed."""
        head: cython.Py_ssize_t = RECORD if version > 1 else OLD_RECORD
        low_base: cython.longlong = base & LOW if version > 1 else 0
        start: cython.Py_ssize_t
        headers: cython.Py_ssize_t
        payload: cython.Py_ssize_t
        following: cython.Py_ssize_t
        low: cython.longlong
        sequence: cython.longlong
        while at < stop:
            start = at + head
            if start > stop:
                self.refuse("a record is cut off", stop - at)
                return False
            headers = start + (u32(buffer, start - 12) & 0xFFFF)
            payload = headers + u32(buffer, start - 8)
            following = payload + u32(buffer, start - 4)
            if following > stop:
                self.refuse("a record reaches beyond its batch", following - stop)
                return False
            at = following
            low = u32(buffer, start - 16)
            sequence = base + ((low - low_base) & LOW) + 1
            self.received += 1
            if sequence <= self.position or sequence >= self.end:
                continue
            if sequence > self.position + 1 and self.first_gap < 0:
                self.first_gap = self.position + 1
            self.position = sequence
            self.sequences.append(sequence)
            self.timestamps.append(u64(buffer, start - 24))
            self.subject_row(buffer, start, headers)
            self.message_row(buffer, headers, payload, following)
        return True

    def refuse(self, words: str, value: cython.longlong) -> cython.int:
        """Record a violation; nothing more is read from this connection."""
        self.violation = RemoteProtocolError(f"an answer of stored batches is broken: {words}", value=value)
        return 0


def _take_none(head: AnswerHead) -> bool:
    return False
