# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Typed headers of polled rows as the columns of a map: key, kind, text and bytes of each, without a Python object.

`headwater.model.header_mapping` is the reference for the text of a value. Here are string keys and every kind of up to 64
bits, strings that need base64 included. A row with another key, a key twice, or a value whose bytes do not fit its kind is
rolled back and read by the reference; so is a malformed block, whose map is null. Interpreted, the reference reads all rows.
"""

from typing import NamedTuple, cast

import cython

if cython.compiled:
    from cython.cimports.headwater.columns.event_scan import is_utf8
    from cython.cimports.headwater.columns.integers import u32
    from cython.cimports.headwater.wire.columns import Offsets, TextColumn
    from cython.cimports.headwater.wire.memory import OutputBuffer, slice_bytes
    from cython.cimports.headwater.wire.publish import append_number
else:
    from headwater.columns.event_scan import is_utf8
    from headwater.columns.integers import u32
    from headwater.wire.columns import Offsets, TextColumn
    from headwater.wire.memory import OutputBuffer, slice_bytes
    from headwater.wire.publish import append_number

from headwater.errors import HeaderError
from headwater.model.header_mapping import typed_to_nats
from headwater.model.typed_header import HeaderKind, HeaderValue
from headwater.model.typed_headers import HeaderForm, TypedHeaders
from headwater.wire.columns import Text

RAW: cython.int = 1
STRING: cython.int = 2
BOOL: cython.int = 3
INT8: cython.int = 4
INT64: cython.int = 7
UINT8: cython.int = 9
UINT64: cython.int = 12
FLOAT32: cython.int = 14
FLOAT64: cython.int = 15
LONGEST: cython.Py_ssize_t = 255
MOST_HEADERS: cython.Py_ssize_t = 64  # each key is compared with those before it; the reference reads longer blocks
KIND_NAMES: list[bytes] = [b"", *(kind.json_name.encode() for kind in HeaderKind)]  # by code
BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class TypedMap(NamedTuple):
    """A column map<string, struct<kind, value, raw>>: `entries` has the end of each row's entries. The map of the rows
    `unmapped`, whose block is malformed, is null (it is empty in `entries`)."""

    entries: memoryview
    keys: Text
    kinds: Text
    values: Text
    raws: Text
    unmapped: list[int]


def is_plain_value(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether a string can be copied as a header value: printable ASCII without a blank at either end."""
    at: cython.Py_ssize_t
    for at in range(start, end):
        if buffer[at] < 32 or buffer[at] > 126:
            return False
    return end > start and buffer[start] != 32 and buffer[end - 1] != 32


