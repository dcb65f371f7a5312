"""The hot half of a link: the code that runs for every read and write of a plain connection.

Reading: the transport writes into the receive buffer, and the owner parses it in place. Writing: write(2) takes the
output directly from its buffer, without the copy that a transport would make; bytes that the kernel does not accept
stay there until the socket is writable again.

Rare operations (connecting, layers, closing, waiting for a slow peer) are in `net.link.Link`, which extends this class.
The pointers used here go to read(2) and write(2).
"""

import logging
import os

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.headwater.wire.memory import OutputBuffer
    from cython.cimports.headwater.wire.receive import ReceiveBuffer, Receiver
    from cython.cimports.libc.errno import EAGAIN, EINTR, errno
    from cython.cimports.posix.uio import iovec, writev
    from cython.cimports.posix.unistd import read, write
else:
    from errno import EAGAIN, EINTR

    from headwater.wire.memory import OutputBuffer
    from headwater.wire.receive import ReceiveBuffer, Receiver

    errno: int = 0  # the C library's errno is not available

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.wire.receive import LARGEST_READ

if TYPE_CHECKING:
    from headwater.net.layer import Layer
    from headwater.net.link import LinkOwner

logger = logging.getLogger("headwater.net.link")


class Endpoint:
    """Passes input to `owner.receive`, and writes `output`.

    `_descriptor` is the socket's if it may be read and written directly, otherwise -1. `_blocked`: the kernel accepts
    no more for now. `_handed` counts the bytes that have left `output`. `_apart`: the most bytes of the next direct read,
    where what follows is to stay unread; -1 if the owner takes that from the socket itself; 0 otherwise.
    """

    def __init__(self, owner: "LinkOwner", received: ReceiveBuffer, layer: "Layer | None") -> None:
        self.owner = owner
        self.output = OutputBuffer()
        self.closing = False
        self._input = received
        self._layer = layer
        self._descriptor = -1
        self._blocked = False
        self._handed = 0
        self._apart = 0

    # ── asyncio.BufferedProtocol ──

    def get_buffer(self, sizehint: int) -> bytearray | memoryview:
        if self._layer is not None:
            return self.wire_space()
        return self._input.writable()

    def buffer_updated(self, nbytes: int) -> None:
        if self.closing:
            self.discard(nbytes)
        elif self._layer is not None:
            self.through_layer(nbytes)
        else:
            self._input.received(nbytes)
            self.hand_over()

    def read_ready(self, most: cython.Py_ssize_t) -> cython.bint:
        """Read once, without the transport (`net.direct_loop`); `most`: bytes that others leave to this read, at least
        START_SIZE. False at the end of input and on errors, which the transport then reads too; the owner learns of them
        here, two turns of the loop before the transport would report them.
        """
        received: ReceiveBuffer = self._input
        count: cython.Py_ssize_t
        if self.closing or self._layer is not None or self._descriptor < 0:
            return False
        if self._apart < 0:
            self._parse()
            return True
        room: cython.Py_ssize_t = received.space(-1, most)
        if 0 < self._apart < room:
            room = self._apart
        if cython.compiled:
            count = read(self._descriptor, PyByteArray_AS_STRING(received._target) + received.filled, room)
        else:
            try:
                with memoryview(received._target) as view:
                    count = os.readv(self._descriptor, [view[received.filled : received.filled + room]])
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                count = 0
        if count <= 0:
            if count == 0 or (errno != EAGAIN and errno != EINTR):
                self.ended()
            return False
        received.received(count)
        self._parse()
        return True

    def read_large(self, large: bool, op_size: int, unheard: bool = False) -> None:
        """See `ReceiveBuffer.read_large`."""
        self._input.read_large(large, op_size, unheard)

    def leave(self, size: int) -> bool:
        """Whether the owner may keep the array that it parses, for an op of `size` bytes (`ReceiveBuffer.leave`)."""
        return self._input.leave(size)

    def hand_over(self) -> None:
        """Let the owner parse the buffer."""
        self._parse()

    def _parse(self) -> cython.int:
        received: ReceiveBuffer = self._input
        used: cython.Py_ssize_t
        owner = self.owner
        try:
            if isinstance(owner, Receiver):
                used = cython.cast(Receiver, owner).receive(received.data, received.filled)
            else:
                used = owner.receive(received.data, received.filled)
            received.consume(used)
        except Exception:
            logger.exception("link_owner_failed peer=%s", getattr(self, "peer", ""))  # a Link knows it
            self.abort()
        return 0

    # ── out ──

    def push(self) -> int:
        """Write as much of `output` as the peer accepts; returns the number of bytes left."""
        return self.write_output()

    def write_output(self) -> cython.Py_ssize_t:
        """`push` for compiled callers. A method that Python could override costs them a look into the link's `__dict__`."""
        if self._descriptor < 0 or self._layer is not None:
            self.flush()
            return self.pending
        if self._blocked or self.closing or self.output.size == 0:
            return self.output.size - self.output.head
        self._offer()
        return self.output.size - self.output.head

    def _offer(self) -> cython.int:
        """One write(2). Errors are ignored: the transport meets them when it reads, and reports them."""
        output: OutputBuffer = self.output
        written: cython.Py_ssize_t
        waiting: cython.Py_ssize_t = output.size - output.head
        if cython.compiled:
            written = write(self._descriptor, PyByteArray_AS_STRING(output.data) + output.head, waiting)
            if written < 0 and errno != EAGAIN and errno != EINTR:
                return 0
        else:
            try:
                with memoryview(output.data) as view:
                    written = os.write(self._descriptor, view[output.head : output.size])
            except BlockingIOError:
                written = 0
            except OSError:
                return 0
        if written > 0:
            self._handed += written
            output.skip(written)
        if written < waiting:
            self._blocked = True
            self.await_room()
        return 0

    def is_free(self) -> cython.bint:
        """Whether `_descriptor` may be written to now, behind `output`."""
        return self._descriptor >= 0 and self._layer is None and not self._blocked and not self.closing

    def write_behind(self, source: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """Write `output` and `source[start:end]` behind it, of which only what the peer does not accept is copied: for parts
        of 64 KiB and more, that a copy would take out of the processor's caches."""
        output: OutputBuffer = self.output
        if not self.is_free():
            return output.append_slice(source, start, end)
        waiting: cython.Py_ssize_t = output.size - output.head
        written: cython.Py_ssize_t
        if cython.compiled:
            parts = cython.declare(iovec[2])
            parts[0].iov_base = PyByteArray_AS_STRING(output.data) + output.head
            parts[0].iov_len = waiting
            parts[1].iov_base = PyByteArray_AS_STRING(source) + start
            parts[1].iov_len = end - start
            written = writev(self._descriptor, parts, 2)
            failed: cython.bint = written < 0 and errno != EAGAIN and errno != EINTR
        else:
            failed = False
            try:
                with memoryview(output.data) as before, memoryview(source) as part:
                    written = os.writev(self._descriptor, [before[output.head : output.size], part[start:end]])
            except BlockingIOError:
                written = 0
            except OSError:
                written, failed = 0, True
        if written > 0:
            self._handed += written
            start += max(0, written - waiting)
            output.skip(min(written, waiting))
        if start < end:
            output.append_slice(source, start, end)
            if not failed:  # the transport meets the error when it reads
                self._blocked = True
                self.await_room()
        return 0

    # ── what Link adds ──

    @property
    def pending(self) -> int:
        """Bytes passed to this link that the kernel has not accepted yet."""
        raise NotImplementedError

    def ended(self) -> None:
        """The peer has sent its last byte, or reset the connection; the transport has not noticed yet."""
        raise NotImplementedError

    def flush(self) -> None:
        """Write `output` now."""
        raise NotImplementedError

    def abort(self) -> None:
        """End now."""
        raise NotImplementedError

    def await_room(self) -> None:
        """Continue writing once the kernel accepts more."""
        raise NotImplementedError

    def discard(self, nbytes: int) -> None:
        """Discard input that arrives after `close`."""
        raise NotImplementedError

    def wire_space(self) -> memoryview:
        """The buffer for the layer's input."""
        raise NotImplementedError

    def through_layer(self, nbytes: int) -> None:
        """Pass input to the layer."""
        raise NotImplementedError


def reader_of(endpoint: Endpoint, otherwise: Callable[[], object]) -> Callable[[], None]:
    """What reads `endpoint` when it is ready, and calls `otherwise` for what is left to the transport."""

    def read() -> None:
        if not endpoint.read_ready(LARGEST_READ):
            otherwise()

    return read
