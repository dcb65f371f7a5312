"""Whether connections within this machine send with pauses.

BBR, the congestion control that some systems choose for all connections, spreads what is sent evenly over time. Where no
queue of a network card does that, as on loopback, each connection has a timer for it: 64 KiB of a write are sent, and the
rest by interrupts. There is no congestion within a machine to be avoided by that, so that a process of several that are one
server leaves the pauses out (`PACING.leave_out`): with them, one that passes each message on to four clients and to another
worker took 1.3 times the CPU (docs/hot-paths.md).

A process alone keeps them. Its clients' core is often idle, and to wake it for each 64 KiB costs more than the timers: with
the pauses several of these arrive together. Two workers and their clients mostly keep all cores busy.

Connections to other machines always keep what the system chooses.
"""

import contextlib
import functools
import socket

PAUSES = b"bbr"  # the beginning of the names of those that pause
STEADY = b"reno"  # every Linux has it, and lets every user choose it
_NAME_SIZE = 16  # bytes, TCP_CA_NAME_MAX


@functools.cache
def system_pauses() -> bool:
    """Whether this system chooses a control that pauses."""
    if not hasattr(socket, "TCP_CONGESTION"):
        return False
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
            return made.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_SIZE).startswith(PAUSES)
    except OSError:
        return False


class Pacing:
    """What this process chooses for all of its connections."""

    def __init__(self) -> None:
        self._left_out = False

    def leave_out(self) -> None:
        """From now on connections of this machine to itself have no pauses."""
        self._left_out = system_pauses()

    def pauses(self) -> bool:
        """Whether connections of this machine to itself send with pauses."""
        return system_pauses() and not self._left_out

    def apply(self, connection: socket.socket) -> None:
        """Call once for a connection."""
        if not self._left_out or connection.family not in (socket.AF_INET, socket.AF_INET6):
            return
        with contextlib.suppress(OSError):  # the peer may be gone
            if connection.getpeername()[0] == connection.getsockname()[0]:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, STEADY)


PACING = Pacing()
