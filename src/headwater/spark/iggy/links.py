"""Connections of this process to Iggy servers, kept between tasks, and asking again where a server was away.

As `headwater.spark.connections` for NATS (`headwater.spark.idle` says how they are kept).
"""

import atexit
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from headwater.errors import RequestTimeout, TransportError
from headwater.iggy.blocking import BlockingIggy
from headwater.spark.idle import IdleConnections
from headwater.spark.iggy.options import IggyServer

logger = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between attempts that bring nothing, doubling

_idle: IdleConnections[IggyServer, BlockingIggy] = IdleConnections()
give_back = _idle.give_back
close_idle = atexit.register(_idle.close)


def take(server: IggyServer, patience: float, *, fresh: bool = False) -> BlockingIggy:
    """A connected client: an idle one, or (`fresh`, or when there is none) a new one. Raises what `connect` raises."""
    return _idle.take(server, fresh=fresh) or server.connect(patience)


class Persistence:
    """Says whether to try again after a failure: until nothing has come for `patience` seconds."""

    def __init__(self, patience: float, what: str) -> None:
        self._patience = patience
        self._what = what
        self.failures = 0
        self._give_up = time.monotonic() + patience

    def progressed(self) -> None:
        self.failures = 0
        self._give_up = time.monotonic() + self._patience

    def wait_after(self, error: Exception) -> None:
        """Pause before the next attempt; raises `error` when there is to be none."""
        if time.monotonic() > self._give_up:
            raise error
        logger.warning("iggy_again %s: %s", self._what, error)
        time.sleep(min(FIRST_PAUSE * 2**self.failures, LONGEST_PAUSE))
        self.failures += 1


def persistently(server: IggyServer, patience: float, what: str, ask: Callable[[BlockingIggy], T]) -> T:
    """Ask on a kept connection, on a new one when that fails, for up to `patience` seconds. Raises IggyError for a
    refusal at once, the last TransportError or RequestTimeout otherwise."""
    persistence = Persistence(patience, what)
    while True:
        client: BlockingIggy | None = None
        try:
            client = take(server, patience, fresh=persistence.failures > 0)
            answer = ask(client)
        except (TransportError, RequestTimeout) as error:
            if client is not None:
                client.close()
            persistence.wait_after(error)
        except BaseException:
            if client is not None:
                client.close()
            raise
        else:
            give_back(server, client)
            return answer
