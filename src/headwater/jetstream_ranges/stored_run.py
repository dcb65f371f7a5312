# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Many records of one stored batch, delivered from where they lie: no object is made for a record.

    batch in the log │ head │ subject │ block │ payload │ head │ …
                                │         └─────┬──────┘
    output of a client   MSG subject sid  ack subject  size  block payload   MSG …

This is for one plain subscriber, and for batches of which nothing was removed; everything else goes by way of
`RecordSender`, which does the same for all receivers. An ack subject is the one before but for the last digits of its
numbers.

This is compiled only. How many may be sent, and where, is decided in jetstream/pull.py and jetstream/push.py.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.sublist import Match, Outlet, Subscription
    from cython.cimports.headwater.streams.log_format import BatchHeader, _number_at
    from cython.cimports.headwater.streams.segment import Segment
    from cython.cimports.headwater.wire.memory import OutputBuffer
    from cython.cimports.headwater.wire.publish import put_number
    from cython.cimports.libc.string import memcpy
else:
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Match, Outlet, Subscription
    from headwater.streams.log_format import BatchHeader, _number_at
    from headwater.streams.segment import Segment
    from headwater.wire.memory import OutputBuffer
    from headwater.wire.publish import put_number

from headwater.durable_files.files import storage_error
from headwater.streams.log import Log
from headwater.streams.log_format import BATCH_HEADER_SIZE, RECORD_HEAD_SIZE, body_is_intact
from headwater.streams.record_search import can_search

LEAST = 16  # records: to find a batch costs as much as some of them
MOST_BYTES = 1 << 21  # of a batch, which a consumer holds until all of it is delivered
LARGE_RECORD = 1 << 14  # bytes, on average: from here on the copies are what costs (`large_records.py`)
_HEAD_SIZE: cython.Py_ssize_t = RECORD_HEAD_SIZE
_LONGEST: cython.Py_ssize_t = 20  # digits of a number
_SECOND: cython.longlong = 1_000_000_000
_LARGEST: cython.Py_ssize_t = 1 << 16  # bytes of one record; a larger one is written from where it lies (`Router`)
_ROOM: cython.Py_ssize_t = 1 << 20  # bytes that go out in one turn
_MSG: bytes = b"MSG "
_HMSG: bytes = b"HMSG "
_DOT: cython.uchar = 46
_BLANK: cython.uchar = 32
_CR: cython.uchar = 13
_LF: cython.uchar = 10


def only_reader(router: Router, inbox: bytes) -> Subscription | None:
    """The subscription that gets what goes to `inbox`, if it is the only one, and a message needs no look at it."""
    match: Match = router.sublist.match(inbox)
    if router.forwarding is not None or match.groups or len(match.plain) != 1:
        return None
    found: Subscription = match.plain[0]
    outlet: Outlet | None = found.outlet
    if outlet is None or found.closed or found.maximum != 0 or outlet.guard is not None or not outlet.headers:
        return None
    return found


def find_run(log: object, offset: cython.longlong) -> "StoredRun | None":
    """The records from `offset` on, in a checked batch that is whole; None where `Log.read_matching` has to tell what is
    there. Raises StorageError when the disk cannot be read."""
    if not cython.compiled or not isinstance(log, Log) or not log.start_offset <= offset < log.end_offset:
        return None
    reader = log.reader
    header: BatchHeader
    body: bytes
    if reader.recent.reaches(offset):
        found = reader.recent.since(offset, 1)
        if not found or not _fits(found[0][0], offset):
            return None
        header, body = found[0]
    else:
        segment: Segment = reader.segment_at(offset)
        try:
            place = segment.batch_of(offset)
            if place is None or not _fits(place[1], offset):
                return None
            header = place[1]
            body = segment.pread(header.body_size, place[0] + BATCH_HEADER_SIZE)
        except OSError as error:
            raise storage_error(f"read {segment.path}", error) from error
        if not body_is_intact(header, body):
            return None
    if log.count(offset, header.end_offset) < header.end_offset - offset:
        return None
    run = StoredRun(body, header.base_offset, header.end_offset)
    return run if run.skip_to(offset) else None


def _fits(header: BatchHeader, offset: cython.longlong) -> cython.bint:
    """Whether a batch has many small records from this one on."""
    if not can_search(header) or header.record_count != header.offset_span:
        return False
    left: cython.longlong = header.base_offset + header.offset_span - offset
    small: cython.bint = header.body_size <= MOST_BYTES and header.body_size < LARGE_RECORD * header.record_count
    return small and LEAST <= left <= header.offset_span


