"""A SPARK_HOME from which Python workers start fast.

Spark starts a Python process for each step of using a Python data source (lookup, creation, planning, driving, reading) and
puts `SPARK_HOME/python/lib/pyspark.zip` first on their import path. Byte code of modules in a zip is never cached, so each
of these processes compiles pyspark again: 1.8 s of CPU instead of 0.5, five times before the first row.

The pip package does not need that zip: its workers have pyspark in site-packages. So `spark_home` returns a directory with
links to everything in the package except `python`. Spark then finds no zip, and the workers import the installed, compiled
package. Only for local masters: YARN ships the zip to machines that may have no other pyspark.
"""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

PARTS = ("bin", "jars", "sbin", "data", "licenses")


def spark_home(package: Path, cache: Path) -> Path:
    """A directory below `cache` that stands in for the installed `package` (the directory of pyspark), without its zip. It
    is built elsewhere and renamed, so it is complete whenever it exists, and processes may race to create it.
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
