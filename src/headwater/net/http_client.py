"""HTTP/1.1 requests over persistent connections: as much as a client of a JSON API needs.

    ask ─▶ an idle connection, or a new one ─▶ head and body out, head and body in ─▶ idle again, if the server allows

One connection carries one request at a time, so there are as many connections as concurrent requests. A connection that
was idle for longer than IDLE_SECONDS is not reused, because the server may be closing it. Redirects are not followed
and nothing is compressed. Requests are not retried: only the caller knows whether that is safe.
"""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import h11

from headwater.errors import ConnectionClosed, RequestTimeout, TransportError

IDLE_SECONDS: Final = 3.0
CLOSE_SECONDS: Final = 1.0
MAX_ANSWER: Final = 1 << 30  # bytes of a body
READ_SIZE: Final = 1 << 16


class Answer(NamedTuple):
    """A status and a body."""

    status: int
    body: bytes


class _Kept(NamedTuple):
    state: h11.Connection
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    since: float


class HttpConnections:
    """All connections to one server. `timeout`: seconds for each request, connecting included."""

    def __init__(self, host: str, port: int, timeout: float, tls: ssl.SSLContext | None, server_name: str) -> None:
        self.where = f"{host}:{port}"
        self._host = host
        self._port = port
        self._timeout = timeout
        self._tls = tls
        self._server_name = server_name
        self._idle: list[_Kept] = []
        self._open: set[asyncio.StreamWriter] = set()
        self._closed = False

    async def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        """Send one request and return its answer. Raises TransportError if no connection can be made; after
        ConnectionClosed and RequestTimeout the server may have executed the request.
        """
        try:
            async with asyncio.timeout(self._timeout):
                kept = self._take() or await self._connect()
                try:
                    return await self._exchange(kept, method, target, headers, body)
                except BaseException:
                    self._drop(kept)
                    raise
        except TimeoutError as error:
            if isinstance(error, TransportError):
                raise
            raise RequestTimeout(
                f"no answer to {method} {target.partition('?')[0]} within {self._timeout:g} s",
                hint="it may have been carried out",
            ) from None

    async def close(self) -> None:
        """Close every connection; running requests fail with ConnectionClosed."""
        self._closed = True
        self._idle.clear()
        gone, self._open = self._open, set()
        for writer in gone:
            writer.close()
        for writer in gone:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await writer.wait_closed()

    def _take(self) -> _Kept | None:
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while self._idle:
            kept = self._idle.pop()
            if kept.since > oldest and not kept.reader.at_eof() and not kept.writer.is_closing():
                return kept
            self._drop(kept)
        return None

    def _drop(self, kept: _Kept) -> None:
        kept.writer.close()  # the writer stays in `_open`, so that `close` waits for its socket

    async def _connect(self) -> _Kept:
        if self._closed:
            raise ConnectionClosed("the client was closed")
        name = self._server_name if self._tls is not None else None
        try:
            opening = asyncio.open_connection(self._host, self._port, ssl=self._tls, server_hostname=name)
            reader, writer = await opening
        except (OSError, OverflowError) as error:
            raise TransportError(
                f"cannot connect to {self.where}: {error}", value=self.where, hint="is a server listening there?"
            ) from error
        self._open = {one for one in self._open if not one.is_closing()} | {writer}
        return _Kept(h11.Connection(h11.CLIENT), reader, writer, 0.0)

    async def _exchange(self, kept: _Kept, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        state, reader, writer, _ = kept
        sent = [("Host", self.where), *headers.items(), ("Content-Length", str(len(body)))]
        try:
            writer.write(state.send(h11.Request(method=method, target=target, headers=sent)) or b"")
            writer.write(state.send(h11.Data(data=body)) or b"")
            writer.write(state.send(h11.EndOfMessage()) or b"")
            await writer.drain()
            answer = await self._read(state, reader)
        except h11.RemoteProtocolError as error:
            raise ConnectionClosed(f"{self.where} answered what is no HTTP: {error}") from error
        except OSError as error:
            raise ConnectionClosed(f"the connection to {self.where} was lost: {error}") from error
        if state.our_state is h11.DONE and state.their_state is h11.DONE and not self._closed:
            state.start_next_cycle()
            self._idle.append(kept._replace(since=asyncio.get_running_loop().time()))
        else:
            self._drop(kept)
        return answer

    async def _read(self, state: h11.Connection, reader: asyncio.StreamReader) -> Answer:
        status, body = 0, bytearray()
        while True:
            event = state.next_event()
            if event is h11.NEED_DATA:
                data = await reader.read(READ_SIZE)
                if not data and not status:
                    raise ConnectionClosed(f"{self.where} closed the connection before it answered")
                state.receive_data(data)
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MAX_ANSWER:
                    raise ConnectionClosed(f"{self.where} answers more than {MAX_ANSWER} bytes")
            elif isinstance(event, h11.EndOfMessage):
                return Answer(status, bytes(body))
