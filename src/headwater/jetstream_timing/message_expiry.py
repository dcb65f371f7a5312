"""The expiry timer of a stream: applies the decisions of `jetstream_state/expiry.py` when a message is due."""

import asyncio
import logging
from collections.abc import Callable, Iterable

from headwater.errors import StorageError
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.expiry import LONGEST_TIMER, SHORTEST_TIMER, Patience, Reader
from headwater.model.timestamps import SECOND

logger = logging.getLogger(__name__)


class ExpiryTimer:
    """Applies the time limits of `contents` when the next message expires. `readers()`: the consumers. `on_applied()` is
    called each time."""

    def __init__(
        self,
        contents: Contents,
        clock_ns: Callable[[], int],
        readers: Callable[[], Iterable[Reader]],
        on_applied: Callable[[], None],
    ) -> None:
        self._contents = contents
        self._clock_ns = clock_ns
        self._readers = readers
        self._on_applied = on_applied
        self._patience = Patience()
        self._timer: asyncio.TimerHandle | None = None
        self._at = 0  # time of day, ns

    def enforce(self) -> None:
        """Apply the limits now. Raises StorageError."""
        self._contents.enforce(self._patience.time(self._clock_ns(), self._contents, self._readers()))
        self._on_applied()

    def set(self) -> None:
        """Set the timer for the next message to expire."""
        at = self._contents.next_expiry()
        if at == self._at and self._timer is not None:
            return
        self.stop()
        self._at = at
        if at:
            delay = (at - self._clock_ns()) / SECOND
            delay = min(max(delay, SHORTEST_TIMER), LONGEST_TIMER)
            self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def stop(self) -> None:
        """Stop the timer, until `set` is called."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_clock_step(self) -> None:
        """The system clock was stepped: apply the limits now, and reset the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._on_timer()

    def _on_timer(self) -> None:
        self._timer = None
        try:
            self.enforce()
        except StorageError as error:
            logger.error("stream_cannot_expire stream=%s reason=%s", self._contents.config.name, error)
