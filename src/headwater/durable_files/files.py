# cython: boundscheck=True, wraparound=True
"""The file system as the log sees it: two small protocols, and their implementation on the operating system.

Every durability argument of the log is an argument about the order of these calls, so they are few, they do one
system call each (or a loop over one, for short writes), and nothing else in the pure layers touches the OS. The tests put a
recording implementation in this place and rebuild every state that a power loss could leave behind.

What each call promises:

* `File.pwrite` writes everything or raises; after a raise any part of it may be in the file.
* `File.fdatasync` makes data and size of the file durable. After a raise it is unknown what is durable: callers must
  never call it again and trust the result (the kernel may have dropped the dirty pages).
* `create` and `rename` are durable only after `sync_directory` of the directory that holds the name.
* All errors are plain OSError with errno; the log translates them, once.
* A `FileRange` keeps its file open: a reader that is slow loses nothing when the file is closed, replaced or removed.

Files are created 0600 and directories 0700: a log holds other people's messages. POSIX only (pwritev, flock).
"""

import errno
import fcntl
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Protocol, runtime_checkable

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.headwater.durable_files.mapped_file import MappedFile
    from cython.cimports.posix.unistd import pread, pwrite
else:
    from headwater.durable_files.mapped_file import MappedFile

from headwater.durable_files.sync_threads import SyncThreads
from headwater.errors import DiskFull, StorageError

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
BOOT_ID = "/proc/sys/kernel/random/boot_id"
BOOT_SIZE = 16
SENT_PIECE = 512 << 10  # bytes of a range that are read and sent together: half of a usual L2 cache
SENT_AT_ONCE = 2 << 20  # bytes of a range in one call: others are served before the rest of a large batch
MAX_PIECES = 1024  # IOV_MAX of Linux and macOS: more buffers than this in one writev is EINVAL


class FileRange(Protocol):
    """A range of a file that its owner sends later, in pieces. Nothing may write to these bytes meanwhile."""

    def __len__(self) -> int:
        """The number of bytes."""

    def send(self, descriptor: int, start: int, copied: bool = False) -> int:
        """Send bytes from index `start` on to a socket; returns how many it accepted. `copied`: through this process.
        Raises BlockingIOError when it accepts none, OSError when the file or the socket fails."""

    def read(self, start: int = 0) -> bytes:
        """The bytes from index `start` on. Raises OSError, also when the file has become too short."""


class File(Protocol):
    """One open file. Reads and writes carry their position, so one thread may write while another reads."""

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""

    def range(self, position: int, size: int) -> FileRange | None:
        """These bytes, without reading them; None where a socket cannot take them from a file."""

    def pwrite(self, pieces: Sequence[bytes], position: int) -> None:
        """Write the pieces back to back from `position`."""

    def size(self) -> int:
        """Bytes in the file now, durable or not."""

    def truncate(self, size: int) -> None:
        """Cut (or extend with zeros) to `size` bytes; durable after `fdatasync`."""

    def allocate(self, size: int) -> None:
        """Reserve room and extend with zeros to `size` bytes, so that a later `fdatasync` of an append finds the size
        as it was and has less to write (p50 62 us instead of 89, ext4). A hint: a raise costs nothing but that."""

    def fdatasync(self) -> None:
        """Make contents and size durable."""

    def hasten(self, position: int, size: int) -> None:
        """Begin to write these bytes to the disk (0: all from there on), so that a later `fdatasync` waits for less. A hint:
        it raises nothing, and nothing depends on it."""

    def close(self) -> None:
        """Close the handle; makes nothing durable."""


class Files(Protocol):
    """A tree of directories and files."""

    def open(self, path: str) -> File:
        """Open an existing file for reading and writing. Raises FileNotFoundError."""

    def create(self, path: str) -> File:
        """Create an empty file, or empty the one that is there, and open it."""

    def rename(self, old: str, new: str) -> None:
        """Give the file a new name, atomically replacing a file that has it."""

    def unlink(self, path: str) -> None:
        """Remove a file. Raises FileNotFoundError."""

    def mkdir(self, path: str) -> None:
        """Create a directory and the parents it lacks, each durably; not an error when it is there."""

    def make(self, path: str) -> None:
        """As `mkdir`, but durable only after `sync_directory` of each parent."""

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""

    def listdir(self, path: str) -> list[str]:
        """Names in the directory, in no particular order. Raises FileNotFoundError."""

    def sync_directory(self, path: str) -> None:
        """Make the names in the directory durable."""

    def sync_together(self, files: Sequence[File], directories: Sequence[str]) -> None:
        """`fdatasync` of each file and `sync_directory` of each directory, in any order. All are tried; then one of
        their OSErrors is raised."""

    def lock(self, path: str) -> File:
        """Create the file if needed and hold it exclusively until closed or the process dies. Raises BlockingIOError
        when another process holds it."""

    def entropy(self, size: int) -> bytes:
        """Unpredictable bytes."""

    def boot(self) -> bytes:
        """16 bytes that are others after each start of the system, or nothing where the system has none. While they are the
        same, what was written is there, synced or not."""


