"""The protocol of a client for readers and writers of streams; `Client` implements it.

The JetStream modules import this protocol and not the client, because the client imports them.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from headwater.client_connection.connection_ops import BytesLike
from headwater.client_connection.events import EventCallback
from headwater.client_connection.subscription import Subscription
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message


class Requester(Protocol):
    """One connection to one server at a time; the methods are documented in `headwater.client.client.Client`."""

    @property
    def server(self) -> str: ...

    @property
    def is_connected(self) -> bool: ...

    @property
    def is_closed(self) -> bool: ...

    def new_inbox(self) -> str: ...

    def on_event(self, callback: EventCallback) -> Callable[[], None]: ...

    def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        reply: str = "",
    ) -> Awaitable[None]: ...

    def request(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        timeout: float = 2.0,
        repeat: bool = False,
    ) -> Awaitable[Message]: ...

    async def subscribe(self, subject: str, *, queue: str = "") -> Subscription: ...

    def deliver_directly(self, subject: str, receive: Callable[[Message], object]) -> Subscription: ...
