# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Decode polled Iggy batches from the receive buffer straight into column buffers.

    answer ─▶ batches (256 bytes of header) ─▶ frames ─▶ offsets, times, ids, payloads
                                                  └────▶ typed headers ─▶ header lines ─▶ map, CloudEvents columns

The layout is that of `streams/iggy_batch.py`. Typed headers become the header lines that NATS has for them (the table in
docs/header-mapping.md), because the map of `wire.columns` and the decoder of CloudEvents columns read those. Keys and
strings in plain ASCII, bools, and integers of up to 64 bits are converted in place; `headwater.model.header_mapping`
converts any other block, so that one module defines what a typed header means. Marker lines, needed only for converting
back, are left out. A malformed block gives a null map and an entry in `header_errors`; its row is kept.

Sizes in the frames are checked against the bytes present. Checksums are not verified: TCP protected the bytes.
"""

from typing import NamedTuple

import cython

if cython.compiled:
    from cython.cimports.headwater.columns.integers import u32, u64
    from cython.cimports.headwater.columns.typed_columns import append_text
    from cython.cimports.headwater.wire.columns import ColumnDecoder, Numbers, TextColumn
    from cython.cimports.headwater.wire.memory import OutputBuffer, slice_bytes
else:
    from headwater.columns.integers import u32, u64
    from headwater.columns.typed_columns import append_text
    from headwater.wire.columns import ColumnDecoder, Numbers, TextColumn
    from headwater.wire.memory import OutputBuffer, slice_bytes

from headwater.errors import HeaderError, RemoteProtocolError
from headwater.model.header_mapping import typed_to_nats
from headwater.model.typed_headers import HeaderForm, TypedHeaders
from headwater.wire.columns import Columns, Text

BATCH_HEADER: cython.Py_ssize_t = 256
FRAME_HEADER: cython.Py_ssize_t = 48
STRING: cython.int = 2
VERSION_LINE = b"NATS/1.0\r\n"
CRLF = b"\r\n"
MARKER = "Iggy-Typed"


class IggyColumns(NamedTuple):
    """`columns.sequences` are offsets; `columns.timestamps` are the times at which the server stored each message,
    `origins` those at which the producer created it, both in microseconds since 1970. `ids` are 32 hexadecimal digits
    each. `typed` are header blocks in Iggy's form, if requested.
    """

    columns: Columns
    origins: memoryview
    ids: Text
    typed: Text | None


def is_plain_name(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether a key can be copied as a header name: printable ASCII without colon; `#` is excluded because it marks
    repetitions.
    """
    at: cython.Py_ssize_t
    for at in range(start, end):
        if buffer[at] < 33 or buffer[at] > 126 or buffer[at] == 58 or buffer[at] == 35 or buffer[at] == 37:
            return False
    return end > start


