"""One connection to a server, logged in: requests out in the order of the calls, each answer to the call that waits for it.

TCP, TLS and WebSocket are one stream of frames; an answer repeats the number of its request, and may overtake others. Over
QUIC each request has a stream of its own.
There is no reconnect: when the connection is lost, everything in flight fails with ConnectionClosed, and `on_lost` is
called once.
"""

import asyncio
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from headwater.errors import ConnectionClosed, EnvironmentProblem, HeadwaterError, IggyError, RequestTimeout
from headwater.iggy_client.options import Options
from headwater.iggy_client.requests import Requests, body_of
from headwater.iggy_wire import vsr_frames
from headwater.iggy_wire.commands import Code
from headwater.iggy_wire.error_numbers import refusal
from headwater.net.expected_frame import ExpectedFrame
from headwater.net.layer import Layer, Stack
from headwater.net.link import LARGE_BYTES, Link
from headwater.net.tcp import dial

CLOSE_SECONDS: Final = 1.0
Read = Callable[[bytearray, int, int, bool], Any]
"""What reads an answer where it was received: the buffer, where the body lies in it, and whether the reader may keep the
buffer; it is written to again if not."""


def as_bytes(buffer: bytearray, start: int, end: int, owned: bool = False) -> bytes:
    """The body as it is."""
    return bytes(memoryview(buffer)[start:end])


class _Waiting(NamedTuple):
    read: Read
    answer: asyncio.Future[Any]


class Connection:
    """The owner of a link (`net.link.LinkOwner`), or of a QUIC connection. Made by `open_connection`."""

    def __init__(self, options: Options, on_lost: Callable[[HeadwaterError], None]) -> None:
        self.requests = Requests()
        self.channel: _Channel | None = None
        self._options = options
        self._on_lost = on_lost
        self._error: HeadwaterError | None = None
        self._loop = asyncio.get_running_loop()
        self._gone = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self._error is None and self.channel is not None

    async def request(self, code: Code, pieces: tuple[bytes | bytearray, ...], read: Read = as_bytes) -> Any:
        """Send a request; returns the result of `read` for the answer. Raises IggyError, ConnectionClosed, and
        RequestTimeout, after which the request may still be carried out."""
        channel = self.channel
        if channel is None or self._error is not None:
            raise self._error or ConnectionClosed("the client is not connected")
        waiting = _Waiting(read, self._loop.create_future())
        clock = self._loop.call_later(self._options.timeout, _expire, waiting.answer, code, self._options.timeout)
        try:
            head = self.requests.write(code, pieces)
            channel.ask(self.requests.number, (head, *pieces), waiting)
            return await waiting.answer
        finally:
            clock.cancel()

    def ended(self, error: Exception | None) -> None:
        """The connection is lost or unusable; called once."""
        if self._error is not None:
            return
        if isinstance(error, IggyError | ConnectionClosed):
            self._error = error
        else:
            self._error = ConnectionClosed(f"the connection was lost: {error or 'closed by the server'}")
        if self.channel is not None:
            self.channel.fail(self._error)
        self._on_lost(self._error)

    def gone(self) -> None:
        """The socket was closed."""
        self._gone.set()

    def close(self, why: HeadwaterError) -> None:
        """Close the connection; requests in flight fail with `why`."""
        self.ended(why)
        if self.channel is not None:
            self.channel.close()

    async def closed(self) -> None:
        """Wait until its socket is closed, after `close`: a peer that does not read holds it up for a second."""
        if self.channel is None:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._gone.wait()
        except TimeoutError:
            self.channel.abort()
            await self._gone.wait()


class _Channel(Protocol):
    """The transport of requests."""

    def ask(self, number: int, pieces: tuple[bytes | bytearray, ...], waiting: _Waiting) -> None: ...
    def fail(self, error: Exception) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


def _expire(answer: asyncio.Future[Any], code: Code, seconds: float) -> None:
    if not answer.done():
        text = f"no answer to {code.name.lower()} within {seconds:g} s"
        answer.set_exception(RequestTimeout(text, hint="it may have been carried out"))


def _answer(waiting: _Waiting, reply: vsr_frames.Reply, buffer: bytearray, owned: bool) -> None:
    if waiting.answer.done():
        return  # the call was cancelled, or has timed out
    try:
        body = body_of(reply, buffer)
        waiting.answer.set_result(waiting.read(buffer, body.start, body.end, owned))
    except HeadwaterError as error:
        waiting.answer.set_exception(error)
    except (struct.error, ValueError, LookupError) as error:
        waiting.answer.set_exception(refusal("invalid_format", f"the answer cannot be read: {error}"))


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
        waiting.answer.exception()  # retrieved: the call may have been cancelled


