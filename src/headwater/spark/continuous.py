"""A pipeline that runs until `stop` is called, and stops between two micro-batches.

Killing it is safe as well (an incomplete batch is written again); `stop` only saves that work. It is checked before each
batch: the current batch is finished and committed, and no other one is begun. A query that waits for messages is stopped at
once.

Gold is computed alongside the query, from the present contents of silver.
"""

import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.spark.pipeline_config import PipelineConfig
from headwater.spark_tables.run import PipelineCounts, Progress, count_tables, refresh_gold, require_checkpoint, writing
from headwater.spark_tables.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_SECONDS = 0.2  # between two checks of the query and of `stop`
QUIET_SECONDS = 1.0  # without a batch, after which a query to be stopped is assumed to be waiting


class _Stopping(Exception):
    """Ends the query before a batch that must not begin."""


class ContinuousPipeline:
    """One run; `run` blocks. `stop` may be called from another thread or a signal handler."""

    def __init__(
        self,
        spark: "SparkSession",
        config: PipelineConfig,
        report: Callable[[Progress], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spark = spark
        self._config = config
        self._report = report
        self._tables = Tables(config.directory)
        self._stop = threading.Event()
        self._clock = clock
        self._written = clock()
        self._begun = self._written
        self.batch_seconds = 0.0
        """Duration of the last micro-batch, from its first read to its last table. Spark's own report is unsuitable: it
        describes the last trigger, which usually has nothing to do."""
        self._grown = False
        self._query: StreamingQuery | None = None

    def stop(self) -> None:
        """Make `run` end after the current batch."""
        self._stop.set()

    @property
    def behind(self) -> int:
        """The number of unread sequences in the source when its last batch was done."""
        progress = None if self._query is None else self._query.lastProgress
        return 0 if progress is None else backlog(json.loads(progress.json))

    def run(self) -> PipelineCounts:
        """Run until `stop`. Raises what Spark raises when the query fails, ConfigError for tables without their checkpoint,
        EnvironmentProblem when another job holds the directory."""
        with self._tables.locked(self._spark):
            require_checkpoint(self._tables)
            config = self._config
            writer = writing(self._spark, config.source, self._tables, self._step, self._before, config.format)
            query = writer.trigger(processingTime=f"{config.interval} seconds").start()
            self._query = query
            try:
                self._watch(query)
            finally:
                query.stop()
            self._refresh()
            return count_tables(self._spark, self._tables, config.format)

    def _watch(self, query: "StreamingQuery") -> None:
        """Return when the query has ended, or is to be stopped and is idle."""
        refreshed = time.monotonic()
        while query.isActive:
            if self._stop.wait(LOOK_SECONDS) and self._clock() - self._written > QUIET_SECONDS:
                return
            if self._stop.is_set():
                time.sleep(LOOK_SECONDS)
            elif time.monotonic() - refreshed > self._config.gold_every:
                self._refresh()
                refreshed = time.monotonic()
        failure = query.exception()
        if failure is not None and not self._stop.is_set():
            raise failure

    def _before(self, batch_id: int) -> None:
        self._begun = self._clock()
        self._written = float("inf")  # not idle from here to the last table
        if self._stop.is_set():
            # A query can be ended before a batch only by an exception; the JVM's log of it would be misleading.
            self._spark.sparkContext.setLogLevel("OFF")
            raise _Stopping(f"before batch {batch_id}")

    def _step(self, step: Progress) -> None:
        if step.table == "rejects":  # the last table of a batch
            self._written = self._clock()
            self.batch_seconds = self._written - self._begun
            self._grown = True
        self._report(step)

    def _refresh(self) -> None:
        if self._grown:
            self._grown = False
            refresh_gold(self._spark, self._tables, self._report)


def backlog(progress: dict[str, Any]) -> int:
    """The number of messages in the source that the query has not read, from one progress report of Spark."""
    waiting = 0
    for source in progress.get("sources", ()):
        latest, end = (positions(source.get(name)) for name in ("latestOffset", "endOffset"))
        waiting += sum(max(0, following - end.get(place, following)) for place, following in latest.items())
    return waiting


def positions(offset: Any) -> dict[str, int]:
    """The next position of each stream, partition or set of core subjects, from an offset in the form of a checkpoint."""
    if not isinstance(offset, dict):
        return {}
    if isinstance(offset.get("core"), dict):
        return {"": int(offset["core"]["next"])}
    found = {name: int(entry["next"]) for name, entry in (offset.get("streams") or {}).items()}
    for topic, partitions in (offset.get("topics") or {}).items():
        found |= {f"{topic}/{partition}": int(entry["next"]) for partition, entry in partitions.items()}
    return found
