"""The journal of a stream's consumers: an append-only file of deliveries and acknowledgements between two saves of
their states.

    Consumer.events ─▶ `encode` one frame ─▶ `JournalFiles.append` (write, sync on demand) ─▶ a crash ─▶ `load` ─▶ replay

A frame holds the events of any number of consumers of one stream since the previous frame:

    | magic "HWJ1" | crc u32 | identity 8 bytes | number u64 | size u32 | MessagePack: [[consumer, [event, …]], …] |

The CRC32C covers all that follows it. Numbers ascend without end, and a saved state names the last one that it includes
(`ConsumerRecord.frame`), so replaying a frame twice, or one that the state holds already, is harmless. The identity is
that of the stream (its name and time of creation): the file of another stream is ignored.

A file is named by the number of its first frame. When the states are saved again, frames go to a new file, and the old
files are removed once the states are durable. A torn frame ends the journal; if an intact one follows, the disk is
damaged, and `load` reports it.

Blocking, no asyncio, no clock.
"""

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from google_crc32c import value as crc32c

from headwater.durable_files.files import File, Files

MAGIC = b"HWJ1"
_HEAD = struct.Struct("<4sI")
_REST = struct.Struct("<8sQI")
FRAME_HEAD = _HEAD.size + _REST.size
PREFIX = "state."
SUFFIX = ".journal"

Event = list[int]  # kind, first, last: see consumer.py
Entry = tuple[str, list[Event]]


class Frame(NamedTuple):
    """One frame. `end`: the file position after it."""

    number: int
    entries: list[Entry]
    end: int


class Journal(NamedTuple):
    """What `load` found. `damage`: one sentence for each file with bytes that are not intact frames."""

    frames: list[Frame]
    paths: list[str]
    damage: list[tuple[str, str]]


def identity_of(name: str, created_ns: int) -> bytes:
    """The identity that the frames of this stream carry."""
    import hashlib  # here: see model/short_hash.py

    return hashlib.sha256(f"{created_ns} {name}".encode()).digest()[:8]


def encode(identity: bytes, number: int, entries: Sequence[Entry]) -> bytes:
    """A frame."""
    body = msgspec.msgpack.encode(entries)
    rest = _REST.pack(identity, number, len(body)) + body
    return _HEAD.pack(MAGIC, crc32c(rest)) + rest


def load(files: Files, directory: str, identity: bytes) -> Journal:
    """All frames in the order of their numbers. Raises OSError."""
    found = Journal([], [], [])
    try:
        names = files.listdir(directory)
    except FileNotFoundError:
        return found
    for name in sorted(name for name in names if name.startswith(PREFIX) and name.endswith(SUFFIX)):
        path = f"{directory}/{name}"
        found.paths.append(path)
        file = files.open(path)
        try:
            content = file.pread(file.size(), 0)
        finally:
            file.close()
        after = found.frames[-1].number if found.frames else -1
        frames = _frames(content, identity, after)
        found.frames.extend(frames)
        end = frames[-1].end if frames else 0
        if _holds_frame(content, end):
            found.damage.append((path, f"damaged or foreign at byte {end} of {len(content)}"))
    return found


def _frames(content: bytes, identity: bytes, after: int) -> list[Frame]:
    frames: list[Frame] = []
    at = 0
    while (frame := _frame_at(content, at)) is not None:
        claimed, number, body, end = frame
        if claimed != identity or number <= after:
            break
        try:
            entries = msgspec.msgpack.decode(body, type=list[Entry])
        except msgspec.MsgspecError:
            break
        frames.append(Frame(number, entries, end))
        after, at = number, end
    return frames


def _frame_at(content: bytes, at: int) -> tuple[bytes, int, bytes, int] | None:
    """(identity, number, body, end) of an intact frame."""
    if len(content) - at < FRAME_HEAD:
        return None
    magic, crc = _HEAD.unpack_from(content, at)
    identity, number, size = _REST.unpack_from(content, at + _HEAD.size)
    start = at + FRAME_HEAD
    if magic != MAGIC or len(content) - start < size or crc32c(content[at + _HEAD.size : start + size]) != crc:
        return None
    return identity, number, content[start : start + size], start + size


def _holds_frame(content: bytes, at: int) -> bool:
    """Whether an intact frame begins at or after this byte."""
    while (at := content.find(MAGIC, at)) >= 0:
        if _frame_at(content, at) is not None:
            return True
        at += 1
    return False


class JournalFiles:
    """The files of one stream's journal, for writing. One call at a time, from any thread. `make`: makes the directory, and
    raises OSError; by default with its parents."""

    def __init__(self, files: Files, directory: str, make: Callable[[], None] | None = None) -> None:
        self.make_directory: Callable[[], None] = make or partial(files.mkdir, directory)
        self._files = files
        self.directory = directory
        self._file: File | None = None
        self._end = 0
        self._synced = True
        self._named = True  # the directory entry of the file is durable

    def append(self, frames: bytes, first: int, *, fresh: bool, sync: bool) -> None:
        """Write frames, the first of which has this number. `fresh`: to a new file, after making the previous one
        durable; `sync`: durably. Raises OSError; then the next call must begin a new file."""
        try:
            if fresh and self._file is not None:
                self.sync()
                self._give_back()
            if self._file is None:
                self.make_directory()
                self._file = self._files.create(f"{self.directory}/{PREFIX}{first:020}{SUFFIX}")
                self._end, self._named = 0, False
            if frames:
                self._file.pwrite([frames], self._end)
                self._end += len(frames)
                self._synced = False
            if sync:
                self.sync()
        except OSError:
            self._give_back()
            raise

    def sync(self) -> None:
        """Make all writes durable. Raises OSError."""
        if self._file is not None and not self._synced:
            self._file.fdatasync()
            if not self._named:
                self._files.sync_directory(self.directory)
            self._synced = self._named = True

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files whose frames are in saved states. Raises OSError."""
        for path in paths:
            self._files.unlink(path)

    def paths(self) -> list[str]:
        """The existing files. Raises OSError."""
        try:
            names = self._files.listdir(self.directory)
        except FileNotFoundError:
            return []
        return [f"{self.directory}/{name}" for name in names if name.startswith(PREFIX) and name.endswith(SUFFIX)]

    @property
    def size(self) -> int:
        """Bytes in the newest file."""
        return self._end

    def close(self) -> None:
        """Close the file."""
        self._give_back()

    def _give_back(self) -> None:
        file, self._file = self._file, None
        self._synced = self._named = True
        self._end = 0
        if file is not None:
            file.close()
