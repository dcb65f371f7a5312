# cython: boundscheck=True, wraparound=True
"""The segment that the log's writer appends to: its file, the marks in its head page, and the room reserved behind its end.

`position` is where the next batch goes. `write` does not move it: the writer does so once the batch is durable
according to the sync policy, so a write that was undone or lost is overwritten. Every method that touches the file
raises OSError, unless it says otherwise.
"""

from contextlib import suppress

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.head_page import mark_sector
else:
    from headwater.streams.head_page import mark_sector

from headwater.durable_files.files import File, Files, keep
from headwater.streams.head_page import Mark, SegmentHead, encode_head_page, mark_position
from headwater.streams.segment import NEW_SUFFIX, SUFFIX, Segment

MOST_AHEAD: int = 16 << 20  # bytes of room reserved at once; 64 MiB would save no more
_ZEROS = bytes(64 << 10)
HASTENED: int = 2 << 20  # bytes that are handed to the disk at once
JOINED: int = 4096  # bytes; less is joined before it is written: to name the pieces costs more than to copy them
_JOINED: cython.longlong = JOINED


class ActiveSegment:
    """`written_position`: the end of what was written, durable or not."""

    def __init__(
        self, files: Files, segment: Segment, identity: bytes, turn: cython.longlong, never_synced: bool = False
    ) -> None:
        """The segment, of the log `identity`, must exist durably and hold nothing behind its `end_position`; its newest mark
        is that of `turn`. `never_synced`: `fdatasync` will not be called."""
        self.segment = segment
        self.identity = identity
        self.base_offset: int = segment.base_offset
        self.position: int = segment.end_position
        self.written_position: int = self.position
        self._file: File = keep(files, segment.path, never_synced)
        self._hastened: int = self.position
        self._allocated: int = self._file.size()  # recovery has cut everything but zeros
        self._turn = turn

    def mark(self, durable_end: cython.longlong, assigned_end: cython.longlong) -> cython.int:
        """Write the next mark into the head page (head_page.py)."""
        turn: cython.longlong = self._turn + 1
        self._file.pwrite([mark_sector(durable_end, assigned_end, self.identity)], mark_position(turn))
        self._turn = turn  # not after a failure: the slot with the newest mark must stay
        return 0

    def write(self, pieces: list[bytes], size: cython.longlong) -> cython.int:
        """Write `size` bytes at `position`."""
        self._file.pwrite([b"".join(pieces)] if size <= _JOINED else pieces, self.position)
        self.written_position = self.position + size
        return 0

    def hasten(self) -> cython.int:
        """Have the system begin to write what a later `fdatasync` is to wait for, once there is some of it: that of 32 MiB
        takes 1.3 ms then in place of 12, in which nothing can be appended. Only for where a sync is to come."""
        size: cython.longlong = self.written_position - self._hastened
        if size >= HASTENED:
            self._file.hasten(self._hastened, size)
            self._hastened = self.written_position
        return 0

    def make_room(self, size: cython.longlong, ahead: cython.longlong, most: cython.longlong) -> cython.int:
        """Reserve room for `size` bytes and more, up to a file size of `most`, so that this fdatasync and many later ones
        need not write a new file size, and writes find their blocks chosen: `ahead` bytes, and from then on as many as are
        there. A failure only loses that speed-up and is not raised."""
        end: cython.longlong = self.position + size
        if end <= self._allocated:
            return 0
        step: cython.longlong = max(ahead, min(self.position, MOST_AHEAD))
        if ahead and size < step:
            target: cython.longlong = max(end, min(end + step, most))
            with suppress(OSError):
                self._file.allocate(target)
                self._allocated = target
        self._allocated = max(self._allocated, end)
        return 0

    def fill_ahead(self, size: int) -> None:
        """Write zeros, which are there already, into the room reserved for the next `size` bytes. The system then has these
        pages: 1 MB takes 0.03 ms to write over, beside 0.12 into reserved room and 0.19 at the end of a file (ext4); the
        zeros take 0.11 ms, for which no send waits. A failure is not raised: the next write meets it, too, if it lasts."""
        size = min(size, self._allocated - self.position)
        whole, rest = divmod(max(size, 0), len(_ZEROS))
        if size > 0:
            with suppress(OSError):
                self._file.pwrite([_ZEROS] * whole + [_ZEROS[:rest]], self.position)

    def trim(self, kept: int = 0) -> None:
        """Free reserved room that was not used, but for `kept` bytes. Not synced: zeros at the end of a segment have no
        meaning."""
        if self._allocated > self.position + kept:
            self._file.truncate(self.position + kept)
            self._allocated = self.position + kept

    def cut(self) -> None:
        """Durably remove the bytes after `position`."""
        self._file.truncate(self.position)
        self._allocated = self.position
        self._file.fdatasync()

    def fdatasync(self) -> cython.int:
        """Make all writes durable."""
        self._file.fdatasync()
        return 0

    def close(self) -> None:
        """Close the file handle."""
        self._file.close()


def create_segment(files: Files, directory: str, head: SegmentHead, mark: Mark, *, synced: bool = True) -> Segment:
    """Create an empty segment; under its final name a file always has a complete head page. `synced`: durably; else that
    holds until a power loss."""
    segment = Segment.empty(files, directory, head.identity, head.base_offset)
    temporary = segment.path.removesuffix(SUFFIX) + NEW_SUFFIX
    file = files.create(temporary)
    try:
        file.pwrite([encode_head_page(head, mark)], 0)
        if synced:
            file.fdatasync()
    finally:
        file.close()
    files.rename(temporary, segment.path)
    if synced:
        files.sync_directory(directory)
    return segment
