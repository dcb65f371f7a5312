"""Allow one process at a time in a directory, with a lock that the kernel releases when its holder dies."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.errors import EnvironmentProblem


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, created with its parents. Raises EnvironmentProblem when another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise EnvironmentProblem(
                f"another process works in {path.parent}", value=path, hint="let it end, or choose another with --dir"
            ) from error
        yield
