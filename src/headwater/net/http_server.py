"""uvicorn behind our own listener, so that the limits of `net.limits` apply to it as to every other server.

    Listener ─ connections, per address ─▶ BoundedHttp ─ login_seconds, login_bytes for a request's head ─▶ the application

uvicorn's own server retries accept without a pause when descriptors run out, has no limit per address, and waits for
the rest of a request without a timeout. Here a head that is not complete `login_seconds` after its first byte, or after
the connection was made, gets a 408 response, and the connection is closed. The application limits the time for a body,
because only it checks authentication.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from headwater.net.limits import Limits
from headwater.net.listening import HTTP_FAREWELL, Listener, bound_sockets

TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class BoundedHttp(H11Protocol):
    """One connection."""

    def __init__(self, limits: Limits, **options: Any) -> None:
        super().__init__(**options)
        self.on_end: Callable[[], object] | None = None
        self._limits = limits
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._time_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timing()
        super().connection_lost(exc)
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()

    def _time_head(self) -> None:
        """Start the timer for a request's head, or stop it when the head is complete."""
        if self.conn.their_state is not h11.IDLE:
            self._stop_timing()
        elif self._deadline is None and self._limits.login_seconds:
            self._deadline = self.loop.call_later(self._limits.login_seconds, self._late)

    def _stop_timing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.write(TOO_SLOW)
            self.transport.close()


class HttpServer(uvicorn.Server):
    """Made by `serve`; `listener` accepts its connections."""

    def __init__(self, config: uvicorn.Config, host: str, port: int, limits: Limits) -> None:
        config.load()
        super().__init__(config)
        farewell = b"" if config.ssl is not None else HTTP_FAREWELL
        self.listener = Listener(bound_sockets(host, port), self._make_protocol, limits, farewell, config.ssl)
        self._limits = limits
        self._task: asyncio.Task[None] | None = None

    async def startup(self, sockets: Any = None) -> None:
        """As uvicorn's, but the listener accepts."""
        await self.lifespan.startup()
        self.servers = [self.listener]  # type: ignore[list-item]
        self.listener.open()
        self.started = True

    async def begin(self) -> None:
        """Start accepting."""
        self._task = asyncio.create_task(self._serve())
        while not self.started and not self._task.done():
            await asyncio.wait([self._task], timeout=0.001)  # uvicorn has no event for this
        if self._task.done():
            await self._task

    async def end(self) -> None:
        """Answer received requests within uvicorn's grace period, then end all connections."""
        self.should_exit = True
        if self._task is not None:
            await self._task

    def _make_protocol(self) -> BoundedHttp:
        return BoundedHttp(
            self._limits, config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )


async def serve(
    app: Any, host: str, port: int, limits: Limits, cert_file: str | None = None, key_file: str | None = None
) -> HttpServer:
    """Serve an ASGI application. Raises EnvironmentProblem when the address cannot be bound."""
    config = uvicorn.Config(
        app,
        log_config=None,
        lifespan="off",
        access_log=False,
        ssl_certfile=cert_file,
        ssl_keyfile=key_file,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=limits.login_bytes or None,
    )
    server = HttpServer(config, host, port, limits)
    await server.begin()
    return server
