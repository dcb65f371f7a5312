"""Small documents (a stream's configuration, the log's own state) that survive one flipped bit or one lost file.

A document `path` is two files, `path.a` and `path.b`, each complete:

    | magic "HWD2" | crc u32 | generation u64 | payload size u32 | identity 8 bytes | name size u16 | name | payload

The CRC32C covers all that follows it. `identity` is that of the log or stream that the document belongs to (zeros: of none
in particular), `name` the last part of `path`: so a copy that was brought from elsewhere is recognized. Version 1,
"HWD1", has neither, and is read.

`save` writes each copy to a temporary name, makes both durable, renames them over the old copies, and makes the names
durable at the end; so at every moment at least one copy is whole, and after `save` returned both are. A copy that is a
stranger's is put aside first, never replaced. `load` takes the intact copy of the highest generation that is no
stranger's, and says what was wrong with the other.

After a failed `save`, and after a crash during one, either the old or the new payload is found. No cache is kept: the
files are the truth. Not for hot data: one `save` is two file syncs and one directory sync. `write_over` replaces one copy
without any: for what a start can do without.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

from google_crc32c import value as crc32c

from headwater.durable_files.files import Files
from headwater.durable_files.sync_group import SyncGroup

MAGIC = b"HWD2"
OLD_MAGIC = b"HWD1"
HEAD = struct.Struct("<4sI")
REST = struct.Struct("<QI8sH")
OLD_REST = struct.Struct("<QI")
NO_IDENTITY = bytes(8)
COPIES = (".a", ".b")
TEMPORARY = ".tmp"
STRANGER = ".stranger-"


class Copy(NamedTuple):
    """An intact copy. `identity` is `NO_IDENTITY` and `name` empty where the copy has none."""

    path: str
    generation: int
    payload: bytes
    identity: bytes = NO_IDENTITY
    name: str = ""

    def is_strange_to(self, path: str, identity: bytes) -> bool:
        """Whether its name or identity is that of another document than `path` of `identity` (`NO_IDENTITY`: unknown)."""
        other_name = bool(self.name) and self.name != name_of(path)
        return other_name or (NO_IDENTITY not in (identity, self.identity) and self.identity != identity)


Judge = Callable[[Copy], str]  # why a copy is not one of this document; "" when it may be


def save(files: Files, path: str, payload: bytes, identity: bytes = NO_IDENTITY) -> None:
    """Make `payload` the durable content of the document. Raises OSError; a later `load` then finds either the old or the
    new payload."""
    with SyncGroup(files) as group:
        write_temporaries(files, group, path, payload, identity)
        group.commit()
    put_in_place(files, path)
    files.sync_directory(directory_of(path))


def write_temporaries(files: Files, group: SyncGroup, path: str, payload: bytes, identity: bytes) -> None:
    """The first half of `save`: call `put_in_place` once the group is committed. Raises OSError."""
    found = copies(files, path, [])
    for copy in found:
        if copy.is_strange_to(path, identity):
            put_aside(files, copy.path)
    content = _encode(name_of(path), payload, identity, 1 + max((copy.generation for copy in found), default=0))
    for suffix in COPIES:
        group.write(path + suffix + TEMPORARY, content)


def write_over(files: Files, path: str, payload: bytes, identity: bytes) -> None:
    """Replace the older copy where it is, without a sync; a crash may damage it, and the other one stays. As `save` where
    there are not two good copies. `payload` is JSON: it is filled up with blanks, so that one write does. Raises OSError."""
    found = copies(files, path, [])
    if len(found) < len(COPIES) or any(copy.is_strange_to(path, identity) for copy in found):
        save(files, path, payload, identity)
        return
    newer = max(found, key=lambda copy: copy.generation)
    (older,) = (copy for copy in found if copy is not newer)
    content = _encode(name_of(path), payload, identity, newer.generation + 1)
    file = files.open(older.path)
    try:
        blanks = b" " * (file.size() - len(content))
        file.pwrite(
            [_encode(name_of(path), payload + blanks, identity, newer.generation + 1) if blanks else content], 0
        )
    finally:
        file.close()


def put_in_place(files: Files, path: str) -> None:
    """The second half: the names are durable after a sync of the directory, and until then a power loss may bring the old
    payload back. Raises OSError."""
    for suffix in COPIES:
        files.rename(path + suffix + TEMPORARY, path + suffix)


def write_first(group: SyncGroup, path: str, payload: bytes, identity: bytes) -> None:
    """Write a new document in a directory that no start reads yet; the caller commits the group together with the
    directory. Raises OSError."""
    content = _encode(name_of(path), payload, identity, 1)
    for suffix in COPIES:
        group.write(path + suffix, content)


def load(
    files: Files, path: str, damage: list[str] | None = None, identity: bytes = NO_IDENTITY, judge: Judge | None = None
) -> bytes | None:
    """As `load_copy`; the payload."""
    copy = load_copy(files, path, damage, identity, judge)
    return None if copy is None else copy.payload


def load_copy(
    files: Files, path: str, damage: list[str] | None = None, identity: bytes = NO_IDENTITY, judge: Judge | None = None
) -> Copy | None:
    """The newest intact copy that is no stranger's, or None when there is none. One sentence for each copy that is
    damaged, a stranger's (by its identity, its name, or the verdict of `judge`), or missing beside one that is there, and
    one when both are of one generation and differ, is appended to `damage`. Raises OSError when a copy cannot be read and
    the other does not serve."""
    complaints: list[str] = []
    unreadable: list[OSError] = []
    mine: list[Copy] = []
    for copy in copies(files, path, complaints, unreadable):
        reason = judge(copy) if judge is not None else ""
        if copy.is_strange_to(path, identity):
            reason = f"says that it is {copy.name} of {copy.identity.hex()}"
        if reason:
            complaints.append(f"{copy.path} is not of this document: it {reason}")
        else:
            mine.append(copy)
    if not mine and unreadable:
        raise unreadable[0]
    if len(mine) == len(COPIES) and mine[0].generation == mine[1].generation and mine[0].payload != mine[1].payload:
        complaints.append(f"{mine[1].path} differs from the other copy of generation {mine[0].generation}")
    missing_only = len(complaints) == len(COPIES) and all(complaint.endswith(_MISSING) for complaint in complaints)
    if damage is not None and not missing_only:
        damage.extend(complaints)
    return max(mine, key=lambda copy: copy.generation, default=None)


def copies(files: Files, path: str, complaints: list[str], unreadable: list[OSError] | None = None) -> list[Copy]:
    """The intact copies; one sentence for each other. Raises OSError for a copy that cannot be read, unless it is to go
    to `unreadable`."""
    found = []
    for suffix in COPIES:
        try:
            copy = _read_copy(files, path + suffix, complaints)
        except OSError as error:
            if unreadable is None:
                raise
            complaints.append(f"{path}{suffix} cannot be read: {error}")
            unreadable.append(error)
            continue
        if copy is not None:
            found.append(copy)
    return found


def put_aside(files: Files, path: str) -> str:
    """Durably rename a file that belongs elsewhere to a name that nothing reads; returns that name. Raises OSError."""
    directory = directory_of(path)
    taken = set(files.listdir(directory))
    stem = name_of(path) + STRANGER
    kept = next(name for count in range(len(taken) + 1) if (name := f"{stem}{count}") not in taken)
    files.rename(path, f"{directory}/{kept}")
    files.sync_directory(directory)
    return kept


def remove(files: Files, path: str) -> None:
    """Remove the document; not an error when it is not there. Durable after `sync_directory` by the caller."""
    for copy in COPIES:
        for name in (path + copy, path + copy + TEMPORARY):
            try:
                files.unlink(name)
            except FileNotFoundError:
                continue


def directory_of(path: str) -> str:
    """The directory part of a path; "." when there is none."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


