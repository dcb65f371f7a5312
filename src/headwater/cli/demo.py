"""`headwater demo`: the main job on one machine. Real events go through a broker and a durable stream into Spark tables.

    events ─CloudEvents, binary mode─▶ our client ─TCP─▶ broker ─▶ stream EVENTS ─▶ Spark ─▶ bronze, silver, rejects, gold

Every step may be killed at any moment and run again. The publisher starts over, and the stream drops the duplicates
(`Nats-Msg-Id`, with a window that never ends); the tables continue from Spark's checkpoint. Each event appears exactly once
in the result. The steps can run separately, too: `--step publish` and `--step tables`, with `--server` against any NATS
server.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from headwater.cli.demo_events import SUBJECTS, EventLines, git_history, read_lines
from headwater.cli.directory_lock import locked
from headwater.cli.run_history import RunHistory
from headwater.client.client import connect
from headwater.client.jetstream_types import StreamConfig
from headwater.cloudevents import to_binary
from headwater.errors import EnvironmentProblem
from headwater.server.broker import Broker
from headwater.serving.event_loop import loop_factory

if TYPE_CHECKING:
    from headwater.spark_tables.run import PipelineCounts
    from headwater.spark_tables.run import Progress as TableProgress

STREAM = "EVENTS"
NEVER = 100 * 365 * 86_400  # seconds; a second run next year must not add anything, either
WINDOW = 1024  # publishes in flight, so that one fdatasync covers hundreds of them
BATCH = 5_000  # rows per micro-batch, small enough that the progress bar moves
GOLD_ROWS = 12  # shown on the terminal; the file has all of them
BAR_MONTHS, BAR_WIDTH = 24, 50  # of the chart on the terminal, in months and columns
LINE_SECONDS = 2.0  # between two progress lines for one step without a terminal
GOLD_COLUMNS = ("source", "month", "events", "authors", "files", "lines_added", "lines_deleted")


class Published(NamedTuple):
    """The result of the publishing step: events read, how many of them the stream already had, and lines refused."""

    events: int
    duplicates: int
    refused: int
    first_refusal: str
    stored: int


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """The command line of `headwater demo`."""
    parser = argparse.ArgumentParser(prog="headwater demo", description="Events through a stream into Spark tables.")
    add = parser.add_argument
    add("--events", type=Path, help="JSON lines, .gz or plain (default: the git history of the current checkout)")
    add("--dir", type=Path, default=Path("demo-data"), help="where streams and tables are kept (default: demo-data)")
    add("--server", help="a NATS server with JetStream to use instead of the embedded broker")
    add("--step", choices=["all", "publish", "tables"], default="all", help="run one step alone")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Run the demo; returns 0 when every event reached the tables. Raises HeadwaterError, among others
    for events that cannot be read; then it has made nothing."""
    arguments = parse_arguments(argv)
    if arguments.events is not None and arguments.step != "tables":
        next(iter(read_lines(arguments.events)), None)  # before anything is made, so that a wrong name leaves nothing
    console = Console(stderr=True)
    with locked(arguments.dir / ("demo.lock" if arguments.step == "all" else f"{arguments.step}.lock")):
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_run(arguments, console))


async def _run(arguments: argparse.Namespace, console: Console) -> int:
    if arguments.server:
        return await _steps(arguments, arguments.server, console)
    async with Broker(jetstream=True, store_dir=arguments.dir / "streams") as broker:
        console.print(f"broker   listening on {broker.url}, streams in {arguments.dir / 'streams'}")
        return await _steps(arguments, broker.url, console)


async def _steps(arguments: argparse.Namespace, server: str, console: Console) -> int:
    published: Published | None = None
    if arguments.step != "tables":
        published = await publish(arguments.events, server, console)
    if arguments.step == "publish":
        return 0
    tables = arguments.dir / "tables"
    stored = published.stored if published else await _stored(server)
    history = RunHistory(time.monotonic, _backlog(stored, tables), lambda batch: _rules(tables, batch))
    counts = await make_tables(server, tables, console, stored, history)
    show(tables, counts)
    _report(arguments.dir / "report.html", tables, history, counts)
    if published is not None and counts.bronze_distinct != published.stored:
        console.print(f"[red]the stream holds {published.stored} messages, bronze {counts.bronze_distinct}[/red]")
        return 1
    return 0


