"""The reason why a start failed, in the wording of nats-server, because scripts, charts and people look for it. Errors that
do not come from a listener keep their own text, which describes the fault better.
"""

import os
import socket
from typing import TYPE_CHECKING

from headwater.errors import EnvironmentProblem, HeadwaterError

if TYPE_CHECKING:
    from headwater.server.config.draft import ServerConfig


def start_failure(error: HeadwaterError, config: "ServerConfig") -> str:
    """One line for the log, without a line end."""
    cause = error.__cause__
    if not isinstance(error, EnvironmentProblem) or not isinstance(cause, OSError):
        return str(error)
    if not error.message.startswith("cannot listen on "):
        return str(error)
    where = str(error.value)
    listener, port = _listener(where, config), where.rpartition(":")[2]
    reason = _reason(where, cause)
    if listener == "monitoring":
        return f"Can't start monitoring: can't listen to the monitor port: {reason}"
    if listener == "websocket":
        return f"Unable to listen for websocket connections: {reason}"
    if listener:
        return f"Error listening on {listener} port: {port} - {reason}"
    return f'Error listening on port: {where}, "{reason}"'


def _listener(where: str, config: "ServerConfig") -> str:
    """The listener with this address; empty for the clients' listener, which is bound first."""
    broker = config.broker
    if where == f"{broker.host}:{broker.port}":
        return ""
    named = {
        "monitoring": config.monitoring,
        "websocket": broker.websocket,
        "router": broker.cluster,
        "leafnode": broker.leafnodes,
    }
    for name, options in named.items():
        if options is not None and where == f"{options.host}:{options.port}":
            return name
    return ""


def _reason(where: str, cause: OSError) -> str:
    if isinstance(cause, socket.gaierror):
        return f"listen tcp: lookup {where.rpartition(':')[0]}: no such host"
    text = os.strerror(cause.errno).lower() if cause.errno and cause.errno > 0 else str(cause)
    return f"listen tcp {where}: bind: {text}"
