"""The readers of `format("iggy")` driven by Spark: planning what to read (planner process), and reading it (workers).

They work like those in `headwater.spark.reader`, with partitions of topics in place of streams: offsets are in the
checkpoint, and the same range after a restart means the same rows. Spark has no composite read limit; the limit in bytes is
applied on top of the one in messages.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headwater.errors import ConfigError
from headwater.spark.arrow import arrow_schema, text_array
from headwater.spark.iggy.offsets import (
    IggyRange,
    PartitionOffset,
    PartitionState,
    Place,
    from_json,
    loss,
    to_json,
)
from headwater.spark.iggy.options import IggySourceOptions
from headwater.spark.iggy.planner import IggyPlanner
from headwater.spark.iggy.range_reader import read_range
from headwater.spark.iggy.schema import iggy_array
from headwater.spark.micro_batches import RangePartition, check_endless, default_limit, within
from headwater.spark.offsets import Offset
from headwater.spark.progress import measured, share
from headwater.spark.ranges import Range, check_bounds, report, resumed, span, split_all
from headwater.spark.read_options import Edge, Position
from headwater.spark.record_batches import without_large
from headwater.spark.rows_ahead import RowsAhead, hasty
from headwater.spark_runtime.garbage import settle
from headwater.spark_runtime.quiet_end import end_quietly


def read_batches(wanted: IggyRange, options: IggySourceOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a range as record batches with exactly `schema`."""
    wire_schema = arrow_schema(schema)
    limit = options.max_message_bytes
    for taken in read_range(wanted, options):
        made: dict[str, pa.Array] = {}
        if options.decode == "cloudevents":
            from headwater.spark.events import event_arrays

            made = event_arrays(taken.columns, wire_schema)
        made["data"] = text_array(taken.columns.payloads, wire_schema.field("data").type)
        if limit is not None:
            made["data"], made["data_error"] = without_large(made["data"], limit, wire_schema.field("data_error").type)
        arrays = [
            made[field.name] if field.name in made else iggy_array(taken, wanted, options.stream, field)
            for field in wire_schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=wire_schema)
    settle()


class _Positions:
    """Converts positions from the options to offsets, and decides about offsets that are lost."""

    def __init__(self, options: IggySourceOptions) -> None:
        self.options = options
        self.planner = IggyPlanner(options)
        self._gone: set[Place] = set()

    def states(self) -> dict[Place, PartitionState]:
        """The current partitions of all topics. Raises ConfigError when the options name one that does not exist: its
        position would have no effect."""
        found = self.planner.all_states()
        for name, positions in (("startingOffsets", self.options.starting), ("endingOffsets", self.options.ending)):
            for place in cast("Mapping[Place, Position]", positions) if isinstance(positions, dict) else ():
                topic, partition = place
                if place not in found:
                    raise ConfigError(
                        f"option {name} names partition {partition} of topic {topic}, which does not exist",
                        value=partition,
                        limit=sorted(each.partition for each in found if each.topic == topic),
                        hint="leave it out, or create it",
                    )
        return found

    def check(self, state: PartitionState) -> None:
        """Report what a batch read of a partition cannot give, though the options name it."""
        place = state.place
        begin, end = self.options.starting_at(place, "earliest"), self.options.ending_at(place)
        check_bounds(begin, end, state, self.options.fail_on_data_loss)

    def start(self, state: PartitionState, default: Edge) -> PartitionOffset:
        """The start of a read without a checkpoint. An offset beyond the end is waited for; it is not a loss."""
        position = self.options.starting_at(state.place, default)
        wanted = state.at(self._offset(position, state))
        return wanted if wanted.next >= state.end else self.accepted(wanted, state)

    def start_named(self, state: PartitionState) -> Position:
        return self.options.starting_at(state.place, "latest")

    def end(self, state: PartitionState) -> int:
        return min(self._offset(self.options.ending_at(state.place), state), state.end)

    def _offset(self, position: Position, state: PartitionState) -> int:
        match position:
            case "earliest":
                first = self.planner.first(state.place) if state.first else 0
                return state.end if first is None else first
            case "latest":
                return state.end
            case datetime() as moment:
                found = self.planner.offset_at(state.place, moment) if state.messages else None
                return state.end if found is None else found
            case number:
                return number

    def accepted(self, begin: PartitionOffset, state: PartitionState | None) -> PartitionOffset:
        """`begin`, or where to continue when part of the partition is lost. Raises DataLossError if losses are not
        accepted. The offset named in the options may lie beyond the end: it is waited for."""
        if state is not None and begin == state.at(begin.next) and state.end < begin.next == self.start_named(state):
            return begin
        problem = loss(begin, state)
        if problem is None or state is None:
            if begin.place not in self._gone:  # reported once: a query asks for all of its places each time
                report(problem, self.options.fail_on_data_loss)
            self._gone |= {begin.place} if state is None else set()
            return begin
        if begin.created == state.created and begin.next < state.first:
            first = self.planner.first(state.place)
            if first is not None and first <= begin.next:
                return begin  # only individual messages were deleted, none at the front
        report(problem, self.options.fail_on_data_loss)
        return resumed(begin, state)


def _whole(length: int) -> int:
    return 1  # a range of a partition is not split: there are enough partitions


