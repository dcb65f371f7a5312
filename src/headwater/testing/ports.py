"""Free ports, for servers that cannot choose one themselves (port 0), which is preferable."""

import socket
from contextlib import ExitStack


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free a moment ago. Another process may take it before the server does."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """`count` different ports, as `free_port` finds them."""
    with ExitStack() as held:
        listening = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in listening]
