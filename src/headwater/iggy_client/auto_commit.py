"""Decides when a consumer stores its offset, without a clock or a connection.

    AutoCommit()                                     nothing by itself: `store_offset` is the program's
    AutoCommit(at=Moment.POLLED)                     the server stores it as it answers a poll: at most once
    AutoCommit(at=Moment.EACH)                       when a message is handed out
    AutoCommit(at=Moment.EACH, after=True)           when the program is done with it: at least once
    AutoCommit(at=Moment.EVERY, every=100, after=True)
    AutoCommit(at=Moment.ALL, after=True)            when it is done with the last message of a poll
    AutoCommit(interval=1.0)                         once a second, what it is done with; also together with any of these

In an iteration a message counts as done when the next one is requested; in `consume`, when the callback has returned.
"""

from enum import Enum
from typing import NamedTuple

from headwater.client_connection.timeouts import Timeout


class Moment(Enum):
    """The messages after which an offset is stored."""

    POLLED = "polled"
    ALL = "all"
    EACH = "each"
    EVERY = "every"


class AutoCommit(NamedTuple):
    """`interval` in seconds or a `timedelta`, 0 for none.

    `at` None: after no message. `every`: the number of messages, with Moment.EVERY. `after`: once the program is done
    with a message, not when it gets it."""

    interval: Timeout = 0.0
    at: Moment | None = None
    every: int = 1
    after: bool = False


class Commits:
    """The offsets handed out and stored, by partition. `done` and `handed` return whether to store the offset now."""

    def __init__(self, rule: AutoCommit) -> None:
        self.consumed: dict[int, int] = {}
        self.stored: dict[int, int] = {}
        self._rule = rule
        self._since = 0

    @property
    def by_server(self) -> bool:
        """Whether polls store the offset."""
        return self._rule.at is Moment.POLLED and not self._rule.after

    def handed(self, is_last: bool) -> bool:
        """A message is passed to the program; `is_last` of its poll."""
        if self._rule.after:
            return False
        return self._falls_due(is_last)

    def done(self, partition: int, offset: int, is_last: bool) -> bool:
        """The program is done with it."""
        self.consumed[partition] = offset
        if not self._rule.after:
            return False
        return self._falls_due(is_last)

    def _falls_due(self, is_last: bool) -> bool:
        match self._rule.at:
            case Moment.EACH:
                return True
            case Moment.ALL:
                return is_last
            case Moment.POLLED:
                return self._rule.after and is_last
            case Moment.EVERY:
                self._since += 1
                if self._since >= self._rule.every:
                    self._since = 0
                    return True
            case None:
                pass
        return False

    def pending(self) -> list[tuple[int, int]]:
        """(partition, offset) of done messages that are not stored yet, to be stored by an interval or at the end."""
        if not self._rule.interval:
            return []
        return [(p, offset) for p, offset in self.consumed.items() if self.stored.get(p, -1) < offset]

    def forget(self, partition: int) -> None:
        """The partition's offsets have started again at 0."""
        self.consumed.pop(partition, None)
        self.stored.pop(partition, None)
