"""A listener turns the connections to one address into links. It is bound first and opened later, so that all of a
server's ports open in one turn of the loop.

    bind(host, port) ─▶ Listener, still closed ── open() ─▶ accept ─▶ make_link ── close() ─▶ no new ones

asyncio's own server opens when it is bound, and when descriptors run out it retries, with a traceback in the log, once
for every place in its backlog: 20 MB of log in five seconds. This one logs once in ten seconds, with a count, and
retries after a growing pause. The number of accepts per turn of the loop is bounded, so that a storm of new connections
leaves time for existing ones.

A connection above the listener's limits (`net.limits`) gets `farewell` and is closed; refusals are counted, and logged
at most once in ten seconds.

`0.0.0.0` and `::` both mean every IPv4 and IPv6 address of this machine, as in nats-server: one socket serves both
families. On a machine without IPv6 it serves IPv4 alone.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from headwater.errors import EnvironmentProblem
from headwater.net import pacing
from headwater.net.address import ANY_ADDRESS, plain_host
from headwater.net.limits import Limits
from headwater.net.link import Link, LinkOwner
from headwater.net.places import Place, Places, RateLimitedLog

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

BACKLOG = 1024  # connections; a reconnect storm of a few thousand clients arrives within one turn of the loop or two
ACCEPTED_PER_TURN = 64  # it takes some 100 us to accept a connection and write its greeting
FIRST_PAUSE = 0.05  # seconds without accepting when descriptors have run out; doubled each time
LONGEST_PAUSE = 1.0
FAREWELL_SECONDS = 0.1  # seconds that a refused connection stays open, so that its peer can read the reason
MOST_FAREWELLS = 64  # connections at a time; others are closed at once
NO_LIMITS = Limits()
NOWHERE = ("local", 0)  # the address of a Unix socket's peer, which has none
HTTP_FAREWELL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def _given_up(accepted: socket.socket, place: Place, task: "asyncio.Task[None]") -> None:
    """Close the socket if the listener was closed before the link was made, or even before its task ran."""
    if task.cancelled():
        place.leave()
        accepted.close()


class Guest(Protocol):
    """An asyncio protocol that a listener creates for a connection: a link, or a library's protocol."""

    on_end: Callable[[], object] | None  # to be called once, when the connection is gone


