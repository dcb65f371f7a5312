"""Reads the stream SPREAD on a cluster: `cluster_child.py URL MASTER ARCHIVE`.

Prints where two executors have Headwater from, and how many messages there are. Executors and driver are set to compile
little (`brief`), for in a run of seconds that is most of what their JVMs do.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from headwater.spark import java_home, session
from headwater.spark.class_archive import java_options
from headwater.spark.packaging import settings
from headwater.spark.session import BRIEF_JAVA_OPTIONS


def places(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on an executor."""
    import headwater

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"place": [headwater.__file__]})


def main(url: str, master: str, archive: str) -> None:
    config = {
        **settings(Path(archive)),
        "spark.executor.cores": "1",  # so that there are two executors
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": BRIEF_JAVA_OPTIONS
        + java_options(dict(os.environ, JAVA_HOME=str(java_home()))),
    }
    spark = session("cluster child", master=master, config=config, brief=True)
    # As a barrier stage: both tasks run at once, so each of the two executors with one core has one.
    frame = spark.range(0, 2, 1, 2).mapInArrow(places, "place string", barrier=True)
    for row in frame.collect():
        sys.stdout.write(f"{row['place']}\n")
    source = spark.read.format("nats").options(servers=url, stream="SPREAD", minPartitions="4", decode="cloudevents")
    sys.stdout.write(f"{source.load().where('length(data) > 0').count()}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
