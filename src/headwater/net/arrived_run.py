"""A run that came from another process through a Unix socket, as pages of a pipe, and is handed to sockets unread.

    Unix socket ──splice──▶ pages of a pipe ──tee──▶ another pipe ──splice──▶ the socket of each receiver but the last
                                   ├──────────────────splice────────────────▶ the socket of the last
                                   └──read──▶ memory, if a socket does not take all of it

See `net.shared_run`, which makes the pages and says when there are none.
"""

import os

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.headwater.net.endpoint import Endpoint
    from cython.cimports.headwater.net.shared_run import SPLICE, PageCalls, _close, _hand_over
    from cython.cimports.headwater.wire.memory import unset_array
    from cython.cimports.libc.errno import EINTR, errno
    from cython.cimports.posix.unistd import read
else:
    from errno import EINTR
    from typing import Any

    from headwater.net.endpoint import Endpoint
    from headwater.net.shared_run import SPLICE, PageCalls, _close, _hand_over
    from headwater.wire.memory import unset_array

    errno: int = 0
    read: Any = None  # only the compiled half has pages

    def PyByteArray_AS_STRING(_array: bytearray) -> Any:
        return None


class ArrivedRun:
    """Of one link, one run after the other. `size`: bytes in the pages. `by_pages` counts those that sockets got as pages.
    `calls`: those of the runs that this process shares, which all know of a refusal; None before the first run.
    """

    def __init__(self) -> None:
        self.size = 0
        self.by_pages = 0
        self.calls: PageCalls | None = None
        self._pages: tuple[int, int] | None = None

    def begin(self, calls: PageCalls) -> cython.bint:
        """Whether a run may be taken now, with these calls."""
        self.calls = calls
        if not calls.are_ready():
            self.close()
        elif self._pages is None:
            self._pages = calls.open_pipe()
        return self._pages is not None

    def take(self, descriptor: cython.int, most: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Take up to `most` bytes of the run from a socket; returns their number, 0 if there is nothing, or no pipe."""
        if self._pages is None:
            return 0
        inlet: cython.int = cython.cast(tuple, self._pages)[1]
        moved: cython.Py_ssize_t = cython.cast(PageCalls, self.calls).judge(_hand_over(SPLICE, descriptor, inlet, most))
        self.size += moved
        return moved

    def hand(self, receivers: list[Endpoint]) -> cython.int:
        """Write the run behind the output of each. The pages are empty afterwards."""
        calls: PageCalls = cython.cast(PageCalls, self.calls)
        source: cython.int = cython.cast(tuple, self._pages)[0]
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
            sent = calls.copy_to(source, endpoint, self.size)
            self.by_pages += sent
            if sent < self.size:
                behind.append((endpoint, sent))
        if last is not None:
            if behind:
                sent = calls.copy_to(source, last, self.size)
                self.by_pages += sent
            else:
                sent = start = calls.move_to(source, last, self.size)
                self.size -= sent
                self.by_pages += sent
            if sent - start < self.size:
                behind.append((last, sent))
        if behind:
            rest: bytearray = self.read(self.size)
            for endpoint, sent in behind:
                endpoint.write_behind(rest, sent - start, len(rest))
        if calls.refused:
            self.close()
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
        """Close the pipe, whatever is in it; it is opened again for a later run."""
        self.size = 0
        if self._pages is not None:
            _close(self._pages[0], self._pages[1])
            self._pages = None

    def __del__(self) -> None:
        self.close()