class StoredRun:
    """See the head of this module. `offset`: of the next record; `end`: the one behind the last."""

    offset: int
    end: int

    def __init__(self, body: bytes, base_offset: cython.longlong, end: cython.longlong) -> None:
        self.offset = base_offset
        self.end = end
        self._body = body
        self._at = 0
        self._ack = AckText()

    @property
    def is_over(self) -> bool:
        """Whether all was delivered, or the rest is not what it should be."""
        return self._at >= len(self._body)

    def skip_to(self, offset: cython.longlong) -> cython.bint:
        """Go to the record with this offset; False if there is none."""
        size: cython.Py_ssize_t = 0
        while self.offset < offset:
            size = _size_at(self._body, self._at)
            if size <= 0:
                return False
            self._at += size
            self.offset += 1
        return self._at < len(self._body)

    def send(
        self,
        router: Router,
        reader: Subscription,
        head: bytes,
        given: cython.longlong,
        pending: cython.longlong,
        most: cython.Py_ssize_t,
        room: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Deliver to `reader`, which `only_reader` found, at most `most` records, and at most `room` bytes (-1: any number),
        as `RecordSender` would; returns their bytes. `offset` is then behind the last one."""
        outlet: Outlet = cython.cast(Outlet, reader.outlet)
        data: cython.p_uchar = _bytes_of(self._body)
        ack: AckText = self._ack
        total: cython.Py_ssize_t = 0  # bytes that count against `room`
        carried: cython.Py_ssize_t = 0  # header blocks and payloads
        count: cython.Py_ssize_t = 0
        high: cython.ulonglong  # half of a time stamp
        ack.begin(head)
        while count < most and total < _ROOM:
            size: cython.Py_ssize_t = _size_at(self._body, self._at)
            if size <= 0 or size > _LARGEST:
                break
            at: cython.Py_ssize_t = self._at + _HEAD_SIZE
            high = _number_at(data, at - 20)
            stamp: cython.longlong = cython.cast(cython.longlong, (high << 32) | _number_at(data, at - 24))
            subject: cython.Py_ssize_t = data[at - 12] | (data[at - 11] << 8)
            block: cython.Py_ssize_t = _number_at(data, at - 8)
            rest: cython.Py_ssize_t = size - _HEAD_SIZE - subject
            ack.count(self.offset + 1, given + count + 1, stamp, pending - count - 1)
            needed: cython.Py_ssize_t = subject + ack.end + rest
            if 0 <= room < total + needed:
                break
            ack.put_sizes(block, rest)
            _append_message(outlet.output, data + at, subject, reader.after_subject, ack.text, block > 0, rest)
            total += needed
            carried += rest
            count += 1
            self._at += size
            self.offset += 1
        if count > 0:
            outlet.out_messages += count
            outlet.out_bytes += carried
            reader.delivered += count
            if not outlet.dirty:
                router.flusher.mark(outlet)
        return total


class AckText:
    """The ack subject of a first delivery, and the sizes behind it: `text`, in which the subject ends at `end`."""

    def __init__(self) -> None:
        self.text = OutputBuffer()
        self.end = 0
        self._first = 0  # where the numbers begin: sequence, consumer sequence, time stamp, pending
        self._sequence_end = 0
        self._given_end = 0
        self._stamp_end = 0
        # That of the time stamp, in nanoseconds; 0: its last nine digits are not all of those that change.
        self._second = 0
        self._block = -1
        self._rest = -1

    def begin(self, head: bytes) -> cython.int:
        """The prefix of the ack subjects."""
        self.text.size = 0
        self.text.append(head)
        self.text.append(b"1.")  # the first time
        self._first = self.text.size
        self.text.reserve(6 * (_LONGEST + 2))
        self.end = 0
        return 0

    def count(
        self, sequence: cython.longlong, given: cython.longlong, stamp: cython.longlong, pending: cython.longlong
    ) -> cython.int:
        """Make it that of the next delivery, whose sequences are the ones behind those before."""
        data: bytearray = self.text.data
        if cython.compiled:
            digits: cython.p_char = PyByteArray_AS_STRING(data)
            nanoseconds: cython.longlong = stamp - self._second
            if (
                self.end != 0
                and self._second != 0
                and 0 <= nanoseconds < _SECOND
                and _count_up(digits, self._first, self._sequence_end)
                and _count_up(digits, self._sequence_end + 1, self._given_end)
                and _count_down(digits, self._stamp_end + 1, self.end)
            ):
                _put_nine(digits + self._stamp_end - 9, nanoseconds)
                return 0
        self._sequence_end = put_number(data, self._first, sequence)
        data[self._sequence_end] = _DOT
        self._given_end = put_number(data, self._sequence_end + 1, given)
        data[self._given_end] = _DOT
        self._stamp_end = put_number(data, self._given_end + 1, stamp)
        data[self._stamp_end] = _DOT
        self.end = put_number(data, self._stamp_end + 1, pending)
        self._second = stamp - stamp % _SECOND if stamp >= _SECOND else 0
        self._block = -1
        return 0

    def put_sizes(self, block: cython.Py_ssize_t, rest: cython.Py_ssize_t) -> cython.int:
        """Write what follows the ack subject in a control line. `rest`: the size of header block and payload."""
        if block == self._block and rest == self._rest:
            return 0
        self._block = block
        self._rest = rest
        data: bytearray = self.text.data
        at: cython.Py_ssize_t = self.end
        data[at] = _BLANK
        if block != 0:
            at = put_number(data, at + 1, block)
            data[at] = _BLANK
        at = put_number(data, at + 1, rest)
        data[at] = _CR
        data[at + 1] = _LF
        self.text.size = at + 2
        return 0


def _append_message(
    output: OutputBuffer,
    record: cython.p_uchar,
    subject: cython.Py_ssize_t,
    between: bytes,
    ack: OutputBuffer,
    has_block: cython.bint,
    rest: cython.Py_ssize_t,
) -> cython.int:
    """Append a delivery. `record`: its subject, of this size, and behind it header block and payload, of `rest` bytes."""
    if cython.compiled:
        verb: cython.Py_ssize_t = 5 if has_block else 4
        middle: cython.Py_ssize_t = len(between)
        needed: cython.Py_ssize_t = verb + subject + middle + ack.size + rest + 2
        if output.size + needed > len(output.data):
            output.reserve(needed)
        target: cython.p_char = PyByteArray_AS_STRING(output.data) + output.size
        output.size += needed
        memcpy(target, PyBytes_AS_STRING(_HMSG if has_block else _MSG), verb)
        target += verb
        memcpy(target, record, subject)
        target += subject
        memcpy(target, PyBytes_AS_STRING(between), middle)
        target += middle
        memcpy(target, PyByteArray_AS_STRING(ack.data), ack.size)
        target += ack.size
        memcpy(target, record + subject, rest)
        target[rest] = _CR
        target[rest + 1] = _LF
    return 0


def _bytes_of(body: bytes) -> cython.p_uchar:
    if cython.compiled:
        return cython.cast(cython.p_uchar, PyBytes_AS_STRING(body))
    return body


def _size_at(body: bytes, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The size of the record here; 0 at the end of the batch, and where the sizes do not add up."""
    size: cython.Py_ssize_t = 0
    if cython.compiled and at + _HEAD_SIZE <= len(body):
        data: cython.p_uchar = _bytes_of(body) + at + _HEAD_SIZE
        size = _HEAD_SIZE + (data[-12] | (data[-11] << 8)) + _number_at(data, -8) + _number_at(data, -4)
    return size if at + size <= len(body) else 0


def _put_nine(digits: cython.p_char, number: cython.uint) -> cython.int:
    """Write a number below 1,000,000,000 with all its nine digits."""
    place: cython.Py_ssize_t
    following: cython.uint
    for place in range(8, -1, -1):
        following = number // 10
        digits[place] = cython.cast(cython.char, 48 + number - 10 * following)
        number = following
    return 0


def _count_up(digits: cython.p_char, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Add one to the number in `digits[start:end]`. False if it needs one more digit: it is spoilt then."""
    while end > start:
        end -= 1
        if digits[end] != 57:  # 9
            digits[end] += 1
            return True
        digits[end] = 48
    return False


def _count_down(digits: cython.p_char, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Take one from the number in `digits[start:end]`. False if it needs one digit less, or is 0: it is spoilt then."""
    at: cython.Py_ssize_t = end
    while at > start:
        at -= 1
        if digits[at] != 48:  # 0
            digits[at] -= 1
            return digits[start] != 48 or end - start == 1
        digits[at] = 57
    return False
