"""The Python that Spark starts its workers with, under a path that Spark can use.

Before Spark looks for Python data sources it runs `sh -c "command -v $PYSPARK_PYTHON"`, without quotes. This fails for a
path with a blank, and Spark then reports that the data source does not exist. So such an interpreter is started through a
script in a plain path.
"""

import hashlib
import re
import shlex
import tempfile
from pathlib import Path

from headwater.errors import EnvironmentProblem
from headwater.spark_runtime.cache import keep

_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)  # one unquoted word of a shell


def worker_python(executable: Path, cache: Path) -> Path:
    """`executable`, or a script below `cache` that runs it (below the temporary directory, if `cache` has a blank as well).
    Raises EnvironmentProblem when no plain path is available."""
    if _PLAIN.fullmatch(str(executable)):
        return executable
    key = hashlib.sha256(str(executable).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    for directory in (cache, Path(tempfile.gettempdir()) / cache.name):
        script = directory / "python" / key / "python"
        if _PLAIN.fullmatch(str(script)):
            return keep(script, f'#!/bin/sh\nexec {shlex.quote(str(executable))} "$@"\n', 0o755)
    raise EnvironmentProblem(
        f"Spark cannot start {executable}: its path has a blank or another character that is special to a shell",
        value=executable,
        hint="set XDG_CACHE_HOME to a directory without one",
    )
