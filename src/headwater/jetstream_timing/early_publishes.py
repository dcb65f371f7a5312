"""Publishes to a stream that is being created: they wait for its files, and are its first messages.

A file stream exists for clients once its files are durable, some milliseconds after the request. A publish in between would
get status 503, as if no stream captured the subject, and its client would have to try again. At most MOST_BYTES are held;
what exceeds them gets status 503 as before, and all that is held gets it where the creation fails.

It does nothing for a stream in memory, which exists at once, and does not judge: that is the stream's own task.
"""

from types import TracebackType
from typing import Self

from headwater.exchange.router import Router
from headwater.jetstream_documents.pull_requests import NO_RESPONDERS
from headwater.jetstream_state.items import Published

MOST_BYTES = 4 << 20
OVERHEAD = 256  # bytes of a held message beside its parts, so that empty ones are bounded, too


class EarlyPublishes:
    """Holds what is published on `subjects` from entering the context until its end."""

    def __init__(self, router: Router, subjects: list[str]) -> None:
        self._router = router
        self._subjects = subjects
        self._messages: list[Published] = []
        self._room = MOST_BYTES

    def __enter__(self) -> Self:
        self._subscriptions = [
            self._router.subscribe_internal(subject.encode(), self._hold) for subject in self._subjects
        ]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for subscription in self._subscriptions:
            self._router.unsubscribe(subscription)
        for subject, reply, _, _ in self.given():
            if reply:
                self._router.publish(reply, b"", NO_RESPONDERS % subject, b"")

    def given(self) -> list[Published]:
        """The messages so far, in order, for the stream; later ones are not held."""
        messages, self._messages, self._room = self._messages, [], 0
        return messages

    def _hold(self, *message: bytes) -> bool:
        subject, reply, header_block, payload = message
        size = OVERHEAD + sum(map(len, message))
        if size > self._room:
            self._room = 0  # nor any later one: a publisher's messages stay in order
            return False
        self._room -= size
        self._messages.append((subject, reply, header_block, payload))
        return True
