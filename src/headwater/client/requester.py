"""What the readers and writers of streams need of a client; `Client` fulfils it.

The modules of JetStream stand on this protocol and not on the client: the client makes a JetStream, so it is above them.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from headwater.client_connection.connection_ops import BytesLike
from headwater.client_connection.events import EventCallback
from headwater.client_connection.subscription import Subscription
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message


class Requester(Protocol):
    """One connection to one server at a time; see `headwater.client.client.Client` for what each of these promises."""

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
