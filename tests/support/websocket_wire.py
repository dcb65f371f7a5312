"""A RawLink inside a WebSocket, made of bytes: no WebSocket library is used, so that a fault in one cannot hide."""

import os
import socket
import ssl
import struct
import zlib

from support.raw_wire import ANSWER_TIMEOUT, RawLink

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455, 1.3
COMPRESSION = (
    b"Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n"
)


def upgrade_request(*more: bytes, path: bytes = b"/") -> bytes:
    """The request that opens a WebSocket; each of `more` is a whole header line."""
    lines = [
        b"GET " + path + b" HTTP/1.1\r\n",
        b"Host: localhost\r\n",
        b"Upgrade: websocket\r\n",
        b"Connection: Upgrade\r\n",
    ]
    return b"".join([*lines, b"Sec-WebSocket-Key: " + KEY + b"\r\nSec-WebSocket-Version: 13\r\n", *more, b"\r\n"])


def frame(
    payload: bytes,
    opcode: int = BINARY,
    *,
    fin: bool = True,
    rsv: int = 0,
    masked: bool = True,
    length: int | None = None,
) -> bytes:
    """One frame; `length` is what it claims to be long, when that is not the truth."""
    size = len(payload) if length is None else length
    head = bytes([fin << 7 | rsv << 4 | opcode])
    mark = masked << 7
    if size < 126:
        head += bytes([mark | size])
    elif size < 1 << 16:
        head += bytes([mark | 126]) + struct.pack("!H", size)
    else:
        head += bytes([mark | 127]) + struct.pack("!Q", size)
    if not masked:
        return head + payload
    key = os.urandom(4)
    mask = (key * (len(payload) // 4 + 1))[: len(payload)]
    return head + key + (int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")).to_bytes(len(payload), "big")


def deflated(data: bytes) -> bytes:
    """A message's payload as permessage-deflate has it."""
    packer = zlib.compressobj(wbits=-15)
    return (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]


class WebSocketLink(RawLink):
    """What is sent goes out in one masked binary frame; what is received comes out of the server's frames.

    `.response` is the answer to the request; `.closing` the status of a Close frame, once there was one.
    """

    def __init__(self, port: int, context: ssl.SSLContext | None = None, *headers: bytes, path: bytes = b"/") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), ANSWER_TIMEOUT)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname="localhost")
        self._unread = bytearray()
        self._frames = bytearray()
        self.closing: int | None = None
        self.pongs: list[bytes] = []
        try:
            self.send_bytes(upgrade_request(*headers, path=path))
            while b"\r\n\r\n" not in self._frames:
                chunk = self._socket.recv(65536)
                if not chunk:
                    raise EOFError(f"closed after {bytes(self._frames)!r}")
                self._frames += chunk
            end = self._frames.index(b"\r\n\r\n") + 4
            self.response = bytes(self._frames[:end])
            del self._frames[:end]
            self.compresses = b"permessage-deflate" in self.response
            self._unpack()
            self.greeting = self.receive_line() if self.response.startswith(b"HTTP/1.1 101") else b""
        except BaseException:
            self._socket.close()
            raise

    def send(self, data: bytes) -> None:
        if self.compresses:
            self.send_bytes(frame(deflated(data), rsv=4))
        else:
            self.send_bytes(frame(data))

    def send_bytes(self, data: bytes) -> None:
        """Raw bytes of frames."""
        super().send(data)

    def _receive(self) -> bool:
        try:
            chunk = self._socket.recv(65536)
        except (ConnectionResetError, ssl.SSLError):
            return False
        self._frames += chunk
        self._unpack()
        return bool(chunk)

    def _unpack(self) -> None:
        while len(self._frames) >= 2:
            size, start = self._frames[1] & 0x7F, 2
            if size == 126:
                start = 4
            elif size == 127:
                start = 10
            if len(self._frames) < start:
                return
            if start > 2:
                size = int.from_bytes(self._frames[2:start], "big")
            if len(self._frames) < start + size:
                return
            first, payload = self._frames[0], bytes(self._frames[start : start + size])
            del self._frames[: start + size]
            if first & 0x0F == CLOSE:
                self.closing = int.from_bytes(payload[:2], "big") if payload else 1005
            elif first & 0x0F == PONG:
                self.pongs.append(payload)
            else:
                self._unread += (
                    zlib.decompressobj(-15).decompress(payload + b"\0\0\xff\xff") if first & 0x40 else payload
                )
