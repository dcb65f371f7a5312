"""Reading a pull consumer: fetch a batch, acknowledge message by message.

A pull request ends with its last message, or with a status in place of one:

    404 No Messages            nothing there, and `no_wait` was asked          the batch is what came so far
    408 Request Timeout        the request expired                             the batch is what came so far
    409 Batch Completed, Message Size Exceeds MaxBytes                         the batch is what came so far
    409 Consumer Deleted, Leadership Change, …                                 JetStreamError, unless something came
    423 …                      the pin of this client is gone                  asked again without it, see `pull_group`
    503                        no responders: no such consumer                NoResponders
    100                        a heartbeat                                     passed over
    200                        OK: no status that says anything                a message like any other

Messages already received are returned even if an error follows: the next fetch gets that error again.

Positions and acknowledgements of messages are in `stream_message`.
"""

import asyncio
import secrets
from typing import TYPE_CHECKING

import msgspec

from headwater.client.pull_group import PullGroup
from headwater.client.requester import Requester
from headwater.client.stream_message import STATUS_LOST, StreamMessage, status_of
from headwater.client_connection.events import TAKEN, Event, Reconnected, Refused
from headwater.client_connection.timeouts import Timeout, seconds_of
from headwater.errors import JetStreamError, LocalProtocolError, NoResponders, RequestTimeout
from headwater.model.status import IDLE_HEARTBEAT, NO_RESPONDERS, NOT_FOUND, REQUEST_TIMEOUT, Status

if TYPE_CHECKING:
    from headwater.client.consume import Consumption

GRACE_SECONDS = 2.0  # after the server's own expiry, before a request counts as lost
_ENDS_A_BATCH = frozenset({"Batch Completed", "Message Size Exceeds MaxBytes"})


class PullConsumer:
    """Fetches from one consumer, as a member of a priority group if one is given."""

    def __init__(self, client: Requester, stream: str, name: str, prefix: str = "$JS.API", group: str = "") -> None:
        self.stream = stream
        self.name = name
        self._group = PullGroup(group)
        self._client = client
        self._subject = f"{prefix}.CONSUMER.MSG.NEXT.{stream}.{name}"

    def __repr__(self) -> str:
        return f"<PullConsumer {self.name!r} of {self.stream!r}>"

    def consume(
        self,
        batch: int = 500,
        *,
        expires: Timeout = 30.0,
        heartbeat: Timeout = 5.0,
        max_bytes: int = 0,
        min_pending: int = 0,
        min_ack_pending: int = 0,
        priority: int = 0,
    ) -> "Consumption":
        """Read without end: `async with` it, and iterate. Requests `batch` messages, or `max_bytes`, at a time.

        `expires`: seconds after which the server ends a request. `heartbeat`: seconds between the heartbeats of an idle
        server; after two missing ones the request is repeated. `min_pending`, `min_ack_pending` and `priority` are
        those of `fetch`."""
        from headwater.client.consume import Consumption

        also = self._group.wishes(min_pending=min_pending, min_ack_pending=min_ack_pending, priority=priority)
        if max_bytes:
            also["max_bytes"] = max_bytes
        waits = seconds_of(expires), seconds_of(heartbeat)
        return Consumption(self._client, self._subject, batch, *waits, also, self._group)

    async def fetch(
        self,
        batch: int = 100,
        *,
        timeout: Timeout = 5.0,
        no_wait: bool = False,
        min_pending: int = 0,
        min_ack_pending: int = 0,
        priority: int = 0,
    ) -> list[StreamMessage]:
        """Up to `batch` messages, as many as arrive within `timeout` seconds; with `no_wait` those that are available.

        In a priority group, of a consumer with policy overflow: messages come as long as `min_pending` of them are there, or
        `min_ack_pending` await their acknowledgement. With policy prioritized: requests of a lower `priority`, 0 to 9, are
        served first. With policy pinned_client nothing comes while another client is pinned.

        Raises LocalProtocolError for a `batch` below 1, JetStreamError when the consumer was deleted, NoResponders when
        it does not exist, AuthorizationError when permissions forbid the request, RequestTimeout when the server does
        not answer. After a reconnect the rest is requested again, for the time that is left.
        """
        if batch < 1:
            raise LocalProtocolError("a batch holds at least one message", value=batch, limit=1)
        also = self._group.wishes(min_pending=min_pending, min_ack_pending=min_ack_pending, priority=priority)
        if no_wait:
            also["no_wait"] = True
        return await self._fetch(batch, seconds_of(timeout), also)

    async def _fetch(self, batch: int, timeout: float, also: dict[str, object]) -> list[StreamMessage]:
        group = self._group
        turn = group.turn
        inbox = f"{self._client.new_inbox()}.{secrets.token_hex(4)}"
        subscription = await self._client.subscribe(inbox)
        came: list[StreamMessage] = []
        deadline = asyncio.get_running_loop().time() + timeout

        def ask(left: float) -> None:
            nonlocal turn
            turn = group.turn
            body = {"batch": batch - len(came), **also, **group.pin}
            if "no_wait" not in also:
                body |= {"expires": int(left * 1e9)} if left > 0 else {"no_wait": True}
            self._client.publish(self._subject, msgspec.json.encode(body), reply=inbox)

        def happened(event: Event) -> object:
            if isinstance(event, Refused) and event.publishing and event.subject == self._subject:
                subscription.end(event.error)
                return TAKEN
            if isinstance(event, Reconnected):
                ask(deadline - asyncio.get_running_loop().time())
            return None

        forget = self._client.on_event(happened)
        try:
            ask(timeout)
            async with asyncio.timeout(max(timeout, 0.0) + GRACE_SECONDS):
                while len(came) < batch:
                    message = await subscription.next()
                    status = status_of(message)
                    if status is None:
                        group.note(message)
                        came.append(StreamMessage(self._client, message))
                    elif group.gives_up(status, turn):
                        ask(deadline - asyncio.get_running_loop().time())
                    elif self._ends(status, came):
                        break
        except TimeoutError as error:
            if not came:
                raise RequestTimeout(f"consumer {self.stream}.{self.name} does not answer", limit=timeout) from error
        finally:
            forget()
            subscription.unsubscribe()
        return came

    def _ends(self, status: Status, came: list[StreamMessage]) -> bool:
        """Whether a status ends the batch; raises when it ends more than that and nothing came."""
        if status is STATUS_LOST:
            return True  # no heartbeats were requested, so it was a status that ends a request
        if status.code == IDLE_HEARTBEAT:
            return False
        description = status.description or ""
        if came or status.code in (NOT_FOUND, REQUEST_TIMEOUT) or description in _ENDS_A_BATCH:
            return True
        if status.code == NO_RESPONDERS:
            raise NoResponders(f"there is no consumer {self.stream}.{self.name}", value=self.name)
        raise JetStreamError(status.code, 0, description or "the pull request was refused")
