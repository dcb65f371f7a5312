"""A RawLink inside TLS: begun after the clear INFO, or before the first byte."""

import socket
import ssl

from support.certificates import Certificates
from support.raw_wire import ANSWER_TIMEOUT, RawLink


class TlsLink(RawLink):
    """Raises ssl.SSLError or ConnectionError when the server does not go along. `.greeting` is the INFO, as always.

    `first`: the handshake comes before anything else, and INFO inside.
    """

    def __init__(self, port: int, context: ssl.SSLContext, *, first: bool = False) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), ANSWER_TIMEOUT)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread = bytearray()
        try:
            if not first:
                self.greeting = self.receive_line()
            self._socket = context.wrap_socket(self._socket, server_hostname="localhost")
            if first:
                self.greeting = self.receive_line()
        except BaseException:
            self._socket.close()
            raise

    @property
    def version(self) -> str:
        """The version of TLS that is spoken."""
        assert isinstance(self._socket, ssl.SSLSocket)
        return self._socket.version() or ""


def trusting(certificates: Certificates, *, owner: str = "", newest: bool = True) -> ssl.SSLContext:
    """A client's context. `owner`: "client" or "stranger" shows that certificate. `newest` False: TLS 1.2 only."""
    context = ssl.create_default_context(cafile=str(certificates.ca))
    if owner:
        files = {
            "client": (certificates.client_cert, certificates.client_key),
            "stranger": (certificates.stranger_cert, certificates.stranger_key),
        }
        context.load_cert_chain(*files[owner])
    if not newest:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context
