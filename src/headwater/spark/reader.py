"""The readers driven by Spark: planning what to read (planner process), and reading it (worker processes).

Spark pickles a reader once and runs `read` elsewhere, so readers hold options but no live resources; the planner's
connection is left out of the pickle and made where it is used.

The contract with Spark: offsets are written to the checkpoint before a batch runs, and the same range after a restart must
mean the same rows. It does, because a range consists of sequences of a stream with a creation time.
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headwater.spark.micro_batches import RangePartition, check_endless, default_limit, within
from headwater.spark.offsets import Offset, from_json, to_json
from headwater.spark.options import SourceOptions
from headwater.spark.planner import StreamPlanner
from headwater.spark.progress import report, source_name
from headwater.spark.range_reader import read_range
from headwater.spark.ranges import Range, check_bounds, span, split_all
from headwater.spark.rows_ahead import RowsAhead, hasty
from headwater.spark.tail import StreamTail, sequence_of, starting_offset
from headwater.spark_runtime.garbage import settle
from headwater.spark_runtime.quiet_end import end_quietly

if TYPE_CHECKING:
    import pyarrow as pa


def read_batches(wanted: Range[str], options: SourceOptions, schema: StructType) -> "Iterator[pa.RecordBatch]":
    """The rows of a range as record batches with exactly `schema`."""
    from headwater.spark.record_batches import record_batches  # workers need pyarrow.compute, planners do not

    taken = read_range(wanted, options.of(wanted.place))
    with _span_of(wanted, options):
        yield from record_batches(taken, wanted.place, options, schema)
    settle()


def _span_of(wanted: Range[str], options: SourceOptions) -> AbstractContextManager[None]:
    """A span of OpenTelemetry, where the worker's process has imported it: that is what its `sitecustomize` does under
    `opentelemetry-instrument`. Other workers do not pay for the import."""
    if "opentelemetry.trace" not in sys.modules:
        return nullcontext()
    from headwater.client.spans import Spans

    server = options.server
    return Spans().receiving(source_name((wanted.place,), server.servers, server.context), len(wanted))


class JetStreamBatchReader(DataSourceReader):
    """`spark.read`: the streams, each between two positions, as they are when the query is planned."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:  # Spark requires a list
        wholes = [self._range(self._options.of(stream)) for stream in self._options.streams]
        # For an empty list Spark would substitute a partition without a range.
        return [RangePartition(piece) for piece in split_all(wholes, self._options.min_partitions) or wholes[:1]]

    def _range(self, options: SourceOptions) -> Range[str]:
        begin, stop = options.starting_at(options.stream, "earliest"), options.ending_at(options.stream)
        planner = StreamPlanner(options)
        try:
            state = planner.state()
            check_bounds(begin, stop, state, options.fail_on_data_loss)
            start = starting_offset(begin, state, planner, options).next
            end = max(start, min(sequence_of(stop, state, planner), state.end))
        finally:
            planner.close()
        return Range(state.place, state.created, start, end)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        assert isinstance(partition, RangePartition)
        return read_batches(partition.range, self._options, self._schema)


def _whole(start: int, end: Offset[str], tail: StreamTail) -> Range[str]:
    seen = tail.seen
    return Range(end.place, end.created, start, end.next, seen.bytes // max(1, seen.messages) if seen else 0)


class JetStreamStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream`: the streams from a position on, one micro-batch at a time. Raises ConfigError if the options set
    an end."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_endless(options)
        self._options = options
        self._schema = schema
        self._tails = [StreamTail(options.of(stream)) for stream in options.streams]
        self._ahead = RowsAhead()
        self._turn = 0
        self._planned: dict[str, tuple[int, int]] = {}

    def initialOffset(self) -> dict[str, Any]:
        return to_json(tail.initial() for tail in self._tails)

    def getDefaultReadLimit(self) -> ReadLimit:
        return default_limit(self._options)

    def prepareForTriggerAvailableNow(self) -> None:
        for tail in self._tails:
            tail.fix_target()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        given = from_json(start, self._options.streams)
        if any(tail.knows_beyond(begin) for tail, begin in zip(self._tails, given, strict=True)):
            for tail in self._tails:
                tail.refresh()
        else:
            self._look(given)
        begins = [tail.accepted(begin) for tail, begin in zip(self._tails, given, strict=True)]
        backlogs = [tail.backlog(begin) for tail, begin in zip(self._tails, begins, strict=True)]
        taken = within(limit, backlogs, [tail.seen for tail in self._tails], self._options)
        ends = [replace(begin, next=begin.next + rows) for begin, rows in zip(begins, taken, strict=True)]
        self._planned = {begin.place: (begin.next, end.next) for begin, end in zip(begins, ends, strict=True)}
        if given == begins:
            plan = [_whole(begin.next, end, tail) for begin, end, tail in zip(begins, ends, self._tails, strict=True)]
            read = partial(read_batches, options=hasty(self._options), schema=self._schema)
            self._ahead.start(start, to_json(ends), split_all(plan, self._options.min_partitions), read)
        return to_json(ends)

    def _look(self, given: list[Offset[str]]) -> None:
        """Query new messages, or wait a little for some: on one stream at a time, so that idling stays cheap."""
        for tail, begin in zip(self._tails, given, strict=True):
            if tail.is_unknown(begin):
                tail.observe()
        if not any(tail.knows_beyond(begin) for tail, begin in zip(self._tails, given, strict=True)):
            turn = self._turn = (self._turn + 1) % len(self._tails)
            self._tails[turn].wait_beyond(given[turn])

    def reportLatestOffset(self) -> dict[str, Any] | None:
        if any(tail.end() is None for tail in self._tails):
            return None
        seen = [tail.seen for tail in self._tails if tail.seen is not None]
        server = self._options.server
        return report(source_name(self._options.streams, server.servers, server.context), seen, self._planned)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        ready = self._ahead.plan(start, end)
        if ready is not None:
            return ready
        streams = self._options.streams
        wholes = []
        for tail, begin, stop in zip(self._tails, from_json(start, streams), from_json(end, streams), strict=True):
            if begin != stop:
                state = tail.observe()
                left = span(begin, stop, tail.accepted(begin), state)
                if left is not None:
                    wholes.append(Range(stop.place, stop.created, *left))
        return [RangePartition(piece) for piece in split_all(wholes, self._options.min_partitions)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        assert isinstance(partition, RangePartition)
        return read_batches(partition.range, self._options, self._schema)

    def carried(self, partition: InputPartition) -> "Iterator[pa.RecordBatch] | None":
        return self._ahead.rows(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: progress is in the checkpoint, not on the server."""

    def stop(self) -> None:
        for tail in self._tails:
            tail.close()
        end_quietly()
