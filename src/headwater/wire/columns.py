# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""JetStream pull deliveries, straight from the receive buffer into column buffers.

A message of a pull consumer carries all that a table row needs: subject, header block and payload in the op itself,
stream sequence, timestamp and pending count in its reply subject:

    $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<ns timestamp>.<pending>              9 tokens
    $JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<ns>.<pending>...  11 or more

`ColumnDecoder` appends those fields to buffers in the memory layout of Arrow's variable-size columns (one run of bytes
and the int32 end of each value; a map is three such levels). `take` hands the buffers over without a copy and without a
Python object per row. The module does not depend on the library that wraps them.

Headers become map<string, list<string>>: names in order of first appearance, the values of a repeated name in one list
(Arrow maps with equal keys break readers). Blocks in the plain form that every client writes are decoded in place;
anything else (fold, status line, repeated name, non-ASCII value, garbage) goes through the reference decoder,
`headwater.model.header_block`, so both paths give a block the same meaning. A malformed block gives a null map and an
entry in `header_errors`; the row is kept.

Text columns are valid UTF-8, as Arrow demands: other bytes become U+FFFD, which adds an entry to `header_errors` if it is
in a header value; the raw block keeps them.

This module sends nothing. It counts PINGs and collects statuses; the owner of the socket acts on both. Offsets are
int32, so the owner takes the columns before `size` reaches `MAX_SIZE`.
"""

import re
from array import array
from typing import NamedTuple

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.cpython.object import Py_SIZE
    from cython.cimports.headwater.wire.memory import OutputBuffer, equals, find_byte, slice_bytes, unset_array
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.headwater.wire.server_ops import RecordingHandler
    from cython.cimports.libc.string import memcpy
else:
    from headwater.wire.memory import OutputBuffer, equals, find_byte, slice_bytes, unset_array
    from headwater.wire.message_view import MessageView
    from headwater.wire.server_ops import RecordingHandler

from headwater.errors import HeadwaterError
from headwater.model.header_block import decode_header_block
from headwater.wire.spares import Spares

PREFIX = b"NATS/1.0\r\n"
_NAME = re.compile(rb"[!-~]+")
ACK_PREFIX = b"$JS.ACK."
MAX_SIZE: int = 1 << 30  # bytes; with one more message (64 MiB) after it, offsets still fit in int32
MANY_NAMES = 32  # distinct names; up to here comparing all pairs is cheaper than hashing
MAX_TOKENS = 16  # in an acknowledgement subject; 12 are in use


def is_ascii(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether no byte of `buffer[start:end]` is above 0x7F."""
    if cython.compiled:
        base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
        word: cython.ulonglong = 0
        high: cython.ulonglong = 0x01010101  # a longer literal would be a Python object
        high = (high | high << 32) * 128
        while start + 8 <= end:
            memcpy(cython.address(word), base + start, 8)
            if word & high != 0:
                return False
            start += 8
        while start < end:
            if base[start] > 127:
                return False
            start += 1
        return True
    return buffer[start:end].isascii()


