"""One connection: passes input to an owner that parses it, and writes output once per loop iteration.

The owner (a broker session, a client connection) is sans-I/O: it parses the receive buffer and returns how many bytes
it used; it appends to `output` and requests a flush. This class is independent of the protocol.

    socket ──get_buffer/buffer_updated──▶ ReceiveBuffer ──owner.receive──▶ …
    … ──output.append──▶ OutputBuffer ──flush, once per loop iteration──▶ socket

A layer (TLS, WebSocket) sits between the socket and the owner, and the transport writes its output; without a layer,
`Endpoint` reads and writes the socket itself.

Invariants: `lost` is called exactly once, after `attach`; nothing is written after `close`; while the peer accepts no
more, bytes stay in `output`, where `pending` counts them. An exception in the owner is logged and ends only this link.
The owner is called as soon as the end of input is read; the transport would report it one turn of the loop later.

Ranges of files (`send`), and pieces sent after them, wait in a queue in front of `output`; `output` is held back while
the queue is not empty. To learn when a plain socket is writable again, the link watches a duplicate of its descriptor,
because an event loop does not let others watch the descriptor of a transport.
"""

import asyncio
import logging
import os
import socket
import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, cast

from headwater.errors import TransportError
from headwater.net.address import bracketed, plain_host
from headwater.net.endpoint import Endpoint, reader_of
from headwater.net.layer import Layer
from headwater.net.piece_queue import MAX_PIECES, Piece, PieceQueue, as_bytes
from headwater.wire.memory import unset_array
from headwater.wire.receive import LARGEST_READ, SHARED_SIZE, ReceiveBuffer

logger = logging.getLogger(__name__)

HIGH_WATER = 1 << 20  # unwritten bytes above which `drained` waits, and a transport gets no more
LOW_WATER = HIGH_WATER // 4  # unwritten bytes at which `drained` returns
LARGE_BYTES = 1 << 16  # copying a larger piece costs more than a separate write
LINGER_SECONDS = 0.25  # how long a closed link waits for the peer to read its last bytes
LINGER_BYTES = 1 << 22  # input that a closed link discards before it aborts
WIRE_BYTES = 1 << 16  # size of one read for a layer
RECORD_BYTES = 1 << 14  # largest TLS record
_NOT, _LOST, _GONE = range(3)
"""The stages of a link's end: open; the owner was notified; the transport is closed and cannot be aborted."""
_NO_QUEUE = PieceQueue()  # shared by all links that never sent a range, to save memory


class LinkOwner(Protocol):
    """The sans-I/O side of a link."""

    def attach(self, link: "Link") -> None:
        """The connection is established; `link` can be written to."""

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Parse `buffer[:filled]`; returns how many bytes were used. The rest is passed again with more input after
        it."""

    def lost(self, error: Exception | None) -> None:
        """The connection has ended. `error` is None if one side closed it in order."""


class LinkReader(Protocol):
    """A DirectLoop's `ReadyLinks`."""

    def add(self, descriptor: int, link: Endpoint) -> None: ...
    def discard(self, descriptor: int) -> None: ...


# One array per loop, which all its links read into, because only one reads at a time (see `wire.receive`).
_reading: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, bytearray] = weakref.WeakKeyDictionary()


def _shared_array(loop: asyncio.AbstractEventLoop) -> bytearray | None:
    if sys.platform.startswith("win"):
        return None  # a proactor keeps the array while other links read
    array = _reading.get(loop)
    if array is None:
        _reading[loop] = array = unset_array(SHARED_SIZE)  # in memory as far as reads have filled it
    return array


def _wire_array(loop: asyncio.AbstractEventLoop) -> bytearray:
    """The array for a layer's input. The layer may decode into the same array, because it copies its input."""
    shared = _shared_array(loop)
    return bytearray(WIRE_BYTES) if shared is None else shared


