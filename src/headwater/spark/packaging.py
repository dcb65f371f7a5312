"""Headwater for executors that do not have it: an archive that Spark unpacks on each of them.

Compiled modules cannot be imported from a zip, so `spark.submit.pyFiles` does not work; Spark unpacks `spark.archives` into
each executor's working directory, and `PYTHONPATH` points there. The archive contains this package as installed, including
compiled modules, the `pyspark_*` modules that register the formats, and the required dependencies.

The executors' machines need the same minor version of Python, the same platform, and pyarrow (pass it as `also` if they
lack it). The driver's machine needs the package installed, because planning happens there.
"""

import importlib.metadata
import platform
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import headwater
from headwater.errors import EnvironmentProblem

REQUIRED = ("msgspec", "google-crc32c", "cython")
MODULES = ("pyspark_nats.py", "pyspark_iggy.py")
UNPACKED = "headwater-packages"  # directory below an executor's working directory
LEFT_OUT = ("__pycache__", ".c", ".html")


def make_archive(path: Path, also: Iterable[str] = ()) -> Path:
    """Write the archive. `also`: names of further installed distributions, added without their own requirements. Raises
    EnvironmentProblem for one that is not installed.
    """
    root = Path(headwater.__file__).absolute().parents[1]
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in _files(root / "headwater"):
            archive.write(file, file.relative_to(root).as_posix())
        for name in MODULES:
            if (root / name).exists():
                archive.write(root / name, name)
        for name in (*REQUIRED, *also):
            for place, file in distribution_files(name):
                archive.write(file, place)
        archive.writestr("headwater-made-for.txt", made_for() + "\n")
    beside.replace(path)
    return path


def made_for() -> str:
    """The Python version and platform that an archive made here supports."""
    return f"{sys.implementation.cache_tag} {platform.system()} {platform.machine()}"


def settings(archive: Path) -> dict[str, str]:
    """The Spark settings that ship the archive to the executors."""
    return {
        "spark.archives": f"{archive.absolute()}#{UNPACKED}",
        "spark.executorEnv.PYTHONPATH": f"./{UNPACKED}",
    }


def distribution_files(name: str) -> Iterator[tuple[str, Path]]:
    """(place in the archive, file) for all files of an installed distribution inside site-packages."""
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        raise EnvironmentProblem(f"{name} is not installed here", value=name, hint=f"pip install {name}") from None
    for file in found.files or ():
        place = file.as_posix()
        if not re.match(r"\.\.|/", place) and "__pycache__" not in place:
            yield place, Path(str(found.locate_file(file)))


def _files(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not any(path.match(f"*{end}") or end in path.parts for end in LEFT_OUT):
            yield path
