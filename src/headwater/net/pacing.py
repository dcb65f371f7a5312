"""Connections within this machine send without pauses.

BBR, the congestion control that some systems choose for all connections, spreads what is sent evenly over time. Where no
queue of a network card does that, as on loopback, each connection has a timer for it: 64 KiB of a write are sent, and the
rest by interrupts. There is no congestion within a machine to be avoided by that, and it took up to half of the CPU of a
server that passes each message on to many clients (docs/hot-paths.md). So what listens chooses another control.

**A connection that began with BBR keeps its timers whatever is chosen for it later:** Linux never takes back that a socket
is paced. What another control reckons as its rate then decides about the pauses, and by chance there are few or very
many. So sockets choose before they listen or connect, and what they accept has no pauses from its beginning; connections
from other machines are given back what the system chooses. What is dialled by a name, `localhost` too, keeps it.
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


def is_loopback(host: str) -> bool:
    """Whether this is the number of an address within the machine."""
    return host == "::1" or (host.startswith("127.") and host.replace(".", "").isdigit())


def prepare(made: socket.socket) -> None:
    """Call for a socket before it connects within the machine, or listens: what it accepts has no pauses, until `settle`."""
    if made.family in _INTERNET and system_pauses():
        with contextlib.suppress(OSError):  # then the system's choice stays
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, STEADY)


def settle(accepted: socket.socket, peer: str) -> None:
    """Call for each accepted connection of a prepared socket: what comes from another machine has what the system chooses
    again. `peer`: the address of the other end."""
    if accepted.family not in _INTERNET or not system_pauses():
        return
    with contextlib.suppress(OSError):  # the peer may be gone
        if peer != accepted.getsockname()[0]:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, system_control())
