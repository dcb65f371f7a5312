"""Idle connections of this process, kept between tasks.

Spark's Python workers run many tasks, and a handshake costs as much as reading a thousand messages. Connections are kept
per process: workers are forked, and two processes writing to one socket would corrupt its data, so the process id is part
of the key. A connection is *taken* and *given back*; two readers in one process never share one.
"""

import os
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

KEPT = 4  # idle connections per server


class Connection(Protocol):
    """A connection that can be kept."""

    @property
    def closed(self) -> bool:
        """Whether it cannot be used any more."""

    def close(self) -> None:
        """Close the socket; may be called twice."""


Server = TypeVar("Server", bound=Hashable)
Client = TypeVar("Client", bound=Connection)


class IdleConnections(Generic[Server, Client]):
    """At most `KEPT` connections per server, the most recent first."""

    def __init__(self) -> None:
        self._idle: dict[tuple[int, Server], list[Client]] = {}

    def take(self, server: Server, *, fresh: bool) -> Client | None:
        """An open connection, or None. `fresh`: close all idle ones instead, because they may be broken."""
        idle = self._idle.get((os.getpid(), server), [])
        while idle:
            try:
                client = idle.pop()
            except IndexError:
                break  # another thread of a planner took it (`headwater.spark.rows_ahead`)
            if not fresh and not client.closed:
                return client
            client.close()
        return None

    def give_back(self, server: Server, client: Client) -> None:
        """Keep a client whose last exchange is complete; close it if there are enough already."""
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
