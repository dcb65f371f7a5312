# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Many messages from a stream to clients in one go: the acknowledgements of a batch, the records of a replay.

Hot and compiled. Each message is laid out once, as it stands on the wire behind the subject, in a buffer that is used
again for the next one, and handed to the router by its positions in it:

    subject SP [reply SP] sizes CR LF [header block] payload CR LF
            └ tail                    └ headers      └ payload    (positions as in `Router.route`)

Refused here: what is sent to whom and when (stream.py, pull.py).
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.jetstream.items import Item
    from cython.cimports.headwater.broker.router import Router
    from cython.cimports.headwater.broker.sublist import Match
    from cython.cimports.headwater.streams.log_format import StoredRecord
    from cython.cimports.headwater.wire.memory import OutputBuffer
else:
    from headwater.broker.jetstream.items import Item
    from headwater.broker.router import Router
    from headwater.broker.sublist import Match
    from headwater.streams.log_format import StoredRecord
    from headwater.wire.memory import OutputBuffer

LONGEST_NUMBER: cython.Py_ssize_t = 20  # digits of 2 ** 64


def digits_of(number: cython.longlong) -> cython.Py_ssize_t:
    """How many digits a number that is not negative has."""
    digits: cython.Py_ssize_t = 1
    number //= 10
    while number != 0:
        number //= 10
        digits += 1
    return digits


def append_number(buffer: OutputBuffer, number: cython.longlong) -> cython.int:
    """Append a number in decimal."""
    if number < 0:  # only the time stamp of a clock before 1970
        buffer.append(b"%d" % number)
        return 0
    digits: cython.Py_ssize_t = digits_of(number)
    buffer.reserve(LONGEST_NUMBER)
    data: bytearray = buffer.data
    at: cython.Py_ssize_t = buffer.size + digits
    rest: cython.longlong
    buffer.size = at
    while digits > 0:
        at -= 1
        digits -= 1
        rest = number // 10
        data[at] = cython.cast(cython.uchar, 48 + number - 10 * rest)
        number = rest
    return 0


def send_acks(router: Router, items: list[Item], head: bytes) -> cython.int:
    """Answer every publish of a batch, in order, and write the answers now, without another turn of the loop. `head`: the
    ordinary PubAck up to its sequence."""
    router.begin_read()
    try:
        _route_acks(router, items, head)
    finally:
        router.end_read()
    return 0


def _route_acks(router: Router, items: list[Item], head: bytes) -> cython.int:
    buffer = OutputBuffer()
    item: Item
    for item in items:
        if not item.reply:
            continue
        buffer.size = 0
        buffer.append(item.reply)
        subject_end: cython.Py_ssize_t = buffer.size
        buffer.append(b" ")
        tail: cython.Py_ssize_t = buffer.size
        append_number(buffer, len(item.ack) if item.ack else len(head) + digits_of(item.sequence) + 1)
        buffer.append(b"\r\n")
        payload: cython.Py_ssize_t = buffer.size
        if item.ack:
            buffer.append(item.ack)
        else:
            buffer.append(head)
            append_number(buffer, item.sequence)
            buffer.append(b"}")
        end: cython.Py_ssize_t = buffer.size
        buffer.append(b"\r\n")
        match: Match = router.sublist.find(buffer.data, 0, subject_end)
        router.route(None, match, True, buffer.data, 0, subject_end, tail, tail, tail, payload, payload, end)
    return 0


def _append_ack_subject(
    buffer: OutputBuffer, head: bytes, record: StoredRecord, given: cython.longlong, pending: cython.longlong
) -> cython.int:
    """Append where a delivery is acknowledged: `head`, then the numbers of the message and of its delivery."""
    buffer.append(head)
    append_number(buffer, record.offset + 1)  # sequence_of, without the call
    buffer.append(b".")
    append_number(buffer, given)
    buffer.append(b".")
    append_number(buffer, record.timestamp_ns)
    buffer.append(b".")
    append_number(buffer, pending)
    return 0


def _send_record(
    router: Router,
    match: Match,
    buffer: OutputBuffer,
    head: bytes,
    record: StoredRecord,
    given: cython.longlong,
    pending: cython.longlong,
    room: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Deliver one record; returns its bytes, 0 when nobody took it or it is larger than `room`."""
    block_size: cython.Py_ssize_t = len(record.header_block)
    buffer.size = 0
    buffer.append(record.subject)
    subject_end: cython.Py_ssize_t = buffer.size
    buffer.append(b" ")
    tail: cython.Py_ssize_t = buffer.size
    _append_ack_subject(buffer, head, record, given, pending)
    reply_end: cython.Py_ssize_t = buffer.size
    buffer.append(b" ")
    if block_size != 0:
        append_number(buffer, block_size)
        buffer.append(b" ")
    append_number(buffer, block_size + len(record.payload))
    buffer.append(b"\r\n")
    headers: cython.Py_ssize_t = buffer.size
    if block_size != 0:
        buffer.append(record.header_block)
    payload: cython.Py_ssize_t = buffer.size
    buffer.append(record.payload)
    end: cython.Py_ssize_t = buffer.size
    buffer.append(b"\r\n")
    size: cython.Py_ssize_t = subject_end + (reply_end - tail) + (end - headers)
    if 0 <= room < size:
        return 0
    taken: cython.int = router.route(
        None, match, False, buffer.data, 0, subject_end, tail, reply_end, tail, headers, payload, end
    )
    return size if taken > 0 else 0


def send_records(
    router: Router,
    inbox: bytes,
    records: list[StoredRecord],
    first: cython.Py_ssize_t,
    most: cython.Py_ssize_t,
    head: bytes,
    given: cython.longlong,
    pending: cython.longlong,
    room: cython.Py_ssize_t,
    delivered: list[int],
) -> cython.Py_ssize_t:
    """Deliver `records[first : first + most]` to who listens on `inbox`, each for the first time. `head`: of their ack
    subjects. `given`: consumer sequence of the delivery before. `pending`: matching messages that are left, these
    included. `room`: bytes (subject, ack subject, header block, payload) that may be delivered, -1 for any number. Adds
    their sequences to `delivered` and returns their bytes; it stops where nobody takes one, or the next has no room."""
    buffer = OutputBuffer()
    head = head + b"1."  # the first time
    match: Match = router.sublist.match(inbox)
    record: StoredRecord
    at: cython.Py_ssize_t = first
    stop: cython.Py_ssize_t = min(first + most, len(records))
    sent: cython.Py_ssize_t = 0
    while at < stop:
        record = records[at]
        at += 1
        given += 1
        pending -= 1
        left: cython.Py_ssize_t = room - sent if room >= 0 else -1
        size: cython.Py_ssize_t = _send_record(router, match, buffer, head, record, given, pending, left)
        if size == 0:
            break
        delivered.append(record.offset + 1)
        sent += size
    return sent
