"""A Spark Declarative Pipelines project with the same functions as `headwater pipeline run`: its files, and running it.

    orders/
      pipeline.toml              the source and its options, in the format of `headwater pipeline run`
      spark-pipeline.yml         Spark's own: name, storage, where the tables are defined
      transformations/tables.py  bronze, silver, rejects and gold as tables of the pipeline
      spark-warehouse/           the tables, after the first run

A run reads everything that arrived since the last one and ends (Spark has no other mode); a long-running job is `headwater
pipeline run orders/pipeline.toml`, which has tables of its own. Each streaming table reads the source separately, from its
own checkpoint.

Spark runs a project through a Spark Connect server that it starts; for that pyspark needs grpc and other packages, the
extra `spark-connect`.
"""

import importlib.util
import os
from pathlib import Path

from headwater.errors import ConfigError, EnvironmentProblem
from headwater.spark.pipeline_config import TEMPLATE
from headwater.spark_runtime.stoppable import call

SPEC_FILE = "spark-pipeline.yml"
CONFIG_FILE = "pipeline.toml"
TABLES_FILE = "transformations/tables.py"
PIPELINES = "org.apache.spark.deploy.SparkPipelines"  # the main class of bin/spark-pipelines
FREE_PORT = ("--conf", "spark.connect.grpc.binding.port=0")  # avoids conflicts; `pipelines_runner` finds the port
NEEDED = ("grpc", "grpc_status", "google.rpc", "zstandard", "pandas", "yaml")

SPEC = """\
# Run it: headwater pipeline run {name}     (or spark-pipelines run, where the environment is set: headwater spark-env)
name: {name}
storage: {storage}
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.session.timeZone: UTC
  spark.sql.shuffle.partitions: "2"
"""

TABLES = '''\
"""The tables of this pipeline. They are yours: add columns, add tables, replace gold."""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from headwater.spark_tables import pipeline
from headwater.spark.pipeline_config import read_pipeline_config

config = read_pipeline_config(Path(__file__).parents[1] / "pipeline.toml")
spark = SparkSession.active()


@dp.temporary_view
def source() -> DataFrame:
    """The stream, decoded."""
    options = {**config.source, **pipeline.SOURCE_OPTIONS}
    return spark.readStream.format(config.format).options(**options).load()


@dp.table(format="parquet")
def bronze() -> DataFrame:
    """Every message as it was on the wire."""
    return pipeline.bronze(spark.readStream.table("source"), config.format)


@dp.table(format="parquet")
def silver() -> DataFrame:
    """The events among them."""
    return pipeline.silver(spark.readStream.table("source"), config.format)


@dp.table(format="parquet")
def rejects() -> DataFrame:
    """The others, with the reason."""
    return pipeline.rejects(spark.readStream.table("source"), config.format)


@dp.materialized_view(format="parquet")
def gold() -> DataFrame:
    """What happened by source, type and month."""
    return pipeline.gold(spark.read.table("silver"))
'''


def write_project(directory: Path) -> list[Path]:
    """Create the files of a project; existing files are left unchanged. Raises ConfigError when one exists."""
    storage = (directory.absolute() / "storage").as_uri()
    files = {
        CONFIG_FILE: TEMPLATE.format(name=f"{directory.name}/{CONFIG_FILE}"),
        SPEC_FILE: SPEC.format(name=directory.name, storage=storage),
        TABLES_FILE: TABLES,
    }
    written = []
    for name, text in files.items():
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror}", value=str(path)) from error
        written.append(path)
    return written


def missing() -> list[str]:
    """The packages that pyspark needs for a pipelines project and that are not installed."""
    return [name for name in NEEDED if not _is_there(name)]


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def environment() -> dict[str, str]:
    """The environment variables that Spark's own commands need: JAVA_HOME, PYSPARK_PYTHON, ... Raises EnvironmentProblem."""
    from headwater.spark.session import prepare_environment, require_pyspark

    require_pyspark()
    prepare_environment(local=True)
    names = ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "SPARK_HOME", "PYTHONPATH")
    return {name: os.environ[name] for name in names}


def run_project(directory: Path, arguments: list[str]) -> int:
    """Run `spark-pipelines run` on a project; returns its exit status (`stoppable`). Raises EnvironmentProblem,
    ConfigError."""
    spec = directory / SPEC_FILE
    if not spec.exists():
        raise ConfigError(f"{directory} has no {SPEC_FILE}", value=str(directory), hint="headwater pipeline init")
    lacking = missing()
    if lacking:
        raise EnvironmentProblem(
            f"declarative pipelines need {', '.join(lacking)}",
            value=lacking,
            hint="pip install 'headwater[spark-connect]', or headwater pipeline run with the .toml file",
        )
    environ = os.environ | environment()
    runner = Path(__file__).absolute().with_name("pipelines_runner.py")
    spark_class = Path(environ["SPARK_HOME"]) / "bin" / "spark-class"
    given = [*FREE_PORT, "--spec", spec.name, *arguments]
    # Spark stores managed tables in spark-warehouse below the working directory.
    return call([str(spark_class), PIPELINES, str(runner), "run", *given], environ, directory)
