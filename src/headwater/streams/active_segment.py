# cython: boundscheck=True, wraparound=True
"""The segment that the log's writer appends to: its file, the marks in its head page, and the room reserved behind its end.

`position` is where the next batch goes. `write` leaves it alone: the writer moves it once the batch is durable as the
sync policy has it, so what was written and then undone or lost is written over. Raises OSError from every method that
touches the file, unless it says otherwise.
"""

from contextlib import suppress

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.head_page import mark_sector
else:
    from headwater.streams.head_page import mark_sector

from headwater.streams.files import File, Files, keep
from headwater.streams.head_page import Mark, SegmentHead, encode_head_page, mark_position
from headwater.streams.segment import NEW_SUFFIX, SUFFIX, Segment
from headwater.streams.sync_group import SyncGroup


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
        self._allocated: int = self._file.size()  # recovery has cut what is not zero
        self._turn = turn

    def mark(self, durable_end: cython.longlong, assigned_end: cython.longlong) -> cython.int:
        """Write the next mark into the head page (head_page.py)."""
        self._turn += 1
        self._file.pwrite([mark_sector(durable_end, assigned_end, self.identity)], mark_position(self._turn))
        return 0

    def write(self, pieces: list[bytes], size: cython.longlong) -> cython.int:
        """Write `size` bytes at `position`."""
        self._file.pwrite(pieces, self.position)
        self.written_position = self.position + size
        return 0

    def make_room(self, size: cython.longlong, ahead: cython.longlong, most: cython.longlong) -> cython.int:
        """Reserve the room for `size` bytes and `ahead` more, up to a file of `most`, so that the coming fdatasync, and many
        after it, find the file's size as it is. A failure costs only that and is not raised."""
        end: cython.longlong = self.position + size
        if end <= self._allocated:
            return 0
        if ahead and size < ahead:
            target: cython.longlong = max(end, min(end + ahead, most))
            with suppress(OSError):
                self._file.allocate(target)
                self._allocated = target
        self._allocated = max(self._allocated, end)
        return 0

    def trim(self) -> None:
        """Give back the room that was reserved and not used. Not synced here: zeros at an end mean nothing."""
        if self._allocated > self.position:
            self._file.truncate(self.position)
            self._allocated = self.position

    def cut(self) -> None:
        """Remove, durably, what is behind `position`."""
        self._file.truncate(self.position)
        self._allocated = self.position
        self._file.fdatasync()

    def fdatasync(self) -> cython.int:
        """Make all that was written durable."""
        self._file.fdatasync()
        return 0

    def commit(self, group: SyncGroup) -> None:
        """As `fdatasync`, together with the files of the group."""
        group.commit(also=(self._file,))

    def close(self) -> None:
        """Give the handle back."""
        self._file.close()


def create_segment(files: Files, directory: str, head: SegmentHead, mark: Mark) -> Segment:
    """An empty segment, durable, under its final name; the name never stands for a file without a whole head page."""
    segment = Segment.empty(files, directory, head.identity, head.base_offset)
    temporary = segment.path.removesuffix(SUFFIX) + NEW_SUFFIX
    file = files.create(temporary)
    try:
        file.pwrite([encode_head_page(head, mark)], 0)
        file.fdatasync()
    finally:
        file.close()
    files.rename(temporary, segment.path)
    files.sync_directory(directory)
    return segment
