"""A run that came from another process through a Unix socket, as pages of a pipe, and is handed to sockets unread.

    Unix socket ──splice──▶ pages of a pipe ──tee──▶ another pipe ──splice──▶ the socket of each receiver but the last
                                   ├──────────────────splice────────────────▶ the socket of the last
                                   └──read──▶ memory, if a socket does not take all of it

See `net.shared_run`, which makes the pages and says when there are none.
"""

import logging
import os

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.headwater.net.endpoint import Endpoint
    from cython.cimports.headwater.net.shared_run import SPLICE, TEE, _close, _hand_over, _open_pipe
    from cython.cimports.headwater.wire.memory import unset_array
    from cython.cimports.libc.errno import EAGAIN, ECONNRESET, EINTR, EPIPE, errno
    from cython.cimports.posix.unistd import read
else:
    from errno import EAGAIN, ECONNRESET, EINTR, EPIPE
    from typing import Any

    from headwater.net.endpoint import Endpoint
    from headwater.net.shared_run import SPLICE, TEE, _close, _hand_over, _open_pipe
    from headwater.wire.memory import unset_array

    errno: int = 0
    read: Any = None  # only the compiled half has pages

    def PyByteArray_AS_STRING(_array: bytearray) -> Any:
        return None


logger = logging.getLogger(__name__)


class ArrivedRun:
    """Of one link, one run after the other. `size`: bytes in the pages. `by_pages` counts what was handed over."""

    def __init__(self) -> None:
        self.size = 0
        self.by_pages = 0
        self.refused = TEE == 0
        self._pages: tuple[int, int] | None = None
        self._copy: tuple[int, int] | None = None

    def take(self, descriptor: cython.int, most: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Take up to `most` bytes from a socket; returns their number, 0 if there is nothing, or no pipe to be had."""
        if self._pages is None:
            self._pages = _open_pipe()
            if self._pages is None:
                return 0
        moved: cython.Py_ssize_t = self._judge(_hand_over(SPLICE, descriptor, self._pages[1], most))
        self.size += moved
        return moved

    def hand(self, receivers: list[Endpoint]) -> cython.int:
        """Write the run behind the output of each. The pages are empty afterwards."""
        endpoint: Endpoint
        free: list[Endpoint] = []
        behind: list[tuple[Endpoint, int]] = []  # who does not take all, and how much it has
        sent: cython.Py_ssize_t
        start: cython.Py_ssize_t = 0
        for endpoint in receivers:
            if endpoint.is_free() and endpoint.output.size:
                endpoint.write_output()
            if endpoint.is_free() and endpoint.output.size == 0:
                free.append(endpoint)
            else:
                behind.append((endpoint, 0))
        last: Endpoint | None = free.pop() if free and not behind else None
        for endpoint in free:
            sent = self._copy_to(endpoint)
            if sent < self.size:
                behind.append((endpoint, sent))
        if last is not None:
            if behind:
                sent = self._copy_to(last)
            else:
                sent = start = self._judge(
                    _hand_over(SPLICE, cython.cast(tuple, self._pages)[0], last._descriptor, self.size)
                )
                last._handed += sent
                self.size -= sent
            if sent - start < self.size:
                behind.append((last, sent))
        if behind:
            rest: bytearray = self.read(self.size)
            for endpoint, sent in behind:
                endpoint.write_behind(rest, sent - start, len(rest))
        return 0

    def read(self, room: cython.Py_ssize_t) -> bytearray:
        """What the pages have, at the beginning of an array of `room` bytes; they are empty then."""
        found: bytearray = unset_array(room)
        got: cython.Py_ssize_t = 0
        count: cython.Py_ssize_t
        if cython.compiled:
            while got < self.size:
                count = read(cython.cast(tuple, self._pages)[0], PyByteArray_AS_STRING(found) + got, self.size - got)
                if count <= 0 and errno != EINTR:
                    raise OSError(errno, os.strerror(errno))
                got += max(count, 0)
        self.size = 0
        return found

    def close(self) -> None:
        """Close the pipes; they are opened again for a later run."""
        self.size = 0
        if self._pages is not None:
            _close(self._pages[0], self._pages[1])
        if self._copy is not None:
            _close(self._copy[0], self._copy[1])
        self._pages = self._copy = None

    def __del__(self) -> None:
        self.close()

    def _copy_to(self, endpoint: Endpoint) -> cython.Py_ssize_t:
        """Hand the pages to a socket, and keep them; returns the number of bytes that it took."""
        if self._copy is None:
            self._copy = _open_pipe()
            if self._copy is None:
                return 0
        source: cython.int = cython.cast(tuple, self._pages)[0]
        copied: cython.Py_ssize_t = self._judge(_hand_over(TEE, source, self._copy[1], self.size))
        sent: cython.Py_ssize_t = self._judge(_hand_over(SPLICE, self._copy[0], endpoint._descriptor, copied))
        if sent < copied:
            _close(self._copy[0], self._copy[1])
            self._copy = None
        endpoint._handed += sent
        return sent

    def _judge(self, moved: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """As in `net.shared_run`."""
        if moved >= 0:
            self.by_pages += moved
            return moved
        if errno not in (EAGAIN, EINTR, EPIPE, ECONNRESET) and not self.refused:
            self.refused = True
            logger.info("pages_not_shared reason=%s", os.strerror(errno))
        return 0
