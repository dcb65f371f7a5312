"""`headwater pipeline init`, `run`, `env` and `package`: a stream into tables, by a long-running job or a Spark project.

A name that ends in `.toml` is a configuration file, and `run` continues until it is stopped; any other name is the
directory of a Spark Declarative Pipelines project, and `run` is one `spark-pipelines run`. `env` is `headwater spark-env`.
`package` writes an archive for the executors of a cluster.

`--report FILE.html` writes a page about the run when it ends.

SIGINT and SIGTERM stop the run after the current micro-batch; a second signal stops it at once, which loses nothing,
either. Progress is one line per batch on standard error, suited to a service's journal.
"""

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from headwater.cli.run_history import RunHistory, batch_line
from headwater.cli.spark_commands import print_environment
from headwater.errors import ConfigError

if TYPE_CHECKING:
    from headwater.spark_tables.run import Progress


def main(argv: list[str]) -> int:
    """The verb `pipeline`. Raises ConfigError and EnvironmentProblem."""
    parser = argparse.ArgumentParser(prog="headwater pipeline", description="a NATS stream into tables, with Spark")
    verbs = parser.add_subparsers(dest="verb", required=True)
    where = "a configuration file, NAME.toml, or the directory of a Spark Declarative Pipelines project"
    for name, meaning in (("init", "write an example"), ("run", "run a file until stopped, a project once")):
        verb = verbs.add_parser(name, help=meaning)
        verb.add_argument("file", type=Path, metavar="PLACE", help=where)
        if name == "run":
            verb.add_argument("--report", type=Path, metavar="FILE.html", help="write charts of the run when it ends")
    package = verbs.add_parser("package", help="an archive with Headwater for executors that do not have it")
    package.add_argument("archive", type=Path, help="the file to write, NAME.zip")
    package.add_argument("--also", action="append", default=[], metavar="NAME", help="a further installed package")
    verbs.add_parser("env", help="the same as `headwater spark-env`")
    arguments, further = parser.parse_known_args(argv)
    if further and (arguments.verb != "run" or arguments.file.suffix == ".toml"):
        parser.error(f"unrecognized arguments: {' '.join(further)}")
    if arguments.verb == "env":
        return print_environment([])
    if arguments.verb == "package":
        return package_for_executors(arguments.archive, arguments.also)
    is_project = arguments.file.suffix != ".toml"
    if arguments.verb == "init":
        return init_project(arguments.file) if is_project else init(arguments.file)
    if not is_project:
        return run(arguments.file, arguments.report)
    if arguments.report is not None:
        parser.error("--report is for a configuration file")
    return run_project(arguments.file, further)


def init(path: Path) -> int:
    """Write the template; an existing file is left unchanged."""
    from headwater.spark.pipeline_config import TEMPLATE

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(name=path.name))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", value=str(path)) from error
    print(f"{path}: name your stream there, then `headwater pipeline run {path}`")
    return 0


def init_project(directory: Path) -> int:
    """Write the files of a project; existing ones are left unchanged."""
    from headwater.spark.declarative import CONFIG_FILE, write_project

    for path in write_project(directory):
        print(path)
    print(f"name your stream in {directory / CONFIG_FILE}, then `headwater pipeline run {directory}`")
    return 0


def run_project(directory: Path, arguments: list[str]) -> int:
    """Run `spark-pipelines run` once, passing on further arguments (--full-refresh, ...)."""
    from headwater.spark.declarative import run_project as spark_pipelines_run

    return spark_pipelines_run(directory, arguments)


def package_for_executors(archive: Path, also: list[str]) -> int:
    """Write the archive, and print the settings with which Spark uses it."""
    from headwater.spark.packaging import made_for, make_archive, settings

    make_archive(archive, also)
    print(f"{archive}: for {made_for()}")
    for name, value in settings(archive).items():
        print(f"    --conf {name}={shlex.quote(value)}")
    return 0


def run(path: Path, report: Path | None = None) -> int:
    """Run the pipeline of a configuration file until a signal arrives; then write the report, if requested."""
    from headwater.cli.run_report import rejects_by_rule, require_charts, write_report
    from headwater.spark.pipeline_config import read_pipeline_config
    from headwater.spark.session import session

    config = read_pipeline_config(path)
    if report is not None:
        require_charts()
    with deaf_children():
        spark = session("headwater-pipeline", master=config.master, config=config.spark)
    from headwater.spark.continuous import ContinuousPipeline
    from headwater.spark_tables.metrics import PipelineMetrics

    rejected = config.directory / "rejects"
    history = RunHistory(
        time.monotonic,
        lambda through: pipeline.behind,
        lambda batch: rejects_by_rule(rejected / f"batch_id={batch}"),
        lambda: pipeline.batch_seconds,
    )
    metrics: PipelineMetrics | None = None
    if config.metrics:
        metrics = PipelineMetrics(lambda: pipeline.behind, lambda: pipeline.batch_seconds)
        metrics.serve(config.metrics)

    def show(step: "Progress") -> None:
        show_step(history, step)
        if metrics is not None:
            metrics.show(step)

    pipeline = ContinuousPipeline(spark, config, show)

    def stop(number: int, frame: FrameType | None) -> None:
        print_line("stopping after this batch; once more to stop at once")
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        pipeline.stop()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, stop)
    print_line(f"running, tables in {config.directory}")
    try:
        counts = pipeline.run()
    finally:
        if metrics is not None:
            metrics.close()
        spark.stop()
    if report is not None:
        write_report(report, f"Pipeline {path.name}", config.directory, history.batches, counts)
        print_line(f"report: {report}")
    print_line(f"stopped: bronze {counts.bronze}, silver {counts.silver}, rejects {counts.rejects}, gold {counts.gold}")
    return 0


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes started within ignore SIGTERM, so that the current batch is completed when systemd sends it to all
    processes. Spark and its workers still end with this process, which holds their standard input. Our own SIGTERM is
    blocked until the end of this context, and delivered then: a blocked signal stays pending even while it is ignored.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def show_step(history: RunHistory, step: "Progress") -> None:
    """Print a line for each batch, when its last table is written, and for gold."""
    batch = history.show(step)
    if step.table == "gold":
        print_line(f"gold: {step.rows} rows")
    elif batch is not None:
        print_line(batch_line(batch))


def print_line(text: str) -> None:
    print(f"pipeline  {text}", file=sys.stderr, flush=True)