@runtime_checkable
class Keeping(Protocol):
    """`Files` that share descriptors among files which stay open for long but are seldom used."""

    def keep(self, path: str, never_synced: bool) -> File:
        """As `Files.open`. The path must lead to the same file until it is closed. `never_synced`: no write to it is ever
        made durable."""


def keep(files: Files, path: str, never_synced: bool) -> File:
    """An existing file that stays open for long. Raises OSError."""
    return files.keep(path, never_synced) if isinstance(files, Keeping) else files.open(path)


class _SharedDescriptor:
    """A descriptor that is closed when the last reference to it is gone."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


class OsFileRange:
    """Goes from the page cache into the socket: the kernel copies nothing into this process, unless it is `copied` through
    a small array, which stays in the processor's caches, and so does what the peer then reads. With sendfile the peer reads
    pages that no cache has: two clients of Iggy that poll 1 MB at a time, on two cores with the server, then get 0.85 of the
    rate; one that has a core of its own, which waits less, 1.4 times the rate."""

    __slots__ = ("_file", "_position", "_size")

    def __init__(self, file: _SharedDescriptor, position: int, size: int) -> None:
        self._file = file
        self._position = position
        self._size = size

    def __len__(self) -> int:
        return self._size

    def send(self, descriptor: int, start: int, copied: bool = False) -> int:
        if not copied:
            sent = os.sendfile(descriptor, self._file.number, self._position + start, self._size - start)
            if sent == 0 and start < self._size:
                raise _too_short()
            return sent
        sent = 0
        most = min(self._size - start, SENT_AT_ONCE)
        while sent < most:
            data = os.pread(self._file.number, min(most - sent, SENT_PIECE), self._position + start + sent)
            if not data:
                if sent == 0:
                    raise _too_short()
                break
            try:
                count = os.write(descriptor, data)
            except BlockingIOError:
                if sent == 0:
                    raise
                break
            sent += count
            if count < len(data):
                break
        return sent

    def read(self, start: int = 0) -> bytes:
        data = OsFile(self._file.number).pread(self._size - start, self._position + start)
        if len(data) < self._size - start:
            raise _too_short()
        return data


def _too_short() -> OSError:
    return OSError(errno.EIO, "the file is shorter than what was to be read of it")


class OsFile:
    """A file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._shared: _SharedDescriptor | None = None  # set once a range was made; it closes the descriptor
        self._mapped: MappedFile | None = None

    def pread(self, size: cython.Py_ssize_t, position: cython.longlong) -> bytes:
        if cython.compiled:
            whole: bytes = PyBytes_FromStringAndSize(cython.NULL, size)
            into: cython.p_char = PyBytes_AS_STRING(whole)
            descriptor: cython.int = self._descriptor
            count: cython.Py_ssize_t
            with cython.nogil:
                count = pread(descriptor, into, size, position)
            if count == size:
                return whole
        data = os.pread(self._descriptor, size, position)
        if len(data) == size or not data:
            return data
        pieces = [data]  # a signal or a network file system may cut a read short before the end of the file
        missing = size - len(data)
        while missing and data:
            data = os.pread(self._descriptor, missing, position + size - missing)
            pieces.append(data)
            missing -= len(data)
        return b"".join(pieces)

    def look(self, size: cython.Py_ssize_t, position: cython.longlong) -> bytes:
        """As `pread`, for bytes that are in the file: one of many small reads all over it."""
        if self._mapped is None:
            self._mapped = MappedFile()
        return self._mapped.look(self._descriptor, size, position) or self.pread(size, position)

    def address(self, size: cython.Py_ssize_t, position: cython.longlong) -> cython.ulonglong:
        """Where a `look` will find these bytes, as `MappedFile.address`. Compiled only."""
        if cython.compiled and self._mapped is not None:
            return self._mapped.address(size, position)
        return 0

    def is_mapped(self) -> cython.bint:
        """Whether `look` needs no system call."""
        return self._mapped is not None and self._mapped.size > 0

    def range(self, position: int, size: int) -> FileRange | None:
        if sys.platform != "linux":
            return None  # elsewhere sendfile(2) has other arguments, and does not report partial progress as reliably
        if self._shared is None:
            self._shared = _SharedDescriptor(self._descriptor)
        return OsFileRange(self._shared, position, size)

    def pwrite(self, pieces: Sequence[bytes], position: int) -> None:
        if len(pieces) == 1:  # a mark, a lone record; pwrite is slightly cheaper than pwritev
            if cython.compiled:
                piece: bytes = pieces[0]
                source: cython.p_char = PyBytes_AS_STRING(piece)
                size: cython.Py_ssize_t = len(piece)
                at: cython.longlong = position
                descriptor: cython.int = self._descriptor
                count: cython.Py_ssize_t
                with cython.nogil:
                    count = pwrite(descriptor, source, size, at)
                if count == size:
                    return
            self._write_rest(pieces[0], position)  # where the first call has failed or was cut short, all of it again
            return
        for first in range(0, len(pieces), MAX_PIECES):
            group = pieces[first : first + MAX_PIECES] if len(pieces) > MAX_PIECES else pieces
            wanted = sum([len(piece) for piece in group])
            written = os.pwritev(self._descriptor, group, position)
            position += written
            if written < wanted:
                self._write_rest(memoryview(b"".join(group))[written:], position)
                position += wanted - written

    def _write_rest(self, rest: bytes | memoryview, position: int) -> None:
        while rest:
            written = os.pwrite(self._descriptor, rest, position)
            if written == len(rest):
                return
            position += written
            rest = memoryview(rest)[written:]

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def allocate(self, size: int) -> None:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._descriptor, 0, size)

    def fdatasync(self) -> None:
        _sync(self._descriptor)

    def hasten(self, position: int, size: int) -> None:
        # Linux begins to write what is dirty before it drops what is clean; the pages stay while they are being written.
        if hasattr(os, "posix_fadvise"):
            with suppress(OSError):
                os.posix_fadvise(self._descriptor, position, size, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        self._mapped = None
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            if self._shared is None:
                os.close(descriptor)
            self._shared = None  # closed here, or with its last range


class OsFiles:
    """The real file system. Paths are taken as they are."""

    def open(self, path: str) -> File:
        return OsFile(os.open(path, os.O_RDWR | os.O_CLOEXEC))

    def create(self, path: str) -> File:
        return OsFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE))

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def mkdir(self, path: str) -> None:
        if os.path.isdir(path):
            return
        parent = os.path.dirname(os.path.abspath(path))
        self.mkdir(parent)
        try:
            os.mkdir(path, DIRECTORY_MODE)
        except FileExistsError:
            return
        self.sync_directory(parent)

    def make(self, path: str) -> None:
        if os.path.isdir(path):
            return
        self.make(os.path.dirname(os.path.abspath(path)))
        with suppress(FileExistsError):
            os.mkdir(path, DIRECTORY_MODE)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def listdir(self, path: str) -> list[str]:
        return os.listdir(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_together(self, files: Sequence[File], directories: Sequence[str]) -> None:
        # Room for new bytes is given when the system begins to write them. Where that has happened for all files before the
        # first sync, one commit of the file system's journal serves all: on a busy disk the files of a stream are
        # made in 10 to 14 ms in place of 14 to 18 (p50).
        for file in files:
            file.hasten(0, 0)
        work = [file.fdatasync for file in files] + [partial(self.sync_directory, path) for path in directories]
        errors = SYNC_THREADS.run(work)
        if errors:
            raise errors[0]

    def lock(self, path: str) -> File:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(descriptor)
            raise
        return OsFile(descriptor)

    def entropy(self, size: int) -> bytes:
        return os.urandom(size)

    def boot(self) -> bytes:
        return _boot()


class ReadOnlyFiles(OsFiles):
    """The real file system, opened read-only: works on a mount that cannot be written to."""

    def open(self, path: str) -> File:
        return OsFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))


SYNC_THREADS = SyncThreads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SYNC_THREADS.forget)


def _full_sync(descriptor: int) -> None:
    """macOS: fsync only reaches the drive's cache there; F_FULLFSYNC flushes that too."""
    fcntl.fcntl(descriptor, FULL_SYNC)


FULL_SYNC: int = getattr(fcntl, "F_FULLFSYNC", 0)
_sync: Callable[[int], None] = _full_sync if FULL_SYNC else os.fdatasync


@cache
def _boot() -> bytes:
    try:
        with open(BOOT_ID, encoding="ascii") as file:
            boot = bytes.fromhex(file.read().replace("-", ""))
    except (OSError, ValueError):  # not Linux, or one without /proc
        return b""
    return boot if len(boot) == BOOT_SIZE else b""


def descriptors() -> int:
    """How many this process may have."""
    import resource  # here: a start without streams needs none

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft >= 0 else sys.maxsize


def storage_error(what: str, error: OSError) -> StorageError:
    """Convert an OSError: DiskFull if space may become free again, StorageError for everything else."""
    reason = error.strerror or str(error) or type(error).__name__
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"no room to {what}: {reason}", value=error.filename, hint="free space, then try again")
    return StorageError(f"cannot {what}: {reason}", value=error.filename)
