# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Decode header blocks and payloads of decoded rows into CloudEvents columns, without a Python object per row.

    header block ─▶ lines ─▶ mode ─┬─ binary ──────▶ ce- headers, percent-decoded ─┐
                                   └─ structured ──▶ members of the JSON object ───┴─▶ columns     or ce_error

`headwater.cloudevents.from_nats` is the reference: it defines what an event is. `scan` handles only the form that most
senders write: plain header lines, values that need at most percent-decoding, and JSON attributes without escapes. It
accepts nothing that the reference rejects, and it rejects only messages without any sign of a CloudEvent. Every other
row is rolled back and decoded by the reference, so all other errors and rules in `ce_error` are the reference's.

This module sits above `wire` and `cloudevents` because it needs the columns of the first and the rules of the second,
and neither of them may import the other.

Core attributes need no validity bits: they are never empty, so an empty value means null. `data` has validity bits
because it may be present and empty. In binary mode `data` is the payload; while this is true of every row in a batch,
both columns share the payload's buffers. Interpreted, the reference alone is faster than this scan, so `scans` is off.
"""

from array import array
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, cast

import cython

if cython.compiled:
    from cython.cimports.headwater.columns.event_scan import (
        NO_INSTANT,
        folded_equals,
        is_json_type,
        is_string,
        is_utf8,
        skip_blank,
        skip_literal,
        skip_value,
        timestamp_micros,
    )
    from cython.cimports.headwater.wire.columns import Numbers, Offsets, TextColumn
    from cython.cimports.headwater.wire.memory import OutputBuffer, equals, find_byte, slice_bytes
else:
    from headwater.columns.event_scan import (
        NO_INSTANT,
        folded_equals,
        is_json_type,
        is_string,
        is_utf8,
        skip_blank,
        skip_literal,
        skip_value,
        timestamp_micros,
    )
    from headwater.wire.columns import Numbers, Offsets, TextColumn
    from headwater.wire.memory import OutputBuffer, equals, find_byte, slice_bytes

from headwater.cloudevents import CloudEvent, DataKind, canonical_string, from_nats
from headwater.cloudevents.event import text_of
from headwater.errors import CloudEventError
from headwater.model.message import Message
from headwater.wire.columns import Columns, Text

SLOTS: Final = ("specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema")
SPECVERSION = 0
TIME = 5
CONTENT_TYPE = 6
REQUIRED = 0b1111  # the first four
PREFIX = b"NATS/1.0\r\n"
MOST_ATTRIBUTES = 32  # per header block; the reference reads longer ones
MEDIA_TYPE = b"application/cloudevents"
MODE_WINDOW = 64  # bytes at the start of a payload that are searched for the brace of a JSON object
# Value of each hexadecimal digit; 255 for any other byte.
HEX_DIGITS: bytes = bytes(int(chr(b), 16) if chr(b) in "0123456789abcdefABCDEF" else 255 for b in range(256))
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

# Results of `mode`.
BINARY = 1
STRUCTURED = 2
NEITHER = 3
UNCLEAR = 0


class EventText(NamedTuple):
    """Columns of `rows` rows. `texts` maps each core attribute's name to its column; an empty value is null.

    `times` are microseconds since 1970, valid where `has_time` has a bit. `entries`, `keys` and `values` form the map of
    extensions, null where `is_event` has no bit. `data` is null where `has_data` has no bit. `errors` and `rules` are
    empty in the row of an event.
    """

    rows: int
    texts: dict[str, Text]
    times: memoryview
    has_time: bytearray
    entries: memoryview
    keys: Text
    values: Text
    is_event: bytearray
    data: Text
    has_data: bytearray
    errors: Text
    rules: Text


def reference(block: bytes, payload: bytes) -> CloudEvent:
    """Decode a message with the reference. Raises CloudEventError."""
    return from_nats(Message("", payload, "", block))


def _not_an_event() -> tuple[bytes, bytes]:
    """The reference's reason and rule for a message without any sign of a CloudEvent."""
    try:
        reference(b"", b"")
    except CloudEventError as error:
        return str(error).encode(), error.rule.encode()
    raise AssertionError("an empty message is no event")


