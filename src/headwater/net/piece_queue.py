"""A link's queued output besides its buffer: bytes, and ranges of files.

A range is not read while it waits, so a slow peer costs a queue entry and an open file, but no memory. Pieces keep
their order. Nothing here blocks: `offer` writes what the socket accepts now.
"""

import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:  # a broker without streams starts without their code
    from headwater.durable_files.files import FileRange

Piece: TypeAlias = "bytes | FileRange"
MAX_PIECES: Final = 1024  # buffers in one writev (IOV_MAX)
OFFERED: Final = 1 << 20  # bytes per turn of the loop: a fast reader could otherwise take 64 MiB in one


def as_bytes(piece: Piece) -> bytes:
    """The bytes of a piece. Raises OSError when a file fails."""
    return piece if isinstance(piece, bytes) else piece.read()


class PieceQueue:
    """A queue of pieces with `size` bytes in all. `count_events()`: how often links were ready so far. Where another one was
    since the last answer, ranges are copied through this process (`FileRange.send`)."""

    def __init__(self, count_events: Callable[[], int] | None = None) -> None:
        self.size = 0
        self._count_events = count_events
        self._events = 0  # when the last answer had been sent
        self._copied = False  # ranges go through this process
        self._pieces: deque[Piece] = deque()
        self._start = 0  # bytes of the first piece that have been sent

    def add(self, piece: Piece) -> None:
        """Add a piece at the end."""
        if len(piece):
            self._pieces.append(piece)
            self.size += len(piece)

    def offer(self, descriptor: int) -> int:
        """Write up to OFFERED bytes to a non-blocking socket; returns the number that it accepted. Raises OSError if
        the socket or a file fails; bytes written before that are not counted.
        """
        before = self.size
        begins = self._start == 0 and self._pieces and isinstance(self._pieces[0], bytes)
        if self._count_events is not None and begins:
            self._copied = self._count_events() - self._events > 1
        try:
            while self._pieces and before - self.size < OFFERED:
                sent = self._offer_first(descriptor)
                whole = self._skip(sent)
                if not whole:
                    break
        except BlockingIOError:
            pass
        if self._count_events is not None and self.size == 0:
            self._events = self._count_events()
        return before - self.size

    def _offer_first(self, descriptor: int) -> int:
        """Write the first range, or all bytes before it."""
        first = self._pieces[0]
        if not isinstance(first, bytes):
            return first.send(descriptor, self._start, self._copied)
        run = [memoryview(first)[self._start :]]
        size = len(run[0])
        for place in range(1, min(len(self._pieces), MAX_PIECES)):
            piece = self._pieces[place]
            if not isinstance(piece, bytes) or size >= OFFERED:
                break
            run.append(memoryview(piece))
            size += len(piece)
        if size > OFFERED:
            run[-1] = run[-1][: OFFERED - size]
        return os.writev(descriptor, run)

    def _skip(self, count: int) -> bool:
        """Remove `count` bytes; returns whether they end at the end of a piece."""
        self.size -= count
        count += self._start
        while self._pieces and count >= len(self._pieces[0]):
            count -= len(self._pieces.popleft())
        self._start = count
        return count == 0

    def take(self) -> bytes:
        """Remove and return everything, reading files. The queue is empty afterwards, even if a file raises OSError."""
        pieces, start = list(self._pieces), self._start
        self.clear()
        return b"".join(map(as_bytes, pieces))[start:]

    def clear(self) -> None:
        """Discard all pieces and release their files."""
        self._pieces.clear()
        self.size = self._start = 0
