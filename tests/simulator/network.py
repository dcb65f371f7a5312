"""A network of hosts in memory that delays, holds back, splits and aborts transmissions, decided by the seed of the loop.

It replaces the operating system's sockets: those of `bind`, `create_connection`, and transports. The guarantees of TCP hold
(each direction of a connection is in order and complete, or the connection is lost); there is no order between connections.
A lost packet is one that arrives later.

    write ─▶ buffer ─▶ (window) ─▶ on its way ─▶ arrived ─▶ protocol, when it reads
      │ too much: pause_writing        │ delay, a partition       │ unread: the window stays shut

After a process is killed its kernel still sends what it had; a host that loses power sends nothing, and resets old
connections once it is back. A partition delays data and dials until it ends.
"""

import asyncio
import contextvars
import errno
import os
import socket
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVarTuple

from simulator.virtual_loop import CURRENT, Process, SimulatedLoop

Arguments = TypeVarTuple("Arguments")

WINDOW = 64 << 10  # bytes in one direction that the peer has not read
HIGH_WATER = 64 << 10
DIAL_SECONDS = 60.0  # after which a dial to a silent host fails
FIRST_PORT = 20_000


class Refused(ConnectionRefusedError):
    def __init__(self) -> None:
        super().__init__(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


class ListeningSocket:
    """The methods of a listening socket that `net.listening` uses."""

    family = socket.AF_UNIX  # so that it has none of the options of TCP

    def __init__(self, network: "Network", address: tuple[str, int]) -> None:
        self.network = network
        self.address = address
        self.process = CURRENT.get()
        self.pending: deque[Accepted] = deque()
        self.number = network.next_number()
        self.is_open = False

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def fileno(self) -> int:
        return self.number

    def setsockopt(self, *arguments: int) -> None:
        """All options have suitable values already."""

    def listen(self, backlog: int) -> None:
        self.is_open = True

    def accept(self) -> "tuple[Accepted, tuple[str, int]]":
        if not self.pending:
            raise BlockingIOError(errno.EAGAIN, "nobody is there")
        accepted = self.pending.popleft()
        return accepted, accepted.end.peer_address

    def close(self) -> None:
        self.number = -1
        self.is_open = False
        if self.network.sockets.get(self.address) is self:  # it may belong to a successor
            del self.network.sockets[self.address]
        for accepted in self.pending:
            accepted.end.reset()
        self.pending.clear()


class Accepted:
    """An accepted connection without a protocol yet."""

    family = ListeningSocket.family

    def __init__(self, end: "End") -> None:
        self.end = end

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""

    def send(self, data: bytes) -> int:
        self.end.write(data)
        return len(data)

    def shutdown(self, how: int) -> None:
        self.end.write_eof()

    def close(self) -> None:
        self.end.close()


class End(asyncio.Transport):
    """One end of a connection."""

    def __init__(
        self, network: "Network", process: Process | None, address: tuple[str, int], peer_address: tuple[str, int]
    ) -> None:
        # With an SSL context the product's links leave reading and writing to the transport.
        super().__init__({"peername": peer_address, "sockname": address, "sslcontext": network})
        self.network = network
        self.loop = network.loop
        self.process = process
        self.address = address
        self.peer_address = peer_address
        self.peer: End | None = None
        self.protocol: asyncio.BaseProtocol | None = None
        self.context: Context = contextvars.copy_context()
        self._buffer: deque[bytes] = deque()
        self._buffered = 0
        self._unread = 0  # bytes sent by us and not read by the peer
        self._arrives = 0.0
        self._inbox: deque[bytes | None] = deque()
        self._delivering = False
        self._reading = True
        self._paused = False
        self._ending = False  # nothing more will be written
        self._closing = False
        self.lost = False
        self.silent = False  # its host has lost power
        self._high = HIGH_WATER

    # ── for the protocol ──

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self.protocol is not None
        return self.protocol

    def is_closing(self) -> bool:
        return self._closing

    def can_write_eof(self) -> bool:
        return True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH_WATER if high is None else high

    def get_write_buffer_size(self) -> int:
        return self._buffered

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self.deliver_soon()

    @property
    def _is_dead(self) -> bool:
        return self.lost or (self.process is not None and not self.process.alive)

    def write(self, data: Any) -> None:
        if self._is_dead or self._ending or not data:
            return
        self._buffer.append(bytes(data))
        self._buffered += len(data)
        self._pump()
        if self._buffered > self._high and not self._paused and isinstance(self.protocol, asyncio.BaseProtocol):
            self._paused = True
            self.protocol.pause_writing()

    def write_eof(self) -> None:
        self._ending = True
        self._pump()

    def close(self) -> None:
        if self._closing or self._is_dead:
            return
        self._closing = self._ending = True
        if any(piece for piece in self._inbox):  # unread input: the kernel resets the connection
            self.reset()
            self._lose(None)
            return
        self._pump()
        if not self._buffered:
            self._lose(None)

    def abort(self) -> None:
        if self._is_dead:
            return
        self._closing = True
        self.reset()
        self._lose(None)

    # ── on the way ──

    def _pump(self) -> None:
        """Send what fits the window."""
        random = self.loop.random
        while self._buffer and self._unread < WINDOW:
            piece = self._buffer.popleft()
            size = WINDOW - self._unread
            if random.random() < self.network.cutting:
                size = min(size, random.choice((1, 2, 3, 7, 20, 100, 1460)))
            if size < len(piece):
                self._buffer.appendleft(piece[size:])
                piece = piece[:size]
            self._buffered -= len(piece)
            self._unread += len(piece)
            self._send(piece)
        if self._ending and not self._buffer:
            self._ending_sent()
        if self._paused and self._buffered <= self._high // 4 and self.protocol is not None:
            self._paused = False
            self.protocol.resume_writing()
        if self._closing and not self._buffered and not self.lost:
            self._lose(None)

    def _ending_sent(self) -> None:
        if self._arrives >= 0:
            self._send(None)
            self._arrives = -1.0

    def _send(self, piece: bytes | None) -> None:
        if self.peer is None or self._arrives < 0:
            return
        delay = self.network.delay(self.address[0], self.peer.address[0])
        self._arrives = max(self._arrives + 1e-7, self.loop.now + delay)
        self.loop.call_at(self._arrives, self.peer.arrive, piece, context=self.peer.context)

    def arrive(self, piece: bytes | None) -> None:
        if self.lost or self._closing:
            if piece is not None:
                self.reset()
            return
        self._inbox.append(piece)
        if self.protocol is not None:
            self._deliver()

    def deliver_soon(self) -> None:
        self.loop.call_soon(self._deliver, context=self.context)

    def _deliver(self) -> None:
        protocol = self.protocol
        while self._inbox and self._reading and not self._closing and not self._is_dead:
            piece = self._inbox[0]
            if piece is None:
                self._inbox.popleft()
                assert isinstance(protocol, asyncio.BufferedProtocol)
                if not protocol.eof_received():
                    self.close()
                return
            assert isinstance(protocol, asyncio.BufferedProtocol)
            space = memoryview(protocol.get_buffer(len(piece)))
            count = min(len(space), len(piece))
            space[:count] = piece[:count]
            if count == len(piece):
                self._inbox.popleft()
            else:
                self._inbox[0] = piece[count:]
            if self.peer is not None:
                at = self.loop.now + self.network.delay(self.address[0], self.peer.address[0])
                self.loop.call_at(at, self.peer.was_read, count, context=self.peer.context)
            del space
            protocol.buffer_updated(count)

    def was_read(self, count: int) -> None:
        self._unread -= count
        if not self._is_dead:
            self._pump()

    # ── the end ──

    def reset(self) -> None:
        """The peer learns that this end is gone, and loses unread data."""
        peer = self.peer
        if peer is not None and not peer.lost:
            delay = self.network.delay(self.address[0], peer.address[0])
            self.loop.call_at(self.loop.now + delay, peer.was_reset, context=peer.context)

    def was_reset(self) -> None:
        if not self.lost:
            self._closing = True
            self._lose(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    def _lose(self, error: Exception | None) -> None:
        if self.lost:
            return
        self.lost = self._closing = True
        self.network.ends.pop(self, None)
        self._buffer.clear()
        self._buffered = 0
        if self.protocol is not None:
            self.loop.call_soon(self.protocol.connection_lost, error, context=self.context)

    def die(self, *, power: bool) -> None:
        """The process has ended. Its kernel sends what it has, then an end of the stream; without power it sends nothing."""
        self.network.ends.pop(self, None)
        if power:
            self.silent = True
            self.network.silent.append(self)
            return
        if any(piece for piece in self._inbox):
            self.reset()
        else:
            self._send(None)


class Network:
    """`cutting`: probability that a write is split into pieces. `slow`: probability of a long delay (a lost packet)."""

    def __init__(self, loop: "NetworkLoop") -> None:
        self.loop = loop
        self.sockets: dict[tuple[str, int], ListeningSocket] = {}
        self.ends: dict[End, None] = {}
        self.silent: list[End] = []
        self.cutting = 0.2
        self.slow = 0.01
        self.down: set[str] = set()  # hosts without power
        self._cut_until: dict[frozenset[str], float] = {}
        self._number = 1_000_000

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def delay(self, start: str, end: str) -> float:
        random = self.loop.random
        delay = 0.000_02 if start == end else random.expovariate(5_000.0)
        if start != end and random.random() < self.slow:
            delay += random.choice((0.02, 0.2, 0.2, 1.0))
        until = self._cut_until.get(frozenset((start, end)), 0.0)
        return max(0.0, until - self.loop.now) + delay

    def partition(self, one: str, other: str, seconds: float) -> None:
        """Hold back everything between two hosts for `seconds`."""
        self._cut_until[frozenset((one, other))] = self.loop.now + seconds

    def is_cut(self, one: str, other: str) -> bool:
        return self._cut_until.get(frozenset((one, other)), 0.0) > self.loop.now

    def heal(self) -> None:
        """No new delays; data held by a partition still waits for its end."""
        self._cut_until.clear()
        self.slow = 0.0

    def bound_sockets(self, host: str, port: int, *, reuse_port: bool = False) -> list[ListeningSocket]:
        if port == 0:
            port = FIRST_PORT + self.next_number() % 10_000
        if (host, port) in self.sockets:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        made = self.sockets[host, port] = ListeningSocket(self, (host, port))
        return [made]

    def break_connections(self, one: str, other: str) -> None:
        """Reset all connections between two hosts, at both ends."""
        for end in [end for end in self.ends if (end.address[0], end.peer_address[0]) == (one, other)]:
            end.reset()
            if end.peer is not None:
                end.peer.reset()

    def kill(self, process: Process, *, power: bool) -> None:
        """The process is dead from now on, and its ports are free."""
        process.alive = False
        for address, listening in list(self.sockets.items()):
            if listening.process is process:
                del self.sockets[address]
                for accepted in listening.pending:
                    accepted.end.reset()
        if power:
            self.down.add(process.host)
        for end in [end for end in self.ends if end.process is process]:
            end.die(power=power)

    def power_on(self, host: str) -> None:
        """The host is back: it resets old connections when their peers use them."""
        self.down.discard(host)
        for end in [end for end in self.silent if end.address[0] == host]:
            self.silent.remove(end)
            if end.peer is not None and not end.peer.lost:
                at = self.loop.now + self.loop.random.uniform(0.0, 2.0)
                self.loop.call_at(at, end.peer.was_reset, context=end.peer.context)

    async def dial(self, host: str, port: int) -> End:
        process = CURRENT.get()
        assert process is not None
        deadline = self.loop.now + DIAL_SECONDS
        while host in self.down or self.is_cut(process.host, host):
            if self.loop.now > deadline:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            await asyncio.sleep(self.loop.random.uniform(0.2, 1.0))
        await asyncio.sleep(self.delay(process.host, host) + self.delay(host, process.host))
        socket = self.sockets.get((host, port))
        if socket is None or not socket.is_open:
            raise Refused
        ours = (process.host, 30_000 + self.next_number() % 30_000)
        near = End(self, process, ours, (host, port))
        far = End(self, socket.process, (host, port), ours)
        reader = self.loop.watched.get(socket.fileno())
        near.peer, far.peer = far, near
        self.ends[near] = self.ends[far] = None
        if reader is not None:
            far.context = reader[2]
            socket.pending.append(Accepted(far))
            self.loop.call_soon(reader[0], *reader[1], context=reader[2])
        else:
            socket.pending.append(Accepted(far))
        return near


class NetworkLoop(SimulatedLoop):
    """The loop, with this network in place of sockets."""

    def __init__(self, seed: int, limit: int = 1 << 62) -> None:
        super().__init__(seed, limit)
        self.watched: dict[int, tuple[Callable[..., object], tuple[Any, ...], Context]] = {}
        self.network = Network(self)

    def add_reader(self, fd: Any, callback: Callable[[*Arguments], Any], *args: *Arguments) -> None:
        context = contextvars.copy_context()
        self.watched[fd] = (callback, args, context)
        for listening in self.network.sockets.values():
            if listening.fileno() == fd and listening.pending:
                self.call_soon(callback, *args, context=context)

    def remove_reader(self, fd: Any) -> bool:
        return self.watched.pop(fd, None) is not None

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **more: Any) -> Any:
        end = await self.network.dial(host, port)
        return self._connect(end, protocol_factory)

    async def connect_accepted_socket(self, protocol_factory: Any, sock: Any, **more: Any) -> Any:
        return self._connect(sock.end, protocol_factory)

    def _connect(self, end: End, factory: Callable[[], asyncio.BaseProtocol]) -> tuple[End, asyncio.BaseProtocol]:
        end.context = contextvars.copy_context()
        protocol = factory()
        end.set_protocol(protocol)
        protocol.connection_made(end)
        end.deliver_soon()
        return end, protocol
