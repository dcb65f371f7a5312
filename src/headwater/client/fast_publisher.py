"""Publishing to a stream at full speed, with an acknowledgement every so many messages (`allow_batched`, ADR-50 of NATS).

    async with jetstream.fast_publisher() as publisher:
        for number in range(1_000_000):
            await publisher.publish("events.a", b"...")     # waits only while too much is unanswered
    # here all is stored, and `ack` of the publisher says where

The messages have numbers in their reply subjects; the server announces how often it answers, and reports up to which
number all are stored. Twice that interval may be unanswered. A message that is lost or refused ends the publishing: the
next call, or the end of the block, raises. With `gaps_allowed` it continues, and `lost` and `refused` count such
messages. A refusal has the subject of its message as `value`, and says in a note which one it was, as from `publisher`.
Messages are stored one by one: those before a failure stay.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

import msgspec

from headwater.client.jetstream_types import BatchAck, ErrorAnswer, decode_answer
from headwater.client.requester import Requester
from headwater.client_connection.awaitables import Bell
from headwater.client_connection.connection_ops import BytesLike
from headwater.client_connection.events import TAKEN, Closed, Disconnected, Event, Refused
from headwater.client_connection.requests import is_no_responders
from headwater.errors import (
    ConnectionClosed,
    HeadwaterError,
    JetStreamError,
    LocalProtocolError,
    NoResponders,
    RemoteProtocolError,
    RequestTimeout,
    TransportError,
)
from headwater.model.header_names import NatsHeader
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message

if TYPE_CHECKING:
    from headwater.client_connection.subscription import Subscription

_START, _APPEND, _END, _PING = 0, 1, 3, 4
_AHEAD = 2  # answers that may be missing


class _Answer(msgspec.Struct):
    """An answer of the server during a batch; `type` is "" for the last one."""

    type: Literal["ack", "gap", "err", ""] = ""
    seq: int = 0
    last_seq: int = 0
    msgs: int = 0
    error: ErrorAnswer | None = None


class FastPublisher:
    """One batch; use it in `async with`. `ack`: the acknowledgement of the batch with its count and the sequence of its
    last message, None until the end. `acknowledged`: messages confirmed so far. `lost`, `refused`: with `gaps_allowed`,
    messages that did not reach the stream, and those that it refused; `refusal` is the error of the last of them.
    `timeout`: seconds without an answer after which it gives up."""

    def __init__(self, client: Requester, flow: int, gaps_allowed: bool, timeout: float) -> None:
        if flow < 1:
            raise LocalProtocolError("an answer comes after one message at the soonest", value=flow, limit=1)
        self.ack: BatchAck | None = None
        self.acknowledged = 0
        self.lost = 0
        self.refused = 0
        self.refusal: JetStreamError | None = None
        self._client = client
        self._timeout = timeout
        self._sent = 0
        self._flow = 0  # as announced by the server; 0 before
        self._failure: HeadwaterError | None = None
        self._bell = Bell()
        self._subjects: deque[tuple[int, str]] = deque()  # with the number of the first message in a row that has it
        self._inbox = client.new_inbox()
        self._reply = f"{self._inbox}.{secrets.token_hex(8)}.{flow}.{'ok' if gaps_allowed else 'fail'}."
        self._listening: tuple[Subscription, Callable[[], None]] | None = None

    async def __aenter__(self) -> Self:
        if self._sent or self._listening is not None:
            raise LocalProtocolError("a fast publisher is used once", value=self._subject)
        subscription = self._client.deliver_directly(f"{self._inbox}.>", self._answered)
        self._listening = subscription, self._client.on_event(self._happened)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._sent and self._failure is None and self.ack is None:
                await self._send(self._subject, b"", _END, number=self._sent + 1)
                if error is None:
                    await self._wait(lambda: self.ack is not None)
            if error is None:
                self._raise_failure()
        finally:
            if self._listening is not None:
                subscription, stop_listening = self._listening
                subscription.unsubscribe()
                stop_listening()
                self._listening = None

    async def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        msg_id: str | None = None,
    ) -> None:
        """Send `data` with `headers` on `subject`; waits while too much is unanswered. `msg_id`: a stream takes a message
        with this id once.

        Raises the first failure of any message before it: NoResponders, JetStreamError, TransportError, RequestTimeout;
        and LocalProtocolError outside `async with`."""
        if self._listening is None:
            raise LocalProtocolError("use the fast publisher in `async with`", value=subject)
        if self._failure is None and self._sent and self._is_far_ahead():
            await self._wait(lambda: not self._is_far_ahead())
        self._raise_failure()
        if self.ack is not None:
            raise LocalProtocolError("the batch has ended", value=subject)
        if msg_id is not None:
            headers = Headers(headers or {})
            headers[NatsHeader.MSG_ID] = msg_id
        if subject != self._subject:
            self._subjects.append((self._sent + 1, subject))
        await self._send(subject, data, _APPEND if self._sent else _START, self._sent + 1, headers)
        self._sent += 1

    def _is_far_ahead(self) -> bool:
        return self._sent - self.acknowledged >= self._flow * _AHEAD if self._flow else self._sent > 0

    async def _send(
        self,
        subject: str,
        data: BytesLike,
        operation: int,
        number: int,
        headers: HeaderSource | Headers | None = None,
    ) -> None:
        reply = f"{self._reply}{number}.{operation}.$FI"
        await self._client.publish(subject, data, headers=headers, reply=reply)

    async def _wait(self, done: Callable[[], bool]) -> None:
        """Wait until `done()` or a failure. Half-way the server is pinged, because an answer may be lost."""
        pinged = False
        while not done() and self._failure is None:
            try:
                async with asyncio.timeout(self._timeout / 2):
                    await self._bell.wait()
                pinged = False
            except TimeoutError:
                if pinged:
                    unanswered = f"no answer for {self._sent - self.acknowledged} messages within {self._timeout:g} s"
                    self._failure = RequestTimeout(unanswered, value=self._subject, limit=self._timeout)
                    return
                pinged = True
                await self._send(self._subject, b"", _PING, number=self._sent)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)  # the same object each time: its traceback must not grow

    def _answered(self, message: Message) -> None:
        try:
            self._read(message)
        except HeadwaterError as error:
            self._failure = self._failure or error
        self._bell.ring()

    def _read(self, message: Message) -> None:
        if is_no_responders(message):
            subject = self._subject
            raise NoResponders(f"no stream captures {subject!r}", value=subject, hint="create the stream first")
        data = bytes(message.data)
        try:
            answer = msgspec.json.decode(data, type=_Answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RemoteProtocolError(
                f"the answer to a fast batch cannot be read: {error}", value=data[:200]
            ) from error
        if answer.type == "ack":
            self.acknowledged = max(self.acknowledged, answer.seq)
            while len(self._subjects) > 1 and self._subjects[1][0] <= self.acknowledged:
                self._subjects.popleft()
            self._flow = max(answer.msgs, 1)
        elif answer.type == "gap":
            self.lost += max(answer.seq - answer.last_seq, 0)
            if not self._is_gap_allowed:
                raise TransportError(
                    f"messages {answer.last_seq} to {answer.seq - 1} of a fast batch were lost on the way"
                )
        elif answer.type == "err" and answer.error is not None:
            self.refused += 1
            self.refusal = JetStreamError(answer.error.code, answer.error.err_code, answer.error.description)
            self.refusal.value = subject = self._subject_of(answer.seq)
            self.refusal.add_note(f"It was message {answer.seq} of {self._sent} so far, on {subject!r}.")
            if not self._is_gap_allowed:
                raise self.refusal
        else:
            self.ack = decode_answer(data, BatchAck, f"a fast batch on {self._subject!r}")
            self.acknowledged = self.ack.count
            if self.ack.count < self._sent and not self._is_gap_allowed:
                raise RemoteProtocolError(f"{self._sent - self.ack.count} messages of a fast batch were not stored")

    @property
    def _subject(self) -> str:
        """That of the last message."""
        return self._subjects[-1][1] if self._subjects else ""

    def _subject_of(self, number: int) -> str:
        return next((subject for first, subject in reversed(self._subjects) if first <= number), self._subject)

    @property
    def _is_gap_allowed(self) -> bool:
        return self._reply.endswith(".ok.")

    def _happened(self, event: Event) -> object:
        """Fail on a lost connection: which messages it lost is unknown."""
        if isinstance(event, Refused):
            if not self._sent or event.subject not in (self._subject, f"{self._inbox}.>"):
                return None
            self._failure = self._failure or event.error
            self._bell.ring()
            return TAKEN
        if isinstance(event, Disconnected | Closed) and self._sent and self.ack is None:
            closed = "the connection was closed before the end of a fast batch"
            self._failure = self._failure or event.reason or ConnectionClosed(closed)
            self._bell.ring()
        return None
