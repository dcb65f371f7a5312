"""Publishing to a stream with many messages in flight, and one await for all of them.

    async with jetstream.publisher(window=1024) as publisher:
        await publisher.publish("events.a", data, msg_id="1")      # waits only while the window is full
    # here every message is acknowledged; `publisher.acknowledged`, `publisher.duplicates`

A server that syncs before it acknowledges can then serve many publishes with one sync. All acks arrive at one inbox;
the subject's last token identifies the message. The first failure ends the publishing and is raised by the next call
and at the end; a refusal has the subject of its message as `value`, and says in a note which one it was. Messages
unacknowledged by then may or may not be stored: publish them again under their message ids.
Several tasks may share a publisher; all of them get the failure.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from headwater.client.jetstream_types import PubAck, decode_answer
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
    RequestTimeout,
)
from headwater.model.header_names import NatsHeader
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message

if TYPE_CHECKING:
    from headwater.client_connection.subscription import Subscription


class Publisher:
    """A window of unacknowledged publishes. `timeout`: seconds without any ack after which it gives up."""

    def __init__(self, client: Requester, window: int, timeout: float) -> None:
        if window < 1:
            raise LocalProtocolError("the window of a publisher holds at least one message", value=window, limit=1)
        self.acknowledged = 0
        self.duplicates = 0
        self.last_sequence = 0
        self._client = client
        self._window = window
        self._timeout = timeout
        self._inbox = client.new_inbox()
        self._sent = 0
        self._outstanding: dict[str, str] = {}
        self._failure: HeadwaterError | None = None
        self._bell = Bell()
        self._subscription: Subscription | None = None
        self._stop_listening: Callable[[], None] | None = None

    @property
    def outstanding(self) -> int:
        """Messages sent and not acknowledged."""
        return len(self._outstanding)

    async def __aenter__(self) -> Self:
        self._subscription = self._client.deliver_directly(f"{self._inbox}.*", self._acked)
        self._stop_listening = self._client.on_event(self._happened)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self.wait_acknowledged()
        finally:
            if self._subscription is not None and self._stop_listening is not None:
                self._subscription.unsubscribe()
                self._stop_listening()
                self._subscription = None

    async def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        msg_id: str | None = None,
    ) -> None:
        """Send `data` with `headers` on `subject`; waits while the window is full. `msg_id`: a stream takes a message with
        this id once.

        Raises the first failure of any message before it, and LocalProtocolError outside `async with`."""
        if self._subscription is None:
            raise LocalProtocolError("use the publisher in `async with`")
        if self._failure is None and len(self._outstanding) >= self._window:
            # Wait for half a window: an await for each ack would cost a turn of the loop per message.
            await self._wait_until(self._window // 2)
        self._raise_failure()
        if msg_id is not None:
            headers = Headers(headers or {})
            headers[NatsHeader.MSG_ID] = msg_id
        self._sent += 1
        token = str(self._sent)
        self._outstanding[token] = subject
        try:
            sent = self._client.publish(subject, data, headers=headers, reply=f"{self._inbox}.{token}")
        except BaseException:
            del self._outstanding[token]  # nothing of it was sent
            raise
        await sent

    async def wait_acknowledged(self) -> None:
        """Wait until every message so far is acknowledged. Raises the first failure."""
        await self._wait_until(0)
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)  # the same object each time: its traceback must not grow

    async def _wait_until(self, few: int) -> None:
        """Wait until at most `few` are outstanding, or one has failed."""
        while len(self._outstanding) > few and self._failure is None:
            try:
                async with asyncio.timeout(self._timeout):
                    await self._bell.wait()
            except TimeoutError:
                waiting = next(iter(self._outstanding.values()), "")
                self._failure = RequestTimeout(
                    f"no acknowledgement for {len(self._outstanding)} messages within {self._timeout:g} s, "
                    f"the first on {waiting!r}",
                    value=waiting,
                    limit=self._timeout,
                )

    def _acked(self, message: Message) -> None:
        subject = self._outstanding.pop(message.subject.rpartition(".")[2], None)
        if subject is None:
            return
        try:
            if is_no_responders(message):
                raise NoResponders(f"no stream captures {subject!r}", value=subject, hint="create the stream first")
            ack = decode_answer(message.data, PubAck, f"the publish on {subject!r}")
        except HeadwaterError as error:
            if isinstance(error, JetStreamError):
                number = message.subject.rpartition(".")[2]
                error.value = subject
                error.add_note(f"It was message {number} of {self._sent} so far, on {subject!r}.")
            self._failure = self._failure or error
        else:
            self.acknowledged += 1
            self.duplicates += ack.duplicate
            self.last_sequence = max(self.last_sequence, ack.seq)
        self._bell.ring()

    def _happened(self, event: Event) -> object:
        """A lost connection may have lost acknowledgements too: which messages were stored is unknown. A publish that is not
        allowed fails like one that a stream refuses."""
        if isinstance(event, Refused):
            ours = self._outstanding.values() if event.publishing else (f"{self._inbox}.*",)
            if event.subject not in ours or not self._outstanding:
                return None
            self._failure = self._failure or event.error
            self._bell.ring()
            return TAKEN
        if not isinstance(event, Disconnected | Closed):
            return None
        if self._outstanding and self._failure is None:
            closed = "the connection was closed before all acknowledgements came"
            self._failure = event.reason or ConnectionClosed(closed)
        self._bell.ring()
        return None
