"""Connections of this process to NATS servers, kept between tasks.

Spark's Python workers live for many tasks, and a handshake costs as much as reading a thousand messages. A connection
is kept per process: workers are forked, and two processes that write to one socket would garble it, so the process id
is part of the key. A connection is *taken* and *given back*; two readers in one process never share one.
"""

import atexit
import os

from headwater.client.blocking import BlockingClient
from headwater.spark.options import SourceOptions

CONNECT_TIMEOUT = 5.0  # seconds per server
KEPT = 4  # idle connections per key

_Key = tuple[int, tuple[str, ...], str, str, str]
_idle: dict[_Key, list[BlockingClient]] = {}


def take(options: SourceOptions, *, fresh: bool = False) -> BlockingClient:
    """A connected client: an idle one, or (`fresh`, or when there is none) a new one. Raises what `connect` raises."""
    idle = _idle.get(_key(options), [])
    while idle:
        client = idle.pop()
        if not fresh and not client.closed:
            return client
        client.close()
    timeout = min(CONNECT_TIMEOUT, options.read_timeout)
    return BlockingClient.connect(
        options.servers, credentials=options.credentials(), name="headwater-spark", timeout=timeout
    )


def give_back(options: SourceOptions, client: BlockingClient) -> None:
    """Keep a client whose last exchange ended in order; close one too many."""
    idle = _idle.setdefault(_key(options), [])
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


def _key(options: SourceOptions) -> _Key:
    return os.getpid(), options.servers, options.user, options.password, options.token
