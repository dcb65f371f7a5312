"""The job that `exactly_once` kills: `exactly_once_child.py URL DIRECTORY MASTER ROWS_PER_BATCH IGGY_URL FORMAT JARS`.

Two streaming queries over the stream SOURCE, into Parquet by Spark's own sink (or a table of another FORMAT, whose JARS
are a list with commas between) and into the stream TARGET by ours. With an IGGY_URL that is not empty they read it as a
topic of the broker's Iggy server. What a table of another format holds is written to `dump` at the end. Prints `ready <pid
of the JVM>`, `batch` now and then, and `done` when both have taken everything.
"""

import sys
from pathlib import Path
from typing import Any

from headwater.spark import session

TABLE = "lake.once.events"
"""Of Iceberg."""


def settings_of(kind: str, jars: str, place: Path) -> dict[str, str]:
    """What a session needs to write tables of a format."""
    if kind == "delta":
        return {
            "spark.jars": jars,
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    if kind == "iceberg":
        return {
            "spark.jars": jars,
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(place / "iceberg"),
        }
    return {}


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(url: str, directory: str, master: str, rows: str, iggy: str, kind: str, jars: str) -> None:
    place = Path(directory)
    settings = {
        "spark.executor.memory": "700m",
        "spark.task.maxFailures": "8",
        "spark.cleaner.periodicGC.interval": "60min",
        **settings_of(kind, jars, place),
    }
    spark = session("exactly once", master=master, brief=True, config=settings)
    jvm: Any = spark._jvm
    print_line(f"ready {jvm.java.lang.ProcessHandle.current().pid()}")
    place_of = {"servers": iggy, "stream": "nats", "topic": "SOURCE"} if iggy else {"servers": url, "stream": "SOURCE"}
    source = spark.readStream.format("iggy" if iggy else "nats").options(
        startingOffsets="earliest", maxOffsetsPerTrigger=rows, minPartitions="2", **place_of
    )
    frame = source.load().selectExpr("data", "headers")
    to_files = frame.writeStream.format(kind).option("path", TABLE if kind == "iceberg" else str(place / kind))
    if kind == "iceberg":
        spark.sql(f"CREATE TABLE IF NOT EXISTS {TABLE} (data BINARY, headers MAP<STRING, ARRAY<STRING>>) USING iceberg")
    to_stream = frame.selectExpr("data", "headers").writeStream.format("nats")
    to_stream = to_stream.options(servers=url, subject="target", stream="TARGET")
    queries = [
        writer.option("checkpointLocation", str(place / f"checkpoint-{name}")).trigger(availableNow=True).start()
        for name, writer in ((kind, to_files), ("target", to_stream))
    ]
    while any(query.isActive for query in queries):
        spark.streams.awaitAnyTermination(1)
        spark.streams.resetTerminated()
        print_line(
            "batch " + " ".join(str(query.lastProgress.batchId if query.lastProgress else -1) for query in queries)
        )
    for query in queries:
        query.awaitTermination()  # raises what the query failed with
    if kind != "parquet":
        held = spark.table(TABLE) if kind == "iceberg" else spark.read.format(kind).load(str(place / kind))
        held.select("data").write.mode("overwrite").parquet(str(place / "dump"))
    print_line("done")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
