"""A TCP proxy that cuts each connection after a number of bytes from one side: in order, or by a reset."""

import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class CutProxy:
    """Listens at `.url`; `cuts` counts the connections that it has cut. `allowance`: bytes from the server, or, with
    `of_client`, from the client."""

    def __init__(self, port: int, allowance: int, *, of_client: bool = False, reset: bool = False) -> None:
        self._of_client = of_client
        self._reset = reset
        self._target = ("127.0.0.1", port)
        self._allowance = allowance
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            ways = [(client, server), (server, client)]
            counted = 0 if self._of_client else 1
            threading.Thread(target=_pump, args=ways[1 - counted], daemon=True).start()
            threading.Thread(target=self._pump_and_cut, args=(*ways[counted], client, server), daemon=True).start()

    def _pump_and_cut(
        self, source: socket.socket, target: socket.socket, client: socket.socket, server: socket.socket
    ) -> None:
        left = self._allowance
        with server, client, suppress(OSError):  # either side may close first
            while left > 0:
                data = source.recv(min(left, 65536))
                if not data:
                    return
                target.sendall(data)
                left -= len(data)
            self.cuts += 1
            if self._reset:
                client.shutdown(socket.SHUT_RD)  # wakes the other thread; a socket in use is not closed
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                client.shutdown(socket.SHUT_RDWR)
            server.shutdown(socket.SHUT_RDWR)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
