"""The part `small` of `bench_spark.py`: a query over a thousand rows, and the delay of rows at 1,000 events a second.

The delay of a row is the time from its message's time stamp (of a stream: stored; of Kafka: produced, in milliseconds) until
`foreachBatch` has it in Python, with the default trigger. Publishers are processes of their own, this file called with
`nats` or `kafka`; they send ten messages every ten milliseconds.
"""

import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import kafka_peer
import spark_contestants as work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 1_000
STREAM = "SMALL"  # of ROWS messages
LIVE = "LIVE"
TICK, EACH = 0.01, 10  # 1,000 events a second
WARM_SECONDS = 5.0  # in which the first batches of a query run
PAYLOAD = b"x" * 128


def prepare(spark: "SparkSession", urls: list[str], kafka: str) -> None:
    """Streams and topics for `available_now` and `delays`."""
    for url in urls:
        client = work.connect(url)
        client.api(f"STREAM.CREATE.{LIVE}", {"name": LIVE, "subjects": ["live"], "storage": "file"})
        client.close()
        work.fill(url, ROWS, STREAM, "small")
    if kafka:
        kafka_peer.write(work.rows_to_write(spark, ROWS, "small"), kafka, STREAM)
        kafka_peer.write(work.rows_to_write(spark, 1, "live"), kafka, LIVE)


def available_now(spark: "SparkSession", address: str, *, kafka: bool = False) -> float:
    """Seconds of a query over ROWS rows, its frame and checkpoint included."""
    if kafka:
        return work.seconds(lambda: work.available_now(kafka_peer.stream(spark, address, STREAM)))
    return work.seconds(lambda: work.available_now(work.our_stream(spark, address, stream=STREAM)))


def delays(spark: "SparkSession", address: str, warm: float, seconds: float, *, kafka: bool = False) -> list[float]:
    """The delay of each row that is published in `seconds` behind the first `warm` ones, in seconds, sorted."""
    found: list[float] = []
    counted = threading.Event()

    def take(batch: "DataFrame", number: int) -> None:
        rows = batch.selectExpr("unix_micros(timestamp) AS at").collect()
        now = time.time()
        if counted.is_set():
            found.extend(now - row["at"] / 1e6 for row in rows)

    if kafka:
        source = kafka_peer.stream(spark, address, LIVE, "latest")
    else:
        source = work.our_stream(spark, address, stream=LIVE, startingOffsets="latest")
    with tempfile.TemporaryDirectory() as directory:
        query = source.writeStream.foreachBatch(take).option("checkpointLocation", directory).start()
        command = [sys.executable, __file__, "kafka" if kafka else "nats", address, str(warm + seconds)]
        with subprocess.Popen(command) as publisher:
            time.sleep(warm)
            counted.set()
            publisher.wait()
        query.processAllAvailable()  # a query that is stopped in the middle of a batch says so at length
        query.stop()
    return sorted(found)


def publish_to_stream(url: str, seconds: float) -> None:
    """ROWS messages a second, to the subject `live`."""
    host, port = url.removeprefix("nats://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b'CONNECT {"verbose":false}\r\n')
        message = b"PUB live %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)
        for _ in ticks(seconds):
            connection.sendall(message * EACH)


def publish_to_kafka(address: str, seconds: float) -> None:
    """The same to the topic LIVE of a broker that leads its partitions."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port))) as connection:
        for turn in ticks(seconds):
            partition = turn % work.PARTITIONS
            connection.sendall(kafka_peer.produce_request(LIVE, partition, [PAYLOAD] * EACH, int(time.time() * 1000)))
            (length,) = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))
            kafka_peer.check_produced(connection.recv(length, socket.MSG_WAITALL))


def ticks(seconds: float) -> Iterator[int]:
    """Numbers from 0 on, one each TICK."""
    start = time.monotonic()
    for turn in range(int(seconds / TICK)):
        time.sleep(max(0.0, start + turn * TICK - time.monotonic()))
        yield turn


if __name__ == "__main__":
    {"nats": publish_to_stream, "kafka": publish_to_kafka}[sys.argv[1]](sys.argv[2], float(sys.argv[3]))
