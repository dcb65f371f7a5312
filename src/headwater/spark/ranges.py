"""Planning: which sequences to read next, and in how many pieces. Pure decisions over offsets.

A range is half-open, `[start, end)`, in stream sequences. What a range promises is every message that it held when it
was planned; when the stream can no longer keep that promise, `check` says so: the one place where `failOnDataLoss`
is decided before reading.
"""

import itertools
import os
from dataclasses import dataclass

from headwater.errors import ConfigError, DataLossError
from headwater.spark.offsets import StreamOffset, StreamState
from headwater.spark.options import Edge

# A task costs about 100 ms when cold, as much as decoding 50,000 rows: smaller pieces are slower, not faster.
ROWS_WORTH_A_PARTITION = 100_000


@dataclass(frozen=True, slots=True)
class Range:
    """Sequences `start <= s < end` of the stream made at `created`."""

    stream: str
    created: str
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


def resolve(position: Edge | int, state: StreamState) -> int:
    """The sequence that a position means now. A number before the first message stays as it is: `check` judges it."""
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


def split_all(wholes: list[Range], partitions: int | None) -> list[Range]:
    """Each range split, a wish for `partitions` divided among them in proportion; none for empty ranges."""
    total = sum(map(len, wholes))
    pieces: list[Range] = []
    for whole in wholes:
        wanted = None if partitions is None else max(1, partitions * len(whole) // max(1, total))
        pieces += split(whole, wanted)
    return pieces


def split(whole: Range, partitions: int | None) -> list[Range]:
    """`whole` in at most `partitions` pieces of nearly equal length; none for an empty range.

    Without a wish, one piece per core, as long as each has `ROWS_WORTH_A_PARTITION` sequences.
    """
    length = len(whole)
    if length <= 0:
        return []
    pieces = partitions or max(1, min(os.cpu_count() or 1, length // ROWS_WORTH_A_PARTITION))
    pieces = min(pieces, length)
    edges = [whole.start + length * piece // pieces for piece in range(pieces + 1)]
    return [Range(whole.stream, whole.created, a, b) for a, b in itertools.pairwise(edges)]


def check_readable(state: StreamState) -> None:
    """Raise ConfigError for a stream that cannot be read by ranges at all."""
    if state.retention != "limits":
        raise ConfigError(
            f"stream {state.stream} has {state.retention} retention: its messages go when they are acknowledged, "
            "and cannot be read again",
            value=state.retention,
            hint="read a second stream with limits retention that sources from it",
        )


def loss(start: StreamOffset, state: StreamState) -> DataLossError | None:
    """What is gone of the stream that `start` was taken from, or None when all from `start` on is still there."""
    if start.created != state.created:
        return DataLossError(
            f"stream {state.stream} was made anew: it was created {state.created}, the reader stood in the one "
            f"created {start.created}",
            value=start.next,
            hint="use a new checkpoint, or failOnDataLoss=false to go on from the first message",
        )
    if start.next > state.end:
        return DataLossError(
            f"stream {state.stream} ends at sequence {state.end - 1}, before the reader's position {start.next}: "
            "it was restored from an older state",
            value=start.next,
            hint="use a new checkpoint, or failOnDataLoss=false to go on from the first message",
        )
    if start.next < state.first:
        return DataLossError(
            f"sequences {start.next} to {state.first - 1} of stream {state.stream} are gone (expired or purged)",
            value=(start.next, state.first),
            hint="failOnDataLoss=false reads on from what is left",
        )
    return None


def resumed(start: StreamOffset, state: StreamState) -> StreamOffset:
    """Where to go on after a loss that is accepted."""
    if start.created == state.created and start.next <= state.end:
        return state.at(max(start.next, state.first))
    return state.at(state.first)
