"""Rows a second from a JetStream stream on the real nats-server into Spark, and back: `./hw bench spark`.

Our `format("nats")` against a per-row data source over nats-py (`row_source.py`), same stream, same two partitions, same
Spark session, headers as a map, noop sink; and our sink against one that awaits each publish with nats-py, the same rows
with message ids into file-stored streams (the peer gets a tenth of them). Repetitions alternate A B A B. Seconds on the
wall, for that is what a job takes; on a machine that does other work trust the ratio, taken within each repetition.
"""

import argparse
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from contestants import describe_machine, start_nats_server

import headwater
from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.spark.options import parse_options
from headwater.spark.range_reader import read_range, stream_state
from headwater.spark.ranges import Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAM = "HDR"
SUBJECTS = 1000
PAYLOAD = b"x" * 128
PARTITIONS = 2
WINDOW = 5000  # messages published before the stream is asked whether it has them
GOAL = 8.0  # times the peer
SINK_GOAL = 10.0
SINK_SHARE = 10  # the peer writes one row in so many
MESSAGES, SMOKE_MESSAGES = 300_000, 2_000
REPETITIONS = 3


def fill(url: str, count: int) -> None:
    """A file-stored stream of `count` messages, each with two headers."""
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    client.api(f"STREAM.CREATE.{STREAM}", {"name": STREAM, "subjects": ["bench.>"], "storage": "file"})
    host, port = url.removeprefix("nats://").split(":")
    with socket.create_connection((host, int(port))) as publisher:
        publisher.recv(4096)
        publisher.sendall(b'CONNECT {"verbose":false,"headers":true}\r\n')
        for start in range(0, count, WINDOW):
            end = min(start + WINDOW, count)
            publisher.sendall(b"".join(publication(number) for number in range(start, end)))
            while stream_state(client, STREAM).end <= end:
                time.sleep(0.001)
    client.close()


def publication(number: int) -> bytes:
    block = b"NATS/1.0\r\nNats-Msg-Id: %d\r\nce-type: dev.headwater.bench\r\n\r\n" % number
    head = b"HPUB bench.%d %d %d\r\n" % (number % SUBJECTS, len(block), len(block) + len(PAYLOAD))
    return head + block + PAYLOAD + b"\r\n"


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def drain(frame: "DataFrame") -> None:
    frame.write.format("noop").mode("overwrite").save()


def our_frame(spark: "SparkSession", url: str, headers: str) -> "DataFrame":
    reader = spark.read.format("nats").option("servers", url).option("stream", STREAM)
    return reader.option("includeHeaders", headers).option("minPartitions", PARTITIONS).load()


def peer_frame(spark: "SparkSession", url: str, count: int) -> "DataFrame":
    reader = spark.read.format("nats_py_rows").option("servers", url).option("stream", STREAM)
    return reader.option("count", count).option("partitions", PARTITIONS).load()


def reader_alone(url: str) -> Callable[[], object]:
    """Our range reader in this process: no Spark, one range, Arrow arrays not even wrapped."""
    options = parse_options({"servers": url, "stream": STREAM})
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    state = stream_state(client, STREAM)
    client.close()
    wanted = Range(state.stream, state.created, state.first, state.end)
    return lambda: sum(columns.rows for columns in read_range(wanted, options))


def measure(spark: "SparkSession", url: str, count: int, repetitions: int) -> dict[str, list[float]]:
    """Rows a second of each contestant, one figure per repetition. A first round warms both up and is not counted."""
    contestants: dict[str, Callable[[], object]] = {
        "headwater, headers as map": lambda: drain(our_frame(spark, url, "map")),
        "nats-py rows, headers as map": lambda: drain(peer_frame(spark, url, count)),
        "headwater, headers raw": lambda: drain(our_frame(spark, url, "raw")),
        "headwater, no headers": lambda: drain(our_frame(spark, url, "none")),
        "headwater, reader alone": reader_alone(url),
    }
    for frame in (our_frame(spark, url, "map"), peer_frame(spark, url, count)):
        found = frame.selectExpr("count(distinct seq) as n", "sum(size(headers)) as h").first()
        if found is None or (found["n"], found["h"]) != (count, 2 * count):
            raise SystemExit(f"a contestant read {found} instead of {count} messages with two headers each")
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repetitions):
        for name, work in contestants.items():
            rates[name].append(count / seconds(work))
    return rates


