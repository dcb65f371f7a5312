"""The timer of a stream's schedules: stores their messages when they are due (`jetstream_state/schedules.py`).

    due ─▶ `Schedules.take_due` ─▶ stored, not published: plain subscribers see nothing ─▶ the next timer

A message that cannot be stored is tried again a little later; each failure is logged.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from headwater.errors import JetStreamError
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.expiry import LONGEST_TIMER
from headwater.jetstream_state.items import Answer
from headwater.jetstream_state.schedules import SHORTEST_DELAY, Row
from headwater.model.timestamps import SECOND

logger = logging.getLogger(__name__)

Store = Callable[[bytes, bytes, bytes, Answer], None]


class ScheduleTimer:
    """`store(subject, header_block, payload, answer)` stores a message and calls `answer` once. `clock_ns`: time of day."""

    def __init__(self, contents: Contents, clock_ns: Callable[[], int], store: Store) -> None:
        self._contents = contents
        self._clock_ns = clock_ns
        self._store = store
        self._timer: asyncio.TimerHandle | None = None
        self._at = 0
        self._stopped = True

    def start(self) -> None:
        """Start the timer; the stream captures messages."""
        self._stopped = False
        self.set()

    def set(self) -> None:
        """Set the timer for the next turn, if there is one."""
        config, at = self._contents.config, self._contents.schedules.next_due()
        if self._stopped or not config.allow_msg_schedules or config.sealed or not at:
            return
        if self._timer is not None and self._at <= at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._at = at
        delay = min(max(at - self._clock_ns(), SHORTEST_DELAY) / SECOND, LONGEST_TIMER)
        self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def rows(self) -> list[Row]:
        """See `Schedules.rows`; empty if schedules are off."""
        return self._contents.schedules.rows() if self._contents.config.allow_msg_schedules else []

    def stop(self) -> None:
        """Stop the timer."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_clock_step(self) -> None:
        """The system clock was stepped: store the messages that are due, and reset the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._on_timer()

    def _on_timer(self) -> None:
        self._timer = None
        for schedule, target, block, payload in self._contents.schedules.take_due(self._clock_ns()):
            self._store(target, block, payload, partial(self._on_answer, schedule))
        self.set()

    def _on_answer(self, schedule: bytes, error: JetStreamError | None) -> None:
        if error is not None:
            name = self._contents.config.name
            logger.warning("schedule_not_stored stream=%s schedule=%r reason=%s", name, schedule, error)
            self._contents.schedules.failed(schedule, self._clock_ns())
            self.set()