def _range(state: PartitionState, start: int, end: int) -> IggyRange:
    mean = state.bytes // max(1, state.messages)
    return Range(state.place, state.created, start, end, mean)


class IggyBatchReader(DataSourceReader):
    """`spark.read`: the partitions, each between two positions, as they are when the query is planned."""

    def __init__(self, options: IggySourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:  # Spark requires a list
        positions = _Positions(self._options)
        wholes = []
        for state in positions.states().values():
            positions.check(state)
            begin = positions.start(state, "earliest")
            wholes.append(_range(state, begin.next, max(begin.next, positions.end(state))))
        # For an empty list Spark would substitute a partition without a range.
        return [
            RangePartition(piece) for piece in split_all(wholes, self._options.min_partitions, _whole) or wholes[:1]
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return read_batches(partition.range, self._options, self._schema)


class IggyStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream`: the partitions from a position on, one micro-batch at a time."""

    def __init__(self, options: IggySourceOptions, schema: StructType) -> None:
        check_endless(options)
        self._options = options
        self._schema = schema
        self._positions = _Positions(options)
        self._ahead = RowsAhead()
        self._initial: dict[str, Any] | None = None
        self._seen: dict[Place, PartitionState] = {}
        self._target: dict[Place, int] | None = None
        self._planned: dict[Place, tuple[int, int]] = {}

    @property
    def requests(self) -> int:
        """The number of the planner's requests so far; for tests that bound it."""
        return self._positions.planner.requests

    def initialOffset(self) -> dict[str, Any]:
        if self._initial is None:  # Spark calls this twice before the first batch and needs the same answer
            self._seen = self._positions.states()
            self._initial = to_json(self._positions.start(state, "latest") for state in self._seen.values())
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        return default_limit(self._options)

    def prepareForTriggerAvailableNow(self) -> None:
        self._seen = self._positions.planner.all_states()
        self._target = {place: state.end for place, state in self._seen.items()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        given = from_json(start, self._options.topics)
        if not self._seen or (self._target is None and not self._knows_beyond(given)):
            new = self._positions.planner.wait() if self._seen else self._positions.planner.all_states()
            self._seen = self._seen | new
            for place in [place for place in self._seen if place not in new and place.topic in {p.topic for p in new}]:
                del self._seen[place]
        begins = self._begins(given)
        backlogs = [max(0, self._end(place) - begin.next) for place, begin in begins.items()]
        taken = within(limit, backlogs, [self._seen.get(place) for place in begins], self._options)
        ends = [replace(begin, next=begin.next + rows) for begin, rows in zip(begins.values(), taken, strict=True)]
        self._planned = {end.place: (begins[end.place].next, end.next) for end in ends}
        if all(begin == given.get(place, begin) for place, begin in begins.items()):
            plan = [_range(self._seen[end.place], *self._planned[end.place]) for end in ends if end.place in self._seen]
            read = partial(read_batches, options=hasty(self._options), schema=self._schema)
            self._ahead.start(start, to_json(ends), self._split(plan), read)
        return to_json(ends)

    def _split(self, wholes: list[IggyRange]) -> list[IggyRange]:
        return split_all(wholes, self._options.min_partitions, _whole)

    def _begins(self, given: dict[Place, PartitionOffset]) -> dict[Place, PartitionOffset]:
        """Where to continue in each partition: those of the checkpoint, and those added since."""
        begins = {place: self._positions.accepted(begin, self._seen.get(place)) for place, begin in given.items()}
        for place, state in self._seen.items():
            begins.setdefault(place, state.at(0))
        return begins

    def _knows_beyond(self, given: dict[Place, PartitionOffset]) -> bool:
        return any(
            place not in given or (state.created == given[place].created and given[place].next < state.end)
            for place, state in self._seen.items()
        )

    def _end(self, place: Place) -> int:
        state = self._seen.get(place)
        end = 0 if state is None else state.end
        return end if self._target is None else min(end, self._target.get(place, 0))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        if not self._seen:
            return None
        document = to_json(state.at(state.end) for state in self._seen.values())
        shares = {place: share(state, self._planned) for place, state in self._seen.items()}
        for place, taken in shares.items():
            document["topics"][place.topic][str(place.partition)] |= taken
        return document | measured(self._options.name, [taken["behind"] for taken in shares.values()])

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        ready = self._ahead.plan(start, end)
        if ready is not None:
            return ready
        begins, ends = (from_json(offset, self._options.topics) for offset in (start, end))
        moved = {place for place, stop in ends.items() if begins.get(place) != stop and stop.next > 0}
        if not moved:
            return []
        states = self._positions.planner.all_states()
        self._seen = states
        wholes = []
        for place in sorted(moved):
            state, stop = states.get(place), ends[place]
            begin = begins.get(place) or Offset(place, 0, stop.created)
            accepted = self._positions.accepted(begin, state)
            if state is not None and (left := span(begin, stop, accepted, state)):
                wholes.append(_range(state, *left))
        return [RangePartition(piece) for piece in self._split(wholes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return read_batches(partition.range, self._options, self._schema)

    def carried(self, partition: InputPartition) -> Iterator[pa.RecordBatch] | None:
        return self._ahead.rows(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: progress is in the checkpoint, not on the server."""

    def stop(self) -> None:
        from headwater.spark.iggy.links import close_idle

        close_idle()
        end_quietly()
