# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The per-message operations of a connection, delivering and publishing, and their state. Compiled.

    on_message   buffer slice ─▶ Message ─▶ queue of its sid; the queue is remembered in `touched`, and woken after the read
    publish      checks ─▶ header block ─▶ PUB or HPUB into the link's output, which is written once per loop iteration

A publish is refused before its first byte is written, so that a refused one leaves the connection whole. Operations
that do not run per message are in `connection`.
"""

from collections.abc import Awaitable, Callable

import cython

if cython.compiled:
    from cython.cimports.headwater.client_connection.message_queue import MessageQueue
    from cython.cimports.headwater.model.message import Message
    from cython.cimports.headwater.wire.memory import OutputBuffer, equals, slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.headwater.wire.publish import OpWriter
    from cython.cimports.headwater.wire.server_ops import ServerOpHandler
else:
    from headwater.client_connection.message_queue import MessageQueue
    from headwater.model.message import Message
    from headwater.wire.memory import OutputBuffer, equals, slice_bytes
    from headwater.wire.message_view import MessageView
    from headwater.wire.publish import OpWriter
    from headwater.wire.server_ops import ServerOpHandler

from headwater.client_connection.awaitables import NOTHING, Later
from headwater.errors import LocalProtocolError, PayloadTooLarge
from headwater.model.headers import Headers, HeaderSource
from headwater.net.link import Link
from headwater.wire.handshake import ServerInfo

SEND_EARLY = 1 << 17  # bytes of output that are written at once: more of them would fall out of the L2 cache
TURN_BYTES = 1 << 20  # bytes after which awaiting a publish gives the loop a turn, or waits for the server
_DONE: Awaitable[None] = NOTHING  # of this module's own: a global of C when compiled

BytesLike = bytes | bytearray | memoryview


def bytes_of(data: BytesLike) -> bytes:
    """A payload that is no `bytes` yet. Raises TypeError, with what to do, for one that is not even like them."""
    try:
        return bytes(memoryview(data))
    except TypeError:
        advice = (
            "encode it, with data.encode()"
            if isinstance(data, str)
            else "say how it becomes bytes, with json.dumps(...).encode() or the like"
        )
        raise TypeError(f"a payload is bytes, not {type(data).__name__}: {advice}") from None


class ConnectionOps(ServerOpHandler):
    """`queues` by sid; `link` and `writer` are valid from `attach` on; the rest is from the server's INFO."""

    def __init__(self) -> None:
        self.queues: dict[int, MessageQueue] = {}
        self.last_queue: MessageQueue | None = None  # of the last delivery; None as soon as `queues` loses one
        self.touched: list[MessageQueue] = []
        self.link: Link | None = None
        self.writer = OpWriter(OutputBuffer())
        self.max_payload = 0  # 0: not announced by the server
        self.takes_headers = True
        self.open = False  # `link` accepts publishes
        self.since_turn = 0
        self.turn: Awaitable[None] = Later(self.give_way)
        self.after_read: Callable[[], None] | None = None  # called once, at the end of the read that is being parsed
        self.holds = False  # who has set it writes the output in this turn of the loop

    def on_message(self, message: MessageView) -> cython.int:
        queue: MessageQueue | None = self.last_queue
        new: Message
        if queue is None or queue.sid != message.sid:
            queue = self.queues.get(message.sid)
            if queue is None:
                return 0  # it crossed with our UNSUB
            self.last_queue = queue
        if queue.columns is not None:
            if not queue.touched:
                queue.touched = True
                self.touched.append(queue)
            return queue.add_row(message)
        buffer: bytearray = message.buffer
        if not equals(buffer, message.subject, message.subject_end, queue.last_subject_bytes):
            queue.last_subject_bytes = message.subject_bytes()
            queue.last_subject = queue.last_subject_bytes.decode("utf-8", "surrogateescape")
        new = Message.__new__(Message)  # a tenth of the cost of calling __init__ with five arguments
        new.subject = queue.last_subject
        new.data = slice_bytes(buffer, message.payload, message.end)
        new.reply = ""
        new.header_block = b""
        new.channel = self
        new._headers = None
        if message.reply_end > message.reply:
            new.reply = message.reply_bytes().decode("utf-8", "surrogateescape")
        if message.payload > message.headers:
            new.header_block = slice_bytes(buffer, message.headers, message.payload)
        if queue.direct is None and not queue.touched:  # who is given each message has no reader to wake
            queue.touched = True
            self.touched.append(queue)
        queue.add(new, message.end - message.headers)
        return 0

    def wake_touched(self) -> None:
        """At the end of a read: wake the readers of the queues with new messages, and call `after_read`."""
        touched = self.touched
        if touched:
            self.touched = []
            for queue in touched:
                queue.touched = False
                queue.wake()
        after_read = self.after_read
        if after_read is not None:
            self.after_read = None
            after_read()

    def publish(
        self, subject: str, data: BytesLike, reply: str, headers: HeaderSource | Headers | None
    ) -> Awaitable[None]:
        """Buffer a message. Raises SubjectError, HeaderError, PayloadTooLarge, ConnectionClosed, BufferFull."""
        return self.send(subject, data, reply, headers)

    def send(
        self, subject: str, data: BytesLike, reply: str, headers: HeaderSource | Headers | None
    ) -> Awaitable[None]:
        """`publish` for callers that are compiled: nothing looks for an override of it."""
        return self.turn if put(self, subject, data, reply, headers) else _DONE

    def buffer(self, subject: str, data: BytesLike, reply: str, headers: HeaderSource | Headers | None) -> cython.bint:
        """Buffer a message. Whether the event loop should have a turn then: `give_way`."""
        return put(self, subject, data, reply, headers)

    def ask(
        self,
        subject: str,
        data: BytesLike,
        inbox: bytes,
        number: cython.Py_ssize_t,
        headers: HeaderSource | Headers | None,
    ) -> cython.int:
        """`publish` with the reply subject `inbox` and `number`, which needs no look at its characters."""
        block: bytes = b"" if headers is None else self.encode_headers(headers)
        payload: bytes = data if isinstance(data, bytes) else bytes_of(data)
        self.accept(subject, len(block) + len(payload))
        output: OutputBuffer = self.writer.output
        before: cython.Py_ssize_t = output.size
        self.writer.ask(subject, inbox, number, block, payload)
        if self.open:
            wrote(self, before)
        return 0

    def buffer_any(
        self, subject: str, data: BytesLike, reply: str, headers: HeaderSource | Headers | None
    ) -> cython.bint:
        """Buffer a message of any form; whether there is a link, otherwise it is kept for the next."""
        block: bytes = b"" if headers is None else self.encode_headers(headers)
        payload: bytes = data if isinstance(data, bytes) else bytes_of(data)
        self.accept(subject, len(block) + len(payload))
        self.writer.publish(subject, reply, block, payload)
        return self.open

    def accept(self, subject: str, size: cython.Py_ssize_t) -> cython.int:
        """Before a message of `size` bytes is written: it is not too large, and there is a link, or it is kept."""
        if size > self.max_payload > 0:
            raise PayloadTooLarge(
                f"a message of {size} bytes for {subject!r}, the server takes {self.max_payload}",
                value=size,
                limit=self.max_payload,
            )
        if not self.open:
            self.keep_for_later(size)
        return 0

    def begin_to_write(self, size: cython.Py_ssize_t) -> None:
        """Write the output of `size` bytes: now, if that is much, otherwise with all of this turn of the loop."""
        link: Link | None = self.link
        if link is None:
            return
        if size >= SEND_EARLY:
            link.flush()
        elif not self.holds:
            link.flush_soon()

    def respond(self, reply: str, data: BytesLike, headers: HeaderSource | Headers | None) -> Awaitable[None]:
        """For messages: publish to their reply subject."""
        return self.publish(reply, data, "", headers)

    def encode_headers(self, headers: HeaderSource | Headers) -> bytes:
        """The block, empty for no headers. Raises HeaderError, and LocalProtocolError when the server knows no headers."""
        checked = headers if isinstance(headers, Headers) else Headers(headers)
        if not checked:
            return b""
        if not self.takes_headers:
            raise LocalProtocolError("the server does not support headers")
        return bytes(checked)

    def open_link(self, link: Link) -> None:
        """Write to `link`."""
        self.link = link
        self.writer = OpWriter(link.output)
        self.open = True
        self.since_turn = 0

    def drop_link(self) -> None:
        """Write to an internal buffer."""
        self.link = None
        self.open = False
        self.forget_output()

    def refuse_publishes(self) -> None:
        """The link takes no more publishes; what is in its output is still written."""
        self.open = False

    def forget_output(self) -> None:
        """Begin an empty buffer."""
        self.writer = OpWriter(OutputBuffer())

    def apply_limits(self, info: ServerInfo) -> None:
        """Apply the server's limits."""
        self.max_payload = info.max_payload
        self.takes_headers = info.headers

    def drop_queue(self, sid: int | None) -> None:
        """Stop delivering to the queue of `sid`; None: to any queue."""
        if sid is None:
            self.queues.clear()
        else:
            self.queues.pop(sid, None)
        self.last_queue = None

    def begin_turn(self) -> None:
        """The loop has had its turn."""
        self.since_turn = 0

    async def give_way(self) -> None:
        """Give the loop its turn, and wait while the server does not keep up."""
        raise NotImplementedError

    def keep_for_later(self, size: int) -> None:
        """A publish of `size` bytes finds no server: raises when it cannot be kept for later.

        Afterwards `writer` writes into a buffer that the next server gets.
        """
        raise NotImplementedError