def rows_to_write(spark: "SparkSession", count: int, prefix: str) -> "DataFrame":
    """`count` rows in two partitions, with ids that no earlier run has used."""
    return spark.range(0, count, 1, PARTITIONS).selectExpr(
        f"concat('{prefix}.', id % {SUBJECTS}) AS subject",
        "cast(repeat('x', 128) AS binary) AS data",
        "map('ce-type', 'dev.headwater.bench') AS headers",
        f"concat('{prefix}-', uuid()) AS msg_id",
    )


def measure_sinks(spark: "SparkSession", url: str, count: int, repetitions: int) -> dict[str, list[float]]:
    """Rows a second into a stream; that all are in it is checked. The first round warms up and is not counted."""
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    counts = {"nats": count, "nats_py_rows": max(1, count // SINK_SHARE)}
    rates: dict[str, list[float]] = {"nats": [], "nats_py_rows": []}
    for repetition in range(repetitions + 1):
        for name, rows in counts.items():
            stream = f"SINK{repetition}{name}"
            client.api(f"STREAM.CREATE.{stream}", {"name": stream, "subjects": [f"{stream}.>"], "storage": "file"})
            frame = rows_to_write(spark, rows, stream)
            writer = frame.write.format(name).mode("append").option("servers", url)
            taken = seconds(writer.save)
            held = stream_state(client, stream).messages
            if held != rows:
                raise SystemExit(f"{name} wrote {rows} rows, and the stream holds {held}")
            client.api(f"STREAM.DELETE.{stream}")
            if repetition:
                rates[name].append(rows / taken)
    client.close()
    return {"headwater, sink": rates["nats"], "nats-py rows, sink": rates["nats_py_rows"]}


def report(rates: dict[str, list[float]], goal: float, *, smoke: bool) -> None:
    for name, values in rates.items():
        low, middle, high = min(values) / 1000, statistics.median(values) / 1000, max(values) / 1000
        print(f"{name:<30} {middle:8.1f} k rows/s  ({low:.1f}-{high:.1f})")
    ours, peer, *_ = rates.values()
    pairs = [a / b for a, b in zip(ours, peer, strict=True)]
    ratio = statistics.median(pairs)
    print(f"\nratio to nats-py rows: {ratio:.1f}x ({min(pairs):.1f}-{max(pairs):.1f})")
    if smoke:
        print("Smoke run: it proves that the benchmark runs; its figures mean nothing.")
    else:
        print(f"Goal, at least {goal:g}x: {'met' if ratio >= goal else 'MISSED'}.\n")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="hw bench spark", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="few rows, one repetition: only proves that it runs")
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"in the stream (default: {MESSAGES})")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help=f"(default: {REPETITIONS})")
    parser.add_argument("--allow-interpreted", action="store_true", help="measure even where we are not compiled")
    arguments = parser.parse_args(argv)
    compiled = bool(headwater.__compiled__)
    if not compiled and not (arguments.smoke or arguments.allow_interpreted):
        raise SystemExit(
            "headwater runs interpreted here: its figures would mean nothing. Build it first (`./hw setup`)."
        )
    count = SMOKE_MESSAGES if arguments.smoke else arguments.messages
    repetitions = 1 if arguments.smoke else max(1, arguments.repetitions)
    mode = "compiled" if compiled else "INTERPRETED"
    load = os.getloadavg()[0]
    print(
        f"{describe_machine()}; load average {load:.1f}; headwater {mode}; {count} messages, {repetitions} repetitions\n"
    )
    # Spark's planner and workers must find the peer, as they find us.
    here = str(Path(__file__).resolve().parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    from row_source import RowSource

    from headwater.spark import session

    with tempfile.TemporaryDirectory() as directory, start_nats_server("-js", "-sd", directory) as server:
        url = f"nats://127.0.0.1:{server.port}"
        fill(url, count)
        spark = session("hw bench spark", master=f"local[{PARTITIONS}]")
        spark.dataSource.register(RowSource)
        try:
            rates = measure(spark, url, count, repetitions)
            sinks = measure_sinks(spark, url, count, repetitions)
        finally:
            spark.stop()
    report(rates, GOAL, smoke=arguments.smoke)
    report(sinks, SINK_GOAL, smoke=arguments.smoke)
    return 0


if __name__ == "__main__":
    sys.exit(main())
