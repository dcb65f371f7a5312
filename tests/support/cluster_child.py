"""Reads the stream SPREAD on a cluster: `cluster_child.py URL MASTER ARCHIVE`.

Prints where two executors have Headwater from, and how many messages there are.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from headwater.spark import session
from headwater.spark.packaging import settings


def places(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on an executor, long enough for the other one to get a task as well."""
    import time

    import headwater

    for _ in batches:
        time.sleep(5)
        yield pa.RecordBatch.from_pydict({"place": [headwater.__file__]})


def main(url: str, master: str, archive: str) -> None:
    spark = session("cluster child", master=master, config={**settings(Path(archive)), "spark.executor.memory": "512m"})
    frame = spark.range(0, 2, 1, 2).mapInArrow(places, "place string")
    for row in frame.collect():
        sys.stdout.write(f"{row['place']}\n")
    source = spark.read.format("nats").options(servers=url, stream="SPREAD", minPartitions="4", decode="cloudevents")
    sys.stdout.write(f"{source.load().where('length(data) > 0').count()}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