def append_text(
    output: OutputBuffer, buffer: bytearray, kind: cython.int, start: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.bint:
    """Append the text of a plain string, a bool, or an integer of up to 64 bits; False, and nothing, for all else."""
    number: cython.longlong = 0
    width: cython.Py_ssize_t = end - start
    at: cython.Py_ssize_t
    byte: cython.longlong
    if kind == STRING:
        if not is_plain_value(buffer, start, end):
            return False
        output.append_slice(buffer, start, end)
        return True
    if kind == BOOL:
        if width != 1 or buffer[start] > 1:
            return False
        output.append(b"true" if buffer[start] else b"false")
        return True
    if INT8 <= kind <= INT64:
        if width != 1 << (kind - INT8):
            return False
    elif UINT8 <= kind <= UINT64:
        if width != 1 << (kind - UINT8) or (width == 8 and buffer[end - 1] > 127):
            return False
    else:
        return False
    for at in range(width):
        byte = buffer[start + at]
        number |= byte << (8 * at)
    if kind <= INT64 and buffer[end - 1] > 127:
        if width == 8:
            return False  # rare, and the most negative one has no positive counterpart
        byte = 1
        number -= byte << (8 * width)
        output.append(b"-")
        number = -number
    append_number(output, number)
    return True


def append_base64(
    output: OutputBuffer, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.int:
    """Append the base64 of `buffer[start:end]`."""
    at: cython.Py_ssize_t
    bits: cython.int
    left: cython.Py_ssize_t
    four: bytearray = bytearray(4)
    for at in range(start, end, 3):
        left = end - at
        bits = buffer[at] << 16
        if left > 1:
            bits |= buffer[at + 1] << 8
        if left > 2:
            bits |= buffer[at + 2]
        four[0] = BASE64[bits >> 18]
        four[1] = BASE64[(bits >> 12) & 63]
        four[2] = BASE64[(bits >> 6) & 63] if left > 1 else 61
        four[3] = BASE64[bits & 63] if left > 2 else 61
        output.append_slice(four, 0, 4)
    return 0


class TypedDecoder:
    """Decodes the blocks of one batch of rows; `decode` is called once. `scanned` counts the rows that needed no
    reference."""

    def __init__(self) -> None:
        self.scans = cython.compiled
        self.scanned = 0
        self.entry_ends = Offsets()
        self.keys = TextColumn()
        self.kinds = TextColumn()
        self.values = TextColumn()
        self.raws = TextColumn()

    def decode(self, blocks: Text) -> TypedMap:
        """The map of every row."""
        buffer: bytearray = cast("bytearray", blocks.data.obj)
        self.block_ends = blocks.offsets
        rows: cython.Py_ssize_t = len(blocks.offsets) - 1
        row: cython.Py_ssize_t
        before: cython.Py_ssize_t
        unmapped: list[int] = []
        for row in range(rows):
            before = self.keys.ends.size - 1
            if self.scans and self.scan(buffer, self.block_ends[row], self.block_ends[row + 1], before):
                self.scanned += 1
            else:
                self.keys.truncate(before)
                self.kinds.truncate(before)
                self.values.truncate(before)
                self.raws.truncate(before)
                if not self.ask_reference(slice_bytes(buffer, self.block_ends[row], self.block_ends[row + 1])):
                    unmapped.append(row)
            self.entry_ends.append(self.keys.ends.size - 1)
        return TypedMap(
            self.entry_ends.take(),
            self.keys.take(),
            self.kinds.take(),
            self.values.take(),
            self.raws.take(),
            unmapped,
        )

    def scan(
        self, buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t, first: cython.Py_ssize_t
    ) -> cython.bint:
        """Append a row whose entries begin at `first`. False, with some of it appended, when the reference has to."""
        key_end: cython.Py_ssize_t
        value_end: cython.Py_ssize_t
        kind: cython.int
        while at < end:
            if end - at < 5 or buffer[at] != STRING or self.keys.ends.size - 1 - first == MOST_HEADERS:
                return False
            key_end = at + 5 + u32(buffer, at + 1)
            if end - key_end < 5 or not 0 < key_end - at - 5 <= LONGEST or not is_utf8(buffer, at + 5, key_end):
                return False
            kind = buffer[key_end]
            value_end = key_end + 5 + u32(buffer, key_end + 1)
            if value_end > end or not 0 < value_end - key_end - 5 <= LONGEST:
                return False
            if self.repeated(buffer, at + 5, key_end, first) or not self.value(buffer, kind, key_end + 5, value_end):
                return False
            self.keys.append_slice(buffer, at + 5, key_end)
            self.kinds.append(KIND_NAMES[kind])
            self.raws.append_slice(buffer, key_end + 5, value_end)
            at = value_end
        return True

    def repeated(
        self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t, first: cython.Py_ssize_t
    ) -> cython.bint:
        """Whether a key is one of this row already."""
        entry: cython.Py_ssize_t
        at: cython.Py_ssize_t
        known: cython.Py_ssize_t
        for entry in range(first, self.keys.ends.size - 1):
            known = self.keys.ends.view[entry]
            if self.keys.ends.view[entry + 1] - known == end - start:
                for at in range(end - start):
                    if self.keys.data.data[known + at] != buffer[start + at]:
                        break
                else:
                    return True
        return False

    def value(
        self, buffer: bytearray, kind: cython.int, start: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.bint:
        """Append the text of a value; False when the reference has to."""
        output: OutputBuffer = self.values.data
        if not append_text(output, buffer, kind, start, end):
            if kind == RAW and end - start == 1 and buffer[start] == 0:
                pass  # the empty text
            elif kind == RAW:
                append_base64(output, buffer, start, end)
            elif kind == STRING:
                if not is_utf8(buffer, start, end) or not is_text(buffer, start, end):
                    append_base64(output, buffer, start, end)
                else:
                    output.append_slice(buffer, start, end)
            elif not self.number(buffer, kind, start, end):
                return False
        self.values.ends.append(output.size)
        return True

    def number(
        self, buffer: bytearray, kind: cython.int, start: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.bint:
        """Append a number of 32 or 64 bits that `append_text` does not know; False for any other value."""
        bits: cython.ulonglong = 0
        byte: cython.ulonglong
        low: cython.uint
        at: cython.Py_ssize_t
        double: cython.double
        if not cython.compiled or end - start != (4 if kind == FLOAT32 else 8):
            return False
        for at in range(end - start):
            byte = buffer[start + at]
            bits |= byte << (8 * at)
        if kind == FLOAT32:
            low = cython.cast(cython.uint, bits)
            double = cython.cast(cython.p_float, cython.address(low))[0]
        elif kind == FLOAT64:
            double = cython.cast(cython.p_double, cython.address(bits))[0]
        elif kind == UINT64:
            self.values.data.append(b"%d" % bits)
            return True
        elif kind == INT64:
            self.values.data.append(b"%d" % cython.cast(cython.longlong, bits))
            return True
        else:
            return False
        if double != double:
            return False  # not a number: the reference keeps its bits
        self.values.data.append(repr(double).encode())
        return True

    def ask_reference(self, block: bytes) -> cython.bint:
        """Append a row as the reference reads it; False for a malformed block, which has no entries."""
        headers = typed_headers(block)
        if headers is None:
            return False
        for key, (kind, value, raw) in headers.items():
            self.keys.append(key.encode())
            self.kinds.append(kind.encode())
            self.values.append(value.encode())
            self.raws.append(raw)
        return True


def is_text(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether UTF-8 can be a header value: no line ends, no blank or tab at either end."""
    at: cython.Py_ssize_t
    for at in range(start, end):
        if buffer[at] == 13 or buffer[at] == 10:
            return False
    return buffer[start] != 32 and buffer[start] != 9 and buffer[end - 1] != 32 and buffer[end - 1] != 9


def typed_headers(block: bytes) -> dict[str, tuple[str, str, bytes]] | None:
    """The reference: kind, text and raw bytes of each header by the key's text. None for a malformed block."""
    try:
        typed = TypedHeaders.decode(block, HeaderForm.TYPED)
    except HeaderError:
        return None
    return {str(key): (value.kind.json_name, text_of(value), value.raw) for key, value in typed.items()}


def text_of(value: HeaderValue) -> str:
    """The text of a typed value according to the header mapping table."""
    return typed_to_nats(TypedHeaders([("value", value)])).first("value")
