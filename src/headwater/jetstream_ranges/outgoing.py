# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Sends many messages from a stream to clients at once: the acknowledgements of a batch, the records of a replay.

Hot and compiled. Each message is encoded once, in its wire form after the subject, into a reused buffer, and handed to the
router as a `MessageView`. Acknowledgements for a publisher that takes them by runs are one message for each run
(`wire/ack_runs.py`).

Decided elsewhere: what to send, to which client and when (jetstream/stream.py, jetstream/pull.py).
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
    from cython.cimports.headwater.wire.publish import LONGEST_NUMBER, append_number, digits_of, put_number
else:
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Match
    from headwater.jetstream_state.items import Item
    from headwater.streams.log_format import StoredRecord
    from headwater.wire.ack_runs import is_next
    from headwater.wire.memory import OutputBuffer
    from headwater.wire.message_view import MessageView
    from headwater.wire.publish import LONGEST_NUMBER, append_number, digits_of, put_number

from headwater.wire.ack_runs import RUN_MEMBER, RUNS

_RUNS: bytes = RUNS
_RUN_MEMBER: bytes = RUN_MEMBER
_DOT: cython.uchar = 46
_BLANK: cython.uchar = 32
_CR: cython.uchar = 13
_LF: cython.uchar = 10


def send_acks(router: Router, items: list[Item], head: bytes) -> cython.int:
    """Answer every publish of a batch, in order; the router writes the answers together with those of other batches that
    end in this turn of the loop. `head`: the ordinary PubAck up to its sequence. A callback in place of a reply subject must
    not raise.

    Most acks are the one before but for the last digits of the sequence, and go to the same client: the buffer holds what
    follows the subject, then the subject, so that only what differs is written anew."""
    buffer = OutputBuffer()
    message: MessageView = MessageView()
    match: Match | None = None
    generation: cython.Py_ssize_t = 0  # of the interest in which it was found
    item: Item
    following: Item
    counted: cython.longlong = -1  # the sequence in the buffer, if an ordinary ack is in it
    reply: bytes = b""  # the subject in the buffer
    at: cython.Py_ssize_t = 0
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
        if run == 1 and not item.ack and counted >= 0 and item.sequence == counted + 1 and _count_on(message):
            counted += 1
        else:
            _compose_ack(buffer, message, item, head, run)
            counted = item.sequence if run == 1 and not item.ack else -1
            match = None
        if match is None or item.reply != reply or generation != router.sublist.generation:
            reply = item.reply
            address(buffer, message, reply)
            match = router.sublist.find(message.buffer, message.subject, message.subject_end)
            generation = router.sublist.generation
        router.route(None, match, message)
    return 0


def send_at_once(router: Router, item: Item, head: bytes) -> cython.bint:
    """Answer one publish, and write the answer now. False, without doing so, where a callback is among the receivers: it may
    look at the stream, which does not show the message yet."""
    buffer = OutputBuffer()
    message: MessageView = MessageView()
    _compose_ack(buffer, message, item, head, 1)
    address(buffer, message, item.reply)
    match: Match = router.sublist.find(message.buffer, message.subject, message.subject_end)
    if not match.separate:
        return False
    router.flusher.begin_read()
    router.route(None, match, message)
    router.flusher.end_read()
    return True


@cython.cfunc
@cython.inline
def address(buffer: OutputBuffer, message: MessageView, reply: bytes) -> cython.int:
    """Append the subject of the composed acknowledgement behind it."""
    buffer.size = message.subject = message.end + 2
    buffer.append(reply)
    message.subject_end = buffer.size
    message.buffer = buffer.data  # it may have grown
    return 0


def _compose_ack(
    buffer: OutputBuffer, message: MessageView, item: Item, head: bytes, run: cython.Py_ssize_t
) -> cython.int:
    """Write an ack from its size on, for `run` publishes of which `item` is the last."""
    size: cython.Py_ssize_t = len(item.ack) if item.ack else len(head) + digits_of(item.sequence) + 1
    if run > 1:
        size += len(_RUN_MEMBER) + digits_of(run)
    buffer.size = 0
    append_number(buffer, size)
    buffer.append(b"\r\n")
    message.tail = message.reply = message.reply_end = 0
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
    message.buffer = buffer.data
    return 0


def _count_on(message: MessageView) -> cython.bint:
    """Add one to the number before the last byte of the payload. False if it needs one more digit: it is spoilt then."""
    data: bytearray = message.buffer
    at: cython.Py_ssize_t = message.end - 2
    while data[at] == 57:  # 9
        data[at] = 48
        at -= 1
    if not 48 <= data[at] < 57:
        return False
    data[at] += 1
    return True


def with_size(header_block: bytes, size: cython.Py_ssize_t) -> bytes:
    """The header block of a delivery without its payload, whose size it says."""
    return b"%bNats-Msg-Size: %d\r\n\r\n" % (header_block.removesuffix(b"\r\n") or b"NATS/1.0\r\n", size)


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
        self._buffer.append(self._head)
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
        """Deliver one record; returns its bytes, 0 when no subscriber took it or there is no room for it.

        The buffer begins with the head of the ack subjects, which stays; behind the message stands its subject."""
        buffer: OutputBuffer = self._buffer
        message: MessageView = self._message
        block: bytes = record.header_block
        payload: bytes = record.payload
        if self._headers_only:
            block, payload = with_size(block, len(payload)), b""
        block_size: cython.Py_ssize_t = len(block)
        at: cython.Py_ssize_t = len(self._head)
        size: cython.Py_ssize_t = at + len(record.subject) + block_size + len(payload)
        if 0 <= self._room < size:
            return 0  # without the numbers already
        buffer.size = at
        buffer.reserve(size + 6 * (LONGEST_NUMBER + 2))
        data: bytearray = buffer.data
        at = put_number(data, at, record.offset + 1)  # sequence_of, without the call
        data[at] = _DOT
        at = put_number(data, at + 1, self._given)
        data[at] = _DOT
        at = put_number(data, at + 1, record.timestamp_ns)
        data[at] = _DOT
        at = put_number(data, at + 1, self._pending)
        message.reply_end = at
        data[at] = _BLANK
        if block_size != 0:
            at = put_number(data, at + 1, block_size)
            data[at] = _BLANK
        at = put_number(data, at + 1, block_size + len(payload))
        data[at] = _CR
        data[at + 1] = _LF
        buffer.size = message.headers = at + 2
        if block_size != 0:
            buffer.append(block)
        message.payload = buffer.size
        buffer.append(payload)
        message.end = buffer.size
        buffer.append(b"\r\n")
        message.subject = buffer.size
        buffer.append(record.subject)
        message.subject_end = buffer.size
        message.buffer = buffer.data
        size = len(record.subject) + message.reply_end + message.end - message.headers
        if 0 <= self._room < size:
            return 0
        return size if self._router.route_under(self._inbox, self._match, message) > 0 else 0
