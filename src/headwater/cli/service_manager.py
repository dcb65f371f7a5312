"""Says to systemd how far this server is (`Type=notify`): a datagram to the socket that NOTIFY_SOCKET names.

Without that variable nothing is said. A manager that cannot be reached is a warning, no reason to stop serving.
"""

import logging
import os
import socket
from collections.abc import Mapping

logger = logging.getLogger(__name__)

READY = "READY=1"
STOPPING = "STOPPING=1"


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
