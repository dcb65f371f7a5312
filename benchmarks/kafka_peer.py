"""Spark's own Kafka source and sink on a real Kafka broker, as a peer of bench_spark.py: `--peers kafka`.

None of it is installed with us. Maven fetches the jars into a user cache once: those of Spark's connector and those of the
broker, separately, because they need different versions of the client. If Maven or the jars are not available, `jars` says
so and the benchmark continues without the peer. One node in KRaft mode, on loopback, without fsync, with default settings.
The connector is for Spark 4.2, the newest one available; it works in Spark 4.3.
"""

import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import google_crc32c

from headwater.spark_runtime.java import java_home
from headwater.testing.ports import free_port

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
BROKER = "org.apache.kafka:kafka_2.13:4.1.0"
FETCH_SECONDS = 400.0
START_SECONDS = 120.0
TOPIC = "bench"

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>bench</groupId><artifactId>bench</artifactId><version>1</version><dependencies><dependency>
<groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency></dependencies></project>
"""

SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={directory}
num.partitions={partitions}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


def jars(artifact: str) -> list[Path]:
    """The jars of an artifact and its dependencies. Raises LookupError, with the reason, when they are not available."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater" / "bench-jars"
    place = cache / artifact.replace(":", "_")
    if not place.is_dir():
        maven = shutil.which("mvn")
        if maven is None:
            raise LookupError("there is no mvn to fetch its jars with")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            (Path(made) / "pom.xml").write_text(POM.format(*artifact.split(":")))
            command = [maven, "-B", "-q", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
            try:
                subprocess.run([*command, "-DincludeScope=runtime"], cwd=made, check=True, timeout=FETCH_SECONDS)
            except (subprocess.SubprocessError, OSError) as error:
                raise LookupError(f"{artifact} cannot be fetched: {error}") from error
            (Path(made) / "jars").rename(place)
    return sorted(place.glob("*.jar"))


def connector() -> str:
    """The value of Spark's setting `spark.jars`, without jars that Spark has already."""
    own = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
    return ",".join(str(path) for path in jars(CONNECTOR) if path.name.startswith(own))


@contextmanager
def started(partitions: int) -> Iterator[str]:
    """Start a broker; yields its address."""
    classpath = os.pathsep.join(map(str, jars(BROKER)))
    java = [str(java_home() / "bin" / "java"), "-Xmx1g", "-cp", classpath]
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        port, controller = free_port(), free_port()
        config = directory / "server.properties"
        config.write_text(
            SETTINGS.format(port=port, controller=controller, directory=directory / "log", partitions=partitions)
        )
        identity = "AAAAAAAAAAAAAAAAAAAAAQ"
        with (directory / "out").open("wb") as log:
            tool = [*java, "kafka.tools.StorageTool", "format", "-t", identity, "-c", str(config)]
            subprocess.run(tool, check=True, stdout=log, stderr=log, timeout=START_SECONDS)
            broker = subprocess.Popen([*java, "kafka.Kafka", str(config)], stdout=log, stderr=log)
        try:
            _wait_for(port, broker, directory / "out")
            yield f"127.0.0.1:{port}"
        finally:
            broker.kill()
            broker.wait()


def _wait_for(port: int, broker: "subprocess.Popen[bytes]", log: Path) -> None:
    import socket

    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and broker.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"Kafka did not start:\n{log.read_text(errors='replace')[-2000:]}")


def write(rows: "DataFrame", address: str, topic: str = TOPIC) -> None:
    """Write rows of `spark_contestants.rows_to_write` through Spark's Kafka sink."""
    made = rows.selectExpr(
        "subject AS key",
        "data AS value",
        "array(named_struct('key', 'Nats-Msg-Id', 'value', cast(msg_id AS binary)), "
        "named_struct('key', 'ce-type', 'value', cast(headers['ce-type'] AS binary))) AS headers",
    )
    made.write.format("kafka").option("kafka.bootstrap.servers", address).option("topic", topic).save()


def frame(spark: "SparkSession", address: str) -> "DataFrame":
    """The topic, including headers."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", TOPIC)
    return reader.option("includeHeaders", "true").option("startingOffsets", "earliest").load()


def stream(spark: "SparkSession", address: str, topic: str = TOPIC, starting: str = "earliest") -> "DataFrame":
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", topic)
    return reader.option("includeHeaders", "true").option("startingOffsets", starting).load()


def produce_request(topic: str, partition: int, payloads: list[bytes], milliseconds: int) -> bytes:
    """A Produce request, version 3, of a batch of records in format 2, to be acknowledged by the leader."""
    records = b"".join(_record(number, payload) for number, payload in enumerate(payloads))
    body = (
        struct.pack("!hiqqqhii", 0, len(payloads) - 1, milliseconds, milliseconds, -1, -1, -1, len(payloads)) + records
    )
    batch = struct.pack("!iBI", -1, 2, google_crc32c.value(body)) + body  # leader epoch, format, checksum
    batch = struct.pack("!qi", 0, len(batch)) + batch
    name = topic.encode()
    target = struct.pack(f"!ih{len(name)}siii", 1, len(name), name, 1, partition, len(batch))
    request = struct.pack("!hhihhhi", 0, 3, 1, -1, -1, 1, 30_000) + target + batch
    return struct.pack("!i", len(request)) + request


def _record(number: int, payload: bytes) -> bytes:
    body = b"\0\0" + _varint(number) + _varint(-1) + _varint(len(payload)) + payload + b"\0"
    return _varint(len(body)) + body


def _varint(number: int) -> bytes:
    """Zigzag, seven bits in a byte."""
    left = number << 1 ^ number >> 63
    made = bytearray()
    while left > 127:
        made.append(left & 127 | 128)
        left >>= 7
    return bytes([*made, left])


def check_produced(response: bytes) -> None:
    """End the benchmark when the one partition of a Produce response has an error."""
    (length,) = struct.unpack_from("!h", response, 8)
    (error,) = struct.unpack_from("!h", response, 10 + length + 8)
    if error:
        raise SystemExit(f"Kafka refused a batch with error {error}")
