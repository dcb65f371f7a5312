"""TCP: listen and dial. Only this module, `net.listening` and `net.local_sockets` make the sockets of asyncio links.

TCP_NODELAY is set (asyncio's default): links batch their output once per loop iteration.
"""

import asyncio
import socket
from collections.abc import Callable

from headwater.errors import EnvironmentProblem, TransportError
from headwater.net import pacing
from headwater.net.layer import Layer
from headwater.net.link import Link, LinkOwner
from headwater.net.listening import BACKLOG, Listener, addresses, bind, bound_sockets
from headwater.net.listening import bound_socket as _bound_socket


async def listen(
    host: str,
    port: int,
    make_owner: Callable[[], LinkOwner],
    make_link: Callable[[LinkOwner], Link] = Link,
    *,
    reuse_port: bool = False,
) -> Listener:
    """`net.listening.bind`, opened at once. Raises EnvironmentProblem if the address cannot be bound."""
    listener = bind(host, port, make_owner, make_link, reuse_port=reuse_port)
    listener.open()
    return listener


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening socket on `host:port` (port 0: any free one), for servers with their own protocol.

    Raises EnvironmentProblem when the address cannot be bound.
    """
    made, *others = bound_sockets(host, port)
    for other in others:  # only the first address of a name is served
        other.close()
    made.listen(BACKLOG)
    return made


def reserve(host: str, port: int) -> socket.socket:
    """A socket bound to `host:port` (port 0: any free one) that accepts no connections.

    Processes that `listen` there with `reuse_port` while it is open share an address that was free before.
    Raises EnvironmentProblem when the address is in use, or the system cannot share it.
    """
    if not hasattr(socket, "SO_REUSEPORT"):
        raise EnvironmentProblem("this system cannot share a port among processes", hint="run one process")
    try:
        family, address = addresses(host, port)[0]
        _bound_socket(family, address).close()  # fails if the port is in use, unlike with SO_REUSEPORT
        return _bound_socket(family, address, reuse_port=True)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise EnvironmentProblem(f"cannot listen on {host}:{port}: {reason}", value=f"{host}:{port}") from error


async def dial(host: str, port: int, owner: LinkOwner, timeout: float, layer: Layer | None = None) -> Link:
    """Connect to `host:port` within `timeout` seconds. Raises TransportError if that fails.

    With a `layer` (TLS before the first byte, WebSocket), `link.prepared()` waits until the layer is ready for the
    owner's bytes.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout):
            if pacing.system_pauses() and pacing.is_loopback(host):
                made = await _connected(host, port)
                _, link = await loop.create_connection(lambda: Link(owner, layer), sock=made)
            else:
                _, link = await loop.create_connection(lambda: Link(owner, layer), host, port)
    except (OSError, OverflowError, UnicodeError) as error:  # TimeoutError is an OSError; a name with an empty label
        reason = f"no answer within {timeout:g} s" if isinstance(error, TimeoutError) else str(error)
        raise TransportError(
            f"cannot connect to {host}:{port}: {reason}", value=f"{host}:{port}", hint="is a server listening there?"
        ) from error
    return link


async def _connected(host: str, port: int) -> socket.socket:
    """A socket without pauses (see `pacing`) that is connected to an address of this machine. Raises OSError."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        pacing.prepare(made)
        await asyncio.get_running_loop().sock_connect(made, (host, port))
    except BaseException:  # a timeout included
        made.close()
        raise
    return made
