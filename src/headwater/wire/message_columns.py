# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Deliveries of any subscription, straight from the receive buffer into column buffers.

The columns are the parts of a message: subject, reply subject, header block, payload. Each is one run of bytes and the
int32 ends of its values, which is Arrow's layout. An absent reply subject or header block is an empty value, which is
appended when the next one that is not empty is, or at the end. Subjects are valid UTF-8, as Arrow demands: other bytes
become U+FFFD.

`columns.ColumnDecoder` does more, for consumers of a stream. Offsets are int32, so the owner takes the columns before
`size` reaches `columns.MAX_SIZE`.
"""

from typing import NamedTuple

import cython

if cython.compiled:
    from cython.cimports.headwater.wire.columns import TextColumn, is_ascii
    from cython.cimports.headwater.wire.memory import slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView
else:
    from headwater.wire.columns import TextColumn, is_ascii
    from headwater.wire.memory import slice_bytes
    from headwater.wire.message_view import MessageView

from headwater.wire.columns import Text


class TakenMessages(NamedTuple):
    """`rows` messages as columns."""

    rows: int
    subjects: Text
    replies: Text
    blocks: Text
    payloads: Text


class MessageColumns:
    """Columns that grow by `append` and are handed over by `take`."""

    def __init__(self) -> None:
        self.rows = 0
        self.subjects = TextColumn()
        self.replies = TextColumn()
        self.blocks = TextColumn()
        self.payloads = TextColumn()

    @property
    def size(self) -> int:
        """Bytes in the largest column."""
        return max(len(self.payloads.data), len(self.blocks.data), len(self.subjects.data), len(self.replies.data))

    def append(self, message: MessageView) -> cython.int:
        """Append a message from the receive buffer."""
        buffer: bytearray = message.buffer
        self.append_text(self.subjects, buffer, message.subject, message.subject_end)
        if message.reply != message.reply_end:
            self.replies.pad(self.rows)
            self.append_text(self.replies, buffer, message.reply, message.reply_end)
        if message.headers != message.payload:
            self.blocks.pad(self.rows)
            self.blocks.append_slice(buffer, message.headers, message.payload)
        self.payloads.append_slice(buffer, message.payload, message.end)
        self.rows += 1
        return 0

    def append_text(
        self, column: TextColumn, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.int:
        if is_ascii(buffer, start, end):
            column.append_slice(buffer, start, end)
        else:
            column.append(slice_bytes(buffer, start, end).decode("utf-8", "replace").encode())
        return 0

    def append_message(self, subject: str, reply: str, header_block: bytes, data: bytes) -> None:
        """Append a message that already exists as Python objects."""
        self.replies.pad(self.rows)
        self.blocks.pad(self.rows)
        for column, text in ((self.subjects, subject), (self.replies, reply)):
            column.append(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode())
        self.blocks.append(header_block)
        self.payloads.append(data)
        self.rows += 1

    def take(self) -> TakenMessages:
        """Remove and return all rows."""
        rows = self.rows
        self.replies.pad(rows)
        self.blocks.pad(rows)
        self.rows = 0
        return TakenMessages(rows, self.subjects.take(), self.replies.take(), self.blocks.take(), self.payloads.take())
