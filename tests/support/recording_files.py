"""A file system in memory that remembers every call, can be cut off at any of them, and can be made to fail.

`RecordingFiles` implements `headwater.durable_files.files.Files` and keeps the list of all calls that change something.
`Replay` walks that list and can say, after any number of calls, what the disk may look like after a power loss there:

    nothing    only what was synced: file contents by fdatasync, names by sync_directory
    everything all calls took effect
    torn       any subset of the 512-byte sectors written since the last sync, any size the file had meanwhile, and any
               prefix of the name changes since the last directory sync

Harder than ext4 (which orders names and sizes), as POSIX allows. A failed fdatasync leaves its data in limbo: readable
now, perhaps lost at the next power loss, whatever later syncs report (fsyncgate).
"""

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Literal

from headwater.durable_files.files import File, FileRange

SECTOR = 512
PAGE = 4096
Variant = Literal["nothing", "everything", "torn"]
_STARTS = count()
VARIANTS: tuple[Variant, ...] = ("nothing", "everything", "torn")
Call = tuple[str, object, object, object]  # verb, inode or path, argument, argument


@dataclass
class Disk:
    """Names and contents at one moment."""

    names: dict[str, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    directories: set[str] = field(default_factory=lambda: {"", "/"})


class RecordingFile:
    def __init__(self, files: "RecordingFiles", inode: int, locked: str = "") -> None:
        self._files = files
        self._inode = inode
        self._locked = locked
        self.closed = False

    def _content(self) -> bytearray:
        assert not self.closed, "used after close"
        return self._files.live[self._inode]

    def pread(self, size: int, position: int) -> bytes:
        self._files.check_read()
        return bytes(self._content()[position : position + size])

    def range(self, position: int, size: int) -> FileRange | None:
        return None

    def pwrite(self, pieces: Sequence[bytes], position: int) -> None:
        data = b"".join(pieces)
        content = self._content()
        fault = self._files.fault()
        room = self._files.room(max(0, position + len(data) - len(content)))
        kept = data if room is None else data[: max(0, len(content) + room - position)]
        if fault:
            kept = kept[: self._files.random.randrange(len(kept) + 1)]
        if kept:
            self._files.record("write", self._inode, position, kept)
            if len(content) < position:
                content.extend(bytes(position - len(content)))
            content[position : position + len(kept)] = kept
        if fault or len(kept) < len(data):
            raise OSError(fault or errno.ENOSPC, os.strerror(fault or errno.ENOSPC))

    def size(self) -> int:
        return len(self._content())

    def truncate(self, size: int) -> None:
        self._files.fail_if_scheduled()
        self._files.record("truncate", self._inode, size)
        content = self._content()
        del content[size:]
        content.extend(bytes(size - len(content)))

    def allocate(self, size: int) -> None:
        self._files.fail_if_scheduled()
        content = self._content()
        if self._files.room(max(0, size - len(content))) is not None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if size > len(content):
            self._files.record("truncate", self._inode, size)
            content.extend(bytes(size - len(content)))

    def fdatasync(self) -> None:
        assert not self.closed, "used after close"
        fault = self._files.fault()
        self._files.record("limbo" if fault else "sync", self._inode)
        if fault:
            raise OSError(fault, os.strerror(fault))

    def hasten(self, position: int, size: int) -> None:
        assert not self.closed, "used after close"
        self._files.hastened.append((position, size))

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._files.open_files -= 1
            self._files.locks.discard(self._locked)


class RecordingFiles:
    """Starts from `disk`. `calls` grows by one per changing call; `faults` maps the ordinal of such a call (counted in
    `attempts`) to the errno it raises; `capacity` limits the sum of all file sizes; `read_error` fails every pread.
    `boot_id`: of the start of the system."""

    def __init__(self, disk: Disk | None = None, seed: int = 0, boot_id: bytes = b"boot of the test") -> None:
        self.boot_id = boot_id
        self.start = disk or Disk()
        self.names = dict(self.start.names)
        self.live = {inode: bytearray(content) for inode, content in self.start.contents.items()}
        self.directories = set(self.start.directories)
        self.calls: list[Call] = []
        self.hastened: list[tuple[int, int]] = []  # position and size, of any file; not a call that may fail
        self.attempts = 0
        self.faults: dict[int, int] = {}
        self.capacity: int | None = None
        self.read_error = 0
        self.locks: set[str] = set()
        self.open_files = 0
        self.random = Random(seed)
        self._next_inode = max(self.live, default=0) + 1

    # what the tests use

    def record(self, verb: str, what: object, first: object = None, second: object = None) -> None:
        self.calls.append((verb, what, first, second))

    def fault(self) -> int:
        self.attempts += 1
        return self.faults.get(self.attempts - 1, 0)

    def fail_if_scheduled(self) -> None:
        if number := self.fault():
            raise OSError(number, os.strerror(number))

    def check_read(self) -> None:
        if self.read_error:
            raise OSError(self.read_error, os.strerror(self.read_error))

    def room(self, growth: int) -> int | None:
        """None when `growth` more bytes fit, else how many do."""
        if self.capacity is None:
            return None
        free = max(0, self.capacity - self.used)
        return None if growth <= free else free

    @property
    def used(self) -> int:
        """Bytes of files that have a name."""
        return sum(len(self.live[inode]) for inode in set(self.names.values()))

    def content(self, path: str) -> bytes:
        return bytes(self.live[self.names[path]])

    def replace_content(self, path: str, content: bytes) -> None:
        """Damage done by something that is not the log."""
        self.live[self.names[path]][:] = content

    def snapshot(self) -> Disk:
        return Disk(dict(self.names), {i: bytes(content) for i, content in self.live.items()}, set(self.directories))

    # headwater.durable_files.files.Files

    def open(self, path: str) -> RecordingFile:
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self.open_files += 1
        return RecordingFile(self, self.names[path])

    def create(self, path: str) -> RecordingFile:
        self.fail_if_scheduled()
        assert path.rpartition("/")[0] in self.directories, f"no directory for {path}"
        if path in self.names:
            self.record("truncate", self.names[path], 0)
            self.live[self.names[path]].clear()
        else:
            self.record("create", path, self._next_inode)
            self.names[path] = self._next_inode
            self.live[self._next_inode] = bytearray()
            self._next_inode += 1
        self.open_files += 1
        return RecordingFile(self, self.names[path])

    def rename(self, old: str, new: str) -> None:
        self.fail_if_scheduled()
        if old in self.directories:
            self.record("rename_directory", old, new)
            _rename_directory(self.names, self.directories, old, new)
            return
        self.record("rename", old, new)
        self.names[new] = self.names.pop(old)

    def unlink(self, path: str) -> None:
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self.fail_if_scheduled()
        self.record("unlink", path)
        del self.names[path]

    def mkdir(self, path: str) -> None:
        for directory in self._make(path):
            self.record("sync_directory", directory.rpartition("/")[0])

    def make(self, path: str) -> None:
        for _ in self._make(path):
            continue

    def _make(self, path: str) -> Iterator[str]:
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            directory = "/".join(parts[:end])
            if directory not in self.directories:
                self.fail_if_scheduled()
                self.record("mkdir", directory)
                self.directories.add(directory)
                yield directory

    def rmdir(self, path: str) -> None:
        if any(name.startswith(f"{path}/") for name in (*self.names, *self.directories)):
            raise OSError(errno.ENOTEMPTY, "directory not empty", path)
        self.record("rmdir", path)
        self.directories.discard(path)

    def listdir(self, path: str) -> list[str]:
        if path in self.names:
            raise NotADirectoryError(errno.ENOTDIR, "a file", path)
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        known = [*self.names, *sorted(self.directories)]
        return [name[len(path) + 1 :] for name in known if name and name.rpartition("/")[0] == path]

    def sync_directory(self, path: str) -> None:
        self.fail_if_scheduled()
        self.record("sync_directory", path)

    def sync_together(self, files: Sequence[File], directories: Sequence[str]) -> None:
        work = [file.fdatasync for file in files] + [partial(self.sync_directory, path) for path in directories]
        self.random.shuffle(work)  # a power loss in the middle finds any of them done
        errors: list[OSError] = []
        for sync in work:
            try:
                sync()
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def lock(self, path: str) -> RecordingFile:
        if path in self.locks:
            raise BlockingIOError(errno.EAGAIN, "locked", path)
        file = self.open(path) if path in self.names else self.create(path)
        self.locks.add(path)
        return RecordingFile(self, file._inode, locked=path)

    def redo(self, call: Call) -> None:
        """A call that another made, from the same start."""
        verb, what, *_ = call
        if verb in ("write", "truncate"):
            assert isinstance(what, int)
            _change_content(self.live.setdefault(what, bytearray()), call)
        elif verb not in ("sync", "limbo", "sync_directory"):
            disk = Disk(self.names, {}, self.directories)
            _change_name(disk, call)
            if verb == "create":
                assert isinstance(call[2], int)
                self.live[call[2]] = bytearray()
        self._next_inode = max(self.live, default=0) + 1

    def entropy(self, size: int) -> bytes:
        return self.random.randbytes(size)

    def boot(self) -> bytes:
        return self.boot_id


class Replay:
    """The disk that `files` recorded, call by call. `position` calls have been made."""

    def __init__(self, files: RecordingFiles) -> None:
        self._files = files
        self._calls = files.calls
        self._durable = Disk(dict(files.start.names), {}, set(files.start.directories))
        self._contents = {inode: bytearray(content) for inode, content in files.start.contents.items()}  # durable ones
        self._pending: dict[int, list[Call]] = {}
        self._limbo: dict[int, list[Call]] = {}
        self._name_changes: list[Call] = []
        self.position = 0

    def advance(self, position: int) -> None:
        """Make the calls up to `position`."""
        for call in self._calls[self.position : position]:
            self.make(call)
        self.position = position

    def crash(self, variant: Variant, random: Random) -> RecordingFiles:
        """What a power loss leaves now."""
        changes = self._name_changes
        kept = {"nothing": 0, "everything": len(changes), "torn": random.randint(0, len(changes))}[variant]
        disk = Disk(dict(self._durable.names), {}, set(self._durable.directories))
        for change in changes[:kept]:
            _change_name(disk, change)
        for inode in disk.names.values():
            disk.contents[inode] = self._content(inode, variant, random)
        return RecordingFiles(disk, seed=random.randrange(1 << 30), boot_id=b"boot %11d" % next(_STARTS))

    def kill(self, random: Random) -> RecordingFiles:
        """What the system has if the process is killed now, in the next call: all that it wrote, and of a write any number
        of whole pages."""
        killed = RecordingFiles(self._files.start, seed=random.randrange(1 << 30), boot_id=self._files.boot_id)
        for call in self._calls[: self.position]:
            killed.redo(call)
        following = self._calls[self.position : self.position + 1]
        for verb, inode, position, data in following:
            if verb == "write":
                assert isinstance(position, int) and isinstance(data, bytes)
                pages = range(PAGE - position % PAGE, len(data), PAGE)
                killed.redo((verb, inode, position, data[: random.choice((0, *pages, len(data)))]))
        return killed

    def make(self, call: Call) -> None:
        """One call, whether it is in the list or not."""
        verb, what, *_ = call
        if verb in ("write", "truncate"):
            assert isinstance(what, int)
            self._pending.setdefault(what, []).append(call)
        elif verb == "sync":
            assert isinstance(what, int)
            content = self._contents.setdefault(what, bytearray())
            for change in self._pending.pop(what, []):
                _change_content(content, change)
        elif verb == "limbo":
            assert isinstance(what, int)
            self._limbo.setdefault(what, []).extend(self._pending.pop(what, []))
        elif verb == "sync_directory":
            remaining: list[Call] = []
            for change in self._name_changes:
                if str(change[1]).rpartition("/")[0] == what:
                    known = change
                    for earlier in reversed(
                        remaining
                    ):  # a directory whose new name is not durable has the old one there
                        if earlier[0] == "rename_directory":
                            known = _moved(known, str(earlier[2]), str(earlier[1]))
                    _change_name(self._durable, known)
                    if change[0] == "rename_directory":  # what changed in it before, and is not durable, goes with it
                        remaining = [_moved(earlier, str(change[1]), str(change[2])) for earlier in remaining]
                else:
                    remaining.append(change)
            self._name_changes = remaining
        else:
            self._name_changes.append(call)

    def _content(self, inode: int, variant: Variant, random: Random) -> bytes:
        content = bytearray(self._contents.get(inode, b""))
        changes = [*self._limbo.get(inode, []), *self._pending.get(inode, [])]
        if variant == "nothing":
            return bytes(content)
        for change in changes:
            if variant == "everything":
                _change_content(content, change)
            elif change[0] == "truncate":
                if random.random() < 0.5:
                    _change_content(content, change)
            else:
                for piece in _sectors(change):
                    if random.random() < 0.5:
                        _change_content(content, piece)
        return bytes(content)


def _sectors(write: Call) -> Iterator[Call]:
    verb, inode, position, data = write
    assert isinstance(position, int)
    assert isinstance(data, bytes)
    at = position
    while at < position + len(data):
        end = min((at // SECTOR + 1) * SECTOR, position + len(data))
        yield verb, inode, at, data[at - position : end - position]
        at = end


def _change_content(content: bytearray, call: Call) -> None:
    verb, _, position, data = call
    assert isinstance(position, int)
    if verb == "truncate":
        del content[position:]
        content.extend(bytes(position - len(content)))
        return
    assert isinstance(data, bytes)
    if len(content) < position:
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _moved(call: Call, old: str, new: str) -> Call:
    """A change of a name below `old`, which is `new` now."""
    verb, path, argument, more = call
    paths = [
        f"{new}{one[len(old) :]}" if isinstance(one, str) and one.startswith(f"{old}/") else one
        for one in (path, argument)
    ]
    return verb, paths[0], paths[1], more


def _rename_directory(names: dict[str, int], directories: set[str], old: str, new: str) -> None:
    for path in [path for path in names if path.startswith(f"{old}/")]:
        names[new + path[len(old) :]] = names.pop(path)
    for path in [path for path in directories if path == old or path.startswith(f"{old}/")]:
        directories.remove(path)
        directories.add(new + path[len(old) :])


def _change_name(disk: Disk, call: Call) -> None:
    verb, path, argument, _ = call
    assert isinstance(path, str)
    if verb == "create":
        assert isinstance(argument, int)
        disk.names[path] = argument
    elif verb == "rename":
        assert isinstance(argument, str)
        if path in disk.names:
            disk.names[argument] = disk.names.pop(path)
    elif verb == "rename_directory":
        assert isinstance(argument, str)
        _rename_directory(disk.names, disk.directories, path, argument)
    elif verb == "unlink":
        disk.names.pop(path, None)
    elif verb == "mkdir":
        disk.directories.add(path)
    elif verb == "rmdir":
        disk.directories.discard(path)
