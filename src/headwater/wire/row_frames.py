# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Writer of rows of column buffers as PUB and HPUB ops, and reader of their acknowledgements; the inverse of `columns`.

    HPUB <subject> <inbox>.<row> <#header bytes> <#total bytes>␍␊NATS/1.0␍␊<name>: <value>␍␊…Nats-Msg-Id: <id>␍␊␍␊<payload>␍␊

`RowFrames` writes the op of a row from buffers in Arrow's layout (`headwater.wire.columns.Text`), `AckCounter` records
which rows a stream has acknowledged; neither makes a Python object per row. The row's number is the last token of the
reply subject, so the subject of an acknowledgement identifies its row, or the last one of a run (`wire/ack_runs.py`).

Everything is checked before the first byte of an op is written: an invalid subject, a header value with a line break, a
message above the server's limit.

Headers that instruct the server are left out of a row: `Nats-Msg-Id`, `Nats-Rollup`, `Nats-Expected-*`. They were the
original publisher's, for another stream; repeated here, they would drop, purge or refuse messages. A message id comes
from its own column, or consists of a prefix and the row's number.

Sending, waiting and retrying are the caller's.
"""

from array import array
from typing import NamedTuple

import cython

if cython.compiled:
    from cython.cimports.headwater.model.subject_match import is_plain
    from cython.cimports.headwater.wire.memory import OutputBuffer, equals, find_byte, hash_slice, slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.headwater.wire.publish import append_number
    from cython.cimports.headwater.wire.server_ops import RecordingHandler
else:
    from headwater.model.subject_match import is_plain
    from headwater.wire.memory import OutputBuffer, equals, find_byte, hash_slice, slice_bytes
    from headwater.wire.message_view import MessageView
    from headwater.wire.publish import append_number
    from headwater.wire.server_ops import RecordingHandler

from headwater.errors import HeaderError, LocalProtocolError, PayloadTooLarge, SubjectError
from headwater.model.header_syntax import checked_name, checked_value
from headwater.model.subject import validate_subject
from headwater.model.thinning import thin_out
from headwater.wire.ack_runs import RUN_MEMBER
from headwater.wire.columns import HeaderMap, Text

CRLF = b"\r\n"
VERSION_LINE = b"NATS/1.0\r\n"
MSG_ID_LINE = b"Nats-Msg-Id: "
ERROR_MEMBER = b'"error":'
STREAM_MEMBER: bytes = b'{"stream":'
SEQUENCE_MEMBER: bytes = b'"seq":'
DUPLICATE_MEMBER = b'"duplicate":'  # never false
_RUN_MEMBER: bytes = RUN_MEMBER
NO_RESPONDERS = b"NATS/1.0 503"
INSTRUCTIONS = (b"Nats-Msg-Id", b"Nats-Rollup", b"Nats-Stream-Source")
SLOTS: cython.Py_ssize_t = 4096  # for the subjects seen last, a power of two
KNOWN_SUBJECTS: int = 16_384  # subjects remembered as valid


def is_one_line(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether `buffer[start:end]` has neither CR nor LF."""
    return find_byte(buffer, 13, start, end) < 0 and find_byte(buffer, 10, start, end) < 0


