"""Whether connections within this machine send with pauses.

BBR, the congestion control that some systems choose for all connections, spreads what is sent evenly over time. Where no
queue of a network card does that, as on loopback, each connection has a timer for it: 64 KiB of a write are sent, and the
rest by interrupts. There is no congestion within a machine to be avoided by that, so that a process of several that are one
server leaves the pauses out (`PACING.leave_out`): with them, one that passes each message on to sixteen clients and to
another worker took twice the CPU (docs/hot-paths.md).

**A connection that began with BBR keeps its timers whatever is chosen for it later:** Linux never takes back that a socket
is paced. What another control reckons as its rate then decides about the pauses, and by chance there were few or very
many. So the sockets that listen choose another control before the first connection, which has it from its beginning; and
connections from other machines are given back what the system chooses. Connections that this process dials keep it.

A process alone keeps the pauses.
"""

import contextlib
import functools
import socket

PAUSES = b"bbr"  # the beginning of the names of those that pause
STEADY = b"reno"  # every Linux has it, and lets every user choose it
_NAME_SIZE = 16  # bytes, TCP_CA_NAME_MAX
_INTERNET = (socket.AF_INET, socket.AF_INET6)


@functools.cache
def system_control() -> bytes:
    """The name of what this system chooses; empty where that cannot be known."""
    if not hasattr(socket, "TCP_CONGESTION"):
        return b""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
            return made.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_SIZE).rstrip(b"\0")
    except OSError:
        return b""


def system_pauses() -> bool:
    """Whether this system chooses a control that pauses."""
    return system_control().startswith(PAUSES)


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

    def prepare(self, listening: socket.socket) -> None:
        """Call for a socket before it listens: what it accepts has no pauses, until `settle`."""
        if self._left_out and listening.family in _INTERNET:
            with contextlib.suppress(OSError):  # then the system's choice stays
                listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, STEADY)

    def settle(self, accepted: socket.socket, peer: str) -> None:
        """Call for each accepted connection of a prepared socket: what comes from another machine has what the system
        chooses again. `peer`: the address of the other end."""
        if not self._left_out or accepted.family not in _INTERNET:
            return
        with contextlib.suppress(OSError):  # the peer may be gone
            if peer != accepted.getsockname()[0]:
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, system_control())


PACING = Pacing()
