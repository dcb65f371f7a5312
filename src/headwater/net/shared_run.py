"""A run of messages for several receivers with one sid: rendered once, copied into the kernel once, and handed to each.

    output of the first ──write──▶ pages of a pipe ──tee──▶ another pipe ──splice──▶ the socket of each other receiver
                                          └──────────────────splice────────────────▶ the socket of the first, at the end

A write to a socket copies its bytes; `tee` and `splice` hand over the pages that have them. One page is handed over for
each 4 KiB, so that it pays from three receivers on.

The ordinary way is a write to each. What a socket does not accept goes that way, and so does all of a run whose receiver has
output of before left, has a layer (TLS, WebSocket) or is no socket; where the process is out of descriptors or its user has
as many pages in pipes as it may, which is logged once and tried again after LEFT_OUT runs; and where the system has no such
calls or forbids them, which is found out once and logged. `net.arrived_run` makes the same calls with what it gets.
"""

import logging
import os
import sys
from typing import TYPE_CHECKING

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.headwater.net.endpoint import Endpoint
    from cython.cimports.headwater.wire.memory import OutputBuffer
    from cython.cimports.libc.errno import EACCES, EINVAL, ENOSYS, EOPNOTSUPP, EPERM, errno
    from cython.cimports.posix.fcntl import fcntl
    from cython.cimports.posix.unistd import close as close_one
    from cython.cimports.posix.unistd import write
else:
    from errno import EACCES, EINVAL, ENOSYS, EOPNOTSUPP, EPERM
    from typing import Any

    from headwater.net.endpoint import Endpoint
    from headwater.wire.memory import OutputBuffer

    # Only the compiled half can call these: interpreted, each receiver is written to.
    errno: int = 0
    fcntl: Any = None
    syscall: Any = None
    write: Any = None
    close_one: Any = None

    def PyByteArray_AS_STRING(_array: bytearray) -> Any:
        return None


if TYPE_CHECKING:
    from headwater.wire.run_announcement import ToAnnounce

logger = logging.getLogger(__name__)

_MACHINE: str = os.uname().machine if cython.compiled and sys.platform == "linux" and sys.maxsize > 1 << 32 else ""
TEE: int = {"x86_64": 276, "aarch64": 77, "riscv64": 77}.get(_MACHINE, 0)  # numbers of system calls
SPLICE: int = {"x86_64": 275, "aarch64": 76, "riscv64": 76}.get(_MACHINE, 0)
WITHOUT_WAITING = 2  # SPLICE_F_NONBLOCK
RESIZE = 1031  # F_SETPIPE_SZ
LEAST_RECEIVERS: int = 3  # to two it costs as much as two writes
MOST_BYTES: int = 1 << 20  # what every user's pipe may have; a run is of one read, which has 256 KiB
LEFT_OUT: int = 64  # runs that are copied to each where there is no pipe, before the next try; that costs 3 us
_LEAST_RECEIVERS: cython.Py_ssize_t = LEAST_RECEIVERS  # in C, as in `wire.memory`
_MOST_BYTES: cython.Py_ssize_t = MOST_BYTES


def _close(one: cython.int, other: cython.int) -> cython.int:
    close_one(one)
    close_one(other)
    return 0


