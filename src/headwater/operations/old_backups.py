"""Backups of nats-servers before 2.15: a tar of the stream's files, in the same framing, as a backup of today.

    meta.inf  msgs/<number>.blk  obs/<consumer>/meta.inf, o.dat      what nats_store.py reads from a store directory

Only these names are read, and each is written under a safe name into a scratch directory beside the backup, so an
archive cannot choose paths. The backup itself is not changed.
"""

import re
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from headwater.archive.s2_frames import FrameReader
from headwater.errors import ConfigError, EnvironmentProblem, HeadwaterError
from headwater.operations.backups import ARCHIVE
from headwater.operations.nats_store import Converted, ForeignStream, convert, name_of

PIECE = 1 << 20
HEADER = 512  # bytes of the first header of a tar
_BLOCK = re.compile(r"msgs/(\d{1,18})\.blk")
_CONSUMER = re.compile(r"obs/([^/]+)/(meta\.inf|o\.dat)")


@contextmanager
def as_of_today(directory: Path) -> Iterator[tuple[Path, Converted | None]]:
    """The directory of a backup that can be restored: this one, or the converted form of an older one, with the result
    of the conversion. Raises RemoteProtocolError for an archive that is damaged, ConfigError, EnvironmentProblem."""
    if not _is_old(directory / ARCHIVE):
        yield directory, None
        return
    try:
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix="headwater-restore-") as scratch:
            files, made = Path(scratch, "files"), Path(scratch, "backup")
            made.mkdir()
            _unpack(directory / ARCHIVE, Path(scratch, "tar"), files)
            stream = ForeignStream("", name_of(files / "meta.inf"), files)
            yield made, convert(stream, made, lambda messages: None)
    except OSError as error:
        if isinstance(error, HeadwaterError):
            raise
        raise EnvironmentProblem(f"{directory} cannot be converted: {error.strerror}", value=directory) from error


def _is_old(archive: Path) -> bool:
    """Whether the archive is one of an older server; an unreadable one counts as new, and the restore reports it."""
    reader, content = FrameReader(), b""
    try:
        with archive.open("rb") as file:
            while len(content) < HEADER and (piece := file.read(PIECE)):
                content += reader.feed(piece)
    except (OSError, HeadwaterError):
        return False
    return content[257:262] == b"ustar"


def _unpack(archive: Path, plain: Path, files: Path) -> None:
    reader = FrameReader()
    with archive.open("rb") as source, plain.open("wb") as target:
        while piece := source.read(PIECE):
            target.write(reader.feed(piece))
    reader.finish()
    (files / "msgs").mkdir(parents=True)
    folders: dict[str, Path] = {}
    try:
        with tarfile.open(plain, "r:") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isfile() else None
                if content is not None:
                    _keep(member.name, content, files, folders)
    except tarfile.TarError as error:
        raise ConfigError(f"{archive} is damaged: {error}", value=archive) from error


def _keep(name: str, content: IO[bytes], files: Path, folders: dict[str, Path]) -> None:
    path = files / "meta.inf" if name == "meta.inf" else None
    if block := _BLOCK.fullmatch(name):
        path = files / "msgs" / f"{int(block[1])}.blk"
    elif consumer := _CONSUMER.fullmatch(name):
        folder = folders.setdefault(consumer[1], files / "obs" / str(len(folders)))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / consumer[2]
    if path is not None:
        with path.open("wb") as target:
            while piece := content.read(PIECE):
                target.write(piece)
