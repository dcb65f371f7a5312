"""The line of a log about what its disk refused: at most one in a second, for one with each message would fill that disk.

Those who published learn it from their answers, each of them.
"""

import logging
from collections.abc import Callable

from headwater.errors import StorageError
from headwater.model.line_limit import LineLimit

logger = logging.getLogger(__name__)

BETWEEN = 1_000_000_000  # ns between two lines


class RefusedWrites:
    """Of one stream; `ticks_ns()` never goes back."""

    def __init__(self, stream: str, ticks_ns: Callable[[], int]) -> None:
        self._stream = stream
        self._ticks_ns = ticks_ns
        self._limit = LineLimit(BETWEEN)

    def note(self, count: int, error: StorageError) -> None:
        """So many messages were refused."""
        messages = self._limit.due(self._ticks_ns(), count)
        if messages:
            logger.error("stream_write_refused stream=%s messages=%d reason=%s", self._stream, messages, error)