# ── events into the stream ──


def open_events(path: Path | None) -> tuple[str, Iterable[bytes]]:
    """The name and lines of the input."""
    if path is None:
        return "git history", list(git_history(Path.cwd()))
    return path.name, read_lines(path)


async def publish(path: Path | None, server: str, console: Console) -> Published:
    """Publish every event and wait until all are on disk."""
    name, lines = open_events(path)
    reader = EventLines(name)
    total = len(lines) if isinstance(lines, list) else sum(1 for _ in read_lines(path or Path()))
    async with await connect(server, name="headwater-demo") as client:
        jetstream = client.jetstream()
        await jetstream.create_stream(StreamConfig(name=STREAM, subjects=[SUBJECTS], duplicate_window=NEVER))
        with bars(console) as progress:
            task = progress.add_task("publish", total=total)
            async with jetstream.publisher(WINDOW) as publisher:
                count = 0
                for count, (subject, event) in enumerate(reader.events(lines), 1):
                    message = to_binary(event, msg_id=True)
                    await publisher.publish(subject, message.data, headers=message.headers)
                    if count % 100 == 0:
                        progress.update(task, completed=count)
            progress.update(task, completed=total)
        info = await jetstream.stream_info(STREAM)
    done = Published(count, publisher.duplicates, reader.refused, reader.first_refusal, info.state.messages)
    console.print(
        f"events   {done.events} read from {name}, {done.events - done.duplicates} new, {done.duplicates} known"
    )
    if done.refused:
        console.print(
            f"[yellow]refused  {done.refused} lines that are no events, the first: {done.first_refusal}[/yellow]"
        )
    console.print(f"stream   {STREAM} holds {done.stored} messages on disk")
    return done


# ── the stream into tables ──


async def _stored(server: str) -> int:
    """The number of messages in the stream."""
    async with await connect(server, name="headwater-demo") as client:
        return (await client.jetstream().stream_info(STREAM)).state.messages


def _backlog(stored: int, tables: Path) -> Callable[[int], int]:
    """Returns how many of `stored` are unread after this run has read `through`; bronze has those of earlier runs."""
    from headwater.spark_tables.tables import count_rows

    before = count_rows(tables / "bronze")
    return lambda through: max(0, stored - before - through)


def _rules(tables: Path, batch: int) -> dict[str, int]:
    from headwater.cli.run_report import rejects_by_rule

    return rejects_by_rule(tables / "rejects" / f"batch_id={batch}")


async def make_tables(
    server: str, root: Path, console: Console, expected: int, history: RunHistory
) -> "PipelineCounts":
    """Run the Spark pipeline over the whole stream; `history` records its steps."""
    return await asyncio.to_thread(_make_tables, server, root, console, expected, history)


def _make_tables(server: str, root: Path, console: Console, expected: int, history: RunHistory) -> "PipelineCounts":
    from headwater.spark.session import session
    from headwater.spark_tables.run import run_available_now

    with bars(console) as progress:
        starting = progress.add_task("start Spark", total=None)
        spark = session("headwater-demo", master="local[2]", brief=True)
        try:
            progress.update(starting, total=1, completed=1)
            history.begin()
            tasks: dict[str, TaskID] = {}

            def step(made: "TableProgress") -> None:
                history.show(made)
                if made.table not in tasks:
                    whole = expected if made.table in ("bronze", "silver") else None
                    tasks[made.table] = progress.add_task(made.table, total=whole)
                progress.update(tasks[made.table], completed=made.through)

            counts = run_available_now(spark, server, STREAM, root, max_offsets_per_trigger=BATCH, progress=step)
            for name, task in tasks.items():
                rows = getattr(counts, name)
                progress.update(task, total=rows, completed=rows)
        finally:
            spark.stop()
    return counts


