"""Planning: which positions to read next, in how many pieces, and what of them is lost. Pure decisions over offsets.

A range is half-open, `[start, end)`. What it promises is every message that it held when it was planned; when the log can
no longer keep that promise, `loss` says so. `failOnDataLoss` decides whether that ends the query (`accepted`) or reading
goes on with what is left (`resumed`), and then every message is still read at most once (`span`).
"""

import itertools
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic

from headwater.errors import ConfigError, DataLossError
from headwater.spark.offsets import LogState, Offset, PlaceT, StreamState
from headwater.spark.read_options import Edge

logger = logging.getLogger(__name__)

# A task costs about 100 ms when cold, as much as decoding 50,000 rows: smaller pieces are slower, not faster.
ROWS_WORTH_A_PARTITION = 100_000

_RESTART = "use a new checkpoint, or failOnDataLoss=false to go on from the first message"


@dataclass(frozen=True, slots=True)
class Range(Generic[PlaceT]):
    """Positions `start <= p < end` of the log created at `created`. `mean`: bytes of a message, 0 where unknown."""

    place: PlaceT
    created: str | int
    start: int
    end: int
    mean: int = 0

    def __len__(self) -> int:
        return self.end - self.start


def resolve(position: Edge | int, state: LogState[PlaceT]) -> int:
    """Where a position of the options lies now. A number before the first message stays as it is: `loss` judges it."""
    match position:
        case "earliest":
            return state.first
        case "latest":
            return state.end
        case number:
            return number


def shares(backlogs: list[int], most: int | None) -> list[int]:
    """How much of each backlog to take when there may be `most` together: in proportion, what is left to the longest."""
    total = sum(backlogs)
    if most is None or total <= most:
        return backlogs
    taken = [most * backlog // total for backlog in backlogs]
    rest = most - sum(taken)
    for index in sorted(range(len(backlogs)), key=lambda index: -backlogs[index])[:rest]:
        taken[index] += 1
    return taken


def one_for_each_core(length: int) -> int:
    """The pieces of a range for which no number is wanted: one for each core, of `ROWS_WORTH_A_PARTITION` at least."""
    return max(1, min(os.cpu_count() or 1, length // ROWS_WORTH_A_PARTITION))


def split_all(
    wholes: list[Range[PlaceT]], partitions: int | None, by_default: Callable[[int], int] = one_for_each_core
) -> list[Range[PlaceT]]:
    """Each range split, `partitions` divided among them in proportion; none for empty ranges. `by_default`: the pieces
    of a range, by its length, where `partitions` is None."""
    total = sum(map(len, wholes))
    pieces: list[Range[PlaceT]] = []
    for whole in wholes:
        if len(whole):
            wanted = by_default(len(whole)) if partitions is None else max(1, partitions * len(whole) // total)
            pieces += split(whole, wanted)
    return pieces


def split(whole: Range[PlaceT], pieces: int) -> list[Range[PlaceT]]:
    """`whole`, which is not empty, in at most `pieces` ranges of nearly equal length."""
    length = len(whole)
    pieces = min(pieces, length)
    edges = [whole.start + length * piece // pieces for piece in range(pieces + 1)]
    return [replace(whole, start=a, end=b) for a, b in itertools.pairwise(edges)]


def check_readable(state: StreamState) -> None:
    """Raise ConfigError for a stream that cannot be read by ranges at all."""
    if state.retention != "limits":
        raise ConfigError(
            f"stream {state.place} has {state.retention} retention: its messages go when they are acknowledged, "
            "and cannot be read again",
            value=state.retention,
            hint="read a second stream with limits retention that sources from it",
        )


def loss(start: Offset[PlaceT], state: LogState[PlaceT]) -> DataLossError | None:
    """What is gone of the log that `start` was taken from, or None when all from `start` on may still be there."""
    log, unit = f"{state.kind} {state.place}", state.unit
    if start.created != state.created:
        return DataLossError(
            f"{log} was made anew: it was created {state.created}, the reader stood in the one created {start.created}",
            value=start.next,
            hint=_RESTART,
        )
    if start.next > max(state.end, 1):  # an empty partition does not tell whether offset 0 was ever given out
        return DataLossError(
            f"{log} ends at {unit} {state.end - 1}, before the reader's position {start.next}: it was purged, or "
            "restored from an older state",
            value=start.next,
            hint=_RESTART,
        )
    if start.next < state.first:
        return DataLossError(
            f"{unit}s {start.next} to {state.first - 1} of {log} are gone (expired or purged)",
            value=(start.next, state.first),
            hint="failOnDataLoss=false reads on from what is left",
        )
    return None


def report(problem: DataLossError | None, fail: bool) -> None:
    """Raise a loss, or log it where `failOnDataLoss` is off."""
    if problem is None:
        return
    if fail:
        raise problem
    logger.warning("data_loss_accepted: %s", problem)


def accepted(start: Offset[PlaceT], state: LogState[PlaceT], fail: bool) -> Offset[PlaceT]:
    """`start`, or where to go on when part of the log is gone. Raises DataLossError where that is not accepted."""
    problem = loss(start, state)
    report(problem, fail)
    return start if problem is None else resumed(start, state)


def resumed(start: Offset[PlaceT], state: LogState[PlaceT]) -> Offset[PlaceT]:
    """Where to go on after a loss that is accepted."""
    if start.created == state.created and start.next <= state.end:
        return state.at(max(start.next, state.first))
    return state.at(state.first)


def span(
    begin: Offset[PlaceT], stop: Offset[PlaceT], start: Offset[PlaceT], state: LogState[PlaceT]
) -> tuple[int, int] | None:
    """What is left to read of the batch from `begin` to `stop`, as (start, end); None for nothing.

    `start` is where reading goes on from `begin` by `accepted`. A batch that was planned before its log was made anew, or
    lost its end, has nothing left there: the next batch begins at the first message, and must not find it read.
    """
    if stop.created != state.created:
        return None
    planned_before = begin.created == stop.created and begin.next <= stop.next
    if planned_before and begin.next > state.end:
        return None
    return (start.next, stop.next) if start.next < stop.next else None