class StreamChannel:
    """Frames one behind the other on a link."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._link: Link | None = None
        self._waiting: dict[int, _Waiting] = {}  # by the numbers of the requests
        self._front = ExpectedFrame()

    def attach(self, link: Link) -> None:
        self._link = link

    def lost(self, error: Exception | None) -> None:
        self._link = None
        self._connection.ended(error)
        asyncio.get_running_loop().call_soon(self._connection.gone)  # the transport closes its socket behind this call

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Hand out complete replies; returns how far."""
        if self._front.is_incomplete(self._link, filled):
            return 0
        at = 0
        while at < filled:
            try:
                reply = vsr_frames.find_reply(buffer, at, filled)
                waiting = None if isinstance(reply, int) else self._take_waiting(reply.request)
            except IggyError as error:  # an eviction, or no frame: nothing behind it can be trusted
                self._connection.ended(error)
                if self._link is not None:
                    self._link.abort()
                return filled
            if isinstance(reply, int):
                self._front.expect(self._link, reply, filled - at)
                break
            if waiting is not None:
                _answer(waiting, reply, buffer, reply.end == filled and self._may_keep(reply.end - at))
            at = reply.end
        return at

    def _may_keep(self, size: int) -> bool:
        """Whether an answer of this size is left to its reader; a small one is copied sooner than its array replaced."""
        return size >= LARGE_BYTES and self._link is not None and self._link.leave(size)

    def _take_waiting(self, number: int) -> _Waiting:
        """The request that an answer is for. Raises IggyError: an answer to nothing could be taken for another's."""
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            raise refusal("error", f"the server answered request {number}, which waits for no answer", number)
        return waiting

    def ask(self, number: int, pieces: tuple[bytes | bytearray, ...], waiting: _Waiting) -> None:
        assert self._link is not None
        self._waiting[number] = waiting
        if sum(map(len, pieces)) >= LARGE_BYTES:
            self._link.send(pieces, at_once=True)
        else:
            for piece in pieces:
                self._link.output.append(bytes(piece))
        self._link.flush()

    def fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            _fail(one, error)

    def close(self) -> None:
        if self._link is not None:
            self._link.close()

    def abort(self) -> None:
        if self._link is not None:
            self._link.abort()


class QuicChannel:
    """A stream for each request (`net.quic_client.Owner`)."""

    def __init__(self, connection: Connection) -> None:
        self.link: Any = None
        self._connection = connection
        self._waiting: dict[int, _Waiting] = {}

    def answered(self, stream: int, data: bytearray) -> None:
        waiting = self._waiting.pop(stream, None)
        if waiting is None:
            return
        try:
            reply = vsr_frames.find_reply(data, 0, len(data))
        except IggyError as error:
            _fail(waiting, error)
            self._connection.ended(error)
            self.close()
            return
        if isinstance(reply, int):
            _fail(waiting, ConnectionClosed("the server ended the stream within its answer"))
        else:
            _answer(waiting, reply, data, owned=True)

    def lost(self, error: Exception | None) -> None:
        self._connection.ended(error)
        asyncio.get_running_loop().call_soon(self._connection.gone)  # as above

    def ask(self, number: int, pieces: tuple[bytes | bytearray, ...], waiting: _Waiting) -> None:
        self._waiting[self.link.ask(b"".join(pieces))] = waiting

    def fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            _fail(one, error)

    def close(self) -> None:
        if self.link is not None:
            self.link.abort()

    def abort(self) -> None:
        self.close()


async def open_connection(options: Options, on_lost: Callable[[HeadwaterError], None]) -> Connection:
    """A connection, not logged in. Raises TransportError, ConfigError, EnvironmentProblem for a package that is missing."""
    connection = Connection(options, on_lost)
    if options.transport == "quic":
        from headwater.net.quic_client import dial_quic

        channel = QuicChannel(connection)
        channel.link = await dial_quic(
            options.host,
            options.port,
            channel,
            options.timeout,
            options.tls_ca,
            options.server_name,
            options.tls_verify and bool(options.tls_ca or options.tls),
        )
        connection.channel = channel
        return connection
    stream = StreamChannel(connection)
    layer = _layer(options)
    link = await dial(options.host, options.port, stream, options.timeout, layer)
    connection.channel = stream
    if layer is not None:
        try:
            async with asyncio.timeout(options.timeout):
                await link.prepared()
        except BaseException:
            link.abort()
            raise
    return connection


def _layer(options: Options) -> Layer | None:
    layer: Layer | None = None
    context = options.context()
    if context is not None:
        from headwater.net.tls import TlsLayer

        layer = TlsLayer(context, server_side=False, server_hostname=options.server_name)
    if options.transport != "ws":
        return layer
    try:
        from headwater.net.websocket_client import WebSocketClientLayer
    except ImportError as error:
        raise EnvironmentProblem("iggy+ws:// needs wsproto", hint="pip install 'headwater[websocket]'") from error
    frames = WebSocketClientLayer(f"{options.host}:{options.port}", "/")
    return frames if layer is None else Stack(layer, frames)
