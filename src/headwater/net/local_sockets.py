"""Unix sockets between the processes of one server: listen and dial.

A `place` stands for the sockets of all its processes, a number for that of one. A message that crosses there, one of many,
costs both processes 50 to 70 ns more than one that stays; by TCP on loopback it was half more (`./hw bench workers`).
On Linux places are abstract names, which end with their processes, even killed ones. Elsewhere they are directories that
only this user may enter, until `forget`.

Another program of the machine can connect, as to a port on loopback: who connects has to prove who it is.
"""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable

from headwater.errors import EnvironmentProblem, TransportError
from headwater.net.limits import Limits
from headwater.net.link import Link, LinkOwner
from headwater.net.listening import NO_LIMITS, Listener

ABSTRACT = "\0"
# At most the system's wmem_max. With Linux's 208 KiB a message to eight costs 6 to 9 % more CPU.
SEND_BYTES = 1 << 20


class LocalLink(Link):
    """A link over a Unix socket, which carries the messages of many clients, in much at a time.

    It is read 64 KiB at a time as any other, which makes 64 KiB for a client, one segment of TCP on loopback, and all of it
    stays in the L2 cache. Reads of 128 KiB took 10 % more CPU of a message to four clients, those of 96 KiB, a segment
    and a half, 30 %; 256 KiB were worse still, though fewer calls.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        super().connection_made(transport)


def new_place() -> str:
    """A place of a new name."""
    if sys.platform == "linux":
        return f"{ABSTRACT}headwater-{os.urandom(8).hex()}"
    import tempfile  # here and below: a start of a server has no time for what few systems need

    return tempfile.mkdtemp(prefix="headwater-")


def forget(place: str) -> None:
    """Remove what is left of a place."""
    if not place.startswith(ABSTRACT):
        import shutil

        shutil.rmtree(place, ignore_errors=True)


def _path(place: str, number: int) -> str:
    return f"{place}-{number}" if place.startswith(ABSTRACT) else os.path.join(place, str(number))


def bind_local(
    place: str,
    number: int,
    make_owner: Callable[[], LinkOwner],
    *,
    limits: Limits = NO_LIMITS,
    farewell: bytes = b"",
) -> Listener:
    """As `net.listening.bind`, on socket `number` of a place. Raises EnvironmentProblem if it cannot be bound."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = _path(place, number)
    try:
        if not path.startswith(ABSTRACT):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # of a process that was killed
        made.bind(path)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise EnvironmentProblem(f"cannot listen on local socket {number}: {error.strerror}", value=number) from error
    return Listener([made], lambda: LocalLink(make_owner()), limits, farewell, port=number)


async def dial_local(place: str, number: int, owner: LinkOwner, timeout: float) -> Link:
    """Connect to socket `number` of a place within `timeout` seconds. Raises TransportError if that fails."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout):
            _, link = await loop.create_unix_connection(lambda: LocalLink(owner), _path(place, number))
    except OSError as error:  # TimeoutError is an OSError
        reason = f"no answer within {timeout:g} s" if isinstance(error, TimeoutError) else str(error)
        raise TransportError(f"cannot connect to local socket {number}: {reason}", value=number) from error
    return link
