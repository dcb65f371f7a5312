"""The input and output types of a walk over a segment (walking.py, salvage.py)."""

from collections.abc import Callable
from typing import NamedTuple

from headwater.streams.log_format import BatchHeader, RecordCursor

Fetch = Callable[[int, int], bytes]  # (size, position) -> bytes, as File.pread
SCAN_WINDOW = 4 << 20  # bytes read at once when a whole segment is checked


class FoundBatch(NamedTuple):
    """An intact batch and its checked body; or, when it is not whole, a run of intact records out of a damaged one, with
    a header that was made for them. Its bytes are `[first_byte, end_position)`; a walk that starts at `position`, which is
    not above `first_byte`, finds it."""

    position: int
    header: BatchHeader
    body: bytes
    first_byte: int
    end_position: int
    is_whole: bool = True

    def cursor(self) -> RecordCursor:
        """Over its records; of the NATS dialect only."""
        return RecordCursor(self.body, 0, len(self.body), self.header.base_offset, self.header.version)


class SpoiledBytes(NamedTuple):
    """Bytes `[position, end_position)` that hold no intact record. An intact one follows, whose offsets start at
    `end_offset`; None: nothing intact follows."""

    position: int
    end_position: int
    start_offset: int
    end_offset: int | None


class Window:
    """A stretch of a file in memory, moved forward as it is walked."""

    __slots__ = ("_data", "_end", "_fetch", "_origin", "_size")

    def __init__(self, fetch: Fetch, end: int, size: int) -> None:
        self._fetch = fetch
        self._end = end
        self._size = size
        self._origin = 0
        self._data = b""

    def at(self, position: int, size: int) -> tuple[bytes, int]:
        """(data, index): `data[index : index + size]` is what the file holds at `position`; shorter at its end."""
        index = position - self._origin
        if index < 0 or index + size > len(self._data):
            wanted = min(max(size, self._size), max(0, self._end - position))
            self._data = self._fetch(wanted, position)
            self._origin = position
            index = 0
        return self._data, index

    def slice(self, position: int, end_position: int) -> bytes:
        """A copy of these bytes; shorter at the file's end."""
        data, index = self.at(position, end_position - position)
        return data[index : index + end_position - position]

    def find(self, needle: bytes, position: int, limit: int | None = None) -> int:
        """Position of `needle` at or after `position`, all of it below `limit` (None: the end), or -1."""
        limit = self._end if limit is None else min(limit, self._end)
        while position + len(needle) <= limit:
            data, index = self.at(position, len(needle))
            found = data.find(needle, index, limit - self._origin)
            if found >= 0:
                return self._origin + found
            if len(data) - index < len(needle):
                return -1  # the file is shorter than its caller expects
            position = self._origin + len(data) - len(needle) + 1
        return -1
