"""A Spark Connect client that reads a stream, writes to another one, and streams into files.

`connect_child.py URL DIRECTORY`; a Connect server of its own is started. Prints what session it was, and two counts.
"""

import os
import sys
from pathlib import Path

from headwater.spark.class_archive import java_options
from headwater.spark.session import BRIEF_JAVA_OPTIONS, prepare_environment


def main(url: str, directory: str) -> None:
    prepare_environment(local=True)
    os.environ["JDK_JAVA_OPTIONS"] = BRIEF_JAVA_OPTIONS + java_options()
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    source = spark.read.format("nats").options(servers=url, stream="FROM").load()
    rows = source.selectExpr("'to' AS subject", "data", "headers")
    rows.write.format("nats").mode("append").options(servers=url, stream="TO").save()
    reader = spark.readStream.format("nats").options(servers=url, stream="FROM", startingOffsets="earliest")
    writer = reader.load().writeStream.format("parquet").option("path", f"{directory}/table")
    writer.option("checkpointLocation", f"{directory}/checkpoint").trigger(availableNow=True).start().awaitTermination()
    counts = source.count(), spark.read.parquet(f"{directory}/table").count()
    sys.stdout.write(f"{type(spark).__module__} {counts[0]} {counts[1]}\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], str(Path(sys.argv[2]).absolute()))
