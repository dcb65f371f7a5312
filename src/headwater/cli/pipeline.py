"""`headwater pipeline init`, `run` and `env`: a stream into tables, for as long as it is to run, or as a Spark project.

A name that ends in `.toml` is a configuration file, and `run` goes on until it is stopped; any other one is the directory of
a Spark Declarative Pipelines project, and `run` is one `spark-pipelines run`. `env` prints what Spark's own commands need.

SIGINT and SIGTERM let the micro-batch in hand be finished; a second one ends at once, which loses nothing either. Progress
is a line per batch on standard error, so that a service's journal can have it.
"""

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from headwater.errors import ConfigError

if TYPE_CHECKING:
    from headwater.spark.run import Progress


def main(argv: list[str]) -> int:
    """The verb `pipeline`. Raises ConfigError and EnvironmentProblem."""
    parser = argparse.ArgumentParser(prog="headwater pipeline", description="a NATS stream into tables, with Spark")
    verbs = parser.add_subparsers(dest="verb", required=True)
    where = "a configuration file, NAME.toml, or the directory of a Spark Declarative Pipelines project"
    for name, meaning in (("init", "write an example"), ("run", "run a file until stopped, a project once")):
        verbs.add_parser(name, help=meaning).add_argument("file", type=Path, metavar="PLACE", help=where)
    verbs.add_parser("env", help='what Spark\'s own commands need: eval "$(headwater pipeline env)"')
    arguments, further = parser.parse_known_args(argv)
    if arguments.verb == "env":
        return print_environment()
    is_project = arguments.file.suffix != ".toml"
    if further and not (is_project and arguments.verb == "run"):
        parser.error(f"unrecognized arguments: {' '.join(further)}")
    if arguments.verb == "init":
        return init_project(arguments.file) if is_project else init(arguments.file)
    return run_project(arguments.file, further) if is_project else run(arguments.file)


def init(path: Path) -> int:
    """Write the template; an existing file stays as it is."""
    from headwater.spark.pipeline_config import TEMPLATE

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(name=path.name))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", value=str(path)) from error
    print(f"{path}: name your stream there, then `headwater pipeline run {path}`")
    return 0


def init_project(directory: Path) -> int:
    """Write the files of a project; existing ones stay as they are."""
    from headwater.spark.declarative import CONFIG_FILE, write_project

    for path in write_project(directory):
        print(path)
    print(f"name your stream in {directory / CONFIG_FILE}, then `headwater pipeline run {directory}`")
    return 0


def run_project(directory: Path, arguments: list[str]) -> int:
    """One `spark-pipelines run`, with further arguments of its own (--full-refresh, ...)."""
    from headwater.spark.declarative import run_project as spark_pipelines_run

    return spark_pipelines_run(directory, arguments)


def print_environment() -> int:
    """Lines for a shell."""
    from headwater.spark.declarative import environment

    for name, value in environment().items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def run(path: Path) -> int:
    """Run the pipeline of a configuration file until a signal comes."""
    from headwater.spark.pipeline_config import read_pipeline_config
    from headwater.spark.session import session

    config = read_pipeline_config(path)
    spark = session("headwater-pipeline", master=config.master, config=config.spark)
    from headwater.spark.continuous import ContinuousPipeline

    lines = Lines(lambda: pipeline.behind)
    pipeline = ContinuousPipeline(spark, config, lines.show)

    def stop(number: int, frame: FrameType | None) -> None:
        say("stopping after this batch; once more to stop at once")
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        pipeline.stop()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, stop)
    say(f"running, tables in {config.directory}")
    try:
        counts = pipeline.run()
    finally:
        spark.stop()
    say(f"stopped: bronze {counts.bronze}, silver {counts.silver}, rejects {counts.rejects}, gold {counts.gold}")
    return 0


class Lines:
    """A line for each batch, when its last table is written. `behind` says how much the source held unread before it."""

    def __init__(self, behind: Callable[[], int]) -> None:
        self._behind = behind
        self._rows: dict[str, int] = {}
        self._since = time.monotonic()

    def show(self, step: "Progress") -> None:
        if step.table == "gold":
            say(f"gold: {step.rows} rows")
            return
        self._rows[step.table] = step.rows
        if step.table == "rejects":
            seconds = time.monotonic() - self._since
            self._since = time.monotonic()
            rows = ", ".join(f"{table} {count}" for table, count in self._rows.items())
            say(f"batch {step.batch_id}: {rows}; {seconds:.1f} s; {self._behind()} were behind it")


def say(text: str) -> None:
    print(f"pipeline  {text}", file=sys.stderr, flush=True)
