"""A small disk that a test may fill: a tmpfs, where this process may mount one."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

FILLING = 4096  # bytes that the ballast is written in: a page of the file system


@contextmanager
def small_disk(place: Path, mebibytes: int) -> Iterator["SmallDisk"]:
    """Mounted at `place`, which is made, until the context ends. The test is skipped where that is not permitted."""
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield SmallDisk(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], capture_output=True, check=True)


class SmallDisk:
    """`path`: where it is mounted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, but: int = 0) -> None:
        """Until there is no room for another page, or no more than `but` bytes are left."""
        with self._ballast.open("ab", buffering=0) as file, suppress(OSError):
            while self.free > but:
                file.write(bytes(FILLING))

    @property
    def free(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def make_room(self) -> None:
        """Remove what `fill` wrote."""
        self._ballast.unlink()
