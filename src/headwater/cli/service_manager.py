"""What systemd and this server say to each other.

    Type=notify         how far the server is: a datagram to the socket that NOTIFY_SOCKET names
    socket activation   LISTEN_FDS sockets from descriptor 3 on, bound by systemd: the listeners of their ports take them

Without those variables nothing happens. A manager that cannot be reached is a warning, no reason to stop serving.
"""

import logging
import os
import socket
from collections.abc import Mapping, MutableMapping

logger = logging.getLogger(__name__)

READY = "READY=1"
STOPPING = "STOPPING=1"
FIRST = 3  # descriptor that is passed on


def notify(state: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Send one state; False when there is no manager, or it cannot be reached."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]  # a name in Linux's abstract space
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.setblocking(False)  # a manager that does not read must not stop the server
            manager.sendto(state.encode(), address)
    except OSError as error:
        logger.warning("the service manager cannot be notified of %s: %s", state, error)
        return False
    return True


def activated(environment: MutableMapping[str, str] = os.environ) -> list[socket.socket]:
    """The sockets that are meant for this process; those of another kind than TCP are left alone, with a warning."""
    names = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
    process, count, _ = (environment.pop(name, "") for name in names)  # they are not for processes of ours
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
