"""JetStream's streams for the Iggy face, where one process has both.

Reading needs nothing but the log. A message from an Iggy client goes the way of every publish: to a subject of the
stream, by the router, so that limits, de-duplication and consumers see it; the PubAck comes back to an inbox of ours.
The subject is the one that the sender names in the key `Nats-Subject`, or the stream's first one, its wildcards filled.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from headwater.broker.jetstream.stream import Stream
from headwater.broker.jetstream.view import ViewStream
from headwater.broker.router import Router
from headwater.errors import StorageError
from headwater.iggy.foreign import Foreign, ForeignStream, failure
from headwater.model.subject import is_valid_subject, matches
from headwater.streams.log import Log

if TYPE_CHECKING:
    from headwater.broker.jetstream.service import JetStream

Done = Callable[[StorageError | None], None]
INBOX = b"_INBOX.headwater-iggy."
FILLING = "iggy"  # stands for the wildcards of a stream's subject


class CapturedStream:
    """One stream (`iggy.foreign.ForeignStream`)."""

    def __init__(self, stream: Stream, acks: "Acks") -> None:
        self._stream = stream
        self._acks = acks
        self.name = stream.name
        self.created_us = stream.created_ns // 1000

    @property
    def log(self) -> Log:
        return self._stream.log

    def append(self, messages: Sequence[Foreign], done: Done) -> None:
        """Publish each; `done` hears of the last ack, or of the first refusal once all are answered."""
        wanted = [(self._subject(message.subject), message) for message in messages]
        self._acks.publish(wanted, done)

    def _subject(self, asked: str) -> bytes:
        subjects = self._stream.config.subjects
        raw = asked.encode()
        if asked and is_valid_subject(raw) and any(matches(subject.encode(), raw) for subject in subjects):
            return raw
        if asked or not subjects:
            raise failure(f"stream {self.name} does not capture subject {asked!r}")
        return subjects[0].replace("*", FILLING).replace(">", FILLING).encode()


class _Count:
    """How many acks of one send are still to come."""

    def __init__(self, waiting: int, done: Done) -> None:
        self.waiting = waiting
        self.done = done
        self.error: StorageError | None = None


class Acks:
    """Publishes with a reply subject, and counts what comes back."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._counts: dict[bytes, _Count] = {}
        self._number = 0
        router.subscribe_internal(INBOX + b"*", self._on_ack)

    def publish(self, wanted: Sequence[tuple[bytes, Foreign]], done: Done) -> None:
        self._number += 1
        inbox = INBOX + b"%d" % self._number
        self._counts[inbox] = _Count(len(wanted), done)
        for subject, message in wanted:
            block = bytes(message.headers) if message.headers else b""
            self._router.publish(subject, inbox, block, message.payload)

    def _on_ack(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        count = self._counts.get(subject)
        if count is None:
            return
        answer = json.loads(payload)
        if "error" in answer and count.error is None:
            count.error = failure(f"the stream refused the message: {answer['error'].get('description')}")
        count.waiting -= 1
        if count.waiting == 0:
            del self._counts[subject]
            count.done(count.error)


class CapturedStreams:
    """All streams of an account (`iggy.foreign.ForeignStreams`)."""

    def __init__(self, services: Mapping[str, "JetStream"], account: str, router: Router) -> None:
        self._services = services
        self._account = account
        self._acks = Acks(router)
        self._known: dict[str, tuple[Stream, CapturedStream]] = {}

    def streams(self) -> Iterable[ForeignStream]:
        service = self._services.get(self._account)
        found: list[ForeignStream] = []
        for name, stream in service.streams.items() if service is not None else ():
            if isinstance(stream, ViewStream):
                continue  # a topic of ours
            known = self._known.get(name)
            if known is None or known[0] is not stream:
                known = self._known[name] = (stream, CapturedStream(stream, self._acks))
            found.append(known[1])
        return found
