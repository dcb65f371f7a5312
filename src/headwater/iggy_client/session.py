"""A session with a server that survives lost connections: logs in, reconnects, and joins groups again.

    request ─▶ connected? ─▶ Connection.request                 lost ─▶ dial, log in, join the groups again ─▶ connected
                  └─ waits while it is being restored, `timeout` seconds at most

Idempotent requests in flight when the connection was lost (polls, descriptions, stored offsets) are repeated. All
others fail with ConnectionClosed, because they may have been carried out. Wrong credentials end the session, at the
first log-in or a later one.
"""

import asyncio
import logging
from typing import Any

from headwater.errors import ConnectionClosed, HeadwaterError, IggyError, RequestTimeout, TransportError
from headwater.iggy_client.connection import Connection, Read, as_bytes, open_connection
from headwater.iggy_client.options import Options
from headwater.iggy_client.requests import is_replicated, login_of
from headwater.iggy_wire import command_codec, reply_codec
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Code, Command
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.reply_codec import LoginView

logger = logging.getLogger(__name__)

_REPEATABLE = (Code.STORE_OFFSET, Code.DELETE_OFFSET)


class Session:
    """See the head of this module. `reconnects`: the number of reconnects; `user_id`: that of the user."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.user_id = 0
        self.reconnects = 0
        self._login: c.Login | c.LoginWithToken | None = None
        self._connection: Connection | None = None
        self._joined: dict[Command, None] = {}
        self._over: HeadwaterError | None = None
        self._revival: asyncio.Task[None] | None = None
        self._heart: asyncio.Task[None] | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the session is connected and logged in."""
        return self._connection is not None

    async def start(self, log_in: bool) -> None:
        """The first connection. Raises TransportError, ConfigError, and IggyError when the server refuses."""
        options = self.options
        if log_in:
            self._login = login_of(options.username, options.password, options.token)
        self._connection = await self._connect()
        if options.heartbeat:
            self._heart = asyncio.create_task(self._beat(options.heartbeat))

    async def log_in(self, login: c.Login | c.LoginWithToken) -> None:
        """Log in on the present connection, and on each later one. Raises IggyError."""
        await self._introduce(await self._connected(), login)
        self._login = login

    async def log_out(self) -> None:
        """Without a user from now on; groups are left."""
        await self.execute(c.Logout())
        self._login = None
        self._joined.clear()

    async def execute(self, command: Command) -> Any:
        """Any command of `commands`, and its view; None for an empty answer. Raises IggyError, TransportError."""
        code, body = command_codec.encode(command, Era.V)
        view = reply_codec.decode(code, await self.request(code, (body,)), Era.V)
        if isinstance(command, c.JoinGroup):
            self._joined[command] = None
        elif isinstance(command, c.LeaveGroup):
            self._joined.pop(c.JoinGroup(command.stream, command.topic, command.group), None)
        return view

    async def request(self, code: Code, pieces: tuple[bytes | bytearray, ...], read: Read = as_bytes) -> Any:
        """As `Connection.request`, over whatever connection there is."""
        connection = await self._connected()
        try:
            return await connection.request(code, pieces, read)
        except ConnectionClosed:
            if self._over is not None or (is_replicated(code) and code not in _REPEATABLE):
                raise
            return await (await self._connected()).request(code, pieces, read)

    async def close(self) -> None:
        """End it; what is in flight fails. Safe to call again."""
        if self._over is None:
            self._over = ConnectionClosed("the client was closed")
        tasks = [task for task in (self._heart, self._revival) if task is not None]
        for task in tasks:
            task.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(self._over)
            await connection.closed()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self) -> Connection:
        if self._revival is not None and self._connection is None:
            try:
                async with asyncio.timeout(self.options.timeout):
                    await asyncio.shield(self._revival)
            except TimeoutError:
                raise RequestTimeout(
                    f"no server within {self.options.timeout:g} s", value=f"{self.options.host}:{self.options.port}"
                ) from None
            except asyncio.CancelledError:
                if self._over is None:
                    raise
        if self._connection is None:
            raise self._over or ConnectionClosed("the client is not connected")
        return self._connection

    async def _connect(self) -> Connection:
        connection = await open_connection(self.options, self._lost)
        try:
            if self._login is not None:
                await self._introduce(connection, self._login)
                for joined in list(self._joined):
                    await self._join_again(connection, joined)
        except BaseException:
            connection.close(ConnectionClosed("the log-in failed"))
            await connection.closed()
            raise
        return connection

    async def _introduce(self, connection: Connection, login: c.Login | c.LoginWithToken) -> None:
        code, body = command_codec.encode(login, Era.V)
        view: LoginView = reply_codec.decode(code, await connection.request(code, (body,)), Era.V)
        self.user_id, connection.requests.login = view.user_id, view.login

    async def _join_again(self, connection: Connection, joined: Command) -> None:
        code, body = command_codec.encode(joined, Era.V)
        try:
            await connection.request(code, (body,))
        except IggyError as error:
            self._joined.pop(joined, None)
            logger.warning("iggy_group_not_joined_again command=%s reason=%s", joined, error)

    def _lost(self, error: HeadwaterError) -> None:
        """A connection ended: this one, or one that is just being made, whose maker gets the error."""
        if self._connection is None or self._connection.is_open:
            return
        self._connection = None
        if self._over is not None:
            return
        if self.options.reconnect_attempts == 0 or self._login is None:
            self._over = error
            return
        logger.info("iggy_connection_lost server=%s:%s reason=%s", self.options.host, self.options.port, error)
        self._revival = asyncio.get_running_loop().create_task(self._revive())

    async def _revive(self) -> None:
        attempts, most = 0, self.options.reconnect_attempts
        while True:
            attempts += 1
            try:
                self._connection = await self._connect()
            except (TransportError, RequestTimeout) as error:
                if most is not None and attempts >= most:
                    self._over = error
                    return
                await asyncio.sleep(self.options.reconnect_wait)
                continue
            except HeadwaterError as error:  # it refuses us, or has become one that we cannot use
                self._over = error
                return
            if self._connection.is_open:
                self.reconnects += 1
                return
            self._connection = None

    async def _beat(self, seconds: float) -> None:
        """Ping periodically, to detect a dead peer and keep the session alive at the server."""
        while self._over is None:
            await asyncio.sleep(seconds)
            connection = self._connection
            if connection is None:
                continue
            try:
                await connection.request(Code.PING, (b"",))
            except RequestTimeout as error:
                connection.close(ConnectionClosed(f"the server does not answer: {error}"))
            except HeadwaterError:
                pass  # it was lost meanwhile, or there was no log-in yet
