# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""One message in a buffer: the positions of its parts, without a Python object for any of them.

    buffer   … <subject> [reply ]<sizes>␍␊<headers><payload>␍␊ …
               │         │                │        │        └ end
               │         │                │        └ payload
               │         │                └ headers
               │         └ tail
               └ subject

A parser has one view and fills it for each op; routers and peers read it. It is valid only during the call that it is
passed to, so copy every part that you keep. Without a reply `reply == reply_end`; without headers `headers == payload`.

In ops of clients and peers, `buffer[tail : end + 2]` has exactly this spacing, so a delivery is its own first words and
one copy of the tail. Ops of a server have a `sid` before the reply, and no tail.
"""

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.headwater.wire.memory import slice_bytes
    from cython.cimports.headwater.wire.scan import run_trace_mark, trace_mark
else:
    from headwater.wire.memory import slice_bytes
    from headwater.wire.scan import run_trace_mark, trace_mark

_NOTHING = bytearray()


class MessageView:
    """Positions in `buffer`, in bytes."""

    def __init__(self) -> None:
        self.buffer: bytearray = _NOTHING
        self.sid = 0  # number of the subscription, in a server's MSG or HMSG
        self.subject = 0
        self.subject_end = 0
        self.reply = 0
        self.reply_end = 0
        self.tail = 0
        self.headers = 0
        self.payload = 0
        self.end = 0
        self.trace: Any = None  # `message_tracing.message_trace.MessageTrace`, while a traced message is routed
        self.shown = 0  # position of `@<subject>` in the reply of a message delivered on another subject; otherwise 0

    def advance(self, by: cython.Py_ssize_t) -> cython.int:
        """Move to the message `by` bytes further on, which has the same control line."""
        self.subject += by
        self.subject_end += by
        self.reply += by
        self.reply_end += by
        self.tail += by
        self.headers += by
        self.payload += by
        self.end += by
        return 0

    def release(self) -> cython.int:
        """Drop the reference to the buffer: it may be large, and this view lives as long as its connection."""
        self.buffer = _NOTHING
        return 0

    def trace_mark(self) -> cython.int:
        """Whether the headers may request a trace; see `scan.trace_mark`."""
        return trace_mark(self.buffer, self.headers, self.payload)

    def run_trace_mark(self, stride: cython.Py_ssize_t, count: cython.Py_ssize_t, sampled: cython.bint) -> cython.int:
        """As `trace_mark`, for the first of `count` messages, `stride` bytes apart, with such headers. `sampled`: a
        `traceparent` is enough.
        """
        return run_trace_mark(self.buffer, self.headers, self.payload, stride, count, sampled)

    def subject_bytes(self) -> bytes:
        """A copy of the subject."""
        return slice_bytes(self.buffer, self.subject, self.subject_end)

    def reply_bytes(self) -> bytes:
        """A copy of the reply subject; b"" without one."""
        return slice_bytes(self.buffer, self.reply, self.reply_end)


def composed(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> MessageView:
    """A view of a new message, in its own buffer."""
    view: MessageView = MessageView()
    parts: list[bytes] = [subject, b" "]
    if reply:
        parts += [reply, b" "]
    if header_block:
        parts += [b"%d %d\r\n" % (len(header_block), len(header_block) + len(payload)), header_block]
    else:
        parts.append(b"%d\r\n" % len(payload))
    parts += [payload, b"\r\n"]
    view.buffer = bytearray(b"".join(parts))
    view.subject_end = len(subject)
    view.tail = view.reply = len(subject) + 1
    view.reply_end = view.reply + len(reply)
    view.end = len(view.buffer) - 2
    view.payload = view.end - len(payload)
    view.headers = view.payload - len(header_block)
    return view


def renamed(subject: bytes, message: MessageView) -> MessageView:
    """A view of a copy of the message on another subject, in its own buffer."""
    moved: MessageView = MessageView()
    shift: cython.Py_ssize_t = len(subject) + 1 - message.tail
    moved.buffer = bytearray(b"%b %b" % (subject, slice_bytes(message.buffer, message.tail, message.end + 2)))
    moved.subject_end = len(subject)
    moved.reply = message.reply + shift
    moved.reply_end = message.reply_end + shift
    moved.tail = message.tail + shift
    moved.headers = message.headers + shift
    moved.payload = message.payload + shift
    moved.end = message.end + shift
    moved.trace = message.trace
    return moved