_MISSING = "is missing"


def _read_copy(files: Files, path: str, complaints: list[str]) -> Copy | None:
    """An intact copy, else None and a complaint."""
    try:
        file = files.open(path)
    except FileNotFoundError:
        complaints.append(f"{path} {_MISSING}")
        return None
    try:
        content = file.pread(file.size(), 0)
    finally:
        file.close()
    copy = _decode(path, content)
    if copy is None:
        complaints.append(f"{path} is damaged ({len(content)} bytes)")
    return copy


def _encode(name: str, payload: bytes, identity: bytes, generation: int) -> bytes:
    encoded = name.encode()
    rest = REST.pack(generation, len(payload), identity, len(encoded)) + encoded + payload
    return HEAD.pack(MAGIC, crc32c(rest)) + rest


def _decode(path: str, content: bytes) -> Copy | None:
    if len(content) < HEAD.size + OLD_REST.size:
        return None
    magic, crc = HEAD.unpack_from(content)
    if magic not in (MAGIC, OLD_MAGIC) or crc32c(content[HEAD.size :]) != crc:
        return None
    if magic == OLD_MAGIC:
        generation, size = OLD_REST.unpack_from(content, HEAD.size)
        payload = content[HEAD.size + OLD_REST.size :]
        return Copy(path, generation, payload) if len(payload) == size else None
    if len(content) < HEAD.size + REST.size:
        return None
    generation, size, identity, name_size = REST.unpack_from(content, HEAD.size)
    rest = content[HEAD.size + REST.size :]
    if len(rest) != name_size + size:
        return None
    return Copy(path, generation, rest[name_size:], identity, rest[:name_size].decode("utf-8", "replace"))
