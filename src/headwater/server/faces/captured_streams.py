"""JetStream's streams for the Iggy face, where one broker has both.

Reading only needs the log. A message from an Iggy client is appended by the stream (`Stream.append`), which publishes it
through the router, so that limits, de-duplication, subscribers and other brokers treat it like any publish; the answer
comes by a callback. The subject is the one in the sender's key `Nats-Subject`, or the stream's first one with its wildcards
filled.

Refused: a subject that the stream does not capture or that is a pattern, a message above the broker's `max_payload`,
which no NATS client could publish and for which a nats-server in the cluster would close its route, and a message of an
atomic batch, of which the other messages would be missing. A send of several messages is judged before the first is stored:
what is refused is refused whole, so that a client may send all of it again. An Iggy client gets an error number for every
refusal; the reason is in the log. A send whose messages are all known by their ids is confirmed with the offset that the
first has already.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from headwater.errors import JetStreamError, StorageError
from headwater.iggy.foreign import Foreign, ForeignStream, failure
from headwater.jetstream.stream import Stream
from headwater.jetstream.view import ViewStream
from headwater.jetstream_state.atomic_batch import names_batch
from headwater.model.line_limit import LineLimit
from headwater.model.subject import is_literal, is_valid_subject
from headwater.model.subject_match import matches
from headwater.streams.log import Log

if TYPE_CHECKING:
    from headwater.jetstream.service import JetStream

logger = logging.getLogger(__name__)

Done = Callable[[StorageError | None], None]
PERIOD = 1.0  # seconds, in which there are at most LINES about what one stream refused: a client may try again at once
LINES = 10  # not one: only here does anybody see the reason
FILLING = "iggy"  # stands for the wildcards of a stream's subject


class CapturedStream:
    """One stream (`iggy.foreign.ForeignStream`). `max_payload`: bytes of a message, headers included."""

    def __init__(self, stream: Stream, max_payload: int) -> None:
        self._stream = stream
        self._max_payload = max_payload
        self._limit = LineLimit(PERIOD, LINES)
        self.name = stream.name
        self.created_us = stream.created_ns // 1000

    @property
    def log(self) -> Log:
        return self._stream.log

    def append(self, messages: Sequence[Foreign], done: Done) -> int:
        """Append all; `done` is called once all are answered, with the first refusal if there was one. Returns the offset of
        the first that is new, or of the first.

        Raises StorageError when a message would be refused; then none was published.
        """
        try:
            prepared = [self._prepared(message) for message in messages]
            return self._stream.append(prepared, _Outcome(len(prepared), done, self._note).answered)
        except JetStreamError as error:
            self._note(error.description)
            raise failure(f"the stream refuses one of {len(prepared)} messages: {error.description}") from error
        except StorageError as error:
            self._note(str(error))
            raise

    def _note(self, reason: str) -> None:
        sends = self._limit.due(time.monotonic())
        if sends:
            logger.warning("iggy_send_refused sends=%d stream=%s reason=%s", sends, self.name, reason)

    async def flush(self) -> None:
        """Wait until the stream has answered everything appended so far."""
        await self._stream.flush()

    def _prepared(self, message: Foreign) -> tuple[bytes, bytes, bytes]:
        block = bytes(message.headers) if message.headers else b""
        size = len(block) + len(message.payload)
        if size > self._max_payload:
            raise failure(f"a message of {size} bytes is above the broker's max_payload of {self._max_payload}")
        if names_batch(block):
            raise failure(
                "a message has Nats-Batch-Id: NATS clients alone publish atomic batches, an Iggy send is one anyway"
            )
        return self._subject(message.subject), block, message.payload

    def _subject(self, requested: str) -> bytes:
        subjects = self._stream.config.subjects
        raw = requested.encode()
        if (
            requested
            and is_literal(raw)
            and is_valid_subject(raw)
            and any(matches(subject.encode(), raw) for subject in subjects)
        ):
            return raw
        if requested or not subjects:
            raise failure(f"stream {self.name} does not capture subject {requested!r}")
        return subjects[0].replace("*", FILLING).replace(">", FILLING).encode()


class _Outcome:
    """Counts the answers to one send; after the last, `done` is called in the loop's next turn: not inside `append`, whose
    caller has not recorded the send yet, nor between the acks of other publishers."""

    def __init__(self, waiting: int, done: Done, note: Callable[[str], None]) -> None:
        self._waiting = waiting
        self._done = done
        self._note = note
        self._error: StorageError | None = None

    def answered(self, error: JetStreamError | None) -> None:
        if error is not None and self._error is None:
            self._note(error.description)
            self._error = failure(f"the stream refused the message: {error.description}")
        self._waiting -= 1
        if self._waiting == 0:
            asyncio.get_running_loop().call_soon(self._done, self._error)


class CapturedStreams:
    """All streams of an account (`iggy.foreign.ForeignStreams`). `max_payload`: as in `BrokerOptions`."""

    def __init__(self, services: Mapping[str, "JetStream"], account: str, max_payload: int) -> None:
        self._services = services
        self._account = account
        self._max_payload = max_payload
        self._known: dict[str, tuple[Stream, CapturedStream]] = {}

    def streams(self) -> Iterable[ForeignStream]:
        service = self._services.get(self._account)
        found: list[ForeignStream] = []
        for name, stream in service.streams.items() if service is not None else ():
            if isinstance(stream, ViewStream):
                continue  # a topic of ours
            known = self._known.get(name)
            if known is None or known[0] is not stream:
                known = self._known[name] = (stream, CapturedStream(stream, self._max_payload))
            found.append(known[1])
        return found
