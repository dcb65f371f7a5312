"""`df.write.format("nats")` and `writeStream.format("nats")`: publish record batches as messages.

Spark pickles a writer where the query is planned and calls `write` for each task on an executor; `commit` and `abort` run
where it was planned. An acknowledged message is stored, so there is nothing left to commit, and nothing that an abort could
undo. Message ids make a second attempt harmless:

    streaming   <query>/<batch>/<partition>/<row>      the query's id is in its checkpoint, and survives restarts
    batch       <random>/<partition>/<row>             the same for every attempt of a task of this job; refused in
                                                       foreachBatch, where the same rows may come in a second job

Every attempt after the first reads back what the earlier ones stored and publishes the rest (`headwater.spark.replay`),
however late it runs. Whether a batch was begun before is recorded beside the checkpoint (`headwater.spark.attempts`); if
that is impossible, `sink_checks` examines the end of the stream for messages that are too old.
"""

import logging
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from headwater.client.blocking import BlockingClient
from headwater.errors import ConfigError
from headwater.spark.attempts import Attempt
from headwater.spark.replay import Replay
from headwater.spark.row_publisher import Published, RowPublisher
from headwater.spark.sink_checks import check_order, check_return, check_window, target_stream
from headwater.spark.sink_options import SinkOptions, check_columns, parse_sink_options
from headwater.spark.sink_rows import rows_of, together
from headwater.spark_runtime.garbage import settle
from headwater.spark_runtime.read_ahead import read_ahead

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

SPARKS_OWN = (
    "checkpointlocation",
    "queryname",
    "asyncprogresstrackingenabled",
    "asyncprogresstrackingcheckpointintervalms",
    "asyncprogresstrackingoverridesinksupportcheck",
)

logger = logging.getLogger(__name__)


class Written(WriterCommitMessage):
    """The result of one task."""

    def __init__(self, done: Published) -> None:
        self.rows = done.rows
        self.duplicates = done.duplicates


def write_partition(
    batches: "Iterator[pa.RecordBatch]", options: SinkOptions, job: str, attempt: Attempt | None
) -> Written:
    """Publish the rows of one task. `job` is the prefix of the message ids. `attempt` describes the attempt at the whole
    job; None when no earlier attempts are recorded."""
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    is_again = attempt is not None and (not attempt.first or (context is not None and context.attemptNumber() > 0))
    prefix = f"{job}/{partition}/".encode() if options.exactly_once else b""

    def check_stream(client: BlockingClient, stream: str) -> None:
        check_window(client, stream, options)

    def check_batch(client: BlockingClient) -> None:
        if stream := target_stream(client, options):
            check_return(client, stream, f"{job}/".encode())

    exactly_once = options.exactly_once
    publisher = RowPublisher(options, check_stream if exactly_once else None, check_order if exactly_once else None)
    replay = (
        Replay(publisher, options, job, partition, attempt.since) if attempt and is_again and exactly_once else None
    )
    try:
        start = 0
        for batch in read_ahead(together(batches)):
            if start == 0 and attempt is None and exactly_once:
                publisher.ask(check_batch)
            if batch.num_rows:
                rows = replay.left(batch, start) if replay else rows_of(batch, options, prefix, start)
                if rows is not None:
                    publisher.publish(rows)
            start += batch.num_rows
        if replay:
            replay.check_end(start)
    except BaseException:
        publisher.close()
        raise
    written = Written(publisher.finish())
    settle()
    return written


def prepared(given: Mapping[str, str], schema: "StructType", overwrite: bool) -> SinkOptions:
    """The options, after all checks that need no row: the columns, and the stream if it is named. Spark's own options of a
    streaming query are removed. Raises ConfigError.
    """
    options = parse_sink_options({name: value for name, value in given.items() if name.lower() not in SPARKS_OWN})
    check_columns(schema, options)
    if overwrite:
        raise ConfigError("a stream is appended to, never overwritten", hint='.mode("append")')
    check_before(options)
    return options


def check_before(options: SinkOptions) -> None:
    """Raises ConfigError when the named stream does not remember message ids long enough."""
    if not options.stream or not options.exactly_once:
        return
    publisher = RowPublisher(options)
    try:
        publisher.ask(lambda client: check_window(client, options.stream, options))
    finally:
        publisher.close()


def check_repeatable() -> None:
    """Raise ConfigError in a task of `foreachBatch`: after a failure Spark calls that again with the same rows as another
    job, with different ids."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is not None and context.getLocalProperty("streaming.sql.batchId") is not None:
        raise ConfigError(
            "a micro-batch that foreachBatch is given again would be stored twice: each write in it is a job with ids of "
            "its own",
            hint='writeStream.format("nats"), rows with a column msg_id, or delivery=at-least-once',
        )


class BatchSink(DataSourceArrowWriter):
    """`df.write`. `has_ids`: the rows have ids of their own."""

    def __init__(self, options: SinkOptions, has_ids: bool) -> None:
        self._options = options
        self._has_ids = has_ids
        self._job = uuid.uuid4().hex
        self._attempt = Attempt(0, time.time(), first=True)

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        if self._options.exactly_once and not self._has_ids:
            check_repeatable()
        return write_partition(iterator, self._options, self._job, self._attempt)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _report("rows_written", messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _report("rows_written_by_a_failed_job", messages)


class StreamSink(DataSourceStreamArrowWriter):
    """`df.writeStream`. Spark makes one for each micro-batch; `attempt` is the record of that batch."""

    def __init__(self, options: SinkOptions, attempt: Attempt | None = None) -> None:
        self._options = options
        self._attempt = attempt

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        recorded = self._attempt is not None and str(self._attempt.batch) == batch
        return write_partition(iterator, self._options, f"{query}/{batch}", self._attempt if recorded else None)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _report(f"batch_written batch={batchId}", messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _report(f"batch_failed batch={batchId}", messages)


def _report(event: str, messages: list[WriterCommitMessage | None]) -> None:
    done = [message for message in messages if isinstance(message, Written)]
    rows, duplicates = sum(each.rows for each in done), sum(each.duplicates for each in done)
    logger.info("%s rows=%d duplicates=%d", event, rows, duplicates)