def _read_records(layer: Layer, space: memoryview) -> int:
    """Read as many of the layer's records as fit: the owner parses them together."""
    total = 0
    while len(space) - total >= RECORD_BYTES and (count := layer.read_into(space[total:])):
        total += count
    return total


class Link(Endpoint, asyncio.BufferedProtocol):
    """A connected stream transport (TCP, TLS or a Unix socket) with buffered output."""

    def __init__(self, owner: LinkOwner, layer: Layer | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__(owner, ReceiveBuffer(shared=_shared_array(self._loop)), layer)
        self._transport: asyncio.Transport | None = None
        self._flush_scheduled = False
        self._paused = False
        self._queue = _NO_QUEUE  # written before `output`; while it is not empty, the link counts as blocked
        self._ended = _NOT
        self.when_gone: asyncio.Future[None] | None = None  # done when the transport is closed; for `end_all`
        self._discarded = 0
        self._watched = -1  # a duplicate of the descriptor, while we wait for it to be writable
        self._drain_waiters: list[asyncio.Future[None]] = []
        self._wire = _wire_array(self._loop) if layer is not None else bytearray()  # input for the layer
        self._failure: TransportError | None = None
        self._preparing: asyncio.Future[None] | None = None
        self.on_end: Callable[[], object] | None = None  # set by its maker; called once, after the owner's `lost`
        self.joins: dict[Link, None] | None = None  # who may have bytes pending; once the kernel took less than given
        # The part of a DirectLoop that reads links directly; None on other loops.
        self._readers: LinkReader | None = getattr(self._loop, "ready", None)

    # ── asyncio.BufferedProtocol ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        if self._layer is not None:
            self._write_layer(self._layer)
        elif self._transport.get_extra_info("sslcontext") is None and not sys.platform.startswith("win"):
            self._descriptor = self._transport.get_extra_info("socket").fileno()
            if self._readers is not None:
                self._readers.add(self._descriptor, self)
        self.owner.attach(self)

    def eof_received(self) -> bool:
        return False  # a half-open connection is useless: close it

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self.flush()
        if not self._paused:
            self._wake_drained(None)

    def ended(self) -> None:
        if self._transport is None or self.closing or self._transport.get_write_buffer_size():
            return
        try:
            self._lose(None)
        except Exception:
            logger.exception("link_owner_failed peer=%s", self.peer)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._ended == _NOT:
            self._lose(exc)
        self._ended = _GONE
        if self.when_gone is not None and not self.when_gone.done():
            self.when_gone.set_result(None)

    def _lose(self, exc: Exception | None) -> None:
        self.closing = True
        self._ended = _LOST
        self._leave_descriptor()
        self.output.clear()
        self._queue.clear()
        self._wake_drained(exc or ConnectionResetError("the connection was closed"))
        if self._preparing is not None and not self._preparing.done():
            self._preparing.set_exception(
                self._failure or TransportError("the connection was closed during the handshake")
            )
        try:
            self.owner.lost(self._failure or exc)
        finally:
            if self.on_end is not None:
                self.on_end()

    # ── for owners ──

    @property
    def peer(self) -> str:
        """The peer's address as `host:port`, for messages; empty when unknown."""
        name = self._transport.get_extra_info("peername") if self._transport else None
        if not isinstance(name, tuple):
            return name.lstrip(b"\0").decode() if isinstance(name, bytes) else str(name or "")  # a Unix socket
        return f"{bracketed(plain_host(name[0]))}:{name[1]}"

    @property
    def host(self) -> str:
        """The peer's address alone."""
        return self.peer.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The peer's port; 0 when unknown."""
        port = self.peer.rpartition(":")[2]
        return int(port) if port.isdecimal() else 0

    @property
    def pending(self) -> int:
        """Bytes passed to this link that the kernel has not accepted yet."""
        waiting = len(self.output) + self._queue.size
        return waiting + (self._transport.get_write_buffer_size() if self._transport else 0)

    @property
    def sent(self) -> int:
        """Bytes that the kernel has accepted so far: this grows while the peer reads."""
        return self._handed - (self._transport.get_write_buffer_size() if self._transport else 0)

    def flush_soon(self) -> None:
        """Write `output` at the end of this loop iteration; many calls make one write."""
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write `output` now, as far as the peer accepts it."""
        self._flush_scheduled = False
        if self.closing or self._transport is None or len(self.output) == 0:
            return
        if self._layer is not None:
            if self._paused:
                return
            if self._layer.ready:
                with memoryview(self.output.data) as view:
                    self._layer.write(view[self.output.head : self.output.size])
                self.output.clear()
            self._write_layer(self._layer)
        elif self._descriptor >= 0:
            self.push()
        elif not self._paused:
            self._hand_to_transport(self._transport)

    def _hand_to_transport(self, transport: asyncio.Transport) -> None:
        self._handed += len(self.output)
        transport.write(self.output.take())
        self._fall_behind(transport.get_write_buffer_size())

    def _hand_queue_to_transport(self, transport: asyncio.Transport) -> bool:
        """Pass the queue to the transport; False when a file failed, which has ended the link."""
        try:
            if self._queue.size:
                transport.write(self._queue.take())
                self._fall_behind(transport.get_write_buffer_size())
        except OSError as error:
            self._file_failed(error)
            return False
        return True

    def _fall_behind(self, waiting: int) -> None:
        if waiting and self.joins is not None:
            self.joins[self] = None

    def await_room(self) -> None:
        self._fall_behind(1)
        if self._watched >= 0:
            return
        try:
            self._watched = os.dup(self._descriptor)
        except OSError:  # out of descriptors: the transport writes the rest and all later output
            self._leave_descriptor()
            if self._transport is not None and self._hand_queue_to_transport(self._transport):
                self._hand_to_transport(self._transport)
            return
        self._loop.add_writer(self._watched, self._go_on)

    def _go_on(self) -> None:
        """The socket is writable again."""
        self._blocked = False
        if self._queue.size:
            self._offer_queue()
        self.push()
        if not self._blocked:
            self._stop_watching()
        if len(self.output) + self._queue.size <= LOW_WATER:
            self._wake_drained(None)

    def _leave_descriptor(self) -> None:
        """Leave reading and writing to the transport."""
        if self._readers is not None:
            self._readers.discard(self._descriptor)
        self._descriptor = -1
        self._stop_watching()

    def _stop_watching(self) -> None:
        self._blocked = False
        if self._watched >= 0:
            self._loop.remove_writer(self._watched)
            os.close(self._watched)
            self._watched = -1

    @property
    def takes_ranges(self) -> bool:
        """Whether `send` takes ranges of files as they are, which are read when there is room for them."""
        return self._descriptor >= 0 and self._layer is None

    def send(self, pieces: "Sequence[Piece | bytearray]", at_once: bool = False) -> None:
        """Write large pieces now, without copying what the kernel accepts at once; the rest waits after earlier output.
        A file that fails ends the link, because its size was already announced. `at_once`: pieces in memory, which do
        not change any more, are offered in one call however large they are; others take turns with other links."""
        if at_once:
            self._send_bytes(cast(Sequence[bytes | bytearray], pieces))
        elif (
            self._queue.size
            or not all(isinstance(piece, bytes) for piece in pieces)
            or (self.takes_ranges and sum(map(len, pieces)) > HIGH_WATER)
        ):
            self._send_in_order(cast(Sequence[Piece], pieces))
        else:
            self._send_bytes(cast(Sequence[bytes], pieces))

    def _send_in_order(self, pieces: Sequence[Piece]) -> None:
        transport = self._transport
        if transport is None or self.closing:
            return
        try:
            if not self.takes_ranges or transport.get_write_buffer_size():
                self._send_bytes([as_bytes(piece) for piece in pieces])
                return
        except OSError as error:
            self._file_failed(error)
            return
        if self._queue is _NO_QUEUE:
            self._queue = PieceQueue(getattr(self._loop, "events_seen", None))
        queue = self._queue
        if self.output.size:
            queue.add(self.output.take())
        for piece in pieces:
            queue.add(piece)
        if not self._blocked:
            self._offer_queue()

    def _offer_queue(self) -> None:
        try:
            self._handed += self._queue.offer(self._descriptor)
        except ConnectionError:  # the transport meets it again when it reads, and reports it
            self._queue.clear()
        except OSError as error:
            self._file_failed(error)
        if self._queue.size:
            self._blocked = True
            self.await_room()

    def _file_failed(self, error: OSError) -> None:
        logger.error("file_not_sent peer=%s reason=%s", self.peer, error)
        self._queue.clear()
        self.abort()

    def _send_bytes(self, pieces: Sequence[bytes | bytearray]) -> None:
        written = 0
        transport = self._transport
        held = self.output.size or self._queue.size or self._paused or self.closing
        if transport is not None and self._descriptor >= 0 and not held:
            if sum(map(len, pieces)) >= LARGE_BYTES and transport.get_write_buffer_size() == 0:
                with suppress(OSError):  # not writable now, or broken: the transport will report that
                    written = os.writev(self._descriptor, pieces[:MAX_PIECES])
                self._handed += written
        for piece in pieces:
            if written >= len(piece):
                written -= len(piece)
            else:
                if isinstance(piece, bytearray):
                    self.output.append_slice(piece, written, len(piece))
                else:
                    self.output.append(piece[written:] if written else piece)
                written = 0
        if self.output.size:
            self.flush_soon()

    async def drained(self) -> None:
        """Wait until few bytes wait for the peer. Raises ConnectionError when the link is lost meanwhile."""
        waiter = self.draining()
        if waiter is not None:
            await waiter

    def draining(self) -> asyncio.Future[None] | None:
        """The future that `drained` awaits; None when few bytes wait already."""
        self.flush()
        if self.closing or not (self._paused or len(self.output) + self._queue.size > HIGH_WATER):
            return None
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._drain_waiters.append(waiter)
        return waiter

    def pause_reading(self) -> None:
        """Read no more input until `resume_reading`; safe to call twice and after the end."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Undo `pause_reading`."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def expect(self, size: int, missing: int = 0) -> None:
        """The incomplete op in the buffer has `size` bytes in all (`ReceiveBuffer.expect`).

        `missing`: a plain socket is read next when so many more bytes are there, or as many as one read takes, or its end; 1
        undoes it. For the rest of a large op: a reader that takes it segment by segment slows its sender, which shares the
        socket's lock, its acknowledgements and perhaps its core."""
        self._input.expect(size)
        if missing > 0 and self._descriptor >= 0 and self._transport is not None and sys.platform == "linux":
            least = min(missing, LARGEST_READ)
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)

    def read_on(self) -> None:
        """Soon pass the owner its unused input again, without waiting for more."""
        self._loop.call_soon(self._hand_over_again)

    def close(self) -> None:
        """Write the remaining output, then end.

        Closing a socket that has unread input makes the kernel send RST, and the peer then loses the last bytes that we
        sent (an -ERR, say). So half-close first, and discard input for a moment.
        """
        if self.closing or self._transport is None:
            return
        self._paused = False
        self.flush()
        self._stop_watching()
        if not self._hand_queue_to_transport(self._transport):
            return
        if self._descriptor >= 0 and len(self.output):
            self._hand_to_transport(self._transport)  # the transport closes after the last byte
        self.closing = True
        if self._layer is not None:
            self._layer.finish()
            self._write_layer(self._layer)
        if self._transport.is_closing():
            return
        if not self._transport.can_write_eof():
            self._transport.close()
            return
        try:
            self._transport.write_eof()
        except OSError:  # the peer has reset the connection, which has not been reported yet
            self._transport.abort()
            return
        self._loop.call_later(LINGER_SECONDS, self._transport.close)

    def abort(self) -> None:
        """End now; unwritten output is lost."""
        self.closing = True
        if self._transport is not None and self._ended != _GONE:
            self._transport.abort()

    # ── with a layer ──

    @property
    def layer(self) -> Layer | None:
        """The layer between the wire and the owner, if any."""
        return self._layer

    def install(self, layer: Layer) -> None:
        """Pass all further bytes in both directions through `layer`. Bytes in `output` wait until it is ready."""
        self._wire = _wire_array(self._loop)
        self._layer = layer
        self._leave_descriptor()
        if self._transport is not None:
            self._write_layer(layer)

    async def prepared(self) -> None:
        """Wait until the layer is ready for the owner's bytes. Raises TransportError if the handshake fails."""
        if self._layer is None or self._layer.ready:
            return
        self._preparing = self._loop.create_future()
        await self._preparing

    def wire_space(self) -> memoryview:
        return memoryview(self._wire)[:WIRE_BYTES]

    def through_layer(self, nbytes: int) -> None:
        layer = cast(Layer, self._layer)
        received = self._input
        failure: TransportError | None = None
        try:
            try:
                with memoryview(self._wire) as wire:
                    layer.feed(wire[:nbytes])
            except TransportError as error:
                failure = error  # bytes that were decoded before the error still count
            while not self.closing and (count := _read_records(layer, received.writable(RECORD_BYTES))):
                received.received(count)
                received.consume(self.owner.receive(received.data, received.filled))
        except TransportError as error:
            failure = error
        except Exception:
            logger.exception("link_owner_failed peer=%s", self.peer)
            self.abort()
            return
        if failure is not None:
            self._fail(failure)
            return
        if layer.ready and self._preparing is not None and not self._preparing.done():
            self._preparing.set_result(None)
        if self.output.size:
            self.flush()
        self._write_layer(layer)
        if layer.ended:
            self.close()

    def _write_layer(self, layer: Layer) -> None:
        wire = layer.take()
        if wire and self._transport is not None and not self._transport.is_closing():
            self._handed += len(wire)
            self._transport.write(wire)
            self._fall_behind(self._transport.get_write_buffer_size())

    def _fail(self, error: TransportError) -> None:
        """The peer violated the layer's protocol: send the layer's final bytes (an alert, a Close frame), and end."""
        logger.info("layer_failed peer=%s reason=%s", self.peer, error)
        self._failure = error
        self.output.clear()
        self.close()

    # ── inside ──

    def _hand_over_again(self) -> None:
        if not self.closing and self._input.filled:
            self.hand_over()

    def discard(self, nbytes: int) -> None:
        self._discarded += nbytes
        if self._discarded > LINGER_BYTES and self._transport is not None:
            self._transport.abort()

    def _wake_drained(self, error: Exception | None) -> None:
        waiters, self._drain_waiters = self._drain_waiters, []
        for waiter in waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)


def read_directly(link: Link) -> None:
    """Read a plain socket without asyncio's transport, which takes 5,000 instructions for each read: as much as a client
    with one request at a time takes for the request. On loops that have no such transport nothing changes; the end of
    input and errors are still the transport's."""
    transport: Any = link._transport
    read = getattr(transport, "_read_ready_cb", None)  # of asyncio's selector loops
    if read is not None and link._readers is None and link._descriptor >= 0:
        transport._read_ready_cb = reader_of(link, read)


async def end_all(links: Sequence[Link]) -> None:
    """Wait for closed links until their peers have read the last bytes and closed too; after two linger times the rest
    are aborted."""
    loop = asyncio.get_running_loop()
    waiting = []
    for link in links:
        if link._transport is not None and link._ended != _GONE:
            link.when_gone = loop.create_future()
            waiting.append(link.when_gone)
    if waiting:
        _, late = await asyncio.wait(waiting, timeout=2 * LINGER_SECONDS)
        if late:
            for link in links:
                link.abort()  # no effect on links that have ended
            await asyncio.wait(late, timeout=LINGER_SECONDS)