class Listener:
    """Made by `bind`. `make_link` is called for every connection; `port` is the one that was bound, or the one that is given
    for sockets without ports.
    """

    def __init__(
        self,
        sockets: list[socket.socket],
        make_link: Callable[[], Guest],
        limits: Limits = NO_LIMITS,
        farewell: bytes = b"",
        tls: "ssl.SSLContext | None" = None,
        port: int | None = None,
    ) -> None:
        self.sockets = sockets
        self.places = Places(limits, asyncio.get_running_loop().time)
        self._farewell = farewell
        self._leaving: dict[socket.socket, asyncio.TimerHandle] = {}  # refused connections that are still open
        self.port = int(sockets[0].getsockname()[1]) if port is None else port
        self.refused = 0  # failed accepts, for lack of descriptors or memory
        self._make_link = make_link
        self._tls = tls  # asyncio's own TLS, for protocols that are not links
        self._handshake_seconds = (limits.login_seconds or None) if tls is not None else None
        self._loop = asyncio.get_running_loop()
        self._pause = FIRST_PAUSE
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # connections being set up
        self._arriving: set[asyncio.Transport] = set()  # attached in this turn, not yet notified
        self._failures = RateLimitedLog(self._loop.time)

    def open(self) -> None:
        """Start accepting. Raises EnvironmentProblem if another process has started to listen there since `bind`."""
        for one in self.sockets:
            pacing.prepare(one)
            try:
                one.listen(BACKLOG)
            except OSError as error:
                raise _problem(one.getsockname()[0], self.port, error) from error
            if hasattr(socket, "SO_REUSEPORT"):  # accepted sockets inherit it: after a kill the port can be bound again
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._watch(one)

    def close(self) -> None:
        """Stop accepting; existing connections stay open. Safe to call again."""
        for one in self.sockets:
            if one.fileno() >= 0:
                self._ignore(one)
                one.close()
        for timer in self._pauses.values():
            timer.cancel()
        self._pauses.clear()
        for task in self._tasks:
            task.cancel()
        for transport in self._arriving:
            transport.abort()
        for leaving in list(self._leaving):
            self._dismiss(leaving)

    async def wait_closed(self) -> None:
        """After `close`: wait until no task or socket of this listener is left."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._arriving:
            await asyncio.sleep(0)  # their links are made, and aborted, in this turn

    def _watch(self, one: socket.socket) -> None:
        try:
            self._loop.add_reader(one.fileno(), self._accept, one)
        except NotImplementedError:  # Windows: a proactor knows no readiness
            self._start(self._accept_one_by_one(one))

    def _ignore(self, one: socket.socket) -> None:
        try:
            self._loop.remove_reader(one.fileno())
        except NotImplementedError:
            return

    def _accept(self, one: socket.socket) -> None:
        for _ in range(ACCEPTED_PER_TURN):
            try:
                accepted, address = one.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._failed(one, error)
                return
            self._pause = FIRST_PAUSE
            accepted.setblocking(False)
            self._receive(accepted, address or NOWHERE)

    async def _accept_one_by_one(self, one: socket.socket) -> None:
        while True:
            accepted, address = await self._loop.sock_accept(one)
            self._receive(accepted, address)

    def _receive(self, accepted: socket.socket, address: "Address") -> None:
        pacing.settle(accepted, str(address[0]))
        host = plain_host(str(address[0]))
        reason = self.places.refusal(host)
        if reason:
            self.places.note_refusal(self.port, host, reason)
            self._turn_away(accepted)
        else:
            place = self.places.take(host)
            attach: Attach | None = getattr(self._loop, "attach", None)  # a DirectLoop's
            if attach is not None and self._tls is None:
                self._connect_now(attach, accepted, address, place)
                return
            task = self._start(self._connect(accepted, place))
            task.add_done_callback(partial(_given_up, accepted, place))

    def _turn_away(self, accepted: socket.socket) -> None:
        if not self._farewell or len(self._leaving) >= MOST_FAREWELLS:
            accepted.close()
            return
        try:
            accepted.send(self._farewell)
            accepted.shutdown(socket.SHUT_WR)
        except OSError:
            accepted.close()
            return
        self._leaving[accepted] = self._loop.call_later(FAREWELL_SECONDS, self._dismiss, accepted)

    def _dismiss(self, leaving: socket.socket) -> None:
        self._leaving.pop(leaving).cancel()
        leaving.close()

    def _start(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _connect_now(self, attach: "Attach", accepted: socket.socket, address: "Address", place: Place) -> None:
        try:
            transport = attach(accepted, self._link_at(place), address)
        except Exception:
            logger.exception("link_not_made")
            place.leave()
            accepted.close()
            return
        self._arriving.add(transport)
        self._loop.call_soon(self._arriving.discard, transport)  # after `connection_made`, in the same turn

    def _link_at(self, place: Place) -> asyncio.BaseProtocol:
        guest = self._make_link()
        guest.on_end = place.leave
        return cast(asyncio.BaseProtocol, guest)

    async def _connect(self, accepted: socket.socket, place: Place) -> None:
        try:
            await self._loop.connect_accepted_socket(
                partial(self._link_at, place), accepted, ssl=self._tls, ssl_handshake_timeout=self._handshake_seconds
            )
            return
        except OSError as error:  # the peer has disconnected already
            logger.debug("connection_lost_while_accepted reason=%s", error)
        except Exception:
            logger.exception("link_not_made")
        place.leave()
        accepted.close()

    def _failed(self, one: socket.socket, error: OSError) -> None:
        """Pause accepting: otherwise the loop would report readiness again at once, and use a whole core."""
        self._ignore(one)
        self._pauses[one] = self._loop.call_later(self._pause, self._go_on, one)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self.refused += 1
        if self.places.on_turned_away is not None:  # newcomers wait in the system's queue, and see no reason
            self.places.on_turned_away("", f"cannot accept connections: {error.strerror}")
        text = "cannot accept connections: %s (address=%s times=%d)"
        self._failures.log(logging.ERROR, text, error.strerror, one.getsockname()[:2])

    def _go_on(self, one: socket.socket) -> None:
        self._pauses.pop(one, None)
        self._watch(one)


def bind(
    host: str,
    port: int,
    make_owner: Callable[[], LinkOwner],
    make_link: Callable[[LinkOwner], Link] = Link,
    *,
    reuse_port: bool = False,
    limits: Limits = NO_LIMITS,
    farewell: bytes = b"",
) -> Listener:
    """A listener on `host:port` (port 0: any free one), not open yet, whose connections get their own owners.

    A name is bound at all its addresses. `make_link` may add layers (`net.tls.secure_link`). `reuse_port`: processes
    with this flag share the address, and the system distributes connections among them. `limits`: the limits on
    connections; `farewell`: the bytes sent to a connection above them. Raises EnvironmentProblem if the address cannot
    be bound. Call this in the loop that will accept.
    """
    sockets = bound_sockets(host, port, reuse_port=reuse_port)
    return Listener(sockets, lambda: make_link(make_owner()), limits, farewell)


_inherited: dict[int, list[socket.socket]] = {}
"""By port: sockets that a service manager has bound for this process, until a listener takes them."""


def inherit(sockets: Iterable[socket.socket]) -> None:
    """Give these sockets to the listeners of their ports, whatever addresses those would bind themselves."""
    for each in sockets:
        each.setblocking(False)
        _inherited.setdefault(each.getsockname()[1], []).append(each)


def left_over() -> list[int]:
    """Close the inherited sockets that no listener has taken; returns their ports."""
    ports = list(_inherited)
    for each in [each for sockets in _inherited.values() for each in sockets]:
        each.close()
    _inherited.clear()
    return ports


def bound_sockets(host: str, port: int, *, reuse_port: bool = False) -> list[socket.socket]:
    """Sockets bound to `host:port`, all with the same port, that do not listen yet. Raises EnvironmentProblem."""
    if port in _inherited:
        return _inherited.pop(port)
    bound: list[socket.socket] = []
    try:
        for family, address in addresses(host, port):
            same_port = bound[0].getsockname()[1] if bound else port
            bound.append(bound_socket(family, (address[0], same_port, *address[2:]), reuse_port=reuse_port))
    except (OSError, OverflowError) as error:
        for made in bound:
            made.close()
        raise _problem(host, port, error) from error
    return bound


def _problem(host: str, port: int, error: Exception) -> EnvironmentProblem:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return EnvironmentProblem(
        f"cannot listen on {host}:{port}: {reason}",
        value=f"{host}:{port}",
        hint="choose another address or port; port 0 takes any free one",
    )


Address = tuple[str | int, ...]
"""In the form of the socket module: host and port first."""

Attach = Callable[[socket.socket, asyncio.BaseProtocol, Address], asyncio.Transport]
"""`DirectLoop.attach`."""


def addresses(host: str, port: int) -> list[tuple[int, Address]]:
    """The address families and addresses to bind for `host`. Raises OSError for a name that does not resolve."""
    if host in ANY_ADDRESS:
        return [(socket.AF_INET6, ("::", port))] if speaks_ipv6() else [(socket.AF_INET, ("0.0.0.0", port))]
    # Of a str, Python makes the bytes with the codec `idna`, whose import is a fiftieth of a start.
    name = host.encode() if host.isascii() else host
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    known = [(int(family), (str(address[0]), *address[1:])) for family, _, _, _, address in found]
    return list(dict.fromkeys(known))


def speaks_ipv6() -> bool:
    """Whether this machine has IPv6; a kernel may be configured without it."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            probe.bind(("::", 0))
    except OSError:
        return False
    return True


def bound_socket(family: int, address: Address, *, reuse_port: bool = False) -> socket.socket:
    """A socket bound to one address, not listening; on `::` it serves IPv4 too. Raises OSError."""
    # Accepted sockets inherit the protocol number, and asyncio sets TCP_NODELAY only if it is TCP's.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # Allows binding a port that was in use a moment ago. A port chosen by the system is free, and must be ours
        # alone until we listen. On Windows the option would let other processes take the port over.
        if address[1] != 0 and hasattr(socket, "SO_REUSEPORT"):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address[0] != "::")
        made.bind(address)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made
