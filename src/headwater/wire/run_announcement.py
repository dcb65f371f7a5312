"""The announcement of a run between two workers of one server.

    !RUN <account> <subject> <sid> <size> <count>, blanks up to ANNOUNCED bytes, ␍␊     then the run, as a client gets it:
    MSG <subject> <sid> <size>␍␊<payload>␍␊     `count` times

Whoever reads ANNOUNCED bytes has an announcement and nothing of the run, which is then in the socket: its pages can be
handed on unread (`net.arrived_run`). Nobody else sends or accepts it.
"""

import cython

ANNOUNCED: int = 256
MOST: int = 64 << 20  # bytes of a run: it is of one read, 256 KiB, with a sid in each message
_ANNOUNCED: cython.Py_ssize_t = ANNOUNCED


class ToAnnounce:
    """A run of `count` messages that is going to be rendered: of which account, subject and size of payload."""

    def __init__(self, account: bytes, subject: bytes, size: cython.Py_ssize_t, count: cython.Py_ssize_t) -> None:
        self._before: bytes = b"!RUN " + account + b" " + subject + b" "
        self._behind: bytes = b" %d %d" % (size, count)
        self._bare: cython.Py_ssize_t = len(b"MSG   %d\r\n\r\n" % size) + len(subject) + size
        self._count: cython.Py_ssize_t = count

    def with_sid(self, sid: bytes, size: cython.Py_ssize_t) -> bytes | None:
        """The announcement of the run as it was rendered with this sid, in `size` bytes. None if it does not fit, or for
        another size: the other worker hands on what it has not read, so it would reach clients that do not expect it."""
        text: bytes = self._before + sid + self._behind
        if len(text) > _ANNOUNCED - 2 or size != self._count * (self._bare + len(sid)):
            return None
        return text.ljust(_ANNOUNCED - 2) + b"\r\n"


class Announced:
    """A run as it was announced. `head`: what each of its messages begins with; `stride`: bytes of one."""

    def __init__(self, line: bytes) -> None:
        """Raises ValueError for what is no announcement."""
        words = line.split()
        if len(words) != 6 or words[0] != b"!RUN" or not line.endswith(b"\r\n") or not (words[4] + words[5]).isdigit():
            raise ValueError("no announcement of a run")
        self.account, self.subject, self.sid = words[1:4]
        self.size, self.count = int(words[4]), int(words[5])
        self.head = b"MSG %b %b %d\r\n" % (self.subject, self.sid, self.size)
        self.stride = len(self.head) + self.size + 2
        self.total = self.count * self.stride
        if self.count < 1 or self.total > MOST:
            raise ValueError(f"a run of {self.count} messages of {self.size} bytes")