class IggyDecoder(ColumnDecoder):
    """Rows of one partition with offsets in `[start, end)`; `ColumnDecoder` explains the counters. `careful` counts the
    header blocks that were not plain.
    """

    def __init__(
        self,
        start: cython.longlong,
        end: cython.longlong,
        *,
        with_map: bool,
        with_blocks: bool = False,
        with_typed: bool = False,
    ) -> None:
        ColumnDecoder.__init__(self, 0, start, end, with_map=with_map, with_raw=with_blocks)
        self.with_typed = with_typed
        self.careful = 0
        self.origins = Numbers()
        self.ids = TextColumn()
        self.typed = TextColumn()
        self.block = OutputBuffer()
        self.digits = bytearray(32)

    def feed(self, buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Decode the batches in `buffer[at:end]`, which must lie within the buffer; returns the number of messages in
        them. Raises RemoteProtocolError for malformed batches; messages before the fault are kept.
        """
        before: cython.Py_ssize_t = self.received
        length: cython.longlong
        frame: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        payload: cython.Py_ssize_t
        headers: cython.Py_ssize_t
        following: cython.Py_ssize_t
        while at < end:
            if end - at < BATCH_HEADER:
                raise RemoteProtocolError("a batch header is cut off", value=end - at)
            length = u64(buffer, at + 32)
            if length < BATCH_HEADER or length > end - at:
                raise RemoteProtocolError(f"a batch of {length} bytes cannot follow", value=length)
            stop = at + length
            frame = at + BATCH_HEADER
            while frame < stop:
                if stop - frame < FRAME_HEADER:
                    raise RemoteProtocolError("a message is cut off", value=stop - frame)
                payload = frame + FRAME_HEADER
                headers = payload + u32(buffer, frame + 36)
                following = headers + u32(buffer, frame + 32)
                if following > stop:
                    raise RemoteProtocolError("a message reaches beyond its batch", value=following - stop)
                self.message(buffer, at, frame, payload, headers, following)
                frame = following
            at = stop
        return self.received - before

    def message(
        self,
        buffer: bytearray,
        batch: cython.Py_ssize_t,
        frame: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.int:
        """Append one frame of the batch whose header is at `batch`."""
        offset: cython.longlong = u64(buffer, batch + 8) + u32(buffer, frame + 24)
        self.received += 1
        if offset <= self.position:
            return 0
        if offset > self.position + 1 and self.first_gap < 0 and self.position + 1 < self.end:
            self.first_gap = self.position + 1
        self.position = offset
        if offset + 1 >= self.end:
            self.complete = True
        if offset >= self.end:
            return 0
        self.sequences.append(offset)
        self.timestamps.append(u64(buffer, batch + 16))
        self.origins.append(u64(buffer, batch + 24) + u32(buffer, frame + 28))
        self.id_row(buffer, frame + 8)
        if self.with_typed:
            self.typed.append_slice(buffer, headers, end)
        if self.with_map or self.with_raw:
            self.block_of(buffer, headers, end)
            if self.block.size == 0:
                self.blockless += 1
            if self.with_raw:
                self.blocks.append_slice(self.block.data, 0, self.block.size)
            if self.with_map:
                self.map_row(self.block.data, 0, self.block.size)
        self.payloads.append_slice(buffer, payload, headers)
        self.rows += 1
        return 0

    def id_row(self, buffer: bytearray, at: cython.Py_ssize_t) -> cython.int:
        """Append the u128 at `at` as 32 hexadecimal digits."""
        if not cython.compiled:
            self.ids.append(bytes(buffer[at : at + 16])[::-1].hex().encode())
            return 0
        place: cython.Py_ssize_t
        nibble: cython.int
        for place in range(16):
            nibble = buffer[at + 15 - place] >> 4
            self.digits[2 * place] = 48 + nibble if nibble < 10 else 87 + nibble
            nibble = buffer[at + 15 - place] & 15
            self.digits[2 * place + 1] = 48 + nibble if nibble < 10 else 87 + nibble
        self.ids.append_slice(self.digits, 0, 32)
        return 0

    def block_of(self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """Convert typed headers into header lines, in `block`; it stays empty when there are none."""
        block: OutputBuffer = self.block
        at: cython.Py_ssize_t = start
        key_end: cython.Py_ssize_t
        value_end: cython.Py_ssize_t
        block.size = 0
        if start == end:
            return 0
        block.append(VERSION_LINE)
        while at < end:
            if end - at < 5 or buffer[at] != STRING:
                return self.block_carefully(slice_bytes(buffer, start, end))
            key_end = at + 5 + u32(buffer, at + 1)
            if end - key_end < 5 or not is_plain_name(buffer, at + 5, key_end):
                return self.block_carefully(slice_bytes(buffer, start, end))
            value_end = key_end + 5 + u32(buffer, key_end + 1)
            if value_end > end:
                return self.block_carefully(slice_bytes(buffer, start, end))
            block.append_slice(buffer, at + 5, key_end)
            block.append(b": ")
            if not append_text(block, buffer, buffer[key_end], key_end + 5, value_end):
                return self.block_carefully(slice_bytes(buffer, start, end))
            block.append(CRLF)
            at = value_end
        block.append(CRLF)
        return 0

    def block_carefully(self, typed: bytes) -> cython.int:
        """Convert the headers with `header_mapping`; a malformed block is reported and counts as empty."""
        block: OutputBuffer = self.block
        self.careful += 1
        block.size = 0
        try:
            headers = typed_to_nats(TypedHeaders.decode(typed, HeaderForm.TYPED))
        except HeaderError as error:
            if self.with_map:
                self.header_errors.append((self.rows, str(error)))
                self.unmapped.append(self.rows)
            return 0
        headers.discard(MARKER)
        block.append(bytes(headers))
        return 0

    def take_rows(self) -> IggyColumns:
        """The rows so far; the decoder continues with empty columns."""
        typed = self.typed.take() if self.with_typed else None
        return IggyColumns(self.take(), self.origins.take(), self.ids.take(), typed)
