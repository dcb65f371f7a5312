"""Spark and streams, against what one has without us: `./hw bench spark`.

    read        our source on the real nats-server against a data source that yields a row per nats-py message, into noop and
                into Parquet; against our decoder without Spark; from our own broker and from its Iggy topics
    micro       what a small micro-batch costs, against Spark's own rate source
    publish     how long a publisher on the stream waits while it is replayed: by us, and by batches of direct gets
    sink        our JetStream sink against one that awaits each publish with nats-py

128 bytes and two headers a message, `local[2]`, two input partitions. The row peers get a tenth of the messages. Repetitions
alternate A B A B; a goal is judged by the median of the ratios within the repetitions, since rates swing with the machine. A
round before them, of what the JVM compiles, is not counted.

A job has a fixed price, the second in which Spark plans it and starts processes. With 500,000 messages it is a small part
of each figure; with 50,000 it is most of it, and the ratios to row peers halve.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import spark_contestants as work
from contestants import describe_machine, refuse_interpreted, start_headwater, start_nats_server

import headwater
from headwater.testing.ports import free_port

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGES, SMOKE_MESSAGES = 500_000, 2_000
REPETITIONS = 3
SHARE = 10  # the row peers get one message in so many
BATCHES, SMOKE_BATCHES = 25, 2
SECONDS, SMOKE_SECONDS = 6.0, 0.5  # for which a publisher publishes beside readers
PARTS = ("read", "micro", "publish", "sink")


class Goal(NamedTuple):
    """`ours` over `peer` is to be at least (or, for times, at most) `limit`."""

    what: str
    ours: str
    peer: str
    limit: float
    at_most: bool = False


GOALS = (
    Goal("map headers against nats-py rows", "nats-server, map", "nats-py rows", 12),
    Goal("map headers against our decoder alone", "nats-server, map", "decoder alone", 0.6),
    Goal("into Parquet against nats-py rows", "nats-server, to Parquet", "nats-py rows, to Parquet", 8),
    Goal("from our broker against from nats-server", "our broker, map", "nats-server, map", 1),
    Goal("from Iggy against from nats-server", "Iggy, map", "nats-server, map", 1),
    Goal("a micro-batch against Spark's rate source", "micro-batch, ours", "micro-batch, rate source", 1.25, True),
    Goal(
        "publish p50 beside us against direct gets",
        "publish beside our replay",
        "publish beside direct gets",
        0.05,
        True,
    ),
    Goal("JetStream sink against awaited publishes", "our sink", "nats-py sink", 10),
)

Figures = dict[str, list[float]]


class Bench(NamedTuple):
    """What is there to measure with."""

    spark: "SparkSession"
    nats: str
    broker: str
    iggy: int
    messages: int
    batches: int
    seconds: float

    @property
    def share(self) -> int:
        return max(1, self.messages // SHARE)


def measure_reads(bench: Bench, *, other_headers: bool) -> Iterator[tuple[str, float]]:
    """Rows a second of each way to read. `other_headers`: also those of which no goal speaks."""
    ways: dict[str, tuple[int, Callable[[], object]]] = {
        "nats-server, map": (bench.messages, lambda: work.drain(work.our_frame(bench.spark, bench.nats))),
        "nats-py rows": (bench.share, lambda: work.drain(work.peer_frame(bench.spark, bench.nats, bench.share))),
        "decoder alone": (bench.messages, work.reader_alone(bench.nats)),
        "our broker, map": (bench.messages, lambda: work.drain(work.our_frame(bench.spark, bench.broker))),
        "Iggy, map": (bench.messages, lambda: work.drain(work.iggy_frame(bench.spark, bench.iggy))),
        "nats-server, to Parquet": (bench.messages, lambda: work.to_parquet(work.our_frame(bench.spark, bench.nats))),
        "nats-py rows, to Parquet": (
            bench.share,
            lambda: work.to_parquet(work.peer_frame(bench.spark, bench.nats, bench.share)),
        ),
    }
    if other_headers:
        for name, kept in (("raw", "raw"), ("no headers", "none")):
            ways[f"nats-server, {name}"] = (bench.messages, partial(drain_with, bench, kept))
    for name, (rows, way) in ways.items():
        yield name, rows / work.seconds(way)


def drain_with(bench: Bench, headers: str) -> None:
    work.drain(work.our_frame(bench.spark, bench.nats, headers))


def measure_micro_batches(bench: Bench) -> Iterator[tuple[str, float]]:
    """Seconds of a micro-batch."""
    ours = work.our_micro_batches(bench.spark, bench.nats)
    yield "micro-batch, ours", work.micro_batch_seconds(ours, bench.batches)
    yield "micro-batch, rate source", work.micro_batch_seconds(work.rate_micro_batches(bench.spark), bench.batches)


def measure_publishing(bench: Bench) -> Iterator[tuple[str, float]]:
    """Median seconds of a publish to the stream that is being read."""
    for name, way in (("publish beside our replay", "replay"), ("publish beside direct gets", "direct")):
        yield name, work.publish_beside(bench.nats, way, bench.messages, bench.seconds)


def measure_sinks(bench: Bench, number: int) -> Iterator[tuple[str, float]]:
    """Rows a second into a stream."""
    for name, sink, rows in (("our sink", "nats", bench.messages), ("nats-py sink", "nats_py_rows", bench.share)):
        yield name, work.write_rows(bench.spark, bench.nats, sink, rows, f"SINK{number}{sink}")


def measure(bench: Bench, parts: list[str], repetitions: int, warm: int) -> Figures:
    """One figure per repetition; `warm` rounds before them are not counted."""
    figures: Figures = {}
    if "read" in parts:
        frames: list[tuple[DataFrame, int]] = [
            (work.our_frame(bench.spark, bench.nats), bench.messages),
            (work.our_frame(bench.spark, bench.broker), bench.messages),
            (work.iggy_frame(bench.spark, bench.iggy), bench.messages),
            (work.peer_frame(bench.spark, bench.nats, bench.share), bench.share),
        ]
        for frame, count in frames:
            work.check_frame(frame, count)
    for number in range(warm + repetitions):
        ways: dict[str, Iterator[tuple[str, float]]] = {
            "read": measure_reads(bench, other_headers=number == warm),
            "micro": measure_micro_batches(bench),
            "publish": measure_publishing(bench),
            "sink": measure_sinks(bench if number >= warm else bench._replace(messages=bench.share), number),
        }
        for part in parts:
            if part == "publish" and number < warm:
                continue  # no JVM in it
            for name, figure in ways[part]:
                print(f"  {name}: {figure:.6g}", file=sys.stderr, flush=True)
                if number >= warm:
                    figures.setdefault(name, []).append(figure)
    return figures


def report(figures: Figures, *, smoke: bool) -> None:
    for name, values in figures.items():
        is_time = name.startswith(("micro-batch", "publish"))
        scale, unit = (1000, "ms") if is_time else (0.001, "k rows/s")
        low, middle, high = (value * scale for value in (min(values), statistics.median(values), max(values)))
        print(f"{name:<28} {middle:9.2f} {unit}  ({low:.2f}-{high:.2f})")
    print()
    for goal in GOALS:
        if goal.ours not in figures or goal.peer not in figures:
            continue
        pairs = [ours / peer for ours, peer in zip(figures[goal.ours], figures[goal.peer], strict=True)]
        ratio = statistics.median(pairs)
        met = ratio <= goal.limit if goal.at_most else ratio >= goal.limit
        word = "at most" if goal.at_most else "at least"
        verdict = "" if smoke else f": {'met' if met else 'MISSED'}"
        print(f"{goal.what:<44} {ratio:7.3g}x ({min(pairs):.3g}-{max(pairs):.3g}), {word} {goal.limit:g}{verdict}")
    if smoke:
        print("\nSmoke run: it proves that the benchmark runs; its figures mean nothing.")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="hw bench spark", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="few rows, one repetition: only proves that it runs")
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"in the stream (default: {MESSAGES})")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help=f"(default: {REPETITIONS})")
    parser.add_argument("--only", default=",".join(PARTS), help="parts with commas between (default: all)")
    parser.add_argument("--allow-interpreted", action="store_true", help="measure even where we are not compiled")
    arguments = parser.parse_args(argv)
    mode = refuse_interpreted(allow=arguments.smoke or arguments.allow_interpreted)
    parts = [part for part in PARTS if part in arguments.only.split(",")]
    count = SMOKE_MESSAGES if arguments.smoke else arguments.messages
    repetitions = 1 if arguments.smoke else max(1, arguments.repetitions)
    load = os.getloadavg()[0]
    print(f"{describe_machine()}; load average {load:.1f}; headwater {headwater.__version__} {mode}")
    print(f"{count} messages, {repetitions} repetitions\n")
    # Spark's planner and workers must find the peer, as they find us.
    here = str(Path(__file__).resolve().parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    from row_source import RowSource

    from headwater.spark import session

    with ExitStack() as stack:
        first, second = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2))
        iggy = free_port()
        nats = stack.enter_context(start_nats_server("-js", "-sd", first))
        broker = stack.enter_context(start_headwater("-js", "-sd", second, "--iggy", f"127.0.0.1:{iggy}"))
        theirs, ours = (f"nats://127.0.0.1:{server.port}" for server in (nats, broker))
        if set(parts) - {"sink"}:
            work.fill(theirs, count)
        if "read" in parts:
            work.fill(ours, count)
            work.fill_iggy(iggy, count)
        settings = {"spark.sql.streaming.numRecentProgressUpdates": "200"}
        # What a query says that is stopped in the middle of a batch is no news; one that fails raises.
        spark = session("hw bench spark", master=f"local[{work.PARTITIONS}]", config=settings, log_level="OFF")
        stack.callback(spark.stop)
        spark.dataSource.register(RowSource)
        bench = Bench(
            spark,
            theirs,
            ours,
            iggy,
            count,
            *((SMOKE_BATCHES, SMOKE_SECONDS) if arguments.smoke else (BATCHES, SECONDS)),
        )
        figures = measure(bench, parts, repetitions, warm=0 if arguments.smoke else 1)
    report(figures, smoke=arguments.smoke)
    return 0


if __name__ == "__main__":
    sys.exit(main())
