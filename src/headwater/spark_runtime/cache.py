"""The directory of small generated files for Spark: one per user, never shared, files written atomically."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from headwater.errors import EnvironmentProblem


def cache_directory(environ: Mapping[str, str]) -> Path:
    """`$XDG_CACHE_HOME/headwater` or `~/.cache/headwater`; a directory in the temporary directory if neither can be
    written. Raises EnvironmentProblem when another user owns the latter.
    """
    base, home = environ.get("XDG_CACHE_HOME", ""), environ.get("HOME", "")
    if base or home:
        directory = (Path(base) if base else Path(home) / ".cache") / "headwater"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if os.access(directory, os.W_OK | os.X_OK):
                return directory
        except OSError:
            pass  # the home does not exist, or cannot be written
    directory = Path(tempfile.gettempdir()) / f"headwater-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.stat().st_uid != os.getuid():
        raise EnvironmentProblem(f"{directory} belongs to another user", value=directory, hint="set XDG_CACHE_HOME")
    return directory


def keep(path: Path, text: str, mode: int = 0o644) -> Path:
    """Make `path` a file with this text and mode. Processes may race: each sees a complete file, its own or the other's."""
    try:
        if path.read_text() == text and path.stat().st_mode & 0o777 == mode:
            return path
    except (OSError, UnicodeDecodeError):
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
