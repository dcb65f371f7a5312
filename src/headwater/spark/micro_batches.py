"""Shared by the readers of both sources: an input partition, and the size of a micro-batch.

Spark's read limits are in rows or in bytes, never both; the options may set both, so the limit in bytes is applied on top
of the one in rows.
"""

from typing import Generic

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows

from headwater.errors import ConfigError
from headwater.spark.offsets import LogState, PlaceT
from headwater.spark.ranges import Range, shares
from headwater.spark.read_options import ReadOptions


class RangePartition(InputPartition, Generic[PlaceT]):
    """An input partition: one range of one log. It is plain data, because it is pickled."""

    def __init__(self, wanted: Range[PlaceT]) -> None:
        super().__init__((wanted.place, wanted.created, wanted.start, wanted.end, wanted.mean))

    @property
    def range(self) -> Range[PlaceT]:
        return Range(*self.value)


def check_endless(options: ReadOptions) -> None:
    """Raise ConfigError for options that a streaming query cannot honour."""
    if options.ending is not None:
        raise ConfigError(
            "endingOffsets and endingTimestamp are for batch reads: a streaming query has no end",
            value=str(options.ending),
            hint="use spark.read, or trigger(availableNow=True) to stop at what is there now",
        )


def default_limit(options: ReadOptions) -> ReadLimit:
    """The read limit set by the options."""
    if options.max_offsets_per_trigger is not None:
        return ReadMaxRows(options.max_offsets_per_trigger)
    return ReadAllAvailable() if options.max_bytes_per_trigger is None else ReadMaxBytes(options.max_bytes_per_trigger)


def within(
    limit: ReadLimit, backlogs: list[int], states: list[LogState[PlaceT] | None], options: ReadOptions
) -> list[int]:
    """How much of each backlog the next batch may contain; the engine may request everything at any time."""
    if isinstance(limit, ReadAllAvailable):
        return backlogs
    taken = shares(backlogs, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
    size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else options.max_bytes_per_trigger
    if size is None:
        return taken
    total = max(1, sum(backlogs))
    bounds = [
        state.messages_in(size * backlog // total) if state is not None and backlog else 1
        for state, backlog in zip(states, backlogs, strict=True)
    ]
    return [min(rows, bound) for rows, bound in zip(taken, bounds, strict=True)]