class Sender:
    """The per-message methods of a client; `Client` is built on it."""

    def __init__(self, connection: ConnectionOps) -> None:
        self._connection = connection

    def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        reply: str = "",
        headers: HeaderSource | Headers | None = None,
        *,
        payload: BytesLike | None = None,
    ) -> Awaitable[None]:
        """Send `data` to `subject`, with `headers` and a `reply` subject; the result may be awaited, for back-pressure.
        `payload` is nats-py's name of `data`.

        Raises SubjectError, HeaderError or PayloadTooLarge; then nothing was sent. An empty set of headers sends none.
        While there is no server, the message is kept and sent later; BufferFull when there is no room for it.
        """
        if payload is not None:
            return self._connection.send(subject, payload, reply, headers)
        return self._connection.turn if put(self._connection, subject, data, reply, headers) else _DONE


@cython.cfunc
@cython.inline
def put(
    connection: ConnectionOps, subject: str, data: BytesLike, reply: str, headers: HeaderSource | Headers | None
) -> cython.bint:
    """`ConnectionOps.buffer`, without a call for each step: a plain message like the one before, or any."""
    size: cython.Py_ssize_t = connection.writer.output.size
    if headers is None and connection.open and isinstance(data, bytes) and len(reply) == 0:
        if connection.writer.again(subject, cython.cast(bytes, data), connection.max_payload):
            return wrote(connection, size)
    if connection.buffer_any(subject, data, reply, headers):
        return wrote(connection, size)
    return connection.writer.output.size >= TURN_BYTES


@cython.cfunc
@cython.inline
def wrote(connection: ConnectionOps, before: cython.Py_ssize_t) -> cython.bint:
    """The output has grown from the size `before`: write it if it is time to. Whether the loop should have a turn."""
    size: cython.Py_ssize_t = connection.writer.output.size
    connection.since_turn += size - before
    # Not with each message after so many bytes: one that finds the server behind would ask again for nothing.
    if before == 0 or before ^ size >= SEND_EARLY:  # a power of two: a bit from there on has changed
        connection.begin_to_write(size)
    # What waits is counted as `Link.draining` does: bytes that are written already need no turn.
    waiting: cython.Py_ssize_t = connection.writer.output.size - connection.writer.output.head
    return connection.since_turn >= TURN_BYTES or waiting > TURN_BYTES
