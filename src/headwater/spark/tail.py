"""One stream of a streaming query, as the planner follows it: where it began, what it holds, how much of it is unread.

Spark asks for offsets without a pause and more than once for the same, so what was seen is kept: a stream is looked at
again only when the reader has taken all that was known of it.
"""

from datetime import datetime

from headwater.spark.offsets import Offset, StreamState
from headwater.spark.options import SourceOptions
from headwater.spark.planner import StreamPlanner
from headwater.spark.ranges import accepted, resolve
from headwater.spark.read_options import Position


def sequence_of(position: Position, state: StreamState, planner: StreamPlanner) -> int:
    """The sequence that a position means now; of a time, the first one since then that is still there."""
    if isinstance(position, datetime):
        return planner.sequence_at(position)
    return resolve(position, state)


def starting_offset(
    position: Position, state: StreamState, planner: StreamPlanner, options: SourceOptions
) -> Offset[str]:
    """Where a read begins that has no checkpoint. A sequence beyond the end is a place to wait at, not a loss."""
    first = state.at(sequence_of(position, state, planner))
    return first if first.next >= state.end else accepted(first, state, options.fail_on_data_loss)


class StreamTail:
    """`options` are those of the one stream. Picklable: the connection stays behind."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planner = StreamPlanner(options)
        self._initial: Offset[str] | None = None
        self._target: int | None = None
        self._seen: StreamState | None = None

    def initial(self) -> Offset[str]:
        """Where a query without a checkpoint starts: the same each time, as Spark calls it twice before the first batch."""
        if self._initial is None:
            position = self._options.starting_at(self._options.stream, "latest")
            self._initial = starting_offset(position, self.observe(), self._planner, self._options)
        return self._initial

    def fix_target(self) -> None:
        """From now on the stream ends where it ends now."""
        self._target = self.observe().end

    def observe(self) -> StreamState:
        self._seen = self._planner.state()
        return self._seen

    def is_unknown(self, begin: Offset[str]) -> bool:
        """Whether the state that was seen does not apply to a reader at `begin`."""
        seen = self._seen
        return seen is None or seen.created != begin.created or seen.end > begin.next or self._target is not None

    def knows_beyond(self, begin: Offset[str]) -> bool:
        """Whether there is something unread, as far as was seen."""
        return self._seen is not None and self._seen.created == begin.created and begin.next < self._seen.end

    def wait_beyond(self, begin: Offset[str]) -> None:
        """Wait a little for something behind `begin`."""
        if self._target is None:
            known = begin.next if self._seen is None else min(begin.next, self._seen.end)
            self._seen = self._planner.wait_beyond(known) or self._seen

    def accepted(self, begin: Offset[str]) -> Offset[str]:
        """`ranges.accepted`, by the state that was seen.

        The position that the options name may lie beyond the end: a place to wait at, not a stream that lost its end.
        """
        seen = self._seen or self.observe()
        named = self._options.starting_at(seen.place, "latest")
        if begin.next > seen.end and begin == seen.at(begin.next) and begin.next == named:
            return begin
        return accepted(begin, seen, self._options.fail_on_data_loss)

    def backlog(self, begin: Offset[str]) -> int:
        """Sequences from `begin` to the end, or to the target."""
        end = begin.next if self._seen is None else self._seen.end
        return max(0, (end if self._target is None else min(end, self._target)) - begin.next)

    @property
    def seen(self) -> StreamState | None:
        """The stream as it was seen last."""
        return self._seen

    def end(self) -> Offset[str] | None:
        """The end that was seen, if any was."""
        return None if self._seen is None else self._seen.at(self._seen.end)

    def close(self) -> None:
        self._planner.close()
