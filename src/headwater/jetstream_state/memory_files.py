"""A file system in memory, for streams with memory storage. Nothing survives the process, and only a lack of memory
makes a call fail. The same log code runs on it, so a memory stream differs from a file stream only in this. One copy of
the bytes: a segment is one bytearray. Not thread-safe beyond what the log needs: one thread appends to a file while
another reads below what is published.
"""

import errno
from collections.abc import Callable, Sequence

from headwater.durable_files.files import File, FileRange


class MemoryFile:
    """A handle on a bytearray."""

    __slots__ = ("_content",)

    def __init__(self, content: bytearray) -> None:
        self._content = content

    def pread(self, size: int, position: int) -> bytes:
        return bytes(self._content[position : position + size])

    def range(self, position: int, size: int) -> FileRange | None:
        return None

    def pwrite(self, pieces: Sequence[bytes], position: int) -> None:
        content = self._content
        data = b"".join(pieces)
        if position > len(content):
            content.extend(bytes(position - len(content)))
        content[position : position + len(data)] = data

    def size(self) -> int:
        return len(self._content)

    def truncate(self, size: int) -> None:
        del self._content[size:]
        self._content.extend(bytes(size - len(self._content)))

    def allocate(self, size: int) -> None:
        """Do nothing: memory has no file size to write."""

    def fdatasync(self) -> None:
        """Memory has nothing to sync."""

    def hasten(self, position: int, size: int) -> None:
        """Memory has nothing to sync."""

    def close(self) -> None:
        """Do nothing: there is no handle."""


_BOOT = b"ends with memory"  # 16 bytes; the process and what it stores end together


class MemoryFiles:
    """A tree of names and bytearrays. `entropy(size)` returns unpredictable bytes (os.urandom)."""

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        self._files: dict[str, bytearray] = {}
        self._entropy = entropy

    def open(self, path: str) -> File:
        if path not in self._files:
            raise _missing(path)
        return MemoryFile(self._files[path])

    def create(self, path: str) -> File:
        self._files[path] = bytearray()
        return MemoryFile(self._files[path])

    def rename(self, old: str, new: str) -> None:
        if old not in self._files:
            raise _missing(old)
        self._files[new] = self._files.pop(old)

    def unlink(self, path: str) -> None:
        if self._files.pop(path, None) is None:
            raise _missing(path)

    def mkdir(self, path: str) -> None:
        """Do nothing: directories need not be created."""

    def make(self, path: str) -> None:
        """See `mkdir`."""

    def rmdir(self, path: str) -> None:
        """See `mkdir`."""

    def listdir(self, path: str) -> list[str]:
        stem = path + "/"
        return [name[len(stem) :] for name in self._files if name.startswith(stem) and "/" not in name[len(stem) :]]

    def sync_directory(self, path: str) -> None:
        """See `fdatasync`."""

    def sync_together(self, files: Sequence[File], directories: Sequence[str]) -> None:
        """See `fdatasync`."""

    def lock(self, path: str) -> File:
        return MemoryFile(self._files.setdefault(path, bytearray()))

    def entropy(self, size: int) -> bytes:
        return self._entropy(size)

    def boot(self) -> bytes:
        return _BOOT


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "no such file in memory", path)
