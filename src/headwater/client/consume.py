"""Reading a pull consumer without end: there is always a request open, and a silent server is noticed.

    async with consumer.consume() as messages:
        async for message in messages:
            await message.ack()

One inbox for all requests. A request asks for `batch` messages and for a heartbeat while there are none; when half of
them have come, the next one is sent, so that the server never runs dry. Requests end with a status (see `pull`);
some end the whole consumption:

    404, 408, 409 Batch Completed, Message Size Exceeds MaxBytes      ask again
    423 …, where this client was pinned                               ask again without the pin, see `pull_group`
    409 Consumer Deleted, Consumer is push based, 503, …              ConsumerGone
    a new connection                                                  ask again, at once
    no byte for two heartbeats                                        ask again; ConsumerGone after MISSES in a row
"""

import secrets
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from headwater.client.pull_group import PullGroup
from headwater.client.requester import Requester
from headwater.client.stream_message import StreamMessage, status_of
from headwater.client_connection.events import TAKEN, Event, Reconnected, Refused
from headwater.errors import JetStreamError, LocalProtocolError, RequestTimeout
from headwater.model.headers import Headers
from headwater.model.status import IDLE_HEARTBEAT, NOT_FOUND, REQUEST_TIMEOUT, Status

if TYPE_CHECKING:
    from headwater.client_connection.subscription import Subscription

MISSES = 2  # silences in a row after which the consumer counts as gone
_REQUEST_AGAIN = frozenset({"Batch Completed", "Message Size Exceeds MaxBytes", "Leadership Change", "Server Shutdown"})


class ConsumerGone(JetStreamError):
    """The consumer was deleted, or no server answers for it."""


class Consumption:
    """Messages of one pull consumer, one after the other. Made by `PullConsumer.consume`; use it in `async with`."""

    def __init__(
        self,
        client: Requester,
        subject: str,
        batch: int,
        expires: float,
        heartbeat: float,
        also: dict[str, object],
        group: PullGroup,
    ) -> None:
        if batch < 1 or not 0 < 2 * heartbeat <= expires:
            raise LocalProtocolError(
                "batch is at least 1, and a request lasts at least two heartbeats", value=(batch, heartbeat, expires)
            )
        self._client = client
        self._subject = subject
        self._batch = batch
        self._heartbeat = heartbeat
        self._expires = expires
        self._also = also
        self._group = group
        self._subscription: Subscription | None = None
        self._requested = 0  # messages requested but not received
        self._requests = 0
        self._silences = 0
        self._stopped = False
        self._forget: Callable[[], None] | None = None

    async def __aenter__(self) -> Self:
        inbox = f"{self._client.new_inbox()}.{secrets.token_hex(4)}"
        self._inbox = inbox
        self._subscription = await self._client.subscribe(f"{inbox}.*")
        self._forget = self._client.on_event(self._happened)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the iteration after the messages already received."""
        self._stopped = True
        if self._subscription is not None:
            self._subscription.unsubscribe()
        if self._forget is not None:
            self._forget()

    async def __aiter__(self) -> AsyncIterator[StreamMessage]:
        if self._subscription is None:
            raise LocalProtocolError("use the consumption in `async with`")
        subscription = self._subscription
        while True:
            if not self._stopped and 2 * self._requested <= self._batch:
                self._request()
            if subscription.pending:
                message = subscription.pop()
            else:
                if subscription.ended:
                    if subscription.error is not None:
                        raise subscription.error
                    return
                try:
                    message = await subscription.next(2 * self._heartbeat)
                except RequestTimeout:
                    self._judge_silence()
                    continue
            self._silences = 0
            status = status_of(message)
            if status is None:
                self._requested -= 1
                self._group.note(message)
                yield StreamMessage(self._client, message)
            else:
                self._heed(status, message.headers, message.subject)

    def _request(self) -> None:
        self._requests += 1
        wanted = self._batch - self._requested
        body: dict[str, object] = {
            "batch": wanted,
            "expires": int(self._expires * 1e9),
            "idle_heartbeat": int(self._heartbeat * 1e9),
            **self._also,
            **self._group.pin,
        }
        self._requested += wanted
        reply = f"{self._inbox}.{self._group.turn}-{self._requests}"
        self._client.publish(self._subject, msgspec.json.encode(body), reply=reply)

    def _happened(self, event: Event) -> object:
        """After a reconnect: the server has dropped the requests of the lost connection. A request that is not allowed ends
        the iteration."""
        if isinstance(event, Refused) and event.publishing and event.subject == self._subject:
            if self._subscription is not None:
                self._subscription.end(event.error)
            return TAKEN
        if isinstance(event, Reconnected) and not self._stopped and self._requests:
            self._silences = 0
            self._requested = 0
            self._request()
        return None

    def _judge_silence(self) -> None:
        """Nothing arrived for two heartbeats: the request is lost, unless the client is disconnected."""
        if self._client.is_connected:
            self._silences += 1
            if self._silences > MISSES:
                raise ConsumerGone(REQUEST_TIMEOUT, 0, f"{self._subject} does not answer")
            self._requested = 0

    def _heed(self, status: Status, headers: Headers, subject: str) -> None:
        if status.code == IDLE_HEARTBEAT:
            return
        description = status.description or ""
        turn = subject.rpartition(".")[2].partition("-")[0]
        pin_is_lost = turn.isascii() and turn.isdigit() and self._group.gives_up(status, int(turn))
        if pin_is_lost or status.code in (NOT_FOUND, REQUEST_TIMEOUT) or description in _REQUEST_AGAIN:
            # The open part of the request, if the server reports it; otherwise the whole of an ended request.
            left = headers.first("Nats-Pending-Messages")
            self._requested = max(
                0, self._requested - (int(left) if left.isascii() and left.isdigit() else self._requested)
            )
            return
        raise ConsumerGone(status.code, 0, description or f"nobody answers for {self._subject}")
