"""Tables on a local disk that a killed job cannot leave half written.

    <root>/bronze/batch_id=0/…parquet     one directory per micro-batch: written elsewhere, renamed into place
    <root>/gold/part-00000.parquet        a table that is replaced as a whole: one file, replaced by rename
    <root>/.staging/<random>/             files being written; left behind by a kill, removed by the next run
    <root>/.lock                          held by the JVM of the job that writes here

Writing a batch again replaces it. So with a checkpoint that gives batch N the same rows again after a kill, every row is in
the tables exactly once, whatever was killed when. Readers (Spark, DuckDB, pandas) need only the directory: `batch_id` is an
ordinary Hive partition column, and all of them skip names with a leading dot.

The lock is held by the JVM rather than by Python, because the JVM may outlive a killed job by some seconds.

Only local directories are supported: rename is the atomic step, and object stores have none.
"""

import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from headwater.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCK_WAIT = 60.0  # seconds; the JVM of a killed job ends within a few


class Tables:
    """The tables below one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._staging = self.root / ".staging"

    def path(self, table: str) -> Path:
        return self.root / table

    def batch_path(self, table: str, batch_id: int) -> Path:
        return self.root / table / f"batch_id={batch_id}"

    def write_batch(self, table: str, batch_id: int, rows: "DataFrame") -> int:
        """Write `rows` as the complete batch, replacing any earlier version; returns the number of rows."""
        written = self._stage(rows)
        place = self.batch_path(table, batch_id)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            place.rename(self._staging / uuid.uuid4().hex)
        written.rename(place)
        return count_rows(place)

    def replace(self, table: str, rows: "DataFrame") -> int:
        """Write `rows` as the whole table, in one file; readers see either the old or the new one. Returns the number of
        rows."""
        written = self._stage(rows.coalesce(1))
        (part,) = written.glob("*.parquet")
        place = self.path(table) / "part-00000.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        part.replace(place)
        return count_rows(place)

    def count(self, table: str) -> int:
        """The number of rows in a table, from the footers of its files; 0 for a missing table."""
        return count_rows(self.path(table))

    def clean(self) -> None:
        """Remove what killed jobs left behind. Call it only under the lock."""
        shutil.rmtree(self._staging, ignore_errors=True)

    @contextmanager
    def locked(self, spark: "SparkSession", wait: float = LOCK_WAIT) -> Iterator[None]:
        """Lock the directory for this Spark application. Raises EnvironmentProblem when another one holds it for `wait`
        seconds."""
        self.root.mkdir(parents=True, exist_ok=True)
        jvm: Any = spark._jvm
        channel = jvm.java.io.RandomAccessFile(str(self.root / ".lock"), "rw").getChannel()
        try:
            self._acquire(channel, wait)
            self.clean()
            yield
            self.clean()
        finally:
            channel.close()

    def _acquire(self, channel: Any, wait: float) -> None:
        from py4j.protocol import Py4JJavaError

        give_up = time.monotonic() + wait
        while True:
            try:
                if channel.tryLock() is not None:
                    return
            except Py4JJavaError as error:
                # Java raises this when the same JVM holds the lock.
                if "OverlappingFileLockException" not in str(error.java_exception):
                    raise
            if time.monotonic() > give_up:
                raise EnvironmentProblem(
                    f"another job writes to {self.root}",
                    value=self.root,
                    hint="let it end, or choose another directory",
                )
            time.sleep(0.1)

    def _stage(self, rows: "DataFrame") -> Path:
        """Write `rows` to a new directory in the staging area."""
        place = self._staging / uuid.uuid4().hex
        rows.write.parquet(str(place))
        return place


def count_rows(path: Path) -> int:
    """Rows of the Parquet files at or below `path`."""
    files = [path] if path.is_file() else path.rglob("*.parquet")
    return sum(pq.ParquetFile(file).metadata.num_rows for file in files)
