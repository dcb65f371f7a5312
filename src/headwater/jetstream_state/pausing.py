"""Delays of deliveries: a pause until a time of day, and the replay policy `original`."""

from collections.abc import Callable

from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.model.timestamps import SECOND, ZERO, parse_time
from headwater.streams.log import StoredRecord


class Pause:
    """A pause of deliveries. `until`: time of day in ns at which they resume, 0 while they are not paused."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self.until = 0
        self._clock_ns = clock_ns

    def configure(self, config: ConsumerConfig) -> None:
        """Take the end of the pause from a configuration."""
        until = parse_time(config.pause_until) if config.pause_until not in (None, ZERO) else 0
        self.until = until if until > self._clock_ns() else 0

    @property
    def remaining(self) -> int:
        """Nanoseconds until deliveries resume."""
        return max(0, self.until - self._clock_ns()) if self.until else 0

    def holds(self) -> bool:
        """Whether the consumer is paused; clears a pause that is over."""
        if self.until and self._clock_ns() >= self.until:
            self.until = 0
        return self.until > 0


class OriginalPace:
    """Replay policy `original`: messages follow each other as their time stamps do."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None  # (delivered at, time stamp), ns

    def note(self, record: StoredRecord, now: int) -> None:
        """A new message was delivered at `now`, nanoseconds of the loop's clock."""
        self._last = (now, record.timestamp_ns)

    def held_back(self, record: StoredRecord, now: int) -> float:
        """Seconds until a new message is due; 0 when it is."""
        if self._last is None:
            return 0.0
        at, timestamp = self._last
        return max(0, at + record.timestamp_ns - timestamp - now) / SECOND
