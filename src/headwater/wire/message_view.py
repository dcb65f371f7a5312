# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""One message while it lies in a buffer: where its parts are, and no Python object for any of them.

    buffer   … <subject> [reply ]<sizes>␍␊<headers><payload>␍␊ …
               │         │                │        │        └ end
               │         │                │        └ payload
               │         │                └ headers
               │         └ tail
               └ subject

A parser has one view and fills it for each op; routers and peers read it. It holds during the call that it is passed to, so
a part that is kept has to be copied. What has no reply has `reply == reply_end`; without headers `headers == payload`.

In what clients and peers send, `buffer[tail : end + 2]` is in exactly that spacing: a delivery is the protocol's first words
and one copy of the tail. In what a server sends there is a `sid` before the reply, and no tail.
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
    """Positions in `buffer`, in bytes; `sid` is a number."""

    def __init__(self) -> None:
        self.buffer: bytearray = _NOTHING
        self.sid = 0  # number of the subscription that a server delivers to
        self.subject = 0
        self.subject_end = 0
        self.reply = 0
        self.reply_end = 0
        self.tail = 0
        self.headers = 0
        self.payload = 0
        self.end = 0
        self.trace: Any = None  # `message_tracing.message_trace.MessageTrace`, while a traced message is routed
        self.shown = 0  # where in the reply `@<subject>` begins, of what bears another subject; 0: nowhere

    def advance(self, by: cython.Py_ssize_t) -> cython.int:
        """Go on to the message that lies `by` bytes further on and has the same control line."""
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
        """Let go of the buffer: it may be large, and this view lives as long as its connection."""
        self.buffer = _NOTHING
        return 0

    def trace_mark(self) -> cython.int:
        """Whether the headers may ask for a trace (`scan.trace_mark`)."""
        return trace_mark(self.buffer, self.headers, self.payload)

    def run_trace_mark(self, stride: cython.Py_ssize_t, count: cython.Py_ssize_t, sampled: cython.bint) -> cython.int:
        """The same for the first of `count` messages, each `stride` bytes behind the one before, that has such headers.
        `sampled`: a `traceparent` is enough."""
        return run_trace_mark(self.buffer, self.headers, self.payload, stride, count, sampled)

    def subject_bytes(self) -> bytes:
        """A copy of the subject."""
        return slice_bytes(self.buffer, self.subject, self.subject_end)

    def reply_bytes(self) -> bytes:
        """A copy of the reply subject; b"" where there is none."""
        return slice_bytes(self.buffer, self.reply, self.reply_end)


def composed(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> MessageView:
    """A new message, in a buffer of its own."""
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
    """The same message on another subject, in a buffer of its own."""
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
