"""The connected clients of an Iggy server, by number.

Plain bookkeeping: sessions add and remove their client, commands change its user, its era and its groups. A number is
used again only after four thousand million others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from headwater.iggy.catalog import UserEntry
from headwater.iggy_wire.eras import Era

TCP, QUIC, HTTP, WEBSOCKET = 1, 2, 3, 4
NO_ID: Final = 0xFFFFFFFF  # an id that no client and no user gets


@dataclass(eq=False)
class Client:
    """A connected client. `requests` counts what it has sent, `waiting` its requests that wait for messages. `evict` tells
    it that it is stale, and ends the connection."""

    id: int
    transport: int
    address: str
    era: Era
    user: UserEntry | None = None
    login: int = 0
    memberships: set[tuple[int, int]] = field(default_factory=set)  # (uid of the topic, id of the group)
    key: bytes = bytes(16)  # chosen by a client of era V or later, at its login
    requests: int = 0
    waiting: int = 0
    evict: Callable[[], None] = lambda: None


class Clients:
    """Numbers new clients, from 1 on, again and again. `refused_sends`: of all clients so far, for whatever reason; they get
    error numbers."""

    def __init__(self) -> None:
        self._by_id: dict[int, Client] = {}
        self._next_id = 1
        self.refused_sends = 0

    def add(self, transport: int, address: str, era: Era) -> Client:
        """A new connection, not logged in yet."""
        client = Client(self._next_id, transport, address, era)
        self._next_id = self._next_id % (NO_ID - 1) + 1
        self._by_id[client.id] = client
        return client

    def remove(self, client: Client) -> None:
        """The connection is gone; safe to call again."""
        self._by_id.pop(client.id, None)

    def get(self, number: int) -> Client | None:
        """The client of this number, if it is connected."""
        return self._by_id.get(number)

    def __iter__(self) -> Iterator[Client]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, number: object) -> bool:
        return number in self._by_id
