"""A SPARK_HOME from which Python workers start fast.

Spark starts a Python process for each step of planning a Python data source (find it, make it, plan it, drive it, read
it) and puts `SPARK_HOME/python/lib/pyspark.zip` in front of their import path. Modules in a zip have no byte code kept
anywhere, so each of these processes compiles pyspark anew: 1.8 s of CPU instead of 0.5, five times before the first row.

The pip package needs that zip for nothing: its workers have pyspark in site-packages. So `spark_home` gives a directory
with links to everything in the package but `python`. Spark then finds no zip, and the workers import what is installed
and compiled. Only for local masters: YARN ships the zip to machines that may have nothing else.
"""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

PARTS = ("bin", "jars", "sbin", "data", "licenses")


def spark_home(package: Path, cache: Path) -> Path:
    """A directory below `cache` that stands for the installed `package` (the directory of pyspark), without its zip.

    Made aside and renamed into place, so it is complete if it is there, and two processes may make it at once.
    """
    key = hashlib.sha256(os.fsencode(package)).hexdigest()[:12]
    home = cache / "spark" / key
    if home.is_dir():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=home.parent, prefix=".home-"))
    for part in PARTS:
        (made / part).symlink_to(package / part)
    try:
        made.rename(home)
    except OSError:
        shutil.rmtree(made)
        if not home.is_dir():
            raise
    return home
