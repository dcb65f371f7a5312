"""Slow password comparisons (bcrypt: a tenth of a second), in threads, so that the loop serves other clients meanwhile."""

import asyncio
import logging
from typing import TYPE_CHECKING

from headwater.authorization.identity import Identity, PasswordCheck, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

logger = logging.getLogger(__name__)

PASSWORD_THREADS = 2  # bcrypt uses a whole core in each; the other cores serve connected clients


class PasswordChecks:
    """The threads start with the first check: most brokers never need one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads: ThreadPoolExecutor | None = None

    def start(self, check: PasswordCheck, client: int, act: "Callable[[Identity | Refusal], None]") -> None:
        """Run `check` in a thread; the loop then calls `act` with the verdict. A check that raises counts as a refusal."""
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(PASSWORD_THREADS, "headwater-passwords")

        def done(outcome: "asyncio.Future[Identity | Refusal]") -> None:
            if outcome.cancelled():
                return
            error = outcome.exception()
            if error is not None:
                logger.error("password_check_failed client=%d error=%s", client, type(error).__name__)
            act(Refusal("the check failed") if error is not None else outcome.result())

        self._loop.run_in_executor(self._threads, check.decide).add_done_callback(done)

    def stop(self) -> None:
        """Drop the checks that have not started; their clients get no verdict."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None
