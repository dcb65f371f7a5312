"""Protocols of the accounts, subscriptions and connections that tracing uses, because this layer may not import theirs."""

from collections.abc import Callable
from typing import Any, Protocol

from headwater.wire.message_view import MessageView


class SeenOptions(Protocol):
    """`options.access.AccountOptions`."""

    @property
    def trace_dest(self) -> str: ...
    @property
    def trace_sampling(self) -> int: ...


class SeenRouter(Protocol):
    """`exchange.router.Router`."""

    publisher: Any
    over_route: bool

    def publish(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> int: ...
    def deliver_view(self, subscription: Any, publisher: Any, own_subject: bool, message: MessageView) -> bool: ...
    def call_one(
        self,
        subscription: Any,
        publisher: Any,
        over_route: bool,
        subject: bytes,
        reply: bytes,
        header_block: bytes,
        payload: bytes,
    ) -> int: ...


class SeenAccount(Protocol):
    """`exchange.account.Account`."""

    name: str
    system_account: str
    describe_server: Callable[[], dict[str, object]]

    @property
    def router(self) -> SeenRouter: ...
    @property
    def options(self) -> SeenOptions | None: ...


class SeenGuard(Protocol):
    """`authorization.guard.Guard`."""

    def may_publish(self, message: MessageView) -> bool: ...
    def lets_through(self, message: MessageView, queue: bytes) -> bool: ...


class SeenOutlet(Protocol):
    """`exchange.sublist.Outlet`: `link.owner` is the session of a client, or the connection to another server."""

    link: Any
    guard: Any
    echo: bool
    closed: bool


class SeenSubscription(Protocol):
    """`exchange.sublist.Subscription`."""

    traced: Callable[[Any, bytes, bytes, bytes, bytes], object] | None
    closed: bool

    @property
    def subject(self) -> bytes: ...
    @property
    def queue(self) -> bytes: ...
    @property
    def outlet(self) -> Any: ...


class SeenMatch(Protocol):
    """`exchange.sublist.Match`."""

    @property
    def plain(self) -> list[Any]: ...
    @property
    def groups(self) -> list[list[Any]]: ...
    @property
    def queues(self) -> list[bytes]: ...


class Peer(Protocol):
    """A connection to another server, as a report describes it. `traces`: it continues traces."""

    number: int

    @property
    def traced_name(self) -> str: ...
    @property
    def traces(self) -> bool: ...
