# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Publishing what an iterable gives, without a call and an `await` for each message. Compiled.

    iterable ──next──▶ (subject, data[, headers]) ──ConnectionOps.buffer──▶ output        until the event loop wants a turn

Each message passes the checks of `publish`, and finds the connection as it is then: an iterable may take its time, and
may itself publish. The first one that is refused ends the iteration. Those before it are buffered, and the iterable has
given no more, so an iterator can be passed again for the rest.

The event loop gets its turn after as many bytes as with awaited publishes, or after SLICE_SECONDS, for an iterable that
computes or reads what it gives.
"""

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.headwater.client_connection.connection_ops import ConnectionOps
else:
    from headwater.client_connection.connection_ops import ConnectionOps

from headwater.client_connection.connection_ops import BytesLike
from headwater.model.headers import Headers, HeaderSource

Outgoing = tuple[str, BytesLike] | tuple[str, BytesLike, HeaderSource | Headers | None]
"""A message for `publish_many`: its subject, its data, and headers if it has some."""

SLICE_SECONDS = 0.005
MOST_UNTIMED = 64  # messages between two looks at the clock: less than a nanosecond for each
REFUSED = "publish_many: message {}, counted from 1; those before it are buffered, those after it were not read"
NO_MESSAGE = "a message is a tuple (subject, data) or (subject, data, headers), not {!r:.200}"


class ManyPublishes:
    """The messages of one `publish_many`, the first of them number `sent` + 1; counts in `sent` those that are buffered."""

    def __init__(self, connection: ConnectionOps, messages: Iterable[Outgoing], sent: int) -> None:
        self.connection = connection
        self.messages: Iterator[Any] = iter(messages)
        self.sent = sent

    def send_some(self) -> cython.bint:
        """Publish until the event loop wants a turn, which is then due (True), or until there are no more (False).

        Raises what `publish` raises, and TypeError for what is no message, with a note that names the message.
        """
        taken: cython.Py_ssize_t = self.sent
        look: cython.Py_ssize_t = taken + 1
        untimed: cython.Py_ssize_t = 1
        end: float = monotonic() + SLICE_SECONDS
        try:
            for message in self.messages:
                taken += 1
                turn: cython.bint = self.send_one(message)
                self.sent = taken
                message = None  # a `zip` then uses the same tuple again
                if turn:
                    return True
                if taken == look:
                    if monotonic() >= end:
                        return True
                    if untimed < MOST_UNTIMED:
                        untimed *= 2
                    look += untimed
        except Exception as error:
            if taken > self.sent:  # otherwise the iterable has failed
                error.add_note(REFUSED.format(taken))
            raise
        return False

    def send_one(self, message: object) -> cython.bint:
        """Buffer a message; whether the event loop wants a turn."""
        if not isinstance(message, tuple):
            raise TypeError(NO_MESSAGE.format(message))
        parts: tuple[Any, ...] = message
        size: cython.Py_ssize_t = len(parts)
        if size < 2 or size > 3 or not isinstance(parts[0], str):
            raise TypeError(NO_MESSAGE.format(message))
        return self.connection.buffer(parts[0], parts[1], "", parts[2] if size == 3 else None)
