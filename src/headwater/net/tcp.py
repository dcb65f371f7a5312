"""TCP: listen and dial. The only places where a socket of an asyncio link is made.

TCP_NODELAY is set (asyncio's default): we batch ourselves, once per loop iteration.
"""

import asyncio
import socket
from collections.abc import Callable

from headwater.errors import EnvironmentProblem, TransportError
from headwater.net.layer import Layer
from headwater.net.link import Link, LinkOwner

BACKLOG = 1024  # connections; a reconnect storm of a few thousand clients arrives within one loop iteration or two


async def listen(
    host: str,
    port: int,
    make_owner: Callable[[], LinkOwner],
    make_link: Callable[[LinkOwner], Link] = Link,
    *,
    reuse_port: bool = False,
) -> asyncio.Server:
    """Accept connections on `host:port` (port 0: any free one), each with an owner of its own.

    `make_link` may put layers in between (`net.tls.secure_link`). `reuse_port`: other processes that say so too share the
    address, and the system deals connections out to all of them.

    Raises EnvironmentProblem when the address cannot be bound.
    """
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(
            lambda: make_link(make_owner()), host, port, backlog=BACKLOG, reuse_port=reuse_port or None
        )
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise EnvironmentProblem(
            f"cannot listen on {host}:{port}: {reason}",
            value=f"{host}:{port}",
            hint="choose another address or port; port 0 takes any free one",
        ) from error


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening socket on `host:port` (port 0: any free one), for servers that bring their own protocol.

    Raises EnvironmentProblem when the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
        made.setblocking(False)
    except (OSError, OverflowError) as error:
        made.close()
        raise EnvironmentProblem(
            f"cannot listen on {host}:{port}: {error}",
            value=f"{host}:{port}",
            hint="choose another address or port; port 0 takes any free one",
        ) from error
    return made


def reserve(host: str, port: int) -> socket.socket:
    """A socket that holds `host:port` (port 0: any free one) and takes no connections.

    Processes that `listen` there with `reuse_port` while it is open share an address that nobody else had before.
    Raises EnvironmentProblem when the address is in use, or the system cannot share it.
    """
    if not hasattr(socket, "SO_REUSEPORT"):
        raise EnvironmentProblem("this system cannot share a port among processes", hint="run one process")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family) as probe:  # without SO_REUSEPORT: another that shares would let us join it
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
        held = socket.socket(family)
        try:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            held.bind(address)
        except OSError:
            held.close()
            raise
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise EnvironmentProblem(f"cannot listen on {host}:{port}: {reason}", value=f"{host}:{port}") from error
    return held


async def dial(host: str, port: int, owner: LinkOwner, timeout: float, layer: Layer | None = None) -> Link:
    """Connect to `host:port` within `timeout` seconds. Raises TransportError otherwise.

    With a `layer` (TLS before the first byte, WebSocket), `link.prepared()` tells when it can carry the owner's bytes.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout):
            _, link = await loop.create_connection(lambda: Link(owner, layer), host, port)
    except (OSError, OverflowError) as error:  # TimeoutError is an OSError
        reason = f"no answer within {timeout:g} s" if isinstance(error, TimeoutError) else str(error)
        raise TransportError(
            f"cannot connect to {host}:{port}: {reason}", value=f"{host}:{port}", hint="is a server listening there?"
        ) from error
    return link
