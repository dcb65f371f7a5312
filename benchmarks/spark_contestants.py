"""The work measured by `bench_spark.py`: each function does one kind of work once, or returns the figures of one
repetition.

Peers are the alternatives without us: a data source that yields a row per nats-py message (`row_source.py`), Spark's own
rate source, reading a stream by batches of direct gets, awaiting each publish. Times are elapsed seconds, as a job takes
them.
"""

import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING

from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.net.blocking import deadline_after
from headwater.spark.options import parse_options
from headwater.spark.range_reader import read_range, stream_state
from headwater.spark.ranges import Range
from headwater.wire.columns import ColumnDecoder
from headwater.wire.server_ops import ServerOpParser

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAM = "HDR"
SUBJECTS = 1000
PAYLOAD = b"x" * 128
PARTITIONS = 2
FILLED_ID = "cast(id AS string)"  # the expression of the ids that `fill` gives
WINDOW = 5000  # messages published between two checks that the stream has them
DIRECT_BATCH = 50_000
MICRO_ROWS = 100  # per micro-batch whose overhead is measured
WARM_BATCHES = 10  # not counted; never more than the counted ones


def connect(url: str) -> BlockingClient:
    return BlockingClient.connect(ClientOptions(servers=[url]))


def fill(url: str, count: int, stream: str = STREAM, prefix: str = "bench") -> None:
    """A file-stored stream of `count` messages, each with two headers."""
    client = connect(url)
    config = {"name": stream, "subjects": [f"{prefix}.>"], "storage": "file", "allow_direct": True}
    client.api(f"STREAM.CREATE.{stream}", config)
    host, port = url.removeprefix("nats://").split(":")
    with socket.create_connection((host, int(port))) as publisher:
        publisher.recv(4096)
        publisher.sendall(b'CONNECT {"verbose":false,"headers":true}\r\n')
        for start in range(0, count, WINDOW):
            end = min(start + WINDOW, count)
            publisher.sendall(b"".join(publication(number, prefix) for number in range(start, end)))
            while stream_state(client, stream).end <= end:
                time.sleep(0.001)
    client.close()


def publication(number: int, prefix: str) -> bytes:
    block = b"NATS/1.0\r\nNats-Msg-Id: %d\r\nce-type: dev.headwater.bench\r\n\r\n" % number
    head = b"HPUB %b.%d %d %d\r\n" % (prefix.encode(), number % SUBJECTS, len(block), len(block) + len(PAYLOAD))
    return head + block + PAYLOAD + b"\r\n"


