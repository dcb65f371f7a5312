"""States what Spark's Python processes hold while they read much: by hand, it takes minutes and is no part of CI.

    PYTHONPATH=src:tests .venv/bin/python tests/support/spark_memory.py [--scale 10] [--only many,large]

Three streams of our broker, read by `local[2]`: ten million events of 100 bytes over 100 input partitions, a hundred streams
of which one holds as much as all others together, and 100 messages of 10 MB. For each, the rows that came, and the most
that any one Python process of Spark's held while they were read, as the kernel saw it (resident, in MB). `--scale N` takes
one Nth of the events, not of the size of a message; `--only` some of the three. Exits with 1 when a row is missing or a
process held more than LIMITS.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from support.headwater_server import HeadwaterServer, start_headwater

from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.spark import session
from headwater.spark.range_reader import stream_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS, PARTITIONS, STREAMS, LARGE, MEGABYTES = 10_000_000, 100, 100, 100, 10
WINDOW = 64 << 20  # bytes published between two looks at what the stream has
LIMITS = {"many": 400, "skewed": 400, "large": 600}
"""MB a process may hold."""
PAUSE = 0.05


def fill(client: BlockingClient, stream: str, count: int, size: int) -> None:
    subject = stream.lower().encode()
    config = {"name": stream, "subjects": [subject.decode()], "storage": "file"}
    client.api(f"STREAM.CREATE.{stream}", config)
    message = b"PUB %b %d\r\n%b\r\n" % (subject, size, bytes(size))
    step = max(1, min(WINDOW // len(message), 20_000))
    for start in range(0, count, step):
        last = min(start + step, count)
        client.output.append(message * (last - start))
        client.flush()
        while stream_state(client, stream).end <= last:
            time.sleep(0.002)


def start_broker(place: Path) -> HeadwaterServer:
    config = place / "broker.conf"
    config.write_text(f"max_payload: 16MB\njetstream {{ store_dir: {json.dumps(str(place / 'js'))} }}\n")
    return start_headwater(place, "-c", str(config))


class Watch:
    """The most that each Python process below this one held while it was watched."""

    def __init__(self) -> None:
        self.most: dict[int, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(PAUSE):
            for process in psutil.Process().children(recursive=True):
                try:
                    if "pyspark" in " ".join(process.cmdline()) and "python" in process.name():
                        held = process.memory_info().rss
                        self.most[process.pid] = max(self.most.get(process.pid, 0), held)
                except psutil.Error:
                    continue


def frame(spark: "SparkSession", url: str, streams: str, partitions: int) -> "DataFrame":
    reader = spark.read.format("nats").option("servers", url).option("stream", streams)
    return reader.option("minPartitions", partitions).load()


def fill_all(client: BlockingClient, name: str, scale: int) -> tuple[str, int, int]:
    """Fill what a reading needs; returns the streams, how many messages they have together, and the input partitions."""
    if name == "many":
        fill(client, "MANY", EVENTS // scale, 100)
        return "MANY", EVENTS // scale, PARTITIONS
    if name == "large":
        fill(client, "LARGE", max(LARGE // scale, 4), MEGABYTES * 1_000_000)
        return "LARGE", max(LARGE // scale, 4), 2
    others = EVENTS // scale // 10 // (2 * (STREAMS - 1))
    fill(client, "SKEWED0", others * (STREAMS - 1), 100)
    for number in range(1, STREAMS):
        fill(client, f"SKEWED{number}", others, 100)
    return ",".join(f"SKEWED{number}" for number in range(STREAMS)), 2 * others * (STREAMS - 1), PARTITIONS


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=1, help="take one Nth of the events")
    parser.add_argument("--only", default=",".join(LIMITS), help="readings with commas between (default: all)")
    given = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as made, start_broker(Path(made)) as broker:
        client = BlockingClient.connect(ClientOptions(servers=[broker.url]))
        spark = session("memory", master="local[2]")
        for name in given.only.split(","):
            streams, wanted, partitions = fill_all(client, name, given.scale)
            started = time.perf_counter()
            with Watch() as watch:
                parts = frame(spark, broker.url, streams, partitions)
                rows = parts.selectExpr("count(*) AS n", "sum(length(data)) AS bytes").collect()[0]
            most = max(watch.most.values(), default=0) / 1e6
            good = good and rows["n"] == wanted and 0 < most <= LIMITS[name]
            line = f"{name}: {rows['n']} of {wanted} rows, {rows['bytes'] / 1e6:.0f} MB, {parts.rdd.getNumPartitions()}"
            taken = time.perf_counter() - started
            sys.stdout.write(f"{line} partitions, {taken:.0f} s; a process held {most:.0f} MB of {LIMITS[name]}\n")
            sys.stdout.flush()
        spark.stop()
        client.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
