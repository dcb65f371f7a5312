"""Runs the recounts of a stream (`Contents.count_anew`) in turns with the loop's other work, one at a time."""

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import closing

from headwater.errors import StorageError

logger = logging.getLogger(__name__)


class Recounts:
    """Runs `count` soon after `ask`, one at a time, and `then` after each."""

    def __init__(self, count: Callable[[], Generator[None, None, None]], then: Callable[[], None]) -> None:
        self._count = count
        self._then = then
        self._wanted = False
        self._task: asyncio.Task[None] | None = None

    def ask(self) -> None:
        """Request a count; if one is running, another follows it."""
        self._wanted = True
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def done(self) -> None:
        """Wait until no count runs."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def stop(self) -> None:
        """Stop counting: the stream ends."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._wanted:
                self._wanted = False
                with closing(self._count()) as turns:
                    for _ in turns:
                        await asyncio.sleep(0)
                self._then()
        except StorageError as error:
            logger.error("stream_not_counted reason=%s", error)
        finally:
            self._task = None
