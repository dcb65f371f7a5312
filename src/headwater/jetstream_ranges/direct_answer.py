# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Answers direct gets with stored messages: `HMSG`, whose headers say where the message is from.

    Nats-Stream, Nats-Subject, Nats-Sequence, Nats-Time-Stamp behind the message's own headers; the form is nats-server's

Hot and compiled: a key-value get is one call of `DirectRequests.take`. An answer is encoded once, into a buffer that the
next one uses again, and handed to the router as a `MessageView`.

Decided elsewhere: which message is wanted, and what is answered when there is none (jetstream/direct_get.py).
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.sublist import Match
    from cython.cimports.headwater.jetstream_state.subject_table import SubjectTable
    from cython.cimports.headwater.streams.log import Log
    from cython.cimports.headwater.streams.log_format import StoredRecord
    from cython.cimports.headwater.streams.log_reader import LogReader
    from cython.cimports.headwater.wire.memory import OutputBuffer
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.headwater.wire.publish import append_number
else:
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Match
    from headwater.jetstream_state.subject_table import SubjectTable
    from headwater.streams.log import Log
    from headwater.streams.log_format import StoredRecord
    from headwater.streams.log_reader import LogReader
    from headwater.wire.memory import OutputBuffer
    from headwater.wire.message_view import MessageView
    from headwater.wire.publish import append_number

from collections.abc import Mapping, Sized
from typing import TYPE_CHECKING, Protocol

from headwater.errors import StorageError
from headwater.exchange.sublist import Callback
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.contents import Contents
from headwater.model.timestamps import format_time

if TYPE_CHECKING:
    from headwater.exchange.ahead import Foresight

DIRECT_PREFIX = b"$JS.API.DIRECT.GET."
_PREFIX_SIZE: cython.Py_ssize_t = len(DIRECT_PREFIX)
SEQUENCE = b'{"seq":'  # of a request for one message
_SEQUENCE_AT: cython.Py_ssize_t = len(SEQUENCE)

KEPT: int = 1 << 20  # bytes; a buffer that a larger message has made is not kept
# Bytes of answers after which they are written, though there may be more requests in the same read: a client with hundreds
# of gets on their way goes on with the first answers while the others are made.
WRITTEN_TOGETHER: int = 1 << 14
_KEPT: cython.Py_ssize_t = KEPT  # in C: each answer looks at these
_WRITTEN_TOGETHER: cython.Py_ssize_t = WRITTEN_TOGETHER
_SECOND: int = 1_000_000_000  # ns
_DAY_SECONDS: int = 86_400


class DirectStream(Protocol):
    """What a get needs of a stream."""

    @property
    def config(self) -> StreamConfig: ...
    @property
    def contents(self) -> Contents: ...


