"""A TCP connection for programs without an event loop: every call has a deadline.

Deadlines are points on the `time.monotonic` clock, not durations, so that one deadline covers a whole exchange however
many reads it takes. When a deadline passes while reading, the result is `False`, because the caller may want to wait
longer; while connecting or writing it is a `TransportError`, because a connection with half an op sent is useless.

For code that cannot use asyncio: Spark's executors and its planner. It starts no threads. TLS is the standard library's
wrapper around the socket; bytes that it has already decrypted are read before waiting for the socket.
"""

import socket
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from headwater.errors import ConnectionClosed, HostUnknown, RequestTimeout, TlsRefused, TransportError
from headwater.wire.receive import ReceiveBuffer

if TYPE_CHECKING:
    from ssl import SSLContext

Place = TypeVar("Place")
Connected = TypeVar("Connected")

RECEIVE_SIZE: int = 1 << 20  # bytes per recv; a replay fills it, and fewer calls leave more CPU for decoding

# What OpenSSL calls refusals that stay as long as the settings of both sides do: what we found, and alerts of the peer.
LASTING_REASONS = (
    "CERTIFICATE_VERIFY_FAILED",
    "CERTIFICATE_REQUIRED",
    "WRONG_VERSION_NUMBER",
    "ALERT_ACCESS_DENIED",
    "ALERT_BAD_CERTIFICATE",
    "ALERT_CERTIFICATE_",
    "ALERT_HANDSHAKE_FAILURE",
    "ALERT_PROTOCOL_VERSION",
    "ALERT_UNKNOWN_CA",
    "ALERT_UNSUPPORTED_CERTIFICATE",
)


def deadline_after(seconds: float) -> float:
    """The deadline `seconds` from now."""
    return time.monotonic() + seconds


_resolved: set[str] = set()
"""Hosts that had an address. One of them may lose it while its server restarts, as the pods of Kubernetes do."""


def first_that_answers(places: Iterable[Place], connect: Callable[[Place], Connected]) -> Connected:
    """What `connect` returns for the first place where it does not fail; there is at least one. Raises the last
    TransportError or RequestTimeout that may pass, or one that may not where none may."""
    failure: TransportError | RequestTimeout | None = None
    for place in places:
        try:
            return connect(place)
        except (TransportError, RequestTimeout) as error:
            if failure is None or error.retriable:
                failure = error
    assert failure is not None
    raise failure


class BlockingConnection:
    """One TCP connection. Not for use by two threads at once."""

    def __init__(self, peer: socket.socket, address: str) -> None:
        self._socket = peer
        self.address = address
        self.received = ReceiveBuffer(RECEIVE_SIZE)
        self.closed = False
        # raised when nothing has arrived in time; a TLS socket raises a different error
        self._not_yet: tuple[type[OSError], ...] = (TimeoutError, BlockingIOError)

    @classmethod
    def dial(cls, host: str, port: int, deadline: float) -> Self:
        """Connect. Raises TransportError if that fails or misses the deadline, HostUnknown for a name without an address."""
        address = f"{host}:{port}"
        try:
            peer = socket.create_connection((host, port), timeout=max(deadline - time.monotonic(), 0.001))
        except (socket.gaierror, UnicodeError) as error:  # the latter for a name with an empty label
            kind = TransportError if host in _resolved else HostUnknown
            raise kind(f"cannot connect to {address}: the name does not resolve: {error}", value=address) from error
        except OSError as error:
            _resolved.add(host)
            raise TransportError(f"cannot connect to {address}: {error}", value=address) from error
        _resolved.add(host)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(peer, address)

    def secure(self, context: "SSLContext", name: str, deadline: float) -> None:
        """Start TLS with a server whose certificate must be for `name`. On failure closes the connection and raises
        TransportError, TlsRefused where that will not pass.
        """
        import ssl

        self._check_open()
        self._not_yet = (TimeoutError, BlockingIOError, ssl.SSLWantReadError)
        try:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            self._socket = context.wrap_socket(self._socket, server_hostname=name)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            self.close()
            raise failed(f"no TLS with {self.address}", error, self.address) from error

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of `data`. On failure closes the connection and raises TransportError."""
        self._check_open()
        try:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            self._socket.sendall(data)
        except OSError as error:
            self.close()
            raise failed(f"lost {self.address} while writing", error, self.address) from error

    def receive(self, deadline: float) -> bool:
        """Wait for bytes and add them to `received`; False if none arrived in time.

        After the deadline, bytes that have already arrived are still read. Raises TransportError if the connection was
        closed or lost, TlsRefused if the peer does not accept our certificate: with TLS 1.3 it says so after the handshake.
        """
        self._check_open()
        try:
            self._socket.settimeout(max(deadline - time.monotonic(), 0))
            count = self._socket.recv_into(self.received.writable())
        except self._not_yet:
            return False
        except OSError as error:
            self.close()
            raise failed(f"lost {self.address} while reading", error, self.address) from error
        if count == 0:
            self.close()
            raise TransportError(f"{self.address} closed the connection", value=self.address)
        self.received.received(count)
        return True

    def close(self) -> None:
        """Close at once and discard unread bytes. Safe to call again."""
        self.closed = True
        self._socket.close()

    def _check_open(self) -> None:
        if self.closed:
            raise ConnectionClosed(f"the connection to {self.address} is closed", value=self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def failed(what: str, error: Exception, address: str) -> TransportError:
    """The error of a connection for one of the socket or of OpenSSL."""
    reason = str(getattr(error, "reason", ""))  # of OpenSSL's; sockets have none
    kind = TlsRefused if any(each in reason for each in LASTING_REASONS) else TransportError
    return kind(f"{what}: {error}", value=address)