def _hand_over(call: cython.long, source: cython.int, target: cython.int, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """`tee` or `splice` of up to `size` bytes: those that were handed over, or -1 and an `errno`."""
    offset: cython.p_void = cython.NULL  # of files
    flags: cython.uint = WITHOUT_WAITING
    if call == TEE:
        return syscall(call, source, target, size, flags)  # type: ignore[no-any-return]
    return syscall(call, source, offset, target, offset, size, flags)  # type: ignore[no-any-return]


class PageCalls:
    """The calls that hand over pages, for all runs of one event loop, and the pipe that copies of pages go through, which is
    empty between two runs. `refused`: the system has no such calls or forbids them, which does not change.
    """

    def __init__(self) -> None:
        self.refused = TEE == 0
        self._copy: tuple[int, int] | None = None
        self._left_out = 0  # so many runs do without a pipe before the next try
        self._logged = False

    def are_ready(self) -> cython.bint:
        """Whether pages may be handed over now."""
        if self.refused:
            self.close()
        elif self._copy is None:
            self._copy = self.open_pipe()
        return self._copy is not None

    def open_pipe(self) -> tuple[int, int] | None:
        """Both ends of a pipe with room for MOST_BYTES; None if there is none to be had now."""
        if self._left_out > 0:
            self._left_out -= 1
            return None
        try:
            ends = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self._do_without(error.errno or 0)
            return None
        if fcntl(ends[1], cython.cast(cython.int, RESIZE), cython.cast(cython.int, MOST_BYTES)) < 0:
            problem: cython.int = errno
            _close(ends[0], ends[1])
            self._do_without(problem)
            return None
        return ends

    def copy_to(
        self, source: cython.int, endpoint: Endpoint, size: cython.Py_ssize_t, head: bytes = b""
    ) -> cython.Py_ssize_t:
        """Hand the `size` bytes in the pipe `source` to a socket, and keep them. `head` goes in front of them in the same
        call, so that another process is woken once. Returns the number of bytes that the socket took."""
        filled: cython.Py_ssize_t = len(head)
        if not self.are_ready():
            return 0
        outlet: cython.int = cython.cast(tuple, self._copy)[0]
        inlet: cython.int = cython.cast(tuple, self._copy)[1]
        if filled > 0 and write(inlet, cython.cast(cython.p_char, head), filled) != filled:
            self.close()
            return 0
        filled += self.judge(_hand_over(TEE, source, inlet, size))
        sent: cython.Py_ssize_t = self.judge(_hand_over(SPLICE, outlet, endpoint._descriptor, filled))
        if sent < filled or self.refused:
            self.close()  # a new pipe costs as much as reading what is left, and is empty in every case
        endpoint._handed += sent
        return sent

    def move_to(self, source: cython.int, endpoint: Endpoint, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Hand the `size` bytes in the pipe `source` to a socket; returns the number of those that are no longer there."""
        sent: cython.Py_ssize_t = self.judge(_hand_over(SPLICE, source, endpoint._descriptor, size))
        endpoint._handed += sent
        if self.refused:
            self.close()
        return sent

    def judge(self, moved: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """What a call has handed over, of which there is nothing if it failed."""
        if moved >= 0:
            return moved
        if (
            errno in (ENOSYS, EPERM, EACCES, EINVAL, EOPNOTSUPP) and not self.refused
        ):  # others say something of the receiver
            self.refused = True
            logger.info("pages_not_shared reason=%s", os.strerror(errno))
        return 0

    def close(self) -> cython.int:
        """Close the pipe; it is opened again for a later run."""
        if self._copy is not None:
            _close(self._copy[0], self._copy[1])
            self._copy = None
        return 0

    def _do_without(self, problem: cython.int) -> None:
        """There is no pipe: out of descriptors, or the user has as many pages in pipes as it may."""
        self._left_out = LEFT_OUT
        if not self._logged:
            self._logged = True
            logger.info(
                "no_pipe_for_pages reason=%s bytes=%d runs_left_out=%d", os.strerror(problem), MOST_BYTES, LEFT_OUT
            )

    def __del__(self) -> None:
        self.close()


class SharedRun:
    """For all routers of one event loop, one run after the other. `first` has the current run at the end of its output, as
    all receivers with the sid `sid` get it; None if there is none. `by_pages` counts the bytes that sockets got as pages.
    """

    def __init__(self) -> None:
        self.calls = PageCalls()
        self.first: Endpoint | None = None
        self.sid = b""
        self.by_pages = 0
        self._size = 0
        self._worth = False
        self._filled = False  # the pages have the run
        # Made when it is needed; it is empty between two runs, and an array of 256 pages.
        self._pages: tuple[int, int] | None = None
        self.links: list[Endpoint] = []  # to other workers, which are to get the next run and have not got it
        self._to_announce: ToAnnounce | None = None  # an object in C: a module less where no other worker is

    def begin(self, first: Endpoint, sid: bytes, size: cython.Py_ssize_t, receivers: cython.Py_ssize_t) -> cython.int:
        """The last `size` bytes in the output of `first` are a run with this sid; so many clients get it, with this sid or
        others."""
        self.end()
        self.first, self.sid, self._size = first, sid, size
        receivers += len(self.links)
        self._worth = receivers >= _LEAST_RECEIVERS and size <= _MOST_BYTES and self.calls.are_ready()
        if self.calls.refused:
            self._empty()
        if self.links:
            self._send_to_links()
        return 0

    def announce(self, links: list[Endpoint], run: "ToAnnounce") -> cython.int:
        """The next run is also for `links` to other workers, behind its announcement. Those that are left in `links`
        afterwards have not got it."""
        self.links, self._to_announce = links, run
        return 0

    def _send_to_links(self) -> cython.int:
        head: bytes | None = cython.cast(object, self._to_announce).with_sid(self.sid, self._size)
        link: Endpoint
        if head is not None:
            for link in self.links:
                self._pass_on(link, head)
            self.links = []
        return 0

    def _pass_on(self, link: Endpoint, head: bytes) -> cython.int:
        """Write an announcement and the run behind the output of a link. What cannot be handed over is copied."""
        output: OutputBuffer = cython.cast(Endpoint, self.first).output
        start: cython.Py_ssize_t = output.size - self._size
        if self._worth and link.is_free():
            if link.output.size:
                link.write_output()
            if link.is_free() and link.output.size == 0 and self._fill(output):
                sent: cython.Py_ssize_t = self._send(link, head)
                if sent < len(head):
                    link.output.append(head[sent:])
                start += max(sent - len(head), 0)
                if start < output.size:
                    link.write_behind(output.data, start, output.size)
                return 0
        link.output.append(head)
        return link.write_behind(output.data, start, output.size)

    def give(self, endpoint: Endpoint) -> cython.int:
        """Write the run behind the output of another client."""
        output: OutputBuffer = cython.cast(Endpoint, self.first).output
        start: cython.Py_ssize_t = output.size - self._size
        if self._worth and endpoint.is_free():
            if endpoint.output.size:
                endpoint.write_output()
            if endpoint.output.size == 0 and self._fill(output):
                start += self._send(endpoint, b"")
        if start < output.size:
            endpoint.write_behind(output.data, start, output.size)
        return 0

    def end(self) -> cython.int:
        """Nobody else gets the run, and more may be appended to the output of `first`."""
        first: Endpoint | None = self.first
        self.first = None
        if not self._filled or first is None:
            return 0
        sent: cython.Py_ssize_t = 0
        output: OutputBuffer = first.output
        if first.is_free() and output.size - output.head == self._size and not self.calls.refused:
            sent = self.calls.move_to(cython.cast(tuple, self._pages)[0], first, self._size)
            self.by_pages += sent
            output.skip(sent)  # the rest is written with the other output
        self._filled = False
        if sent < self._size or self.calls.refused:
            self._empty()
        return 0

    def close(self) -> None:
        """Close the pipes; they are opened again for a later run."""
        self._empty()
        self.calls.close()

    def __del__(self) -> None:
        self._empty()

    def _fill(self, output: OutputBuffer) -> cython.bint:
        """Have the run in the pages; False if that is impossible, and then for all of this run."""
        if self._filled:
            return True
        if self._pages is None:
            self._pages = self.calls.open_pipe()
        written: cython.Py_ssize_t = -1
        if self._pages is not None:
            written = write(self._pages[1], PyByteArray_AS_STRING(output.data) + output.size - self._size, self._size)
        self._filled = written == self._size
        if not self._filled:
            self._worth = False
            self._empty()
        return self._filled

    def _send(self, endpoint: Endpoint, head: bytes) -> cython.Py_ssize_t:
        """Hand `head` and the pages to a socket; returns the number of bytes that it took."""
        sent: cython.Py_ssize_t = self.calls.copy_to(cython.cast(tuple, self._pages)[0], endpoint, self._size, head)
        self.by_pages += sent
        self._worth = not self.calls.refused
        return sent

    def _empty(self) -> cython.int:
        """Let go what is left in the pages, as in `PageCalls.copy_to`."""
        if self._pages is not None:
            _close(self._pages[0], self._pages[1])
            self._pages = None
        return 0
