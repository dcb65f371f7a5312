"""Small documents (a stream's configuration, the log's own state) that one flipped bit or one lost file cannot cost.

A document `path` is two files, `path.a` and `path.b`, each complete:

    | magic "HWD1" | crc u32 | generation u64 | payload size u32 | payload

The CRC32C covers all that follows it. `save` writes each copy to a temporary name, makes it durable, renames it over
the old copy, and makes the names durable at the end; so at every moment at least one copy is whole, and after `save`
returned both are. `load` takes the intact copy of the highest generation and says what was wrong with the other.

After a failed `save`, and after a crash during one, either the old or the new payload is found. No cache is kept: the
files are the truth. Not for hot data: one `save` is two file syncs and one directory sync.
"""

import struct

from google_crc32c import value as crc32c

from headwater.streams.files import Files

MAGIC = b"HWD1"
HEAD = struct.Struct("<4sI")
REST = struct.Struct("<QI")
COPIES = (".a", ".b")
TEMPORARY = ".tmp"


def save(files: Files, path: str, payload: bytes) -> None:
    """Make `payload` the durable content of the document. Raises OSError; then nothing is promised about which of old
    and new a later `load` finds, only that it finds one."""
    generation = 1 + max((found[0] for copy in COPIES if (found := _read_copy(files, path + copy, []))), default=0)
    rest = REST.pack(generation, len(payload)) + payload
    content = HEAD.pack(MAGIC, crc32c(rest)) + rest
    for copy in COPIES:
        temporary = path + copy + TEMPORARY
        file = files.create(temporary)
        try:
            file.pwrite([content], 0)
            file.fdatasync()
        finally:
            file.close()
        files.rename(temporary, path + copy)
    files.sync_directory(directory_of(path))


def load(files: Files, path: str, damage: list[str] | None = None) -> bytes | None:
    """The newest intact payload, or None when there is no intact copy. One sentence for each copy that is damaged, or
    that is missing beside one that is there, is appended to `damage`. Raises OSError when a copy cannot be read and
    the other is no help."""
    complaints: list[str] = []
    unreadable: list[OSError] = []
    best: tuple[int, bytes] | None = None
    for copy in COPIES:
        try:
            found = _read_copy(files, path + copy, complaints)
        except OSError as error:
            complaints.append(f"{path}{copy} cannot be read: {error}")
            unreadable.append(error)
            continue
        if found is not None and (best is None or found[0] > best[0]):
            best = found
    if best is None and unreadable:
        raise unreadable[0]
    if damage is not None and len(complaints) < len(COPIES):
        damage.extend(complaints)
    elif damage is not None and not all(complaint.endswith(_MISSING) for complaint in complaints):
        damage.extend(complaints)
    return None if best is None else best[1]


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


_MISSING = "is missing"


def _read_copy(files: Files, path: str, complaints: list[str]) -> tuple[int, bytes] | None:
    """(generation, payload) of an intact copy, else None and a complaint."""
    try:
        file = files.open(path)
    except FileNotFoundError:
        complaints.append(f"{path} {_MISSING}")
        return None
    try:
        content = file.pread(file.size(), 0)
    finally:
        file.close()
    if len(content) >= HEAD.size + REST.size:
        magic, crc = HEAD.unpack_from(content)
        generation, size = REST.unpack_from(content, HEAD.size)
        payload = content[HEAD.size + REST.size :]
        if magic == MAGIC and len(payload) == size and crc32c(content[HEAD.size :]) == crc:
            return generation, payload
    complaints.append(f"{path} is damaged ({len(content)} bytes)")
    return None
