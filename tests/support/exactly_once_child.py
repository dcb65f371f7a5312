"""The job that `exactly_once` kills: `exactly_once_child.py URL DIRECTORY MASTER ROWS_PER_BATCH IGGY_URL`.

Two streaming queries over the stream SOURCE, into Parquet by Spark's own sink and into the stream TARGET by ours. With an
IGGY_URL that is not empty they read it as a topic of the broker's Iggy server. Prints `ready <pid of the JVM>`, `batch` now
and then, and `done` when both have taken everything.
"""

import sys
from pathlib import Path
from typing import Any

from headwater.spark import session


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(url: str, directory: str, master: str, rows: str, iggy: str) -> None:
    settings = {
        "spark.executor.memory": "700m",
        "spark.task.maxFailures": "8",
        "spark.cleaner.periodicGC.interval": "60min",
    }
    spark = session("exactly once", master=master, brief=True, config=settings)
    jvm: Any = spark._jvm
    say(f"ready {jvm.java.lang.ProcessHandle.current().pid()}")
    place = Path(directory)
    place_of = {"servers": iggy, "stream": "nats", "topic": "SOURCE"} if iggy else {"servers": url, "stream": "SOURCE"}
    source = spark.readStream.format("iggy" if iggy else "nats").options(
        startingOffsets="earliest", maxOffsetsPerTrigger=rows, minPartitions="2", **place_of
    )
    frame = source.load().selectExpr("data", "headers")
    to_files = frame.writeStream.format("parquet").option("path", str(place / "parquet"))
    to_stream = frame.selectExpr("data", "headers").writeStream.format("nats")
    to_stream = to_stream.options(servers=url, subject="target", stream="TARGET")
    queries = [
        writer.option("checkpointLocation", str(place / f"checkpoint-{name}")).trigger(availableNow=True).start()
        for name, writer in (("parquet", to_files), ("target", to_stream))
    ]
    while any(query.isActive for query in queries):
        spark.streams.awaitAnyTermination(1)
        spark.streams.resetTerminated()
        say("batch " + " ".join(str(query.lastProgress.batchId if query.lastProgress else -1) for query in queries))
    for query in queries:
        query.awaitTermination()  # raises what the query failed with
    say("done")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