NO_EVENT_REASON, NO_EVENT_RULE = _not_an_event()


def slot_of(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """The index in `SLOTS` of the name in `buffer[start:end]`, ignoring case; -1 for any other name."""
    length: cython.Py_ssize_t = end - start
    if length == 2:
        return 1 if folded_equals(buffer, start, b"id") else -1
    if length == 4:
        if folded_equals(buffer, start, b"type"):
            return 3
        return TIME if folded_equals(buffer, start, b"time") else -1
    if length == 6:
        return 2 if folded_equals(buffer, start, b"source") else -1
    if length == 7:
        return 4 if folded_equals(buffer, start, b"subject") else -1
    if length == 10:
        return 7 if folded_equals(buffer, start, b"dataschema") else -1
    if length == 11:
        return SPECVERSION if folded_equals(buffer, start, b"specversion") else -1
    if length == 15:
        return CONTENT_TYPE if folded_equals(buffer, start, b"datacontenttype") else -1
    return -1


def set_bit(bits: bytearray, row: cython.Py_ssize_t) -> cython.int:
    bits[row >> 3] |= 1 << (row & 7)
    return 0


class EventDecoder:
    """Decodes the rows of one batch of columns; `decode` is called once.

    `scans`: whether rows are scanned before the reference is tried. `scanned` counts the rows that the scan completed.
    The bit fields start as zeros, so rolling back a row only has to truncate the columns.
    """

    blocks: bytearray
    payloads: bytearray

    def __init__(self) -> None:
        self.scans = cython.compiled
        self.rows = 0
        self.scanned = 0
        self.texts = [TextColumn() for _ in SLOTS]
        self.times = Numbers()
        self.entry_ends = Offsets()
        self.keys = TextColumn()
        self.values = TextColumn()
        self.data = TextColumn()
        self.apart = False
        self.errors = TextColumn()
        self.rules = TextColumn()
        self.marks = array("q", bytes(8 * 4 * MOST_ATTRIBUTES))
        self.scratch = OutputBuffer()

    def decode(self, columns: Columns) -> EventText:
        """Decode all rows. `columns` must include raw header blocks."""
        assert columns.blocks is not None
        count: cython.Py_ssize_t = columns.rows
        self.has_time = bytearray((count + 7) // 8)
        self.is_event = bytearray((count + 7) // 8)
        self.has_data = bytearray((count + 7) // 8)
        self.blocks = cast("bytearray", columns.blocks.data.obj)
        self.block_ends = columns.blocks.offsets
        self.payloads = cast("bytearray", columns.payloads.data.obj)
        self.payload_ends = columns.payloads.offsets
        while self.rows < count:
            self.row()
        return EventText(
            rows=count,
            texts={name: column.take() for name, column in zip(SLOTS, self.texts, strict=True)},
            times=self.times.take(),
            has_time=self.has_time,
            entries=self.entry_ends.take(),
            keys=self.keys.take(),
            values=self.values.take(),
            is_event=self.is_event,
            data=self.data.take() if self.apart else columns.payloads,
            has_data=self.has_data,
            errors=self.errors.take(),
            rules=self.rules.take(),
        )

    def row(self) -> cython.int:
        """Append the next row to every column."""
        start: cython.Py_ssize_t = self.block_ends[self.rows]
        end: cython.Py_ssize_t = self.block_ends[self.rows + 1]
        payload: cython.Py_ssize_t = self.payload_ends[self.rows]
        payload_end: cython.Py_ssize_t = self.payload_ends[self.rows + 1]
        if self.scans and self.scan(start, end, payload, payload_end):
            self.scanned += 1
        else:
            self.roll_back()
            self.ask_reference(start, end, payload, payload_end)
        self.rows += 1
        return 0

    def scan(
        self,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        payload_end: cython.Py_ssize_t,
    ) -> cython.bint:
        """Append a row in the common form. False, with some columns already extended, when the reference has to decode
        it.
        """
        mode: cython.int
        self.seen = 0
        self.marked = 0
        self.content_type = -1
        self.data_start = -1
        self.data_end = -1
        self.instant = NO_INSTANT
        if start < end and not self.read_lines(start, end):
            return False
        mode = self.mode(payload, payload_end)
        if mode == BINARY:
            return self.binary(payload, payload_end)
        if mode == STRUCTURED:
            return self.structured(payload, payload_end)
        if mode == NEITHER:
            self.refuse(NO_EVENT_REASON, NO_EVENT_RULE)
            return True
        return False

    def read_lines(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Record the positions of the ce- headers and the content type; False when the block is not plain."""
        buffer: bytearray = self.blocks
        colon: cython.Py_ssize_t
        start: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        line_end: cython.Py_ssize_t
        if end - at < 12 or not equals(buffer, at, at + 10, PREFIX):
            return False
        at += 10
        while True:
            line_end = find_byte(buffer, 13, at, end - 1)
            if line_end < 0 or buffer[line_end + 1] != 10:
                return False
            if line_end == at:
                return True
            colon = at
            while colon < line_end and 33 <= buffer[colon] <= 126 and buffer[colon] != 58:
                colon += 1
            if colon == at or buffer[colon] != 58 or find_byte(buffer, 10, colon, line_end) >= 0:
                return False
            start = colon + 1
            stop = line_end
            while start < stop and (buffer[start] == 32 or buffer[start] == 9):
                start += 1
            while stop > start and (buffer[stop - 1] == 32 or buffer[stop - 1] == 9):
                stop -= 1
            if colon - at >= 3 and folded_equals(buffer, at, b"ce-"):
                if self.marked == MOST_ATTRIBUTES:
                    return False
                self.marks[4 * self.marked] = at + 3
                self.marks[4 * self.marked + 1] = colon
                self.marks[4 * self.marked + 2] = start
                self.marks[4 * self.marked + 3] = stop
                self.marked += 1
            elif self.content_type < 0 and colon - at == 12 and folded_equals(buffer, at, b"content-type"):
                self.content_type = start
                self.content_type_end = stop
            at = line_end + 2

    def mode(self, payload: cython.Py_ssize_t, payload_end: cython.Py_ssize_t) -> cython.int:
        """`BINARY`, `STRUCTURED`, `NEITHER`, or `UNCLEAR` for a row that only the reference can classify."""
        at: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        if self.content_type >= 0:
            stop = find_byte(self.blocks, 59, self.content_type, self.content_type_end)
            if stop < 0:
                stop = self.content_type_end
            while stop > self.content_type and (self.blocks[stop - 1] == 32 or self.blocks[stop - 1] == 9):
                stop -= 1
            if stop - self.content_type >= 23 and folded_equals(self.blocks, self.content_type, MEDIA_TYPE):
                at = self.content_type + 23
                if at == stop or (stop - at == 5 and folded_equals(self.blocks, at, b"+json")):
                    return STRUCTURED
                return UNCLEAR  # a batch, another event format, or a longer media type
        if self.marked:
            return BINARY
        stop = min(payload_end, payload + MODE_WINDOW)
        at = skip_blank(self.payloads, payload, stop)
        if at < stop and self.payloads[at] == 123:
            return STRUCTURED
        return UNCLEAR if at < stop and self.payloads[at] == 0xEF else NEITHER  # perhaps a byte order mark

    def binary(self, payload: cython.Py_ssize_t, payload_end: cython.Py_ssize_t) -> cython.bint:
        mark: cython.Py_ssize_t
        start: cython.Py_ssize_t
        end: cython.Py_ssize_t
        slot: cython.int
        for mark in range(self.marked):
            start = self.marks[4 * mark]
            end = self.marks[4 * mark + 1]
            slot = slot_of(self.blocks, start, end)
            if slot < 0 and not self.extension_name(self.blocks, start, end):
                return False
            if not self.header_value(slot, self.marks[4 * mark + 2], self.marks[4 * mark + 3]):
                return False
        if (
            self.content_type >= 0
            and not self.seen & (1 << CONTENT_TYPE)
            and not (
                is_string(self.blocks, self.content_type, self.content_type_end)
                and self.attribute(CONTENT_TYPE, self.blocks, self.content_type, self.content_type_end)
            )
        ):
            return False
        if not self.context_holds():
            return False
        self.keep(self.payloads, payload, payload_end, payload < payload_end, False)
        return True

    def header_value(self, slot: cython.int, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Append the attribute value that the header value in `blocks[start:end]` encodes."""
        buffer: bytearray = self.blocks
        at: cython.Py_ssize_t
        size: cython.Py_ssize_t = 0
        scratch: bytearray = self.scratch.data
        high: cython.int
        low: cython.int
        if find_byte(buffer, 34, start, end) >= 0:
            return False  # a quoted string
        if find_byte(buffer, 37, start, end) < 0:
            return is_string(buffer, start, end) and self.attribute(slot, buffer, start, end)
        if len(scratch) < end - start:
            return False
        at = start
        while at < end:
            if buffer[at] == 37 and end - at > 2:
                high = HEX_DIGITS[buffer[at + 1]]
                low = HEX_DIGITS[buffer[at + 2]]
                if high < 16 and low < 16:
                    scratch[size] = high * 16 + low
                    size += 1
                    at += 3
                    continue
            scratch[size] = buffer[at]
            size += 1
            at += 1
        return is_string(scratch, 0, size) and self.attribute(slot, scratch, 0, size)

    def structured(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        buffer: bytearray = self.payloads
        at = skip_blank(buffer, at, end)
        if at >= end or buffer[at] != 123:
            return False
        at = skip_blank(buffer, at + 1, end)
        while True:
            at = self.member(at, end)
            if at < 0:
                return False
            at = skip_blank(buffer, at, end)
            if at >= end:
                return False
            if buffer[at] == 125:
                break
            if buffer[at] != 44:
                return False
            at = skip_blank(buffer, at + 1, end)
        if skip_blank(buffer, at + 1, end) != end or not self.context_holds():
            return False
        return self.structured_data()

    def member(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Append the member whose name begins at `at`; returns the position after it, or -1 when the reference has to
        decode it.
        """
        buffer: bytearray = self.payloads
        name: cython.Py_ssize_t = at + 1
        name_end: cython.Py_ssize_t
        value_end: cython.Py_ssize_t
        slot: cython.int
        if at >= end or buffer[at] != 34:
            return -1
        name_end = name
        while name_end < end and (48 <= buffer[name_end] <= 57 or 97 <= buffer[name_end] <= 122):
            name_end += 1
        if name_end >= end or buffer[name_end] != 34:
            return -1  # includes `data_base64`, which is rare: the reference decodes it
        at = skip_blank(buffer, name_end + 1, end)
        if at >= end or buffer[at] != 58:
            return -1
        at = skip_blank(buffer, at + 1, end)
        if at >= end:
            return -1
        if equals(buffer, name, name_end, b"data"):
            value_end = skip_value(buffer, at, end)
            if self.data_start >= 0 or value_end < 0 or not is_utf8(buffer, at, value_end):
                return -1
            self.data_start = at
            self.data_end = value_end
            return value_end
        slot = slot_of(buffer, name, name_end)
        if slot < 0 and not self.extension_name(buffer, name, name_end):
            return -1
        if buffer[at] != 34:
            return self.extension_value(at, end) if slot < 0 else -1
        value_end = find_byte(buffer, 34, at + 1, end)
        if value_end < 0 or find_byte(buffer, 92, at + 1, value_end) >= 0 or not is_string(buffer, at + 1, value_end):
            return -1
        return value_end + 1 if self.attribute(slot, buffer, at + 1, value_end) else -1

    def extension_value(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Append a value that is not a string; its JSON text is its canonical string. Returns the position after it, or
        -1.
        """
        buffer: bytearray = self.payloads
        stop: cython.Py_ssize_t = skip_literal(buffer, at, end, b"true")
        if stop < 0:
            stop = skip_literal(buffer, at, end, b"false")
        if stop < 0:  # an integer of up to nine digits fits 32 bits
            stop = at + 1 if buffer[at] == 45 else at
            if stop >= end or not 49 <= buffer[stop] <= 57:
                return -1  # includes zero, because -0 would begin with it
            while stop < end and 48 <= buffer[stop] <= 57:
                stop += 1
            if stop - at > 9 or stop >= end or (buffer[stop] != 44 and buffer[stop] != 125 and buffer[stop] != 32):
                return -1
        self.values.append_slice(buffer, at, stop)
        return stop

    def structured_data(self) -> cython.bint:
        """Append the data of a structured event, after all its attributes."""
        buffer: bytearray = self.payloads
        start: cython.Py_ssize_t = self.data_start
        end: cython.Py_ssize_t = self.data_end
        if start < 0:
            self.keep(buffer, 0, 0, False, True)
            return True
        if self.seen & (1 << CONTENT_TYPE):
            column: TextColumn = self.texts[CONTENT_TYPE]
            if not is_json_type(column.data.data, column.ends.view[self.rows], column.ends.view[self.rows + 1]):
                if buffer[start] != 34 or find_byte(buffer, 92, start, end) >= 0:
                    return False
                start += 1
                end -= 1
        self.keep(buffer, start, end, True, True)
        return True

    def attribute(
        self, slot: cython.int, source: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.bint:
        """Append a String value to the column of its slot, or, for slot -1, as the value of the extension named last."""
        column: TextColumn
        if slot < 0:
            self.values.append_slice(source, start, end)
            return True
        if start == end or self.seen & (1 << slot):
            return False
        self.seen |= 1 << slot
        if slot == SPECVERSION and not equals(source, start, end, b"1.0"):
            return False
        if slot == TIME:
            self.instant = timestamp_micros(source, start, end)
            if self.instant == NO_INSTANT:
                return False
        column = self.texts[slot]
        column.append_slice(source, start, end)
        return True

    def extension_name(self, source: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Append the lower-case name of an extension; False when it is not a valid name or repeats one of this row."""
        at: cython.Py_ssize_t
        entry: cython.Py_ssize_t
        key: cython.Py_ssize_t
        byte: cython.int
        size: cython.Py_ssize_t = 0
        scratch: bytearray = self.scratch.data
        if start == end or end - start > 64 or (end - start == 4 and folded_equals(source, start, b"data")):
            return False
        for at in range(start, end):
            byte = source[at]
            if 65 <= byte <= 90:
                byte += 32
            if not (48 <= byte <= 57 or 97 <= byte <= 122):
                return False
            scratch[size] = byte
            size += 1
        for entry in range(self.entry_ends.view[self.rows], self.keys.ends.size - 1):
            key = self.keys.ends.view[entry]
            if self.keys.ends.view[entry + 1] - key == size and equals(
                self.keys.data.data, key, key + size, slice_bytes(scratch, 0, size)
            ):
                return False
        self.keys.append_slice(scratch, 0, size)
        return True

    def context_holds(self) -> cython.bint:
        """Whether all required attributes are present; if so, append nulls for the optional ones that are not."""
        slot: cython.int
        column: TextColumn
        if self.seen & REQUIRED != REQUIRED:
            return False
        for slot in range(4, 8):
            if not self.seen & (1 << slot):
                column = self.texts[slot]
                column.append_slice(self.payloads, 0, 0)
        return True

    def keep(
        self,
        source: bytearray,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        present: cython.bint,
        separate: cython.bint,
    ) -> cython.int:
        """Complete the row of an event: its data, and the columns that every event fills alike. `separate`: the data
        differs from the payload of the row.
        """
        if present:
            if separate and not self.apart:
                self.set_apart()
            set_bit(self.has_data, self.rows)
        if self.apart:
            self.data.append_slice(source, start, end if present else start)
        if self.seen & (1 << TIME) and self.instant != NO_INSTANT:
            self.times.append(self.instant)
            set_bit(self.has_time, self.rows)
        else:
            self.times.append(0)
        self.entry_ends.append(self.keys.ends.size - 1)
        set_bit(self.is_event, self.rows)
        self.errors.append(b"")
        self.rules.append(b"")
        return 0

    def set_apart(self) -> cython.int:
        """Give `data` a column of its own from this row on, because it differs from the payload; earlier rows are copied
        into it.
        """
        row: cython.Py_ssize_t
        self.apart = True
        for row in range(self.rows):
            self.data.append_slice(self.payloads, self.payload_ends[row], self.payload_ends[row + 1])
        return 0

    def roll_back(self) -> cython.int:
        """Remove what an abandoned scan has appended."""
        column: TextColumn
        entries: cython.Py_ssize_t = self.entry_ends.view[self.rows]
        for column in self.texts:
            if column.ends.size > self.rows + 1:
                column.truncate(self.rows)
        self.keys.truncate(entries)
        self.values.truncate(entries)
        return 0

    def ask_reference(
        self,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        payload_end: cython.Py_ssize_t,
    ) -> cython.int:
        block: bytes = slice_bytes(self.blocks, start, end)
        data: bytes = slice_bytes(self.payloads, payload, payload_end)
        try:
            event = reference(block, data)
        except CloudEventError as error:
            # The reason may quote bytes that are not UTF-8, which Arrow rejects.
            self.refuse(str(error).encode("utf-8", "replace"), error.rule.encode("utf-8", "replace"))
            return 0
        self.add(event, data)
        return 0

    def add(self, event: CloudEvent, payload: bytes) -> cython.int:
        """Append an event that the reference read from a message with this payload."""
        slot: cython.int
        column: TextColumn
        attributes = event.attributes
        self.seen = 0
        for slot in range(8):
            value = attributes.get(SLOTS[slot])
            column = self.texts[slot]
            if value is None:
                column.append(b"")
            else:
                column.append(str(value).encode())
                self.seen |= 1 << slot
        self.instant = _micros(event)
        for name, value in event.extensions.items():
            self.keys.append(name.encode())
            self.values.append(canonical_string(name, value).encode())
        data: bytes = event.payload
        if event.kind is DataKind.TEXT and text_of(payload, str(event.datacontenttype)) == data:
            data = payload  # the payload itself, in its own charset
        self.keep(bytearray(data), 0, len(data), event.kind is not DataKind.ABSENT, data != payload)
        return 0

    def refuse(self, reason: bytes, rule: bytes) -> cython.int:
        """Complete a row that is not an event: null everywhere, with the reason."""
        column: TextColumn
        for column in self.texts:
            column.append(b"")
        self.times.append(0)
        self.entry_ends.append(self.keys.ends.size - 1)
        if self.apart:
            self.data.append(b"")
        self.errors.append(reason)
        self.rules.append(rule)
        return 0


def _micros(event: CloudEvent) -> int:
    """Microseconds since 1970; `NO_INSTANT` without a time, or for a time that no datetime can hold."""
    try:
        instant = event.time
        # The zone offset can push it outside the years 1 to 9999: Spark could hold such a time, but Python could not
        # collect it.
        return NO_INSTANT if instant is None else (instant.astimezone(UTC) - EPOCH) // MICROSECOND
    except (CloudEventError, OverflowError):
        return NO_INSTANT
