"""A Spark session that works on the first try, on one machine or against a master.

Without help four things fail, and one is slow: no usable Java (`headwater.spark_runtime.java`); workers that run
another Python than the driver and lack pyarrow there (`PYSPARK_PYTHON`); a host name that does not resolve to loopback
(`SPARK_LOCAL_IP`, `spark.driver.host`); planner and worker processes that cannot import the data source, because the
driver found it through `sys.path` and they use `PYTHONPATH`; and the start of each of those processes
(`headwater.spark_runtime.home`). `session` fixes all five before the JVM starts.
"""

import importlib.util
import os
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

import headwater
from headwater.errors import EnvironmentProblem
from headwater.spark.class_archive import java_options
from headwater.spark_runtime.cache import cache_directory, keep
from headwater.spark_runtime.home import spark_home
from headwater.spark_runtime.interpreter import worker_python
from headwater.spark_runtime.java import java_home
from headwater.spark_runtime.planner_launcher import DIRECTORY
from headwater.spark_runtime.planner_template import directory_of_this_process, launcher_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{yy/MM/dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
# Spark sets the root to the level of this one, and logs a long warning when the two differ.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
"""

# Measured on a run of the pipeline over 3,000 events: half the CPU time of the JVM. A job of minutes would be slower with
# it.
BRIEF_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Without Hadoop's native library, which PySpark has not, the default manager starts ten processes for each file of a
# checkpoint (`chmod`, `readlink`); this one, over Hadoop's other interface to the same files, starts two. Measured: 20 ms in
# place of 70 for both files of a micro-batch. On a local disk both look whether the name is taken and then rename.
LOCAL_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
BRIEF_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}

MINIMUM_PYSPARK = (4, 2)  # for admission control and AvailableNow in Python sources


def session(
    app_name: str,
    *,
    master: str = "local[*]",
    config: Mapping[str, str] | None = None,
    brief: bool = False,
    log_level: str = "ERROR",
) -> "SparkSession":
    """The Spark session of this process, created if necessary.

    `config` overrides our settings: loopback addresses, no web UI, UTC, Unix sockets to Python workers (saves 40 ms per
    micro-batch), timestamps in Parquet as microseconds, one shuffle partition per core up to 8 (Spark's default of 200 is
    for clusters). `brief` is for jobs of seconds rather than minutes: less compiling, in the JVM and in Spark. Any thread
    may write (`headwater.spark_runtime.threads`); progress has our names (`headwater.spark.progress_names`).
    This changes the environment of the process: `JAVA_HOME`, `PYSPARK_PYTHON`, `SPARK_LOCAL_IP`, `PYTHONPATH`, and for a
    local master `SPARK_HOME` if it is not set.

    Raises EnvironmentProblem, with a hint, when Java, pyspark or pyarrow are missing or too old.
    """
    require_pyspark()
    local = master.startswith("local")
    prepare_environment(local=local)
    if local:
        share_planners(os.environ)
    from pyspark.sql import SparkSession

    from headwater.spark.progress_names import name_in_progress
    from headwater.spark_runtime.threads import write_from_any_thread

    name_in_progress()
    write_from_any_thread()
    builder = SparkSession.builder.appName(app_name).master(master)
    for key, value in (settings(brief=brief, log_level=log_level, local=local) | dict(config or {})).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(log_level)
    return spark


def require_pyspark() -> None:
    """Raise EnvironmentProblem when pyspark or pyarrow cannot be imported, or pyspark is too old."""
    for name in ("pyspark", "pyarrow"):
        if importlib.util.find_spec(name) is None:
            raise EnvironmentProblem(f"{name} is not installed", value=name, hint="pip install 'headwater[spark]'")
    import pyspark

    if version_of(pyspark.__version__) < MINIMUM_PYSPARK:
        raise EnvironmentProblem(
            f"pyspark {pyspark.__version__} is too old: its Python data sources have no admission control",
            value=pyspark.__version__,
            limit="4.2",
            hint="pip install 'pyspark>=4.2'",
        )


def version_of(text: str) -> tuple[int, ...]:
    """The major and minor number of a version."""
    return tuple(int(part) for part in text.split(".")[:2])


def prepare_environment(*, local: bool) -> None:
    """Set the environment variables for the JVM and the Python processes that it starts."""
    os.environ["JAVA_HOME"] = str(java_home())
    python = str(worker_python(Path(sys.executable), cache_directory(os.environ)))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if local and "SPARK_HOME" not in os.environ:
        import pyspark

        os.environ["SPARK_HOME"] = str(spark_home(Path(pyspark.__file__).parent, cache_directory(os.environ)))
    # Links are not followed, because a tree of compiled modules may consist of links to the sources.
    home = str(Path(headwater.__file__).absolute().parents[1])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if home not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([home, *filter(None, paths)])


def share_planners(environ: MutableMapping[str, str]) -> None:
    """Have the planners of all queries but the first be forked (`headwater.spark_runtime.planner_template`)."""
    python = launcher_python(Path(environ["PYSPARK_DRIVER_PYTHON"]), cache_directory(environ))
    environ["PYSPARK_DRIVER_PYTHON"] = str(python)
    environ[DIRECTORY] = str(directory_of_this_process())


def settings(*, brief: bool, log_level: str, local: bool = True) -> dict[str, str]:
    """Our default settings, all of which may be overridden. A log configuration of our own keeps the JVM from starting at
    WARN."""
    logging = keep(
        cache_directory(os.environ) / "spark" / f"log4j2-{log_level.lower()}.properties",
        LOGGING.format(level=log_level.lower()),
    )
    options = f"-Dlog4j2.configurationFile={logging.as_uri()}"
    return {
        "spark.driver.extraJavaOptions": (f"{options} {BRIEF_JAVA_OPTIONS}" if brief else options) + java_options(),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Over TCP each Python task waits 40 ms for its input: Spark writes it in two pieces, Nagle's algorithm holds the
        # second until the first is acknowledged, and the worker's kernel delays the acknowledgement. A Unix socket has
        # neither delay.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        # Spark's default, INT96, is for Hive and Impala of old. It costs 0.3 us more for each timestamp, because nearly all
        # of them differ and a dictionary of 12-byte values is filled in vain, and it has no statistics, so that a filter by
        # time reads every row group.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": str(min(os.cpu_count() or 1, 8)),
        **({"spark.python.daemon.module": "headwater.spark.daemon", **LOCAL_CHECKPOINTS} if local else {}),
        **(BRIEF_SETTINGS if brief else {}),
    }
