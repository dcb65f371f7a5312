"""Spark and streams, against what one has without us: `./hw bench spark`.

    read        our source on the real nats-server against a data source that yields a row per nats-py message, into noop and
                into Parquet; against our decoder without Spark; from our own broker and from its Iggy topics
    micro       the cost of a small micro-batch, against Spark's own rate source
    small       a query over 1,000 rows, and the delay of rows at 1,000 events a second, beside Kafka's (`spark_small.py`)
    publish     the delay of a publisher on the stream while it is replayed: by us, and by batches of direct gets
    sink        our JetStream sink against one that awaits each publish with nats-py; into our broker, synced and
                unsynced, with the option `stream`, and at least once
    costs       how the CPU time of a row is spent: broker, socket, decoding, Arrow hand-over, Spark (`row_costs.py`)

`--peers kafka` adds Spark's own Kafka source and sink on a real Kafka broker, if Maven can provide the jars.

128 bytes and two headers per message, `local[2]`, two input partitions. The row peers get a tenth of the messages. Kafka's
topic has the streams' payloads and header values, because how soon Parquet gives up a dictionary depends on the values.
Repetitions alternate A B A B; a goal is judged by the median of the ratios within the repetitions, because rates vary with
the machine. A preceding round, during which the JVM compiles, is not counted.

A job has a fixed cost, the second in which Spark plans it and starts processes. With 500,000 messages it is a small part of
each figure; with 50,000 it is most of it, and the ratios to row peers halve.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import kafka_peer
import row_costs
import spark_contestants as work
import spark_small
from contestants import describe_machine, refuse_interpreted, start_headwater, start_nats_server

import headwater
from headwater.testing.ports import free_port

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGES, SMOKE_MESSAGES = 500_000, 2_000
REPETITIONS = 3
SHARE = 10  # the row peers get a tenth of the messages
BATCHES, SMOKE_BATCHES = 25, 2
SMALL_QUERIES = 3
SECONDS, SMOKE_SECONDS = 6.0, 0.5  # during which a publisher publishes while readers read
PARTS = ("read", "micro", "small", "publish", "sink", "costs")


class Goal(NamedTuple):
    """`ours` divided by `peer` must be at least (for times, at most) `limit`."""

    what: str
    ours: str
    peer: str
    limit: float
    at_most: bool = False


GOALS = (
    Goal("map headers against nats-py rows", "nats-server, map", "nats-py rows", 12),
    Goal("map headers against our reader alone", "nats-server, map", "reader alone, nats-server", 0.6),
    Goal("from our broker against batches built beforehand", "our broker, map", "batches built beforehand", 0.75),
    Goal("from our broker against Kafka", "our broker, map", "Kafka", 3.5),
    Goal("into Parquet, from our broker against Kafka", "our broker, to Parquet", "Kafka, to Parquet", 2),
    Goal("AvailableNow, from our broker against Kafka", "our broker, AvailableNow", "Kafka, AvailableNow", 2),
    Goal("from nats-server against Kafka", "nats-server, map", "Kafka", 1.3),
    Goal("into Parquet, from nats-server against Kafka", "nats-server, to Parquet", "Kafka, to Parquet", 1.3),
    Goal("AvailableNow, from nats-server against Kafka", "nats-server, AvailableNow", "Kafka, AvailableNow", 1.3),
    Goal("into Parquet against nats-py rows", "nats-server, to Parquet", "nats-py rows, to Parquet", 8),
    Goal("from our broker against from nats-server", "our broker, map", "nats-server, map", 1),
    Goal("from Iggy against from nats-server", "Iggy, map", "nats-server, map", 1),
    Goal("a micro-batch against Spark's rate source", "micro-batch, ours", "micro-batch, rate source", 1.25, True),
    Goal("1,000 rows from our broker against Kafka", "1,000 rows, our broker", "1,000 rows, Kafka", 1, True),
    Goal("1,000 rows from nats-server against Kafka", "1,000 rows, nats-server", "1,000 rows, Kafka", 1, True),
    Goal("delay p50, our broker against Kafka", "delay p50, our broker", "delay p50, Kafka", 1, True),
    Goal("delay p99, our broker against Kafka", "delay p99, our broker", "delay p99, Kafka", 1, True),
    Goal("delay p50, nats-server against Kafka", "delay p50, nats-server", "delay p50, Kafka", 1, True),
    Goal("delay p99, nats-server against Kafka", "delay p99, nats-server", "delay p99, Kafka", 1, True),
    Goal(
        "publish p50 beside us against direct gets",
        "publish beside our replay",
        "publish beside direct gets",
        0.05,
        True,
    ),
    Goal("JetStream sink against awaited publishes", "our sink", "nats-py sink", 10),
    Goal("sink, synced, exactly once against Kafka unsynced", "sink, our broker", "Kafka sink", 0.75),
    Goal("sink, the same with the option stream", "sink, our broker, stream named", "Kafka sink", 0.75),
    Goal("sink, unsynced, at least once against Kafka", "sink, our broker, unsynced, at least once", "Kafka sink", 1),
)

COMPARED = ("nats-server, ", "our broker, ", "Iggy, ", "Kafka")  # by the first words of their names

Figures = dict[str, list[float]]


class Bench(NamedTuple):
    """The session, the servers and the sizes of a run."""

    spark: "SparkSession"
    nats: str
    broker: str
    unsynced: str
    pids: tuple[int, int]  # of nats-server and our broker
    iggy: int
    kafka: str  # "" without Kafka
    messages: int
    batches: int
    seconds: float
    smoke: bool = False

    @property
    def share(self) -> int:
        return max(1, self.messages // SHARE)


def measure_reads(bench: Bench, *, other_headers: bool, twice: bool) -> Iterator[tuple[str, float]]:
    """Rows per second of each way to read. `other_headers`: include ways without a goal. `twice`: what is COMPARED
    is read a second time, in the reverse order."""
    ways = ways_to_read(bench)
    if other_headers:
        for name, kept in (("raw", "raw"), ("no headers", "none")):
            ways[f"nats-server, {name}"] = (bench.messages, partial(drain_with, bench, kept))
    times = {name: [work.seconds(way)] for name, (_, way) in ways.items()}
    if twice:
        for name in reversed([name for name in ways if name.startswith(COMPARED)]):
            times[name].append(work.seconds(ways[name][1]))
    for name, (rows, _) in ways.items():
        yield name, rows / statistics.mean(times[name])


def ways_to_read(bench: Bench) -> dict[str, tuple[int, Callable[[], object]]]:
    """The ways by name, each with the rows that it reads. Those that are compared stand side by side."""
    spark, share = bench.spark, bench.share
    sources = {"nats-server": bench.nats, "our broker": bench.broker}
    frames = {name: partial(work.our_frame, spark, url) for name, url in sources.items()}
    streams = {
        name: partial(work.our_stream, spark, url, minPartitions=work.PARTITIONS) for name, url in sources.items()
    }
    if bench.kafka:
        frames["Kafka"] = partial(kafka_peer.frame, spark, bench.kafka)
        streams["Kafka"] = partial(kafka_peer.stream, spark, bench.kafka)
    ways: dict[str, tuple[int, Callable[[], object]]] = {
        "nats-py rows": (share, lambda: work.drain(work.peer_frame(spark, bench.nats, share))),
        "nats-py rows, to Parquet": (share, lambda: work.to_parquet(work.peer_frame(spark, bench.nats, share))),
        "reader alone, nats-server": (bench.messages, work.reader_alone(bench.nats)),
        "reader alone, our broker": (bench.messages, work.reader_alone(bench.broker)),
        "batches built beforehand": (
            bench.messages,
            lambda: work.drain(work.built_frame(spark, bench.broker, bench.messages)),
        ),
        "Iggy, map": (bench.messages, lambda: work.drain(work.iggy_frame(spark, bench.iggy))),
    }
    for name, frame in frames.items():
        ways[name if name == "Kafka" else f"{name}, map"] = bench.messages, partial(feed, frame, work.drain)
    for name, frame in frames.items():
        ways[f"{name}, to Parquet"] = bench.messages, partial(feed, frame, work.to_parquet)
    for name, stream in streams.items():
        ways[f"{name}, AvailableNow"] = bench.messages, partial(feed, stream, work.available_now)
    return ways


def feed(source: Callable[[], "DataFrame"], sink: Callable[["DataFrame"], None]) -> None:
    sink(source())


def drain_with(bench: Bench, headers: str) -> None:
    work.drain(work.our_frame(bench.spark, bench.nats, headers))


def measure_micro_batches(bench: Bench) -> Iterator[tuple[str, float]]:
    """Seconds per micro-batch, the mean of two queries of each source, the second pair in the reverse order: while the JVM
    compiles what both share, the source that comes first pays for it (77 and 49 ms, then 49 and 45)."""
    sources = {
        "micro-batch, ours": partial(work.our_micro_batches, bench.spark, bench.nats),
        "micro-batch, rate source": partial(work.rate_micro_batches, bench.spark),
    }
    times: dict[str, list[float]] = {name: [] for name in sources}
    for name in (*sources, *reversed(sources)):
        times[name].append(work.micro_batch_seconds(sources[name](), bench.batches))
    yield from ((name, statistics.mean(taken)) for name, taken in times.items())


def measure_small(bench: Bench) -> Iterator[tuple[str, float]]:
    """Seconds of small queries, and of the delay of rows."""
    peers = [
        ("our broker", bench.broker),
        ("nats-server", bench.nats),
        *([("Kafka", bench.kafka)] if bench.kafka else []),
    ]
    queries, warm = (1, SMOKE_SECONDS) if bench.smoke else (SMALL_QUERIES, spark_small.WARM_SECONDS)
    for name, address in peers:
        times = [spark_small.available_now(bench.spark, address, kafka=name == "Kafka") for _ in range(queries)]
        yield f"1,000 rows, {name}", statistics.median(times)
    for name, address in peers:
        found = spark_small.delays(bench.spark, address, warm, bench.seconds, kafka=name == "Kafka")
        if not found:
            raise SystemExit(f"no row came through {name}")
        for part in (0.5, 0.99):
            yield f"delay p{part * 100:.0f}, {name}", found[int(len(found) * part)]


def measure_publishing(bench: Bench) -> Iterator[tuple[str, float]]:
    """Median seconds of a publish to a stream that is being read."""
    for name, way in (("publish beside our replay", "replay"), ("publish beside direct gets", "direct")):
        yield name, work.publish_beside(bench.nats, way, bench.messages, bench.seconds)


def measure_sinks(bench: Bench, number: int) -> Iterator[tuple[str, float]]:
    """Rows per second into a stream."""
    for name, sink, rows in (("our sink", "nats", bench.messages), ("nats-py sink", "nats_py_rows", bench.share)):
        yield name, work.write_rows(bench.spark, bench.nats, sink, rows, f"SINK{number}{sink}")
    fresh = f"SINK{number}"
    for server, url in (("our broker", bench.broker), ("our broker, unsynced", bench.unsynced)):
        if bench.smoke and url == bench.broker:
            continue
        more: dict[str, dict[str, str]] = {"": {}, ", stream named": {"stream": fresh}}
        for kind, options in (more | {", at least once": {"delivery": "at-least-once"}}).items():
            yield f"sink, {server}{kind}", work.write_rows(bench.spark, url, "nats", bench.messages, fresh, options)
    if bench.kafka:
        frame = work.rows_to_write(bench.spark, bench.messages, "K")
        taken = work.seconds(lambda: kafka_peer.write(frame, bench.kafka, f"sink{number}"))
        yield "Kafka sink", bench.messages / taken


def print_costs(bench: Bench) -> None:
    """Print how the CPU time of a row is spent."""
    for name, url, pid, as_stored in (
        ("our broker, stored batches", bench.broker, bench.pids[1], True),
        ("nats-server, consumer", bench.nats, bench.pids[0], False),
    ):
        frame = work.our_frame(bench.spark, url)
        found = row_costs.costs(url, work.STREAM, pid, partial(work.drain, frame), as_stored=as_stored)
        print(f"us of CPU a row, {name}: {found}")
    print()


def measure(bench: Bench, parts: list[str], repetitions: int, warm: int) -> Figures:
    """One figure per repetition; `warm` preceding rounds are not counted."""
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
            "read": measure_reads(bench, other_headers=number == warm and not bench.smoke, twice=not bench.smoke),
            "micro": measure_micro_batches(bench),
            "small": measure_small(bench),
            "publish": measure_publishing(bench),
            "sink": measure_sinks(bench if number >= warm else bench._replace(messages=bench.share), number),
        }
        for part in parts:
            if part not in ways:
                continue
            if part == "publish" and number < warm:
                continue  # it does not involve the JVM
            for name, figure in ways[part]:
                print(f"  {name}: {figure:.6g}", file=sys.stderr, flush=True)
                if number >= warm:
                    figures.setdefault(name, []).append(figure)
    return figures


def report(figures: Figures, *, smoke: bool) -> None:
    for name, values in figures.items():
        is_time = name.startswith(("micro-batch", "publish", "1,000 rows", "delay"))
        scale, unit = (1000, "ms") if is_time else (0.001, "k rows/s")
        low, middle, high = (value * scale for value in (min(values), statistics.median(values), max(values)))
        print(f"{name:<42} {middle:9.2f} {unit}  ({low:.2f}-{high:.2f})")
    print()
    for goal in GOALS:
        if goal.ours not in figures or goal.peer not in figures:
            continue
        pairs = [ours / peer for ours, peer in zip(figures[goal.ours], figures[goal.peer], strict=True)]
        ratio = statistics.median(pairs)
        met = ratio <= goal.limit if goal.at_most else ratio >= goal.limit
        word = "at most" if goal.at_most else "at least"
        verdict = "" if smoke else f": {'met' if met else 'MISSED'}"
        print(f"{goal.what:<48} {ratio:7.3g}x ({min(pairs):.3g}-{max(pairs):.3g}), {word} {goal.limit:g}{verdict}")
    if smoke:
        print("\nSmoke run: it proves that the benchmark runs; its figures mean nothing.")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="hw bench spark", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="few rows, one repetition: only proves that it runs")
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"in the stream (default: {MESSAGES})")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help=f"(default: {REPETITIONS})")
    parser.add_argument("--only", default=",".join(PARTS), help="parts with commas between (default: all)")
    parser.add_argument("--peers", default="", help="kafka: Spark's own source and sink beside ours")
    parser.add_argument("--allow-interpreted", action="store_true", help="measure even where we are not compiled")
    arguments = parser.parse_args(argv)
    mode = refuse_interpreted(allow=arguments.smoke or arguments.allow_interpreted)
    parts = [part for part in PARTS if part in arguments.only.split(",")]
    count = SMOKE_MESSAGES if arguments.smoke else arguments.messages
    repetitions = 1 if arguments.smoke else max(1, arguments.repetitions)
    load = os.getloadavg()[0]
    print(f"{describe_machine()}; load average {load:.1f}; headwater {headwater.__version__} {mode}")
    print(f"{count} messages, {repetitions} repetitions\n")
    # Spark's planner and workers must be able to import the peer, as they import us.
    here = str(Path(__file__).resolve().parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    with ExitStack() as stack:
        bench = prepare(stack, parts, count, "kafka" in arguments.peers.split(","))
        if arguments.smoke:
            bench = bench._replace(batches=SMOKE_BATCHES, seconds=SMOKE_SECONDS, smoke=True)
        figures = measure(bench, parts, repetitions, warm=0 if arguments.smoke else 1)
        if "costs" in parts:
            print_costs(bench)
    report(figures, smoke=arguments.smoke)
    return 0


def prepare(stack: ExitStack, parts: list[str], count: int, with_kafka: bool) -> Bench:
    """Start servers with `count` messages each, and a session."""
    from built_source import BuiltSource
    from row_source import RowSource

    from headwater.spark import session

    settings = {"spark.sql.streaming.numRecentProgressUpdates": "200"}
    kafka = ""
    if with_kafka:
        try:
            settings["spark.jars"] = kafka_peer.connector()
            kafka = stack.enter_context(kafka_peer.started(work.PARTITIONS))
        except LookupError as error:
            print(f"without Kafka: {error}\n")
    first, second, third = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(3))
    iggy = free_port()
    nats = stack.enter_context(start_nats_server("-js", "-sd", first))
    broker = stack.enter_context(start_headwater("-js", "-sd", second, "--iggy", f"127.0.0.1:{iggy}"))
    config = Path(third) / "unsynced.conf"
    config.write_text(f"jetstream {{ store_dir: {json.dumps(third)}, sync_interval: 2m }}\n")
    unsynced = stack.enter_context(start_headwater("-c", str(config)))
    theirs, ours, fast = (f"nats://127.0.0.1:{server.port}" for server in (nats, broker, unsynced))
    if set(parts) - {"sink", "small"}:
        work.fill(theirs, count)
    if {"read", "costs"} & set(parts):
        work.fill(ours, count)
        work.fill_iggy(iggy, count)
    # The log of a query stopped in the middle of a batch is irrelevant; a failing query raises.
    spark = session("hw bench spark", master=f"local[{work.PARTITIONS}]", config=settings, log_level="OFF")
    stack.callback(spark.stop)
    spark.dataSource.register(RowSource)
    spark.dataSource.register(BuiltSource)
    if "small" in parts:
        spark_small.prepare(spark, [theirs, ours], kafka)
    if kafka and "read" in parts:
        kafka_peer.write(work.rows_to_write(spark, count, "bench", work.FILLED_ID), kafka)
    return Bench(spark, theirs, ours, fast, (nats.pid, broker.pid), iggy, kafka, count, BATCHES, SECONDS)


if __name__ == "__main__":
    sys.exit(main())
