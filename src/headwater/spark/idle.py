"""Idle connections of this process, kept between tasks.

Spark's Python workers live for many tasks, and a handshake costs as much as reading a thousand messages. A connection
is kept per process: workers are forked, and two processes that write to one socket would garble it, so the process id
is part of the key. A connection is *taken* and *given back*; two readers in one process never share one.
"""

import os
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

KEPT = 4  # idle connections per server


class Connection(Protocol):
    """What is kept."""

    @property
    def closed(self) -> bool:
        """Whether it is of no more use."""

    def close(self) -> None:
        """Give the socket back; allowed twice."""


Server = TypeVar("Server", bound=Hashable)
Client = TypeVar("Client", bound=Connection)


class IdleConnections(Generic[Server, Client]):
    """At most `KEPT` of each server, the newest first."""

    def __init__(self) -> None:
        self._idle: dict[tuple[int, Server], list[Client]] = {}

    def take(self, server: Server, *, fresh: bool) -> Client | None:
        """One that is open; None when there is none. `fresh`: close those that there are, for they are in doubt."""
        idle = self._idle.get((os.getpid(), server), [])
        while idle:
            client = idle.pop()
            if not fresh and not client.closed:
                return client
            client.close()
        return None

    def give_back(self, server: Server, client: Client) -> None:
        """Keep a client whose last exchange ended in order; close one too many."""
        idle = self._idle.setdefault((os.getpid(), server), [])
        if client.closed or len(idle) >= KEPT:
            client.close()
        else:
            idle.append(client)

    def close(self) -> None:
        """Close all idle connections."""
        for idle in self._idle.values():
            while idle:
                idle.pop().close()
