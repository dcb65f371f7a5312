"""Planning: which positions to read next, in how many ranges, and which of them are lost. Pure decisions over offsets.

A range is half-open, `[start, end)`. It promises every message that it contained when it was planned; `loss` reports when
the log can no longer keep that promise. `failOnDataLoss` decides whether this ends the query (`accepted`) or reading
continues with the rest (`resumed`), and then every message is still read at most once (`span`).
"""

import itertools
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic

from headwater.errors import ConfigError, DataLossError
from headwater.spark.offsets import LogState, Offset, PlaceT, StreamState
from headwater.spark.read_options import Edge, Position

logger = logging.getLogger(__name__)

# A task costs about 100 ms when cold, as much as decoding 50,000 rows, so smaller ranges are slower rather than faster.
ROWS_WORTH_A_PARTITION = 100_000

_RESTART = "use a new checkpoint, or failOnDataLoss=false to go on from the first message"


@dataclass(frozen=True, slots=True)
class Range(Generic[PlaceT]):
    """Positions `start <= p < end` of the log created at `created`. `mean`: bytes per message, 0 if unknown."""

    place: PlaceT
    created: str | int
    start: int
    end: int
    mean: int = 0

    def __len__(self) -> int:
        return self.end - self.start


def resolve(position: Edge | int, state: LogState[PlaceT]) -> int:
    """The present value of a position from the options. A number before the first message is kept, so that `loss` can
    report it."""
    match position:
        case "earliest":
            return state.first
        case "latest":
            return state.end
        case number:
            return number


def shares(backlogs: list[int], most: int | None) -> list[int]:
    """How much of each backlog to read when the total may be `most`: in proportion, with the remainder for the longest
    backlogs."""
    total = sum(backlogs)
    if most is None or total <= most:
        return backlogs
    taken = [most * backlog // total for backlog in backlogs]
    rest = most - sum(taken)
    for index in sorted(range(len(backlogs)), key=lambda index: -backlogs[index])[:rest]:
        taken[index] += 1
    return taken


def one_for_each_core(length: int) -> int:
    """The default number of pieces of a range: one per core, each of at least `ROWS_WORTH_A_PARTITION`."""
    return max(1, min(os.cpu_count() or 1, length // ROWS_WORTH_A_PARTITION))


def split_all(
    wholes: list[Range[PlaceT]], partitions: int | None, by_default: Callable[[int], int] = one_for_each_core
) -> list[Range[PlaceT]]:
    """Each range split, with `partitions` divided among them in proportion; none for empty ranges. `by_default`: the number
    of pieces for a length, when `partitions` is None."""
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
    """The loss in the log that `start` belongs to, or None when everything from `start` on may still be there."""
    log, unit = f"{state.kind} {state.place}", state.unit
    if start.created != state.created:
        return DataLossError(
            f"{log} was made anew: it was created {state.created}, the reader stood in the one created {start.created}",
            value=start.next,
            hint=_RESTART,
        )
    if start.next > max(state.end, 1):  # an empty partition does not show whether offset 0 was ever assigned
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
    """Raise a loss, or log it if `failOnDataLoss` is off."""
    if problem is None:
        return
    if fail:
        raise problem
    logger.warning("data_loss_accepted: %s", problem)


def check_bounds(start: Position, end: Position, state: LogState[PlaceT], fail: bool) -> None:
    """Report the loss in a batch read when a number that the options give as its start or end was never assigned. A
    streaming query waits for it; a batch read that begins where the last one ended would give nothing from a log made anew,
    one that is to end at a known place would give fewer rows, and neither would say so."""
    known = max(state.end, 1)  # an empty partition does not show whether offset 0 was ever assigned
    late_start, late_end = (isinstance(place, int) and place > known for place in (start, end))
    log = f"{state.kind} {state.place} {_ending(state)}"
    problem = None
    if late_start:
        both = f", and before its end, {end}" if late_end else ""
        problem = DataLossError(
            f"{log}, before the beginning of the read, {start}{both}: it was purged or made anew, or the option is of "
            "another one",
            value=(start, end) if late_end else start,
            limit=state.end,
            hint="begin at earliest, or failOnDataLoss=false to read nothing",
        )
    elif late_end:
        problem = DataLossError(
            f"{log}, before the end of the read, {end}: it was purged or made anew, or has not come so far",
            value=end,
            limit=state.end,
            hint="end at latest, or failOnDataLoss=false to read what is there",
        )
    report(problem, fail)


def _ending(state: LogState[PlaceT]) -> str:
    if state.end <= (1 if state.unit == "sequence" else 0):
        return "has no message"
    return f"ends at {state.unit} {state.end - 1}"


def accepted(start: Offset[PlaceT], state: LogState[PlaceT], fail: bool) -> Offset[PlaceT]:
    """`start`, or where to continue when part of the log is lost. Raises DataLossError if losses are not accepted."""
    problem = loss(start, state)
    report(problem, fail)
    return start if problem is None else resumed(start, state)


def resumed(start: Offset[PlaceT], state: LogState[PlaceT]) -> Offset[PlaceT]:
    """Where to continue after an accepted loss."""
    if start.created == state.created and start.next <= state.end:
        return state.at(max(start.next, state.first))
    return state.at(state.first)


def span(
    begin: Offset[PlaceT], stop: Offset[PlaceT], start: Offset[PlaceT], state: LogState[PlaceT]
) -> tuple[int, int] | None:
    """What is left to read of the batch from `begin` to `stop`, as (start, end); None for nothing.

    `start` is where reading continues from `begin` according to `accepted`. If the log was recreated, or lost its end,
    after the batch was planned, nothing is left of it: the next batch begins at the first message, which must not have been
    read.
    """
    if stop.created != state.created:
        return None
    planned_before = begin.created == stop.created and begin.next <= stop.next
    if planned_before and begin.next > state.end:
        return None
    return (start.next, stop.next) if start.next < stop.next else None
