"""The line of a log about what its disk refused: at most one in a second, for one with each message would fill that disk.

Those who published learn it from their answers, each of them.
"""

import logging
from collections.abc import Callable

from headwater.errors import StorageError

logger = logging.getLogger(__name__)

BETWEEN = 1_000_000_000  # ns between two lines


class Refusals:
    """Of one stream; `ticks_ns()` never goes back."""

    def __init__(self, stream: str, ticks_ns: Callable[[], int]) -> None:
        self._stream = stream
        self._ticks_ns = ticks_ns
        self._count = 0  # messages since the last line
        self._silent_until = 0

    def note(self, count: int, error: StorageError) -> None:
        """So many messages were refused."""
        self._count += count
        now = self._ticks_ns()
        if now >= self._silent_until:
            logger.error("stream_write_refused stream=%s messages=%d reason=%s", self._stream, self._count, error)
            self._count, self._silent_until = 0, now + BETWEEN
