"""Trying again while a server is away: for a limited time without progress, with longer and longer pauses."""

import logging
import time

from headwater.errors import JetStreamError, NoResponders, RequestTimeout, TransportError

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between attempts without progress, doubling
TRANSIENT_CODES = (429, 503)  # of a JetStream error: too many at once; starting, electing, out of resources
STORE_FAILED = 10077  # err_code of one that is 503 and will not pass: the stream is full, or its disk

PASSING = (TransportError, RequestTimeout, NoResponders, JetStreamError)
"""Errors of which another attempt may be free (`Persistence.wait_after` knows which)."""


def may_pass(error: Exception) -> bool:
    """Whether another attempt may succeed: a server that does not answer, or is not ready."""
    return not isinstance(error, JetStreamError) or (error.code in TRANSIENT_CODES and error.err_code != STORE_FAILED)


class Persistence:
    """Decides after each failure whether to try again: as long as the last progress is less than `patience` seconds ago.

    `event` begins the log line of each failure.
    """

    def __init__(self, patience: float, event: str) -> None:
        self._patience = patience
        self._event = event
        self.failures = 0
        self._give_up = time.monotonic() + patience

    def progressed(self) -> None:
        self.failures = 0
        self._give_up = time.monotonic() + self._patience

    def wait_after(self, error: Exception, detail: str = "") -> None:
        """Pause before the next attempt. Raises `error` when it is final, or the time is over."""
        if not may_pass(error) or time.monotonic() > self._give_up:
            raise error
        logger.warning("%s%s: %s", self._event, detail, error)
        time.sleep(min(FIRST_PAUSE * 2**self.failures, LONGEST_PAUSE))
        self.failures += 1
