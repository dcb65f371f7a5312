# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Sends many messages from a stream to clients at once: the acknowledgements of a batch, the records of a replay.

Hot and compiled. Each message is encoded once, in its wire form after the subject, into a reused buffer, and handed to the
router as a `MessageView`. Acknowledgements for a publisher that takes them by runs are one message for each run
(`wire/ack_runs.py`).

Decided elsewhere: what to send, to which client and when (stream.py, pull.py).
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.sublist import Match
    from cython.cimports.headwater.jetstream_state.items import Item
    from cython.cimports.headwater.streams.log_format import StoredRecord
    from cython.cimports.headwater.wire.ack_runs import is_next
    from cython.cimports.headwater.wire.memory import OutputBuffer
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.headwater.wire.publish import append_number, digits_of
else:
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Match
    from headwater.jetstream_state.items import Item
    from headwater.streams.log_format import StoredRecord
    from headwater.wire.ack_runs import is_next
    from headwater.wire.memory import OutputBuffer
    from headwater.wire.message_view import MessageView
    from headwater.wire.publish import append_number, digits_of

from headwater.wire.ack_runs import RUN_MEMBER, RUNS

_RUNS: bytes = RUNS
_RUN_MEMBER: bytes = RUN_MEMBER


def send_acks(router: Router, items: list[Item], head: bytes) -> cython.int:
    """Answer every publish of a batch, in order; the router writes the answers together with those of other batches that
    end in this turn of the loop. `head`: the ordinary PubAck up to its sequence. A callback in place of a reply subject must
    not raise."""
    buffer = OutputBuffer()
    message: MessageView = MessageView()
    item: Item
    following: Item
    at: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    run: cython.Py_ssize_t
    while at < len(items):
        item = items[at]
        at += 1
        if item.answer is not None:
            item.answer(None)
        if not item.reply:
            continue
        run = 1
        if not item.ack and item.reply.startswith(_RUNS):
            while at < len(items):
                following = items[at]
                if following.ack or following.answer is not None or not is_next(item.reply, following.reply):
                    break
                item = following
                at += 1
                run += 1
        buffer.size = 0
        buffer.append(item.reply)
        message.subject_end = buffer.size
        buffer.append(b" ")
        message.tail = message.reply = message.reply_end = buffer.size
        size = len(item.ack) if item.ack else len(head) + digits_of(item.sequence) + 1
        if run > 1:
            size += len(_RUN_MEMBER) + digits_of(run)
        append_number(buffer, size)
        buffer.append(b"\r\n")
        message.headers = message.payload = buffer.size
        if item.ack:
            buffer.append(item.ack)
        else:
            buffer.append(head)
            append_number(buffer, item.sequence)
            if run > 1:
                buffer.append(_RUN_MEMBER)
                append_number(buffer, run)
            buffer.append(b"}")
        message.end = buffer.size
        buffer.append(b"\r\n")
        message.buffer = buffer.data  # last: it may have grown
        match: Match = router.sublist.find(message.buffer, 0, message.subject_end)
        router.route(None, match, message)
    return 0


def with_size(header_block: bytes, size: cython.Py_ssize_t) -> bytes:
    """The header block of a delivery without its payload, whose size it says."""
    return b"%bNats-Msg-Size: %d\r\n\r\n" % (header_block.removesuffix(b"\r\n") or b"NATS/1.0\r\n", size)


def _append_ack_subject(
    buffer: OutputBuffer, head: bytes, record: StoredRecord, given: cython.longlong, pending: cython.longlong
) -> cython.int:
    """Append the ack subject of a delivery: `head`, then the numbers of the message and of its delivery."""
    buffer.append(head)
    append_number(buffer, record.offset + 1)  # sequence_of, without the call
    buffer.append(b".")
    append_number(buffer, given)
    buffer.append(b".")
    append_number(buffer, record.timestamp_ns)
    buffer.append(b".")
    append_number(buffer, pending)
    return 0


class RecordSender:
    """Delivers records of a stream to the subscribers of `inbox`, as first deliveries.

    `head`: the prefix of their ack subjects. `given`: consumer sequence of the previous delivery. `pending`: matching
    messages left, including these. `room`: bytes (subject, ack subject, header block, payload) that may be delivered, -1
    for no limit. `headers_only`: without payloads, whose sizes are in the headers.
    """

    def __init__(
        self,
        router: Router,
        inbox: bytes,
        head: bytes,
        given: cython.longlong,
        pending: cython.longlong,
        room: cython.Py_ssize_t,
        headers_only: cython.bint = False,
    ) -> None:
        self._router = router
        self._inbox = inbox
        self._match: Match = router.sublist.match(inbox)
        self._head = head + b"1."  # the first time
        self._given = given
        self._pending = pending
        self._room = room
        self._headers_only = headers_only
        self._buffer = OutputBuffer()
        self._message = MessageView()

    def send(
        self, records: list[StoredRecord], first: cython.Py_ssize_t, most: cython.Py_ssize_t, delivered: list[int]
    ) -> cython.Py_ssize_t:
        """Deliver `records[first : first + most]`; adds their sequences to `delivered` and returns their bytes.

        It stops where no subscriber takes one, or the next has no room.
        """
        record: StoredRecord
        at: cython.Py_ssize_t
        size: cython.Py_ssize_t
        sent: cython.Py_ssize_t = 0
        for at in range(first, min(first + most, len(records))):
            record = records[at]
            self._given += 1
            self._pending -= 1
            size = self._send_record(record)
            if size == 0:
                break
            if self._room >= 0:
                self._room -= size
            delivered.append(record.offset + 1)
            sent += size
        return sent

    def _send_record(self, record: StoredRecord) -> cython.Py_ssize_t:
        """Deliver one record; returns its bytes, 0 when no subscriber took it or there is no room for it."""
        buffer: OutputBuffer = self._buffer
        message: MessageView = self._message
        block: bytes = record.header_block
        payload: bytes = record.payload
        if self._headers_only:
            block, payload = with_size(block, len(payload)), b""
        block_size: cython.Py_ssize_t = len(block)
        buffer.size = 0
        buffer.append(record.subject)
        message.subject_end = buffer.size
        buffer.append(b" ")
        message.tail = message.reply = buffer.size
        _append_ack_subject(buffer, self._head, record, self._given, self._pending)
        message.reply_end = buffer.size
        buffer.append(b" ")
        if block_size != 0:
            append_number(buffer, block_size)
            buffer.append(b" ")
        append_number(buffer, block_size + len(payload))
        buffer.append(b"\r\n")
        message.headers = buffer.size
        if block_size != 0:
            buffer.append(block)
        message.payload = buffer.size
        buffer.append(payload)
        message.end = buffer.size
        buffer.append(b"\r\n")
        message.buffer = buffer.data  # last: it may have grown
        size: cython.Py_ssize_t = (
            message.subject_end + message.reply_end - message.reply + message.end - message.headers
        )
        if 0 <= self._room < size:
            return 0
        return size if self._router.route_under(self._inbox, self._match, message) > 0 else 0
