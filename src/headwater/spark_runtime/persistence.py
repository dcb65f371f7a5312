"""Retry while a server is unavailable: for a limited time without progress, with increasing pauses."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from headwater.errors import (
    HeadwaterError,
    HostUnknown,
    JetStreamError,
    NoResponders,
    RequestTimeout,
    TlsRefused,
    TransportError,
)

T = TypeVar("T")

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between attempts without progress, doubling
UNKNOWN_HOST_PATIENCE = 5.0  # seconds: a name that is mistyped stays so, one of a server that is starting comes
TRANSIENT_CODES = (429, 503)  # of JetStream errors: too many requests; starting, electing, out of resources
STORE_FAILED = 10077  # err_code of a 503 error that is permanent: the stream or its disk is full

PASSING = (TransportError, RequestTimeout, NoResponders, JetStreamError)
"""Errors after which another attempt may succeed (`Persistence.wait_after` decides)."""


def may_pass(error: Exception) -> bool:
    """Whether another attempt may succeed because the server did not answer, or was not ready."""
    if isinstance(error, TlsRefused):
        return False
    return not isinstance(error, JetStreamError) or (error.code in TRANSIENT_CODES and error.err_code != STORE_FAILED)


class Persistence:
    """Decides after each failure whether to retry: yes, if the last progress was less than `patience` seconds ago. `event`
    is the prefix of the log lines: one for each run of failures with the same error, and one that ends it.
    """

    def __init__(self, patience: float, event: str) -> None:
        self._patience = patience
        self._event = event
        self.failures = 0  # since the last progress
        self._all = 0
        self._give_up = time.monotonic() + patience
        self._since = 0.0  # of the first of the failures since the last success
        self._logged = ""  # the last failure in the log

    def progressed(self) -> None:
        """A failed attempt came further than the one before."""
        self.failures, self._logged = 0, ""
        self._give_up = time.monotonic() + self._patience

    def wait_after(self, error: Exception, detail: str = "") -> None:
        """Pause before the next attempt. Raises `error` when it is permanent, or patience is exhausted."""
        now = time.monotonic()
        if not self._all:
            self._since = now
        give_up = (
            min(self._give_up, self._since + UNKNOWN_HOST_PATIENCE) if isinstance(error, HostUnknown) else self._give_up
        )
        if not may_pass(error) or now > give_up:
            if self._all and isinstance(
                error, HeadwaterError
            ):  # in its sentence: Spark shows the last line of a traceback
                error.hint = "; ".join([*filter(None, [error.hint]), f"the last of {self._all + 1} failures"])
            raise error
        if str(error) != self._logged:
            self._logged = str(error)
            logger.warning("%s%s: %s", self._event, detail, error)
        time.sleep(min(FIRST_PAUSE * 2**self.failures, LONGEST_PAUSE))
        self.failures += 1
        self._all += 1

    def succeeded(self) -> None:
        """The work is done: the log says so if there were failures."""
        if self._all:
            logger.warning("%s: over after %d failures, %.1f s", self._event, self._all, time.monotonic() - self._since)
        self.failures = self._all = 0
        self._logged = ""


def persisted(persistence: Persistence, attempt: Callable[[bool], T], close: Callable[[], None]) -> T:
    """The answer of `attempt`, repeated for what may pass. Its argument is whether it is another one, for which an
    idle connection is not to be trusted; `close` gives up the connection after each failure."""
    while True:
        try:
            answer = attempt(persistence.failures > 0)
        except PASSING as error:
            close()
            persistence.wait_after(error)
        except BaseException:
            close()
            raise
        else:
            persistence.succeeded()
            return answer
