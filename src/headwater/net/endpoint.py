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
    from cython.cimports.headwater.wire.receive import ReceiveBuffer
    from cython.cimports.libc.errno import EAGAIN, EINTR, errno
    from cython.cimports.posix.unistd import read, write
else:
    from errno import EAGAIN, EINTR

    from headwater.wire.memory import OutputBuffer
    from headwater.wire.receive import ReceiveBuffer

    errno: int = 0  # the C library's errno is not available

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.net.layer import Layer
    from headwater.net.link import LinkOwner

logger = logging.getLogger("headwater.net.link")


class Endpoint:
    """Passes input to `owner.receive`, and writes `output`.

    `_descriptor` is the socket's if it may be read and written directly, otherwise -1. `_blocked`: the kernel accepts
    no more for now. `_handed` counts the bytes that have left `output`.
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

    def read_ready(self) -> cython.bint:
        """Read once, without the transport (`net.direct_loop`). False at the end of input and on errors, which the
        transport then reads too; the owner learns of them here, two turns of the loop before the transport would report
        them.
        """
        received: ReceiveBuffer = self._input
        count: cython.Py_ssize_t
        if self.closing or self._layer is not None or self._descriptor < 0:
            return False
        space = received.writable()
        if cython.compiled:
            count = read(
                self._descriptor,
                PyByteArray_AS_STRING(received._target) + received.filled,
                len(space),
            )
        else:
            try:
                count = os.readv(self._descriptor, [space])
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                count = 0
        if count <= 0:
            if count == 0 or (errno != EAGAIN and errno != EINTR):
                self.ended()
            return False
        received.received(count)
        self.hand_over()
        return True

    def read_large(self, large: bool, op_size: int) -> None:
        """See `ReceiveBuffer.read_large`."""
        self._input.read_large(large, op_size)

    def leave(self, size: int) -> bool:
        """Whether the owner may keep the array that it parses, for an op of `size` bytes (`ReceiveBuffer.leave`)."""
        return self._input.leave(size)

    def hand_over(self) -> None:
        """Let the owner parse the buffer."""
        received: ReceiveBuffer = self._input
        try:
            received.consume(self.owner.receive(received.data, received.filled))
        except Exception:
            logger.exception("link_owner_failed")
            self.abort()

    # ── out ──

    def push(self) -> cython.Py_ssize_t:
        """Write as much of `output` as the peer accepts; returns the number of bytes left."""
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
