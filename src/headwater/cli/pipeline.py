"""`headwater pipeline init FILE` and `headwater pipeline run FILE`: a NATS stream into tables, for as long as it is to run.

SIGINT and SIGTERM let the micro-batch in hand be finished; a second one ends at once, which loses nothing either. Progress
is a line per batch on standard error, so that a service's journal can have it.
"""

import argparse
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
    for name, meaning in (("init", "write an example of a configuration file"), ("run", "run until stopped")):
        verbs.add_parser(name, help=meaning).add_argument("file", type=Path, help="the configuration file, TOML")
    arguments = parser.parse_args(argv)
    return init(arguments.file) if arguments.verb == "init" else run(arguments.file)


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
