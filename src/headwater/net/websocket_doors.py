"""Chooses the owner of a WebSocket connection by its endpoint: /leafnode is for leaf nodes, every other path for
clients.

    connected ─▶ Door ─▶ the request is accepted ─▶ the endpoint's own owner takes its place, and may write

A Door parses nothing: no bytes arrive before the request is accepted. A connection that ends earlier keeps its Door.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.errors import TransportError

if TYPE_CHECKING:
    from headwater.net.link import Link, LinkOwner

    Maker = Callable[[], LinkOwner]


class Door:
    """The owner of one connection until its request names an endpoint."""

    def __init__(self, doors: "Doors", make_client: "Maker") -> None:
        self._doors = doors
        self._make_client = make_client
        self._link: Link | None = None

    def attach(self, link: "Link") -> None:
        """The connection is established."""
        from headwater.net.websocket import websocket_of

        layer = websocket_of(link.layer)
        if layer is None:
            raise AssertionError("a door is for WebSocket connections")
        self._link = link
        self._doors.waiting.add(link)
        layer.on_open = self._opened

    def _opened(self, endpoint: str) -> None:
        link = self._link
        if link is None or link.closing:
            return
        self._doors.waiting.discard(link)
        link.owner = self._doors.make_leaf() if endpoint else self._make_client()
        link.owner.attach(link)
        link.flush_soon()

    def secured(self) -> None:
        """The TLS handshake is done; the later owner starts its own timer for authentication."""

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Raises TransportError: no bytes can arrive before the request is accepted."""
        raise TransportError("bytes for a WebSocket that is not open")

    def lost(self, error: Exception | None) -> None:
        """The connection ended before its request was accepted."""
        if self._link is not None:
            self._doors.waiting.discard(self._link)


class Doors:
    """`make_leaf` makes the owner of a connection to the leaf node endpoint. `waiting`: links whose request is not
    accepted yet.
    """

    def __init__(self, make_leaf: "Maker") -> None:
        self.make_leaf = make_leaf
        self.waiting: set[Link] = set()

    def make(self, make_client: "Maker") -> Door:
        """The first owner of a connection that is being accepted; `make_client` makes the owner for a client."""
        return Door(self, make_client)

    def close(self) -> None:
        """End the connections whose request is not accepted yet."""
        for link in list(self.waiting):
            link.abort()
