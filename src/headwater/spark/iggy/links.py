"""Connections of this process to Iggy servers, kept between tasks, and retries while a server is unavailable; the
counterpart of `headwater.spark.connections` (`headwater.spark_runtime.idle` describes how connections are kept).
"""

import atexit
from collections.abc import Callable
from typing import TypeVar

from headwater.errors import HeadwaterError
from headwater.iggy_client.blocking import BlockingIggy
from headwater.spark.iggy.options import IggyServer
from headwater.spark.server_options import options_for
from headwater.spark_runtime.idle import IdleConnections
from headwater.spark_runtime.persistence import Persistence, persisted

T = TypeVar("T")

OPTIONS_BY_WORDS = {
    "the name does not resolve": "option servers: is the host mistyped?",
    "certificate is not valid for": "option servers: the certificate is for another host than is named there",
    "certificate has expired": "server's certificate: no option mends it",
    "CERTIFICATE_VERIFY_FAILED": "option tlsCa, the authorities to trust",
    "X509 certificate/key pair": "option tlsCa",
    "WRONG_VERSION_NUMBER": "options tls and servers: this port speaks without TLS",
    "invalid_credentials": "options user, password and token",
}

_idle: IdleConnections[IggyServer, BlockingIggy] = IdleConnections()
give_back = _idle.give_back
close_idle = atexit.register(_idle.close)


def take(server: IggyServer, patience: float, *, fresh: bool = False) -> BlockingIggy:
    """A connected client: an idle one, or with `fresh`, or if none is idle, a new one. Raises what `connect` raises."""
    try:
        return _idle.take(server, fresh=fresh) or server.connect(patience)
    except HeadwaterError as error:
        error.hint = options_for(error, OPTIONS_BY_WORDS) or error.hint
        raise


def persistently(server: IggyServer, patience: float, what: str, ask: Callable[[BlockingIggy], T]) -> T:
    """Call `ask` on a kept connection, and again on a new one when that fails, for up to `patience` seconds. Raises
    IggyError at once for a refusal, otherwise the last TransportError or RequestTimeout."""
    client: BlockingIggy | None = None

    def attempt(again: bool) -> T:
        nonlocal client
        client = take(server, patience, fresh=again)
        answer = ask(client)
        give_back(server, client)
        return answer

    def close() -> None:
        if client is not None:
            client.close()

    return persisted(Persistence(patience, f"iggy_again {what}"), attempt, close)
