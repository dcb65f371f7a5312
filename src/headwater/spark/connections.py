"""Connections of this process to NATS servers, kept between tasks.

Spark's Python workers live for many tasks, and a handshake costs as much as reading a thousand messages. A connection
is kept per process: workers are forked, and two processes that write to one socket would garble it, so the process id
is part of the key. A connection is *taken* and *given back*; two readers in one process never share one.
"""

import atexit
import os

from headwater.client.blocking import BlockingClient
from headwater.spark.server_options import ServerOptions

CONNECT_TIMEOUT = 5.0  # seconds per server
KEPT = 4  # idle connections per key

_Key = tuple[int, ServerOptions]
_idle: dict[_Key, list[BlockingClient]] = {}


def take(server: ServerOptions, patience: float, *, fresh: bool = False) -> BlockingClient:
    """A connected client: an idle one, or (`fresh`, or when there is none) a new one. Raises what `connect` raises.

    `patience` is how many seconds a caller would wait at most; a server gets no more than `CONNECT_TIMEOUT` of them.
    """
    idle = _idle.get(_key(server), [])
    while idle:
        client = idle.pop()
        if not fresh and not client.closed:
            return client
        client.close()
    return BlockingClient.connect(server.client_options("headwater-spark", min(CONNECT_TIMEOUT, patience)))


def give_back(server: ServerOptions, client: BlockingClient) -> None:
    """Keep a client whose last exchange ended in order; close one too many."""
    idle = _idle.setdefault(_key(server), [])
    if client.closed or len(idle) >= KEPT:
        client.close()
    else:
        idle.append(client)


@atexit.register
def close_idle() -> None:
    """Close what nobody uses."""
    for idle in _idle.values():
        while idle:
            idle.pop().close()


def _key(server: ServerOptions) -> _Key:
    return os.getpid(), server