def show(root: Path, counts: "PipelineCounts") -> None:
    """Print the gold table, the locations of all tables, and how many events each step read and wrote."""
    import pyarrow.parquet as pq

    console = Console()
    gold = root / "gold"
    if gold.exists():
        rows = pq.ParquetDataset(gold).read(columns=list(GOLD_COLUMNS))
        table = Table(title=f"gold: {rows.num_rows} rows, the last {GOLD_ROWS} by month", title_justify="left")
        for name in GOLD_COLUMNS:
            table.add_column(name.replace("_", " "), justify="left" if name in ("source", "month") else "right")
        for row in rows.sort_by([("month", "ascending"), ("source", "ascending")]).to_pylist()[-GOLD_ROWS:]:
            table.add_row(*map(str, row.values()))
        console.print(table)
        console.print(gold_bars(root))
    steps = Table(title="events", title_justify="left")
    for column in ("table", "in", "out", "distinct", "files"):
        steps.add_column(column, justify="left" if column in ("table", "files") else "right", overflow="fold")
    steps.add_row("bronze", str(counts.bronze), str(counts.bronze), str(counts.bronze_distinct), str(root / "bronze"))
    steps.add_row("silver", str(counts.bronze), str(counts.silver), str(counts.silver_distinct), str(root / "silver"))
    steps.add_row("rejects", str(counts.bronze), str(counts.rejects), "", str(root / "rejects"))
    steps.add_row("gold", str(counts.silver), str(counts.gold), "", str(gold))
    console.print(steps)


def gold_bars(root: Path) -> Table:
    """Events per month as bars, for the last BAR_MONTHS."""
    from headwater.cli.run_report import events_by_month

    months, series = events_by_month(root)
    totals = [sum(values[at] for values in series.values()) for at in range(len(months))][-BAR_MONTHS:]
    most = max(totals, default=0)
    chart = Table(title="events by month", title_justify="left", show_header=False, box=None)
    for month, total in zip(months[-BAR_MONTHS:], totals, strict=True):
        chart.add_row(month, "█" * max(1, round(BAR_WIDTH * total / most)) if total else "", f"{total:,}")
    return chart


def _report(path: Path, tables: Path, history: RunHistory, counts: "PipelineCounts") -> None:
    """Write the page with charts and print its path, or print the reason why it was not written."""
    from headwater.cli.run_report import write_report

    console = Console(soft_wrap=True)
    try:
        write_report(path, "Headwater demo", tables, history.batches, counts)
    except EnvironmentProblem as error:
        console.print(f"report   not written: {error}", markup=False)
    else:
        console.print(f"report   {path.absolute()}", markup=False)


@contextmanager
def bars(console: Console) -> Iterator[Progress]:
    """Progress bars on a terminal; otherwise an occasional line, and one for each finished step."""
    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    if sys.stderr.isatty():
        with Progress(*columns, console=console) as progress:
            yield progress
    else:
        yield LineProgress(console, time.monotonic)


class LineProgress(Progress):
    """Progress for a pipe or a log: at most one line per LINE_SECONDS, and one when a step is done. Draws nothing."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        super().__init__(console=console, disable=True)
        self._clock = clock
        self._printed: dict[TaskID, tuple[float, float]] = {}

    def update(self, task_id: TaskID, **fields: Any) -> None:
        """Update a task, and print its progress when it is due."""
        super().update(task_id, **fields)
        task = next(each for each in self.tasks if each.id == task_id)
        at, printed = self._printed.get(task_id, (float("-inf"), -1.0))
        now = self._clock()
        if task.completed == printed or (now - at < LINE_SECONDS and not task.finished):
            return
        self._printed[task_id] = (now, task.completed)
        whole = "" if task.total is None else f" of {task.total:,.0f}"
        self.console.print(f"{task.description:<12} {task.completed:,.0f}{whole}", markup=False, highlight=False)