class DirectAnswer:
    """The answers of one account's streams."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self._lines = OutputBuffer()
        self._buffer = OutputBuffer()
        self._busy = False
        self._unwritten = 0  # bytes of answers since the last write
        self._day = -1  # since 1970: of `_date`, which is its text up to the hours
        self._date = b""

    def send_one(
        self, streams: Mapping[str, DirectStream], request: bytes, reply: bytes, payload: bytes
    ) -> cython.bint:
        """Answer a request for `<prefix><stream>.<subject>` with the last message of the subject, one for `<prefix><stream>`
        with that whose sequence is all that the payload says. False, and no answer, where that takes more than a look: none
        is readable, or another stream answers for that one."""
        end: cython.Py_ssize_t = len(request) if payload else request.find(b".", _PREFIX_SIZE)
        if end < 0 or not reply:
            return False
        name: bytes = request[_PREFIX_SIZE:end]
        stream = streams.get(name.decode("utf-8", "replace"))
        if stream is None or not stream.config.allow_direct:
            return False
        contents = stream.contents
        stored = contents.log
        if not isinstance(stored, Log):
            return False  # a view, whose records are answered under another subject
        log: Log = stored
        reader: LogReader = log.reader
        sequence: cython.longlong
        if payload:
            sequence = _sequence_in(payload)
        else:
            subjects: SubjectTable = contents.subjects
            sequence = subjects.last(request[end + 1 :])
        if sequence <= 0:
            return False
        try:
            record: StoredRecord | None = reader.record(sequence - 1)  # offset_of, without the call
        except StorageError:
            return False  # the caller meets it again, and reports it
        if record is None:
            return False
        self.send(reply, name, record, b"", False)
        return True

    def send(self, reply: bytes, stream: bytes, record: StoredRecord, more: bytes, bare: cython.bint) -> cython.int:
        """Send a message; `more`: lines for behind the headers above, with CR LF before each. `bare`: the payload alone."""
        if self._busy:  # a subscriber of the answer before asks itself
            other: DirectAnswer = DirectAnswer(self.router)
            return other.send(reply, stream, record, more, bare)
        self._busy = True
        try:
            if not bare:
                self._compose_lines(stream, record, more)
            self._route(reply, record, bare)
        finally:
            self._busy = False
            if len(self._buffer.data) > _KEPT or len(self._lines.data) > _KEPT:
                self._buffer, self._lines = OutputBuffer(), OutputBuffer()
        return 0

    def _route(self, reply: bytes, record: StoredRecord, bare: cython.bint) -> cython.int:
        lines: OutputBuffer = self._lines
        buffer: OutputBuffer = self._buffer
        message: MessageView = MessageView()
        header_size: cython.Py_ssize_t = 0 if bare else lines.size
        buffer.size = 0
        buffer.append(reply)
        message.subject_end = buffer.size
        buffer.append(b" ")
        message.tail = message.reply = message.reply_end = buffer.size
        if header_size != 0:
            append_number(buffer, header_size)
            buffer.append(b" ")
        append_number(buffer, header_size + len(record.payload))
        buffer.append(b"\r\n")
        message.headers = buffer.size
        if header_size != 0:
            buffer.append_slice(lines.data, 0, header_size)
        message.payload = buffer.size
        buffer.append(record.payload)
        message.end = buffer.size
        buffer.append(b"\r\n")
        message.buffer = buffer.data  # last: it may have grown
        match: Match = self.router.sublist.find(message.buffer, 0, message.subject_end)
        self.router.route(None, match, message)
        self._unwritten += message.end
        if self._unwritten >= _WRITTEN_TOGETHER:
            self._unwritten = 0
            self.router.flusher.flush()
        return 0

    def _compose_lines(self, stream: bytes, record: StoredRecord, more: bytes) -> cython.int:
        """The header block of an answer into `_lines`."""
        lines: OutputBuffer = self._lines
        lines.size = 0
        own: bytes = record.header_block
        own = (own.removesuffix(b"\r\n") if own else own) or b"NATS/1.0\r\n"
        lines.append(own)
        if not own.endswith(b"\r\n"):
            lines.append(b"\r\n")  # as `with_lines`: our first line is no part of a last one without its end
        lines.append(b"Nats-Stream: ")
        lines.append(stream)
        lines.append(b"\r\nNats-Subject: ")
        lines.append(record.subject)
        lines.append(b"\r\nNats-Sequence: ")
        append_number(lines, record.offset + 1)  # sequence_of, without the call
        lines.append(b"\r\nNats-Time-Stamp: ")
        self._append_time(record.timestamp_ns)
        lines.append(more)
        lines.append(b"\r\n\r\n")
        return 0

    def _append_time(self, ns: cython.longlong) -> cython.int:
        """As `format_time`, which is asked once for each day."""
        lines: OutputBuffer = self._lines
        seconds: cython.longlong = ns // _SECOND
        fraction: cython.longlong = ns - seconds * _SECOND
        day: cython.longlong = seconds // _DAY_SECONDS
        digits: cython.Py_ssize_t = 9
        if day != self._day:
            self._date = format_time(day * _DAY_SECONDS * _SECOND)[:11].encode()
            self._day = day
        seconds -= day * _DAY_SECONDS
        lines.append(self._date)
        _append_digits(lines, seconds // 3600, 2)
        lines.append(b":")
        _append_digits(lines, seconds // 60 % 60, 2)
        lines.append(b":")
        _append_digits(lines, seconds % 60, 2)
        if fraction != 0:
            while fraction % 10 == 0:
                fraction //= 10
                digits -= 1
            lines.append(b".")
            _append_digits(lines, fraction, digits)
        return lines.append(b"Z")


class DirectRequests:
    """What is subscribed to JetStream's requests: answers those for one message by subject or sequence. Direct gets that
    take more than a look go to `longer`, all other requests to `others`; all go there while clients are behind, or requests
    `waiting`."""

    def __init__(
        self,
        answers: DirectAnswer,
        streams: Mapping[str, DirectStream],
        waiting: Sized,
        others: Callback,
        longer: Callback,
    ) -> None:
        self._answers = answers
        self._streams = streams
        self._waiting = waiting
        self._others = others
        self._longer = longer

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> object:
        """A request."""
        answers: DirectAnswer = self._answers
        if subject.startswith(DIRECT_PREFIX) and not self._waiting and not answers.router.flusher.congested:
            if answers.send_one(self._streams, subject, reply, payload):
                return None
            return self._longer(subject, reply, header_block, payload)
        return self._others(subject, reply, header_block, payload)


def _sequence_in(payload: bytes) -> cython.longlong:
    """The sequence that a request says, if it is written as clients write it, and nothing else is in it; else 0."""
    size: cython.Py_ssize_t = len(payload)
    at: cython.Py_ssize_t = _SEQUENCE_AT
    sequence: cython.longlong = 0
    if not _SEQUENCE_AT + 1 < size < _SEQUENCE_AT + 19 or not payload.startswith(SEQUENCE):
        return 0
    # It ends with } (125), and no JSON number begins with 0 (48).
    if payload[size - 1] != 125 or payload[_SEQUENCE_AT] == 48:
        return 0
    while at < size - 1:
        if not 48 <= payload[at] <= 57:
            return 0
        sequence = sequence * 10 + payload[at] - 48
        at += 1
    return sequence


def _append_digits(output: OutputBuffer, number: cython.longlong, digits: cython.Py_ssize_t) -> cython.int:
    """Append a number that is not negative as so many digits."""
    output.reserve(digits)
    data: bytearray = output.data
    at: cython.Py_ssize_t = output.size + digits
    output.size = at
    while digits > 0:
        at -= 1
        digits -= 1
        data[at] = cython.cast(cython.uchar, 48 + number % 10)
        number //= 10
    return 0


def reading_ahead(streams: Mapping[str, DirectStream]) -> "Foresight | None":
    """What reads ahead for gets of these streams; None interpreted, where nothing can."""
    if cython.compiled:
        from headwater.jetstream_ranges.gets_ahead import GetsAhead

        return GetsAhead(streams)
    return None
