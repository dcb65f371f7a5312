"""What a router needs from those who take part in its interest. For type checkers only."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from headwater.exchange.sublist import Outlet, Subscription

if TYPE_CHECKING:
    from headwater.exchange.router import PeerForwarding


class RouterObserver(Protocol):
    """An observer of interest: the cluster, and imports from other accounts."""

    def subscribed(self, subscription: Subscription) -> None: ...
    def unsubscribed(self, subscription: Subscription) -> None: ...


class RoutesSide(RouterObserver, Protocol):
    """The cluster (`cluster.spaces.Space`): takes the interest of clients and leaf nodes, and provides that of its
    peers.
    """

    @property
    def forwarding(self) -> "PeerForwarding": ...

    def leafs_want(self, origin: bytes, subject: bytes, queue: bytes, change: int) -> None: ...
    def peers_wanted(self) -> Iterable[tuple[Outlet, bytes, bytes, bytes, int]]: ...


class LeafsSide(RouterObserver, Protocol):
    """The leaf nodes (`leaf.space.LeafSpace`): take the interest of clients and peers, and provide that of leaf nodes."""

    @property
    def forwarding(self) -> "PeerForwarding": ...

    def peer_wants(self, peer: Outlet, origin: bytes, subject: bytes, queue: bytes, weight: int) -> None: ...
    def peer_left(self, peer: Outlet) -> None: ...
    def leafs_wanted(self) -> Iterable[tuple[bytes, bytes, bytes, int]]: ...
