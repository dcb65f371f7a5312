"""Connections of this process to Iggy servers, kept between tasks, and retries while a server is unavailable; the
counterpart of `headwater.spark.connections` (`headwater.spark_runtime.idle` describes how connections are kept).
"""

import atexit
from collections.abc import Callable
from typing import TypeVar

from headwater.errors import RequestTimeout, TransportError
from headwater.iggy_client.blocking import BlockingIggy
from headwater.spark.iggy.options import IggyServer
from headwater.spark_runtime.idle import IdleConnections
from headwater.spark_runtime.persistence import Persistence

T = TypeVar("T")

_idle: IdleConnections[IggyServer, BlockingIggy] = IdleConnections()
give_back = _idle.give_back
close_idle = atexit.register(_idle.close)


def take(server: IggyServer, patience: float, *, fresh: bool = False) -> BlockingIggy:
    """A connected client: an idle one, or with `fresh`, or if none is idle, a new one. Raises what `connect` raises."""
    return _idle.take(server, fresh=fresh) or server.connect(patience)


def persistently(server: IggyServer, patience: float, what: str, ask: Callable[[BlockingIggy], T]) -> T:
    """Call `ask` on a kept connection, and again on a new one when that fails, for up to `patience` seconds. Raises
    IggyError at once for a refusal, otherwise the last TransportError or RequestTimeout."""
    persistence = Persistence(patience, f"iggy_again {what}")
    while True:
        client: BlockingIggy | None = None
        try:
            client = take(server, patience, fresh=persistence.failures > 0)
            answer = ask(client)
        except (TransportError, RequestTimeout) as error:
            if client is not None:
                client.close()
            persistence.wait_after(error)
        except BaseException:
            if client is not None:
                client.close()
            raise
        else:
            persistence.succeeded()
            give_back(server, client)
            return answer
