"""One run of the pipeline: everything in a stream since the end of the last run, into tables.

Exactly once rests on three facts. Spark writes the range of a batch into the checkpoint before the batch runs; the source
gives the same rows for the same range; and a batch is written to the tables under its number, replacing the remains of a
killed run. Gold is computed from the whole of silver, after the last batch.

The tables and the checkpoint belong together, and are both in `out_dir`. Tables without their checkpoint would get every
event a second time under the same numbers, so that is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headwater.errors import ConfigError
from headwater.spark_tables.pipeline import KEYS, SOURCE_OPTIONS, bronze, gold, rejects, silver
from headwater.spark_tables.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

BATCH_TABLES: dict[str, Callable[["DataFrame", str], "DataFrame"]] = {
    "bronze": bronze,
    "silver": silver,
    "rejects": rejects,
}


@dataclass(frozen=True, slots=True)
class Progress:
    """A completed step: `rows` were written to `table` in batch `batch_id` (-1 for gold); `through` is the number of rows
    of all batches of this run so far in that table."""

    table: str
    batch_id: int
    rows: int
    through: int


@dataclass(frozen=True, slots=True)
class PipelineCounts:
    """Rows in each table after a run, and the distinct messages in bronze and events in silver."""

    bronze: int
    bronze_distinct: int
    silver: int
    silver_distinct: int
    rejects: int
    gold: int


def run_available_now(
    spark: "SparkSession",
    servers: str,
    stream: str,
    out_dir: str | Path,
    *,
    max_offsets_per_trigger: int | None = None,
    options: Mapping[str, str] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> PipelineCounts:
    """Read everything that `stream` holds now into `out_dir`, and end.

    `max_offsets_per_trigger` bounds a micro-batch, in messages (None: all in one); `options` are further options of the
    source (credentials, subjects, ...). `progress` is called, from another thread, after each table of each batch.

    Raises ConfigError for tables without their checkpoint, EnvironmentProblem when another job holds the directory, and
    what Spark raises when the query fails.
    """
    tables = Tables(Path(out_dir))
    report = progress or (lambda _: None)
    source = {"servers": servers, "stream": stream, **(options or {})}
    if max_offsets_per_trigger is not None:
        source["maxOffsetsPerTrigger"] = str(max_offsets_per_trigger)
    with tables.locked(spark):
        require_checkpoint(tables)
        writing(spark, source, tables, report).trigger(availableNow=True).start().awaitTermination()
        refresh_gold(spark, tables, report)
        return count_tables(spark, tables)


def require_checkpoint(tables: Tables) -> None:
    """Raise ConfigError for tables without the checkpoint that records how far they go."""
    if not tables.path("checkpoint").exists() and any(tables.path(name).exists() for name in BATCH_TABLES):
        raise ConfigError(
            f"{tables.root} has tables but no checkpoint, and every event would come twice",
            value=tables.root,
            hint="bring the checkpoint back, or start with an empty directory",
        )


def writing(
    spark: "SparkSession",
    source: Mapping[str, str],
    tables: Tables,
    report: Callable[[Progress], None],
    before: Callable[[int], None] = lambda batch_id: None,
    kind: str = "nats",
) -> "DataStreamWriter":
    """The query from the source of format `kind` into bronze, silver and rejects, not started yet. `before` is called
    before anything of a batch is written; an exception from it ends the query there."""
    reader = spark.readStream.format(kind)
    if not any(name.lower() in ("startingtimestamp", "delivery") for name in source):
        reader = reader.option("startingOffsets", "earliest")
    through = dict.fromkeys(BATCH_TABLES, 0)

    def write(batch: "DataFrame", batch_id: int) -> None:
        before(batch_id)
        batch.persist()  # so that the stream is read once for three tables
        try:
            for name, transform in BATCH_TABLES.items():
                rows = tables.write_batch(name, batch_id, transform(batch, kind))
                through[name] += rows
                report(Progress(name, batch_id, rows, through[name]))
        finally:
            batch.unpersist()

    frame = reader.options(**source).options(**SOURCE_OPTIONS).load()
    return frame.writeStream.foreachBatch(write).option("checkpointLocation", str(tables.path("checkpoint")))


def refresh_gold(spark: "SparkSession", tables: Tables, report: Callable[[Progress], None]) -> None:
    """Compute gold again from all of silver, if silver has rows."""
    if tables.count("silver"):
        rows = tables.replace("gold", gold(spark.read.parquet(str(tables.path("silver")))))
        report(Progress("gold", -1, rows, rows))


def count_tables(spark: "SparkSession", tables: Tables, kind: str = "nats") -> PipelineCounts:
    distinct = {"bronze": 0, "silver": 0}
    if tables.count("bronze"):
        # One query for both: on small tables Spark's fixed cost per query dominates.
        messages = spark.read.parquet(str(tables.path("bronze"))).agg(F.count_distinct(*KEYS[kind]).alias("bronze"))
        events = spark.read.parquet(str(tables.path("silver"))).agg(F.count_distinct("source", "id").alias("silver"))
        (row,) = messages.crossJoin(events).collect()
        distinct = row.asDict()
    return PipelineCounts(
        bronze=tables.count("bronze"),
        bronze_distinct=distinct["bronze"],
        silver=tables.count("silver"),
        silver_distinct=distinct["silver"],
        rejects=tables.count("rejects"),
        gold=tables.count("gold"),
    )
