"""PINGs the server at an interval, so that a dead connection is detected without a publish."""

import asyncio
from collections.abc import Callable


class KeepAlive:
    """`ping` sends one; `give_up` is called instead when `most` of them are unanswered."""

    def __init__(self, ping: Callable[[], None], give_up: Callable[[], None], most: int) -> None:
        self.most = most
        self._ping = ping
        self._give_up = give_up
        self._interval = 0.0
        self._unanswered = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self, interval: float | None = None) -> None:
        """Ping every `interval` seconds, 0 for never; None keeps the interval. Older PINGs no longer count."""
        self.stop()
        if interval is not None:
            self._interval = interval
        self._unanswered = 0
        if self._interval > 0:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._due)

    def stop(self) -> None:
        """Stop pinging until `start`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def answered(self) -> None:
        """A PONG was received."""
        self._unanswered = 0

    def _due(self) -> None:
        if self._unanswered >= self.most:
            self._give_up()
            return
        self._unanswered += 1
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._due)
        self._ping()
