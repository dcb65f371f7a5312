"""The Python that Spark starts its workers with, under a path that Spark can use.

Before Spark looks for Python data sources it runs `sh -c "command -v $PYSPARK_PYTHON"`, without quotes. For a path with a
blank the answer is no, and then Spark says that there is no data source of that name. So such an interpreter is given
a script in a plain path to stand for it.
"""

import hashlib
import re
import shlex
import tempfile
from pathlib import Path

from headwater.errors import EnvironmentProblem
from headwater.spark.cache import keep

_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)  # what a shell takes as one word, unquoted


def worker_python(executable: Path, cache: Path) -> Path:
    """`executable`, or the script that stands for it below `cache` (below the temporary directory, if `cache` has a
    blank as well). Raises EnvironmentProblem when there is no plain path to be had."""
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
