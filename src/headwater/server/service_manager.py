"""The interface between systemd and this server.

    Type=notify         the server's state: a datagram to the socket named by NOTIFY_SOCKET
    socket activation   LISTEN_FDS sockets from descriptor 3 on, bound by systemd: the listeners of their ports use them

Without those variables nothing happens. A manager that cannot be reached causes a warning, but serving continues.
"""

import logging
import os
import socket
from collections.abc import Mapping, MutableMapping

logger = logging.getLogger(__name__)

READY = "READY=1"
STOPPING = "STOPPING=1"
FIRST = 3  # the first inherited descriptor


def notify(state: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Send one state; False when there is no manager, or it cannot be reached."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]  # a name in Linux's abstract space
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.setblocking(False)  # a manager that does not read must not block the server
            manager.sendto(state.encode(), address)
    except OSError as error:
        logger.warning("the service manager cannot be notified of %s: %s", state, error)
        return False
    return True


def activated(environment: MutableMapping[str, str] = os.environ) -> list[socket.socket]:
    """The sockets passed to this process. Those that are not TCP are left alone, with a warning."""
    names = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
    process, count, _ = (environment.pop(name, "") for name in names)  # not for our child processes
    if process != str(os.getpid()) or not count.isdecimal():
        return []
    found = []
    for descriptor in range(FIRST, FIRST + int(count)):
        os.set_inheritable(descriptor, False)
        given = socket.socket(fileno=descriptor)
        if given.family in (socket.AF_INET, socket.AF_INET6) and given.type == socket.SOCK_STREAM:
            found.append(given)
        else:
            logger.warning("socket_not_used descriptor=%d reason='it is no TCP socket'", descriptor)
            given.detach()
    return found
