"""Files that stay open for the life of their owner but are seldom used: a limited number of descriptors is shared among
them.

Every log writes to two files. A thousand idle streams would hold two thousand descriptors; with a limit of 200, as in
some containers, 95 streams would leave none for clients. The file that was unused for longest is closed when another
needs a descriptor, and reopened by its path when it is used again. The path must lead to the same file as long as the
file is kept.

A file with unsynced writes is not closed: an error in the kernel's write-back is reported only to the descriptor that
was open then, so its fdatasync must be the one that fails. `never_synced` marks files without such a promise.

When clients have taken all descriptors of the process, one of these files is closed to open another, so streams in use
can still be written.

Any thread may use a file, one thread at a time; the thread that needs a descriptor closes another file.
"""

import errno
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from headwater.durable_files.files import File, FileRange, Files, OsFiles, descriptors

SHARE = 8  # one eighth of the process's descriptors: 25 of 200
FEWEST, MOST = 8, 1024
TRIES = 8  # a new client may take the descriptor that was just freed


def places() -> int:
    """How many of these files may be open at once, from the system's limit."""
    return min(max(descriptors() // SHARE, FEWEST), MOST)


class KeptFiles:
    """The files that share a limit. `limit()` is called whenever a file is opened."""

    def __init__(self, limit: Callable[[], int] = places) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._open: OrderedDict[KeptFile, None] = OrderedDict()  # the one opened longest ago first

    def __len__(self) -> int:
        """The number of files that are open."""
        return len(self._open)

    def keep(self, files: Files, path: str, *, never_synced: bool = False) -> "KeptFile":
        """Open an existing file. Raises OSError."""
        return KeptFile(self, files, path, never_synced)

    def open(self, file: "KeptFile", files: Files) -> File:
        """Open a descriptor for `file`, whose lock the caller holds. Raises OSError."""
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
        """Close `count` other files, those unused since the last pass first; False if none can be closed."""
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
        """The owner has closed `file`."""
        with self._lock:
            self._open.pop(file, None)


class KeptFile:
    """One kept file (`files.File`)."""

    def __init__(self, kept: KeptFiles, files: Files, path: str, never_synced: bool) -> None:
        self.path = path
        self.used = True
        self._kept = kept
        self._files = files
        self._never_synced = never_synced
        self._unsynced = False
        self._lock = threading.Lock()  # while it is used
        # Its methods, looked up once: `with` takes 1,500 instructions, three times for every publish that is alone.
        self._take, self._give_back = self._lock.acquire, self._lock.release
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
        """The file's descriptor; call it with the lock held."""
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
        self._take()
        try:
            self.used = True
            file = self._file or self._opened()  # without a call: twice for every publish that is alone
            self._unsynced = not self._never_synced
            file.pwrite(pieces, position)
        finally:
            self._give_back()

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
        self._take()
        try:
            self.used = True
            file = self._file or self._opened()
            file.fdatasync()
            self._unsynced = False
        finally:
            self._give_back()

    def hasten(self, position: int, size: int) -> None:
        with self._lock:
            if self._file is not None:
                self._file.hasten(position, size)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            file, self._file = self._file, None
        self._kept.left(self)
        if file is not None:
            file.close()


KEPT = KeptFiles()
"""The kept files of this process; descriptors are limited per process."""


class KeepingFiles(OsFiles):
    """The real file system (`files.Keeping`)."""

    def keep(self, path: str, never_synced: bool) -> File:
        return KEPT.keep(self, path, never_synced=never_synced)
