"""One stream of a streaming query, as tracked by the planner: its start, its state, and how much of it is unread.

Spark requests offsets continuously, and repeatedly for the same position, so the last known state is kept: a stream is
queried again when the reader has planned all that was known of it, or when that is older than `FRESH_SECONDS`: it is known
from the time when the last batch was planned, and a batch up to there would leave out what came while that one ran.
"""

import time
from datetime import datetime

from headwater.spark.offsets import Offset, StreamState
from headwater.spark.options import SourceOptions
from headwater.spark.planner import StreamPlanner
from headwater.spark.ranges import accepted, resolve
from headwater.spark.read_options import Position

FRESH_SECONDS = 0.01  # a query takes 0.3 ms of our broker's time, a micro-batch 100 ms and more


def sequence_of(position: Position, state: StreamState, planner: StreamPlanner) -> int:
    """The sequence that a position means now; for a time, the first message stored since then that is left."""
    if isinstance(position, datetime):
        return planner.sequence_at(position)
    return resolve(position, state)


def starting_offset(
    position: Position, state: StreamState, planner: StreamPlanner, options: SourceOptions
) -> Offset[str]:
    """The start of a read without a checkpoint. A sequence beyond the end is waited for; it is not a loss."""
    first = state.at(sequence_of(position, state, planner))
    return first if first.next >= state.end else accepted(first, state, options.fail_on_data_loss)


class StreamTail:
    """`options` are those of this one stream. Picklable: the connection is left out."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planner = StreamPlanner(options)
        self._initial: Offset[str] | None = None
        self._target: int | None = None
        self._seen: StreamState | None = None
        self._looked = 0.0

    def initial(self) -> Offset[str]:
        """The start of a query without a checkpoint. It stays the same, because Spark calls this twice before the first
        batch."""
        if self._initial is None:
            position = self._options.starting_at(self._options.stream, "latest")
            self._initial = starting_offset(position, self.observe(), self._planner, self._options)
        return self._initial

    def fix_target(self) -> None:
        """From now on, read only up to the present end of the stream."""
        self._target = self.observe().end

    def observe(self) -> StreamState:
        self._seen = self._planner.state()
        self._looked = time.monotonic()
        return self._seen

    def refresh(self) -> None:
        """Query the stream again if its last known state is old, and reading is not only up to a target."""
        if self._target is None and time.monotonic() - self._looked > FRESH_SECONDS:
            self.observe()

    def is_unknown(self, begin: Offset[str]) -> bool:
        """Whether the last known state does not apply to a reader at `begin`."""
        seen = self._seen
        return seen is None or seen.created != begin.created or seen.end > begin.next or self._target is not None

    def knows_beyond(self, begin: Offset[str]) -> bool:
        """Whether the last known state has unread messages after `begin`."""
        return self._seen is not None and self._seen.created == begin.created and begin.next < self._seen.end

    def wait_beyond(self, begin: Offset[str]) -> None:
        """Wait a little for a message at `begin` or later."""
        if self._target is None:
            known = begin.next if self._seen is None else min(begin.next, self._seen.end)
            self._seen = self._planner.wait_beyond(known) or self._seen

    def accepted(self, begin: Offset[str]) -> Offset[str]:
        """`ranges.accepted` for the last known state. A position named in the options may lie beyond the end: it is waited
        for, and does not mean that the stream lost its end.
        """
        seen = self._seen or self.observe()
        named = self._options.starting_at(seen.place, "latest")
        if begin.next > seen.end and begin == seen.at(begin.next) and begin.next == named:
            return begin
        return accepted(begin, seen, self._options.fail_on_data_loss)

    def backlog(self, begin: Offset[str]) -> int:
        """The number of sequences from `begin` to the end, or to the target."""
        end = begin.next if self._seen is None else self._seen.end
        return max(0, (end if self._target is None else min(end, self._target)) - begin.next)

    @property
    def seen(self) -> StreamState | None:
        """The last known state of the stream."""
        return self._seen

    def end(self) -> Offset[str] | None:
        """The last known end, or None."""
        return None if self._seen is None else self._seen.at(self._seen.end)

    def close(self) -> None:
        self._planner.close()