def is_name(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether `buffer[start:end]` is a header name: bytes 0x21 to 0x7E without colon, at least one."""
    if cython.compiled:
        at: cython.Py_ssize_t
        for at in range(start, end):
            if buffer[at] < 33 or buffer[at] > 126:
                return False
        return end > start
    return _NAME.fullmatch(buffer, start, end) is not None


def same(
    buffer: bytearray,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    other: bytearray,
    other_start: cython.Py_ssize_t,
) -> cython.bint:
    """Whether `buffer[start:end]` equals as many bytes of `other` from `other_start` on."""
    if cython.compiled:
        at: cython.Py_ssize_t
        for at in range(end - start):
            if buffer[start + at] != other[other_start + at]:
                return False
        return True
    return buffer[start:end] == other[other_start : other_start + end - start]


def number(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.longlong:
    """The value of the 1 to 19 ASCII digits in `buffer[start:end]`; -1 for anything else and above 2**63 - 1."""
    if start >= end or end - start > 19:
        return -1
    if cython.compiled:
        value: cython.ulonglong = 0  # 19 digits fit; values above int64 become negative
        at: cython.Py_ssize_t
        digit: cython.int
        for at in range(start, end):
            digit = buffer[at] - 48
            if digit < 0 or digit > 9:
                return -1
            value = value * 10 + digit
        signed: cython.longlong = cython.cast(cython.longlong, value)
        return signed if signed >= 0 else -1
    digits: bytearray = buffer[start:end]
    return int(digits) if digits.isdigit() and int(digits) < 1 << 63 else -1


class Numbers:
    """A growing column of int64."""

    def __init__(self) -> None:
        self.capacity = 1024
        self.values = array("q", bytes(8 * self.capacity))
        self.view = self.values
        self.size = 0
        self.spares: Spares[array[int]] = Spares()

    def append(self, value: cython.longlong) -> cython.int:
        if self.size == self.capacity:
            self.grow()
        self.view[self.size] = value
        self.size += 1
        return 0

    def grow(self) -> cython.int:
        """Double the capacity, in a new array because the view pins the size of the old one."""
        self.values = array("q", self.values.tobytes() * 2)
        self.view = self.values
        self.capacity *= 2
        return 0

    def take(self) -> memoryview:
        """Remove and return the values, as a view of an array that this column no longer writes to."""
        taken = memoryview(self.values)[: self.size]
        self.spares.lend(self.values)
        self.values = self.spares.find(self.capacity) or array("q", bytes(8 * self.capacity))
        self.view = self.values
        self.size = 0
        return taken


class Offsets:
    """A growing column of int32 whose first value is 0: the ends of values in a run of bytes (or of other values)."""

    def __init__(self) -> None:
        self.capacity = 1024
        self.values = array("i", bytes(4 * self.capacity))
        self.view = self.values
        self.size = 1
        self.spares: Spares[array[int]] = Spares()

    def append(self, value: cython.Py_ssize_t) -> cython.int:
        if self.size == self.capacity:
            self.grow()
        self.view[self.size] = value
        self.size += 1
        return 0

    def fill(self, size: cython.Py_ssize_t, value: cython.Py_ssize_t) -> cython.int:
        """Append `value` until there are `size` values. Needs self.size <= size."""
        at: cython.Py_ssize_t
        while self.capacity < size:
            self.grow()
        for at in range(self.size, size):
            self.view[at] = value
        self.size = size
        return 0

    def truncate(self, size: cython.Py_ssize_t) -> cython.int:
        """Drop all values after the first `size`. Needs 1 <= size <= self.size."""
        self.size = size
        return 0

    def grow(self) -> cython.int:
        self.values = array("i", self.values.tobytes() * 2)
        self.view = self.values
        self.capacity *= 2
        return 0

    def take(self) -> memoryview:
        """Remove and return all offsets, one more than there are values; see `Numbers.take`."""
        taken = memoryview(self.values)[: self.size]
        self.spares.lend(self.values)
        self.values = self.spares.find(self.capacity) or array("i", bytes(4 * self.capacity))
        self.view = self.values
        self.size = 1
        return taken


class Text(NamedTuple):
    """A taken column of strings or byte strings: value i is `data[offsets[i]:offsets[i + 1]]`."""

    data: memoryview
    offsets: memoryview


class TextColumn:
    """A growing column of byte strings."""

    def __init__(self) -> None:
        self.data = OutputBuffer()
        self.ends = Offsets()
        self.spares: Spares[bytearray] = Spares()

    def append_slice(self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        data: OutputBuffer = self.data
        if cython.compiled:  # `OutputBuffer.append_slice`, without its calls
            length: cython.Py_ssize_t = end - start
            if data.size + length > Py_SIZE(data.data):
                data.reserve(length)
            memcpy(PyByteArray_AS_STRING(data.data) + data.size, PyByteArray_AS_STRING(buffer) + start, length)
            data.size += length
        else:
            data.append_slice(buffer, start, end)
        self.ends.append(data.size)
        return 0

    def append(self, text: bytes) -> cython.int:
        self.data.append(text)
        self.ends.append(self.data.size)
        return 0

    def pad(self, count: cython.Py_ssize_t) -> cython.int:
        """Append empty values until there are `count`."""
        if self.ends.size <= count:
            self.ends.fill(count + 1, self.data.size)
        return 0

    def truncate(self, count: cython.Py_ssize_t) -> cython.int:
        """Keep the first `count` values."""
        self.ends.truncate(count + 1)
        self.data.size = self.ends.view[count]
        return 0

    def take(self) -> Text:
        """Remove and return all values. The bytes are handed over without a copy; an array of similar size replaces
        theirs.
        """
        array_taken: bytearray = self.data.data
        size: cython.Py_ssize_t = self.data.size
        wanted: cython.Py_ssize_t = min(len(array_taken), KEPT_SIZE)
        if len(array_taken) <= KEPT_SIZE:
            self.spares.lend(array_taken)
        self.data.data = self.spares.find(wanted) or unset_array(wanted)
        self.data.size = 0
        return Text(memoryview(array_taken)[:size], self.ends.take())


KEPT_SIZE: int = 1 << 22  # bytes; otherwise one batch of large payloads would make every later batch allocate as much


class HeaderMap(NamedTuple):
    """A taken map<string, list<string>> column: `entries` has the end of each row's entries, `names` the name of each
    entry, and `lists` the end of each entry's values in `values`.
    """

    entries: memoryview
    names: Text
    lists: memoryview
    values: Text


class Columns(NamedTuple):
    """`rows` rows. `blocks` and `header_map` are None when not requested; `header_errors` are (row, reason) in order of
    rows. `blockless` counts the rows without a header block, which have an empty value in `blocks`. `unmapped` are the
    rows whose map is null (it is empty in `header_map`).
    """

    rows: int
    subjects: Text
    sequences: memoryview
    timestamps: memoryview  # ns since 1970
    payloads: Text
    blocks: Text | None
    header_map: HeaderMap | None
    header_errors: list[tuple[int, str]]
    unmapped: list[int]
    blockless: int


class ColumnDecoder(RecordingHandler):
    """Rows of one subscription (`sid`) whose stream sequence lies in `[start, end)`.

    `position` is the last stream sequence seen (`start - 1` at first), in the range or beyond it; a delivery at or
    before it is dropped, so no row is decoded twice. `received` counts every delivery on the subscription, kept or not,
    because each uses up one of a pull request's messages. It must agree with the consumer's own count: at the first
    delivery where it does not, `skipped` turns true and the decoder takes no more rows, so a lost delivery is noticed.
    `pending` is the number of messages that the consumer had left after the last delivery; `drained` is true while that
    is 0. `first_gap` is the first missing sequence within the range, or -1. `complete` turns true at the last sequence
    of the range, or when the owner calls `finish`. `statuses` are the header blocks of messages without an
    acknowledgement subject, `errors` the texts of -ERR, and `violation` the error that broke the parser, or None.
    """

    statuses: list[bytes]
    header_errors: list[tuple[int, str]]
    unmapped: list[int]

    def __init__(
        self, sid: cython.Py_ssize_t, start: cython.longlong, end: cython.longlong, *, with_map: bool, with_raw: bool
    ) -> None:
        RecordingHandler.__init__(self)
        self.with_map = with_map
        self.with_raw = with_raw
        self.start = start
        self.end = end
        self.position = start - 1
        self.first_gap = -1
        self.complete = end <= start
        self.rows = 0
        self.strays = 0
        self.blockless = 0
        self.header_errors = []
        self.unmapped = []
        self.subjects = TextColumn()
        self.sequences = Numbers()
        self.timestamps = Numbers()
        self.blocks = TextColumn()
        self.payloads = TextColumn()
        self.entry_ends = Offsets()
        self.keys = TextColumn()
        self.item_ends = Offsets()
        self.items = TextColumn()
        self.marks = array("q", bytes(8 * (MAX_TOKENS + 1)))
        self.resubscribe(sid)

    def resubscribe(self, sid: cython.Py_ssize_t) -> None:
        """Continue at `position + 1` with another subscription, after the consumer or the connection was lost."""
        self.sid = sid
        self.received = 0
        self.skipped = False
        self.drained = False
        self.pending = -1
        self.statuses = []

    @property
    def size(self) -> int:
        """Bytes in the largest column."""
        largest: int = max(self.payloads.data.size, self.blocks.data.size, self.keys.data.size, self.items.data.size)
        return largest

    def on_message(self, message: MessageView) -> cython.int:
        buffer: bytearray = message.buffer
        headers: cython.Py_ssize_t = message.headers
        payload: cython.Py_ssize_t = message.payload
        end: cython.Py_ssize_t = message.end
        sequence: cython.longlong
        if message.sid != self.sid or self.skipped:
            self.strays += 1
            return 0
        if not self.read_ack(buffer, message.reply, message.reply_end):
            if headers < payload:
                self.statuses.append(slice_bytes(buffer, headers, payload))
            else:
                self.strays += 1
            return 0
        self.received += 1
        if self.marks[3] != self.received:
            self.skipped = True
            return 0
        sequence = self.marks[0]
        self.pending = self.marks[2]
        if sequence <= self.position:
            return 0
        if sequence > self.position + 1 and self.first_gap < 0 and self.position + 1 < self.end:
            self.first_gap = self.position + 1
        self.position = sequence
        self.drained = self.pending == 0
        if sequence + 1 >= self.end:
            self.complete = True
        if sequence >= self.end:
            return 0
        self.sequences.append(sequence)
        self.timestamps.append(self.marks[1])
        self.subject_row(buffer, message.subject, message.subject_end)
        self.message_row(buffer, headers, payload, end)
        return 0

    def message_row(
        self, buffer: bytearray, headers: cython.Py_ssize_t, payload: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.int:
        """Append the header block `buffer[headers:payload]` and the payload up to `end` to a row that has its sequence,
        timestamp and subject.
        """
        if headers == payload:
            self.blockless += 1
        if self.with_raw:
            self.blocks.append_slice(buffer, headers, payload)
        if self.with_map:
            self.map_row(buffer, headers, payload)
        self.payloads.append_slice(buffer, payload, end)
        self.rows += 1
        return 0

    def finish(self) -> None:
        """Mark the range complete, after the server has answered that it has no more messages of it."""
        if self.first_gap < 0 and self.position + 1 < self.end:
            self.first_gap = self.position + 1
        self.complete = True

    def subject_row(self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        if is_ascii(buffer, start, end):
            self.subjects.append_slice(buffer, start, end)
        else:
            self.subjects.append(slice_bytes(buffer, start, end).decode("utf-8", "replace").encode())
        return 0

    def read_ack(self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """Parse sequence, timestamp, pending and consumer sequence into `marks[0:4]`; 0 if this is no acknowledgement
        subject.
        """
        tokens: cython.Py_ssize_t = 0
        at: cython.Py_ssize_t
        first: cython.Py_ssize_t
        token: cython.Py_ssize_t
        sequence: cython.longlong
        delivery: cython.longlong
        timestamp: cython.longlong
        pending: cython.longlong
        if end - start < 20 or buffer[start] != 36 or not equals(buffer, start, start + 8, ACK_PREFIX):
            return 0
        token = start + 8
        while tokens < MAX_TOKENS:
            self.marks[tokens] = token
            tokens += 1
            at = find_byte(buffer, 46, token, end)
            if at < 0:
                break
            token = at + 1
        if tokens == 7:
            self.marks[7] = end + 1
            first = 3
        elif 9 <= tokens < MAX_TOKENS:
            self.marks[tokens] = end + 1
            first = 5
        else:
            return 0
        sequence = number(buffer, self.marks[first], self.marks[first + 1] - 1)
        delivery = number(buffer, self.marks[first + 1], self.marks[first + 2] - 1)
        timestamp = number(buffer, self.marks[first + 2], self.marks[first + 3] - 1)
        pending = number(buffer, self.marks[first + 3], self.marks[first + 4] - 1)
        if sequence < 1 or delivery < 1 or timestamp < 0 or pending < 0:
            return 0
        self.marks[0] = sequence
        self.marks[1] = timestamp
        self.marks[2] = pending
        self.marks[3] = delivery
        return 1

    def map_row(self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """Append one row of the header map, from the block `buffer[start:end]`; an empty block gives an empty map."""
        first: cython.Py_ssize_t = self.keys.ends.size - 1
        values: cython.Py_ssize_t = self.items.ends.size - 1
        if start < end and not self.map_plainly(buffer, start, end):
            self.keys.truncate(first)
            self.items.truncate(values)
            self.item_ends.truncate(first + 1)
            self.map_carefully(slice_bytes(buffer, start, end))
        self.entry_ends.append(self.keys.ends.size - 1)
        return 0

    def map_plainly(self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Append the entries of a block in plain form; False if it is not plain, and then some entries may have been
        appended.
        """
        at: cython.Py_ssize_t = start + 10
        first: cython.Py_ssize_t = self.keys.ends.size - 1
        colon: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        line_end: cython.Py_ssize_t
        if end - start < 12 or not equals(buffer, start, at, PREFIX):
            return False
        while True:
            line_end = find_byte(buffer, 13, at, end - 1)
            if line_end < 0 or buffer[line_end + 1] != 10:
                return False
            if line_end == at:
                return True
            colon = find_byte(buffer, 58, at, line_end)
            if colon < 0 or not is_name(buffer, at, colon) or not is_ascii(buffer, colon, line_end):
                return False
            if find_byte(buffer, 10, colon, line_end) >= 0 or self.repeated(buffer, at, colon, first):
                return False
            self.keys.append_slice(buffer, at, colon)
            colon += 1
            stop = line_end
            while colon < stop and (buffer[colon] == 32 or buffer[colon] == 9):
                colon += 1
            while stop > colon and (buffer[stop - 1] == 32 or buffer[stop - 1] == 9):
                stop -= 1
            self.items.append_slice(buffer, colon, stop)
            self.item_ends.append(self.items.ends.size - 1)
            at = line_end + 2

    def repeated(
        self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t, first: cython.Py_ssize_t
    ) -> cython.bint:
        """Whether this row already has the name, or has `MANY_NAMES` names or more."""
        entry: cython.Py_ssize_t
        key: cython.Py_ssize_t
        last: cython.Py_ssize_t = self.keys.ends.size - 1
        if last - first >= MANY_NAMES:
            return True
        for entry in range(first, last):
            key = self.keys.ends.view[entry]
            if self.keys.ends.view[entry + 1] - key == end - start and same(
                buffer, start, end, self.keys.data.data, key
            ):
                return True
        return False

    def map_carefully(self, block: bytes) -> cython.int:
        """Append the entries of any block, with the reference decoder."""
        try:
            headers = decode_header_block(block)[1]
        except HeadwaterError as error:
            self.header_errors.append((self.rows, str(error)))
            self.unmapped.append(self.rows)
            return 0
        merged: dict[str, list[str]] = {}
        for name, value in headers.multi_items():
            merged.setdefault(name, []).append(value)
        damaged: str = ""
        for name, values in merged.items():
            for value in values:
                text: bytes = value.encode("utf-8", "surrogateescape")
                clean: bytes = text.decode("utf-8", "replace").encode()
                if clean != text:
                    damaged = damaged or name
                self.items.append(clean)
            self.keys.append(name.encode())
            self.item_ends.append(self.items.ends.size - 1)
        if damaged:
            reason = f"a value of {damaged} is not UTF-8: its bad bytes are shown as U+FFFD"
            self.header_errors.append((self.rows, reason))
        return 0

    def take(self) -> Columns:
        """Remove and return the rows so far; the decoder continues with empty columns."""
        header_map = None
        if self.with_map:
            header_map = HeaderMap(self.entry_ends.take(), self.keys.take(), self.item_ends.take(), self.items.take())
        taken = Columns(
            rows=self.rows,
            subjects=self.subjects.take(),
            sequences=self.sequences.take(),
            timestamps=self.timestamps.take(),
            payloads=self.payloads.take(),
            blocks=self.blocks.take() if self.with_raw else None,
            header_map=header_map,
            header_errors=self.header_errors,
            unmapped=self.unmapped,
            blockless=self.blockless,
        )
        self.header_errors = []
        self.unmapped = []
        self.rows = 0
        self.blockless = 0
        return taken