def is_header_name(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether `buffer[start:end]` is at least one character of printable ASCII without colon or space."""
    at: cython.Py_ssize_t
    for at in range(start, end):
        if buffer[at] < 33 or buffer[at] > 126 or buffer[at] == 58:
            return False
    return end > start


def is_instruction(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether the header name `buffer[start:end]` was an instruction to the server of the stream that a row was read from,
    or its note: messages of an atomic batch keep theirs, and those of a stream with sources say where they came from."""
    if end - start < 11 or buffer[start] != 78:
        return False
    if equals(buffer, start, end, INSTRUCTIONS[0]) or equals(buffer, start, end, INSTRUCTIONS[1]):
        return True
    if equals(buffer, start, end, INSTRUCTIONS[2]) or equals(buffer, start, start + 11, b"Nats-Batch-"):
        return True
    return end - start > 14 and equals(buffer, start, start + 14, b"Nats-Expected-")


def run_of(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """How many rows the acknowledgement `buffer[start:end]` is for."""
    run: cython.Py_ssize_t = 0
    unit: cython.Py_ssize_t = 1
    at: cython.Py_ssize_t = end - 2  # behind it is the brace
    while at > start and 48 <= buffer[at] <= 57 and end - at < 12:
        run += (buffer[at] - 48) * unit
        unit *= 10
        at -= 1
    size: cython.Py_ssize_t = len(_RUN_MEMBER)
    at += 1
    if unit > 1 and at - size >= start and equals(buffer, at - size, at, _RUN_MEMBER):
        return run
    return 1


class TextReader:
    """A column of byte strings, for reading. `data` is a bytearray, copied from Arrow's buffers, which are not."""

    data: bytearray

    def __init__(self, text: Text) -> None:
        whole = text.data.obj
        self.data = whole if isinstance(whole, bytearray) else bytearray(text.data)
        self.ends = text.offsets
        self.rows = len(text.offsets) - 1


NO_TEXT: Text = Text(memoryview(b""), memoryview(array("i", [0])))


class Rows(NamedTuple):
    """`rows` messages to publish.

    Subjects come from `subjects`, or all are `subject` if that is None. Headers come from `headers`, from `blocks`
    (whole header blocks) or from neither. `ids` are message ids; if they are None and `id_prefix` is not empty, row i
    gets `<id_prefix><id_start + i>`. `lines` are header lines for all rows, each with its CRLF.
    """

    rows: int
    subjects: Text | None
    subject: bytes
    payloads: Text | None
    headers: HeaderMap | None = None
    blocks: Text | None = None
    ids: Text | None = None
    id_prefix: bytes = b""
    id_start: int = 0
    lines: bytes = b""


class CheckedSubjects:
    """Subjects known to be valid. `find` is for one in a buffer: a table with a slot for each hash saves making an object of
    it; `check` is for any. Both raise SubjectError, naming the row."""

    def __init__(self) -> None:
        self._recent: list[bytes] = [b""] * SLOTS
        self._known: dict[bytes, None] = {}  # of those for which `is_plain` does not speak

    def find(
        self, row: cython.Py_ssize_t, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> bytes:
        """The subject `buffer[start:end]`, which is not empty."""
        slot: cython.Py_ssize_t = hash_slice(buffer, start, end) & (SLOTS - 1)
        subject: bytes = self._recent[slot]
        if not equals(buffer, start, end, subject):
            subject = self.check(row, slice_bytes(buffer, start, end))
            self._recent[slot] = subject
        return subject

    def check(self, row: cython.Py_ssize_t, subject: bytes) -> bytes:
        """The subject."""
        if not is_plain(subject) and subject not in self._known:
            try:
                validate_subject(subject.decode())
            except SubjectError as error:
                raise SubjectError(f"row {row} of the batch: {error}", value=subject.decode()) from error
            if len(self._known) >= KNOWN_SUBJECTS:
                thin_out(self._known)
            self._known[subject] = None
        return subject


class RowFrames:
    """Appends the ops of rows to `output`. `inbox` is the subject prefix of acknowledgements, with its final dot; b""
    requests none. `appended` counts the ops.
    """

    def __init__(self, output: OutputBuffer, rows: Rows, inbox: bytes, max_payload: int) -> None:
        self.output = output
        self.block = OutputBuffer()
        self.inbox = inbox
        self.limit = max_payload
        self.subject = rows.subject
        self.last = b""
        self.checked = CheckedSubjects()
        self.appended = 0
        self.subjects = _reader(rows.subjects)
        self.payloads = _reader(rows.payloads)
        self.blocks = _reader(rows.blocks)
        self.ids = _reader(rows.ids)
        self.id_prefix = rows.id_prefix
        self.id_start = rows.id_start
        self.lines = rows.lines
        headers = rows.headers
        self.with_map = headers is not None
        self.names = TextReader(headers.names if headers else NO_TEXT)
        self.values = TextReader(headers.values if headers else NO_TEXT)
        self.entry_ends = headers.entries if headers else array("i", [0])
        self.list_ends = headers.lists if headers else array("i", [0])

    def append_rows(
        self, row: cython.Py_ssize_t, last: cython.Py_ssize_t, acked: bytearray, most: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Append the ops of the rows from `row` up to `last` that are not marked in `acked`, until `output` holds `most`
        bytes; returns the row to continue with. Raises what `append` raises."""
        output: OutputBuffer = self.output
        while row < last and output.size < most:
            if acked[row] == 0:
                self.append(row)
            row += 1
        return row

    def append(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Append the op of a row; returns its size in bytes.

        Raises SubjectError, HeaderError or PayloadTooLarge, naming the row, before anything is written.
        """
        output: OutputBuffer = self.output
        before: cython.Py_ssize_t = output.size
        start: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t = 0
        header_size: cython.Py_ssize_t
        payloads: TextReader | None = self.payloads
        if payloads is not None:
            start = payloads.ends[row]
            size = payloads.ends[row + 1] - start
        self.subject_of(row)
        self.block_of(row)
        header_size = self.block.size
        if header_size + size > self.limit:
            raise PayloadTooLarge(
                f"row {row} of the batch has {header_size + size} bytes, headers included; the server takes {self.limit}",
                value=header_size + size,
                limit=self.limit,
            )
        output.append(b"HPUB " if header_size else b"PUB ")
        output.append(self.last)
        output.append(b" ")
        if self.inbox:
            output.append(self.inbox)
            append_number(output, row)
            output.append(b" ")
        if header_size:
            append_number(output, header_size)
            output.append(b" ")
        append_number(output, header_size + size)
        output.append(CRLF)
        output.append_slice(self.block.data, 0, header_size)
        if payloads is not None:
            output.append_slice(payloads.data, start, start + size)
        output.append(CRLF)
        self.appended += 1
        return output.size - before

    def subject_of(self, row: cython.Py_ssize_t) -> cython.int:
        """Set `last` to the checked subject of a row."""
        start: cython.Py_ssize_t
        end: cython.Py_ssize_t
        subject: bytes = self.subject
        if self.subjects is not None:
            start = self.subjects.ends[row]
            end = self.subjects.ends[row + 1]
            if end > start:  # an empty one means the common subject
                if equals(self.subjects.data, start, end, self.last):
                    return 0
                self.last = self.checked.find(row, self.subjects.data, start, end)
                return 0
        if subject != self.last or not subject:
            self.last = self.checked.check(row, subject)
        return 0

    def block_of(self, row: cython.Py_ssize_t) -> cython.int:
        """Set `block` to the header block of a row; it is empty if the row has no headers and no message id."""
        block: OutputBuffer = self.block
        start: cython.Py_ssize_t
        end: cython.Py_ssize_t
        block.size = 0
        if self.blocks is not None:
            start = self.blocks.ends[row]
            end = self.blocks.ends[row + 1]
            if end > start:
                block.append_slice(self.blocks.data, start, end - 2)
        if self.with_map and self.entry_ends[row] < self.entry_ends[row + 1]:
            block.append(VERSION_LINE)
            self.map_lines(row)
            if block.size == 10:
                block.size = 0
        if self.ids is not None or self.id_prefix or self.lines:
            if block.size == 0:
                block.append(VERSION_LINE)
            block.append(self.lines)
            if self.ids is not None or self.id_prefix:
                self.message_id(row)
        if block.size:
            block.append(CRLF)
        return 0

    def map_lines(self, row: cython.Py_ssize_t) -> cython.int:
        """Append a line for each value of the row's map."""
        block: OutputBuffer = self.block
        entry: cython.Py_ssize_t
        item: cython.Py_ssize_t
        name: cython.Py_ssize_t
        name_end: cython.Py_ssize_t
        start: cython.Py_ssize_t
        end: cython.Py_ssize_t
        for entry in range(self.entry_ends[row], self.entry_ends[row + 1]):
            name = self.names.ends[entry]
            name_end = self.names.ends[entry + 1]
            if not is_header_name(self.names.data, name, name_end):
                _refuse(row, slice_bytes(self.names.data, name, name_end), b"")
            if is_instruction(self.names.data, name, name_end):
                continue
            for item in range(self.list_ends[entry], self.list_ends[entry + 1]):
                start = self.values.ends[item]
                end = self.values.ends[item + 1]
                if not is_one_line(self.values.data, start, end):
                    _refuse(
                        row,
                        slice_bytes(self.names.data, name, name_end),
                        slice_bytes(self.values.data, start, end),
                    )
                block.append_slice(self.names.data, name, name_end)
                block.append(b": ")
                block.append_slice(self.values.data, start, end)
                block.append(CRLF)
        return 0

    def message_id(self, row: cython.Py_ssize_t) -> cython.int:
        block: OutputBuffer = self.block
        start: cython.Py_ssize_t
        end: cython.Py_ssize_t
        block.append(MSG_ID_LINE)
        if self.ids is None:
            block.append(self.id_prefix)
            append_number(block, self.id_start + row)
        else:
            start = self.ids.ends[row]
            end = self.ids.ends[row + 1]
            if start == end:
                raise HeaderError(f"row {row} of the batch has no message id", key="Nats-Msg-Id", rule="empty")
            if not is_one_line(self.ids.data, start, end):
                _refuse(row, b"Nats-Msg-Id", slice_bytes(self.ids.data, start, end))
            block.append_slice(self.ids.data, start, end)
        block.append(CRLF)
        return 0


def _reader(text: Text | None) -> TextReader | None:
    return None if text is None else TextReader(text)


def _refuse(row: int, name: bytes, value: bytes) -> None:
    """Raise for a header that cannot be written, with the message of the model's check."""
    try:
        checked_value(checked_name(name.decode()), value.decode())
    except HeaderError as error:
        raise HeaderError(f"row {row} of the batch: {error}", key=error.key, rule=error.rule) from error
    raise LocalProtocolError(f"row {row} of the batch: the header {name!r} cannot be written", value=value)


class AckCounter(RecordingHandler):
    """Records which of `rows` rows were acknowledged to `<inbox>.<row>`, through the subscription `sid`.

    `duplicates` and `refused` list (row, payload of the answer); a refused row counts as not acknowledged, and the
    payload of a 503 status is empty. `samples` has one answer of each stream that acknowledged. A reply from a plain
    subscriber to the rows' subject is no acknowledgement: `foreign` has the first. PINGs are counted for the caller to
    answer.
    """

    duplicates: list[tuple[int, bytes]]
    refused: list[tuple[int, bytes]]
    samples: dict[bytes, bytes]
    foreign: bytes

    def __init__(self, sid: cython.Py_ssize_t, inbox: bytes, rows: cython.Py_ssize_t) -> None:
        RecordingHandler.__init__(self)
        self.sid = sid
        self.token = len(inbox)
        self.rows = rows
        self.count = 0
        self.acked = bytearray(rows)
        self.duplicates = []
        self.refused = []
        self.samples = {}
        self.foreign = b""
        self.head = b""
        self.pongs = 0

    def listen(self, sid: int, inbox: bytes) -> None:
        """Continue with another subscription; acknowledged rows stay acknowledged."""
        self.sid = sid
        self.token = len(inbox)
        self.refused = []
        self.errors = []

    def settle(self) -> None:
        """Count all rows as acknowledged, for a publish without an acknowledgement per row."""
        self.count = self.rows

    def on_message(self, message: MessageView) -> cython.int:
        buffer: bytearray = message.buffer
        payload: cython.Py_ssize_t = message.payload
        end: cython.Py_ssize_t = message.end
        row: cython.Py_ssize_t = 0
        at: cython.Py_ssize_t
        if message.sid != self.sid or message.subject_end - message.subject <= self.token:
            return 0
        for at in range(message.subject + self.token, message.subject_end):
            if buffer[at] < 48 or buffer[at] > 57 or row > self.rows:
                return 0
            row = row * 10 + buffer[at] - 48
        if row >= self.rows or self.acked[row]:
            return 0
        if payload == end and not equals(buffer, message.headers, min(payload, message.headers + 12), NO_RESPONDERS):
            self.foreign = self.foreign or b"an empty message"
            return 0
        if payload == end or self.has_member(buffer, payload, end, ERROR_MEMBER):
            self.refused.append((row, slice_bytes(buffer, payload, end)))
            return 0
        at = payload + len(self.head)
        if (at == payload or at > end or not equals(buffer, payload, at, self.head)) and not self.is_ack(
            slice_bytes(buffer, payload, end)
        ):
            return 0
        if self.has_member(buffer, payload, end, DUPLICATE_MEMBER):
            self.duplicates.append((row, slice_bytes(buffer, payload, end)))
        for at in range(max(0, row + 1 - run_of(buffer, payload, end)), row + 1):
            self.count += self.acked[at] == 0
            self.acked[at] = 1
        return 0

    def is_ack(self, answer: bytes) -> cython.bint:
        """Whether this is a stream's acknowledgement. Its text up to the sequence is kept, because the next answer most
        likely begins with it too.
        """
        at: cython.Py_ssize_t = answer.find(SEQUENCE_MEMBER)
        if at < 0 or not answer.startswith(STREAM_MEMBER):
            self.foreign = self.foreign or answer
            return False
        self.head = answer[: at + len(SEQUENCE_MEMBER)]
        self.samples.setdefault(self.head, answer)
        return True

    def has_member(
        self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t, member: bytes
    ) -> cython.bint:
        """Whether the JSON text has `member`. The only foreign text in it is the stream's name, which has no quotes."""
        size: cython.Py_ssize_t = len(member)
        at: cython.Py_ssize_t = find_byte(buffer, 34, start, end)
        while at >= 0 and end - at >= size:
            if buffer[at + 1] == member[1] and equals(buffer, at, at + size, member):
                return True
            at = find_byte(buffer, 34, at + 1, end)
        return False

    def on_pong(self) -> cython.int:
        self.pongs += 1
        return 0
