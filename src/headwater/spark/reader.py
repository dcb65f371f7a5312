"""The readers that Spark drives: what to read next (planner process), and reading it (worker processes).

Spark pickles a reader once and runs `read` elsewhere, so readers hold options and nothing that is alive; what is alive
(the planner's connection) is left out of the pickle and made where it is used.

The contract with Spark: offsets written to the checkpoint before a batch runs, and the same range given again after
a restart, must mean the same rows. They do, because a range is sequences of a stream with a creation time.
"""

import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headwater.spark.arrow import arrow_schema, record_batch
from headwater.spark.offsets import StreamOffset, StreamState
from headwater.spark.options import Position, SourceOptions
from headwater.spark.planner import StreamPlanner
from headwater.spark.range_reader import read_range
from headwater.spark.ranges import Range, bounded, loss, resolve, resumed, split

logger = logging.getLogger(__name__)


class RangePartition(InputPartition):
    """An input partition: one range of one stream. Plain data, for it is pickled."""

    def __init__(self, wanted: Range) -> None:
        super().__init__((wanted.stream, wanted.created, wanted.start, wanted.end))

    @property
    def range(self) -> Range:
        return Range(*self.value)


def read_batches(wanted: Range, options: SourceOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a range as record batches of exactly `schema`."""
    wire_schema = arrow_schema(schema)
    for columns in read_range(wanted, options):
        events = None
        if options.decode == "cloudevents":
            from headwater.spark.events import event_arrays

            events = event_arrays(columns, wire_schema)
        yield record_batch(columns, wanted.stream, wire_schema, events)


def accept_start(start: StreamOffset, state: StreamState, options: SourceOptions) -> StreamOffset:
    """`start`, or where to go on when part of the stream is gone. Raises DataLossError where that is not accepted."""
    problem = loss(start, state)
    if problem is None:
        return start
    if options.fail_on_data_loss:
        raise problem
    logger.warning("data_loss_accepted: %s", problem)
    return resumed(start, state)


def sequence_of(position: Position, state: StreamState, planner: StreamPlanner) -> int:
    """The sequence that a position means now; of a time, the first one since then that is still there."""
    if isinstance(position, datetime):
        return planner.sequence_at(position)
    return resolve(position, state)


def starting_offset(
    position: Position, state: StreamState, planner: StreamPlanner, options: SourceOptions
) -> StreamOffset:
    """Where a read begins that has no checkpoint. A sequence beyond the end is a place to wait at, not a loss."""
    first = state.at(sequence_of(position, state, planner))
    return first if first.next >= state.end else accept_start(first, state, options)


class JetStreamBatchReader(DataSourceReader):
    """`spark.read`: the stream between two positions, as it stands when the query is planned."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:  # Spark insists on a list
        options = self._options
        planner = StreamPlanner(options)
        try:
            state = planner.state()
            start = starting_offset(options.starting or "earliest", state, planner, options).next
            end = max(start, min(sequence_of(options.ending, state, planner), state.end))
        finally:
            planner.close()
        ranges = split(Range(state.stream, state.created, start, end), options.min_partitions)
        # Spark puts a partition without a range in place of an empty list.
        return [RangePartition(piece) for piece in ranges or [Range(state.stream, state.created, start, start)]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return read_batches(partition.range, self._options, self._schema)


class JetStreamStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream`: the stream from a position on, micro-batch by micro-batch."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._planner = StreamPlanner(options)
        self._initial: StreamOffset | None = None
        self._target: int | None = None
        self._seen: StreamState | None = None

    def initialOffset(self) -> dict[str, Any]:
        # Asked twice before the first batch: "latest" must not move in between.
        if self._initial is None:
            position = self._options.starting or "latest"
            self._initial = starting_offset(position, self._observe(), self._planner, self._options)
        return self._initial.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        rows, size = self._options.max_offsets_per_trigger, self._options.max_bytes_per_trigger
        if rows is not None:  # the engine knows no limit of both; the other one is laid over it in latestOffset
            return ReadMaxRows(rows)
        return ReadAllAvailable() if size is None else ReadMaxBytes(size)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._observe().end

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begin = StreamOffset.from_json(start, self._options.stream)
        state = self._seen
        if state is None or state.created != begin.created or begin.next >= state.end:
            state = self._observe_beyond(begin)
        begin = accept_start(begin, state, self._options)
        available = state.end if self._target is None else min(state.end, self._target)
        most = self._most(limit, state)
        return state.at(bounded(begin.next, available, most)).to_json()

    def _most(self, limit: ReadLimit, state: StreamState) -> int | None:
        """Sequences that the next batch may have; None for any number, which the engine may ask for at any time."""
        if isinstance(limit, ReadAllAvailable):
            return None
        limits = [limit.max_rows] if isinstance(limit, ReadMaxRows) else []
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.max_bytes_per_trigger
        if size is not None:
            limits.append(state.messages_in(size))
        return min(limits, default=None)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._seen is None else self._seen.at(self._seen.end).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        begin = StreamOffset.from_json(start, self._options.stream)
        stop = StreamOffset.from_json(end, self._options.stream)
        if begin == stop:
            return []
        begin = accept_start(begin, self._observe(), self._options)
        wanted = Range(stop.stream, stop.created, begin.next, stop.next)
        return [RangePartition(piece) for piece in split(wanted, self._options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return read_batches(partition.range, self._options, self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: progress lives in the checkpoint, not on the server."""

    def stop(self) -> None:
        self._planner.close()

    def _observe(self) -> StreamState:
        self._seen = self._planner.state()
        return self._seen

    def _observe_beyond(self, begin: StreamOffset) -> StreamState:
        """The state once there is something after `begin`, or as last known when nothing came for a moment."""
        known = self._seen
        if known is None or known.created != begin.created or known.end != begin.next or self._target is not None:
            return self._observe()
        state = self._planner.wait_beyond(begin.next)
        if state is not None:
            self._seen = known = state
        return known
