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


def announcement(before: bytes, sid: bytes, behind: bytes) -> bytes | None:
    """The announcement with this text before and behind the sid; None if it does not fit."""
    text: bytes = before + sid + behind
    if len(text) > _ANNOUNCED - 2:
        return None
    return text.ljust(_ANNOUNCED - 2) + b"\r\n"


def bytes_but_sid(subject: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Bytes of one message of a run but for its sid: `subject` are those of the subject, `size` those of the payload."""
    return len(b"MSG   %d\r\n\r\n" % size) + subject + size


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
