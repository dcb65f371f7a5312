"""Files that their owner keeps for years and seldom uses: a descriptor each only while there are not too many.

Every log has two that it writes to. A thousand idle streams would hold two thousand descriptors, and where the system gives
200, as some containers do, 95 streams left none for clients. A file that was not used for long is closed when others
need its place, and opened again, by its path, when it is used. The path must lead to the same file as long as it is kept.

A file with writes that are not synced is not closed: an error that the system meets while it writes them back has to
reach the descriptor whose fdatasync promises them. `never_synced` is for those that promise nothing.

Where the process has no descriptor left, because clients have taken them all, one of these files gives its own to the
other: streams that are written to go on, as long as any of them is open.

Any thread may use a file, one at a time each; places are given up by whichever thread needs one.
"""

import errno
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from headwater.streams.files import File, FileRange, Files, OsFiles

SHARE = 8  # a part of the descriptors that this process may have: 25 of 200
FEWEST, MOST = 8, 1024
TRIES = 8  # a descriptor that was given up may be taken by a new client


def places() -> int:
    """How many files may be open here, by the limit of the system."""
    try:
        import resource
    except ImportError:  # Windows
        return MOST
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if soft < 0 else min(max(soft // SHARE, FEWEST), MOST)


class KeptFiles:
    """Those that share places. `limit()` is asked whenever a file is opened."""

    def __init__(self, limit: Callable[[], int] = places) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._open: OrderedDict[KeptFile, None] = OrderedDict()  # the one opened longest ago first

    def __len__(self) -> int:
        """Files that are open now."""
        return len(self._open)

    def keep(self, files: Files, path: str, *, never_synced: bool = False) -> "KeptFile":
        """An existing file, open. Raises OSError."""
        return KeptFile(self, files, path, never_synced)

    def open(self, file: "KeptFile", files: Files) -> File:
        """A descriptor for `file`, which its caller has locked. Raises OSError."""
        for last in (*[False] * TRIES, True):
            try:
                opened = files.open(file.path)
                break
            except OSError as error:
                if last or error.errno not in (errno.EMFILE, errno.ENFILE) or not self._free(1, file):
                    raise
        with self._lock:
            self._open[file] = None
        self._free(len(self._open) - self._limit(), file)
        return opened

    def _free(self, count: int, wanting: "KeptFile") -> bool:
        """Close so many others, first those that were not used since they were last passed over; False where none can be."""
        closed = 0
        with self._lock:
            for other in [*self._open, *self._open] if count > 0 else ():
                if closed >= count:
                    break
                if other is wanting or other not in self._open:
                    continue
                if other.used:
                    other.used = False
                    self._open.move_to_end(other)
                elif other.give_up():
                    del self._open[other]
                    closed += 1
        return closed > 0

    def left(self, file: "KeptFile") -> None:
        """It was closed by its owner."""
        with self._lock:
            self._open.pop(file, None)


class KeptFile:
    """One of them (`files.File`)."""

    def __init__(self, kept: KeptFiles, files: Files, path: str, never_synced: bool) -> None:
        self.path = path
        self.used = True
        self._kept = kept
        self._files = files
        self._never_synced = never_synced
        self._unsynced = False
        self._lock = threading.Lock()  # while it is used
        self._closed = False
        self._file: File | None = kept.open(self, files)

    def give_up(self) -> bool:
        """Close the descriptor, unless it is in use or a write is not synced."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._unsynced:
                return False
            file, self._file = self._file, None
        finally:
            self._lock.release()
        if file is not None:
            file.close()
        return True

    def _opened(self) -> File:
        """Its descriptor; with the lock held."""
        self.used = True
        if self._file is None:
            if self._closed:
                raise OSError(errno.EBADF, "the file is closed")
            self._file = self._kept.open(self, self._files)
        return self._file

    def pread(self, size: int, position: int) -> bytes:
        with self._lock:
            return self._opened().pread(size, position)

    def range(self, position: int, size: int) -> FileRange | None:
        return None  # it would hold on to the descriptor

    def pwrite(self, pieces: Sequence[bytes], position: int) -> None:
        with self._lock:
            file = self._opened()
            self._unsynced = not self._never_synced
            file.pwrite(pieces, position)

    def size(self) -> int:
        with self._lock:
            return self._opened().size()

    def truncate(self, size: int) -> None:
        with self._lock:
            file = self._opened()
            self._unsynced = not self._never_synced
            file.truncate(size)

    def allocate(self, size: int) -> None:
        with self._lock:
            self._opened().allocate(size)

    def fdatasync(self) -> None:
        with self._lock:
            self._opened().fdatasync()
            self._unsynced = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            file, self._file = self._file, None
        self._kept.left(self)
        if file is not None:
            file.close()


KEPT = KeptFiles()
"""Of this process, whose descriptors they are."""


class KeepingFiles(OsFiles):
    """The real file system (`files.Keeping`)."""

    def keep(self, path: str, never_synced: bool) -> File:
        return KEPT.keep(self, path, never_synced=never_synced)