def fill_iggy(port: int, count: int) -> None:
    """A topic with as many partitions as the stream is read in, with the same payloads and two headers each."""
    from headwater.iggy_client.blocking import BlockingIggy
    from headwater.iggy_client.requests import login_of
    from headwater.iggy_wire import commands as c
    from headwater.iggy_wire.commands import Message
    from headwater.iggy_wire.identifiers import Identifier
    from headwater.model.typed_headers import TypedHeaders

    client = BlockingIggy.connect("127.0.0.1", port, login_of("iggy", "iggy", ""), 30.0)
    client.execute(c.CreateStream("bench"))
    client.execute(c.CreateTopic(Identifier("bench"), STREAM, PARTITIONS))
    for start in range(0, count, WINDOW):
        numbers = range(start, min(start + WINDOW, count))
        headers = ({"Nats-Msg-Id": str(number), "ce-type": "dev.headwater.bench"} for number in numbers)
        batch = [Message(PAYLOAD, TypedHeaders(each)) for each in headers]
        client.send("bench", STREAM, start // WINDOW % PARTITIONS, batch)
    client.close()


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def drain(frame: "DataFrame") -> None:
    frame.write.format("noop").mode("overwrite").save()


def to_parquet(frame: "DataFrame") -> None:
    with tempfile.TemporaryDirectory() as directory:
        frame.write.mode("overwrite").parquet(f"{directory}/table")


def our_frame(spark: "SparkSession", url: str, headers: str = "map") -> "DataFrame":
    reader = spark.read.format("nats").option("servers", url).option("stream", STREAM)
    return reader.option("includeHeaders", headers).option("minPartitions", PARTITIONS).load()


def iggy_frame(spark: "SparkSession", port: int) -> "DataFrame":
    reader = spark.read.format("iggy").option("servers", f"iggy://127.0.0.1:{port}").option("stream", "bench")
    return reader.option("topic", STREAM).load()


def built_frame(spark: "SparkSession", url: str, count: int) -> "DataFrame":
    """Batches built beforehand: the limit of a Python data source."""
    reader = spark.read.format("built_batches").option("servers", url).option("stream", STREAM)
    return reader.option("count", count).option("partitions", PARTITIONS).load()


def available_now(source: "DataFrame") -> None:
    """A streaming query with a checkpoint over the whole stream, into noop."""
    with tempfile.TemporaryDirectory() as directory:
        query = source.writeStream.format("noop").option("checkpointLocation", directory).trigger(availableNow=True)
        query.start().awaitTermination()


def our_stream(spark: "SparkSession", url: str, **options: object) -> "DataFrame":
    reader = spark.readStream.format("nats").option("servers", url)
    for name, value in {"stream": STREAM, "startingOffsets": "earliest", **options}.items():
        reader = reader.option(name, str(value))
    return reader.load()


def peer_frame(spark: "SparkSession", url: str, count: int) -> "DataFrame":
    reader = spark.read.format("nats_py_rows").option("servers", url).option("stream", STREAM)
    return reader.option("count", count).option("partitions", PARTITIONS).load()


def check_frame(frame: "DataFrame", count: int) -> None:
    """End the benchmark when a contestant does not read everything, including headers."""
    found = frame.selectExpr("count(*) as n", "sum(size(headers)) as h").first()
    if found is None or (found["n"], found["h"]) != (count, 2 * count):
        raise SystemExit(f"a contestant read {found} instead of {count} messages with two headers each")


def reader_alone(url: str) -> Callable[[], object]:
    """Our range reader in this process: no Spark, one range, not even Arrow arrays."""
    options = parse_options({"servers": url, "stream": STREAM})
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    state = stream_state(client, STREAM)
    client.close()
    wanted = Range(state.place, state.created, state.first, state.end)
    return lambda: sum(columns.rows for columns in read_range(wanted, options))


def micro_batch_seconds(source: "DataFrame", batches: int) -> float:
    """The median duration of a micro-batch of a query that always has data."""
    warm = min(WARM_BATCHES, batches)
    with tempfile.TemporaryDirectory() as directory:
        query = source.writeStream.format("noop").option("checkpointLocation", directory).start()
        try:
            while len(query.recentProgress) < batches + warm:
                if query.exception() is not None:
                    raise SystemExit(f"a streaming query failed: {query.exception()}")
                time.sleep(0.5)
            reports = [json.loads(progress.json) for progress in query.recentProgress]
        finally:
            query.stop()
    busy = [report["batchDuration"] / 1000 for report in reports if report["numInputRows"] > 0]
    median: float = statistics.median(busy[warm : batches + warm])
    return median


def our_micro_batches(spark: "SparkSession", url: str) -> "DataFrame":
    return our_stream(spark, url, maxOffsetsPerTrigger=MICRO_ROWS)


def rate_micro_batches(spark: "SparkSession") -> "DataFrame":
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", MICRO_ROWS).load()


def publish_beside(url: str, way: str, count: int, duration: float) -> float:
    """Median seconds of a publish to the stream, while one process per partition reads it continuously. `way` is `replay`,
    by our executors' reader, or `direct`, by batches of direct gets. All are running when measuring begins.
    """
    edges = [1 + count * piece // PARTITIONS for piece in range(PARTITIONS + 1)]
    with ExitStack() as stack:
        for a, b in pairwise(edges):
            command = [sys.executable, __file__, way, url, str(a), str(b)]
            reader = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(reader.kill)
            assert reader.stdout is not None
            reader.stdout.readline()  # it has read its share once
        client = BlockingClient.connect(ClientOptions(servers=[url]))
        times: list[float] = []
        end = time.perf_counter() + duration
        while time.perf_counter() < end:
            times.append(seconds(lambda: client.request("bench.probe", b"x", timeout=60)))
            time.sleep(0.002)
        client.close()
    return statistics.median(times)


def replays(url: str, first: int, last: int) -> None:
    """Read `[first, last)` once, like an executor."""
    options = parse_options({"servers": url, "stream": STREAM})
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    state = stream_state(client, STREAM)
    client.close()
    for _ in read_range(Range(state.place, state.created, first, last), options):
        pass


def direct_gets(url: str, first: int, last: int) -> None:
    """Read `[first, last)` by batches of direct gets, at full speed."""
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    while first < last:
        sid, inbox = client.subscribe()
        decoder = ColumnDecoder(sid, 1, 1 << 62, with_map=False, with_raw=False)
        parser = ServerOpParser(decoder)
        batch = min(DIRECT_BATCH, last - first)
        client.publish(f"$JS.API.DIRECT.GET.{STREAM}", b'{"seq":%d,"batch":%d}' % (first, batch), inbox)
        ended = False
        while not ended:
            if not client.feed(parser, deadline_after(30)):
                raise SystemExit("a batch of direct gets did not end")
            # No delivery here has an acknowledgement subject, so the decoder keeps all of them; the last one has a status.
            blocks, decoder.statuses = decoder.statuses, []
            ended = any(block.startswith(b"NATS/1.0 ") for block in blocks)
            client.pong(decoder.take_pings())
        client.unsubscribe(sid)
        first += batch
    client.close()


def rows_to_write(spark: "SparkSession", count: int, prefix: str, msg_id: str = "") -> "DataFrame":
    """`count` rows in two partitions, with the ids of an expression or, without one, ids not used by any earlier run."""
    return spark.range(0, count, 1, PARTITIONS).selectExpr(
        f"concat('{prefix}.', id % {SUBJECTS}) AS subject",
        "cast(repeat('x', 128) AS binary) AS data",
        "map('ce-type', 'dev.headwater.bench') AS headers",
        (msg_id or f"concat('{prefix}-', uuid())") + " AS msg_id",
    )


def write_rows(
    spark: "SparkSession", url: str, name: str, rows: int, stream: str, options: dict[str, str] | None = None
) -> float:
    """Rows per second through a sink of format `name` into a new stream, after checking that all are in it."""
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    client.api(f"STREAM.CREATE.{stream}", {"name": stream, "subjects": [f"{stream}.>"], "storage": "file"})
    writer = (
        rows_to_write(spark, rows, stream).write.format(name).mode("append").options(servers=url, **(options or {}))
    )
    taken = seconds(writer.save)
    held = stream_state(client, stream).messages
    if held != rows:
        raise SystemExit(f"{name} wrote {rows} rows, and the stream holds {held}")
    client.api(f"STREAM.DELETE.{stream}")
    client.close()
    return rows / taken


def read_for_ever(way: str, url: str, first: int, last: int) -> None:
    """Prints `ready` after the first read."""
    once = replays if way == "replay" else direct_gets
    once(url, first, last)
    print("ready", flush=True)
    while True:
        once(url, first, last)


if __name__ == "__main__":
    read_for_ever(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
