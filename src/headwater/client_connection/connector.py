"""Makes conversations: dials one server of the pool after the other until one accepts the connection.

`server_pool` decides which server is tried when; this module waits, dials, shakes hands, and reports the outcome.
"""

import asyncio
import random

from headwater.client_connection.connection import Connection
from headwater.client_connection.conversation import Conversation
from headwater.client_connection.credentials import identity_of
from headwater.client_connection.events import AttemptFailed
from headwater.client_connection.options import ClientOptions
from headwater.client_connection.security import dial_server, upgrade_link
from headwater.client_connection.server_pool import ServerPool
from headwater.client_connection.server_url import ServerAddress
from headwater.errors import AuthorizationError, ConfigError, HeadwaterError, TransportError
from headwater.wire.handshake import ServerInfo


class Connector:
    """The connector of one `connection`: provides its first conversation and, as its `comeback`, all later ones."""

    def __init__(self, connection: Connection, pool: ServerPool, options: ClientOptions) -> None:
        self._connection = connection
        self._pool = pool
        self._options = options
        self._loop = asyncio.get_running_loop()

    @classmethod
    def prepare(cls, connection: Connection, addresses: list[ServerAddress], options: ClientOptions) -> "Connector":
        pool = ServerPool(addresses, options.policy, random.Random(), randomise=options.randomise)
        return cls(connection, pool, options)

    async def first(self) -> Conversation:
        """Try each server once. Raises the last failure when none accepts the connection."""
        failure: HeadwaterError | None = None
        for address in self._pool.addresses:
            try:
                return await self._attempt(address)
            except HeadwaterError as error:
                failure = error
        assert failure is not None
        raise failure

    async def again(self, lost: ServerAddress) -> tuple[Conversation, int]:
        self._pool.lost(lost, self._loop.time())
        attempts = 0
        failure: HeadwaterError = TransportError(
            "no server is left to try", hint="reconnect_attempts=None never gives up"
        )
        while (turn := self._pool.next(self._loop.time())) is not None:
            await asyncio.sleep(turn.wait)
            attempts += 1
            try:
                conversation = await self._attempt(turn.address)
            except HeadwaterError as error:
                failure = error
                refused = isinstance(error, AuthorizationError)
                self._pool.failed(turn.address, self._loop.time(), refused=refused)
                self._connection.events.emit(AttemptFailed(server=turn.address.url, reason=error))
                continue
            self._pool.succeeded(turn.address)
            return conversation, attempts
        raise failure

    def announced(self, info: ServerInfo, source: ServerAddress) -> tuple[str, ...]:
        urls = info.ws_connect_urls if source.is_websocket else info.connect_urls
        return tuple(address.url for address in self._pool.announced(urls, source))

    @property
    def servers(self) -> list[str]:
        """The URLs of all servers that may be tried, without credentials."""
        return [address.url for address in self._pool.addresses]

    async def _attempt(self, address: ServerAddress) -> Conversation:
        """Dial and shake hands within `connect_timeout`. Leaves nothing open when that fails."""
        connection, timeout = self._connection, self._options.connect_timeout
        conversation = Conversation(connection, connection.conversation_ended, address)
        connection.conversation = conversation
        try:
            async with asyncio.timeout(timeout):
                await self._shake_hands(conversation, address)
            if conversation.reason is not None:  # it was lost between its PONG and now
                raise conversation.reason
        except BaseException as error:
            if connection.conversation is conversation:
                connection.conversation = None
            if conversation.link is not None:
                conversation.link.abort()
            if isinstance(error, TimeoutError) and not isinstance(error, HeadwaterError):
                message = f"{address.where} did not complete the handshake within {timeout:g} s"
                raise TransportError(message, value=address.where, hint="is it a NATS server?") from error
            raise
        return conversation

    async def _shake_hands(self, conversation: Conversation, address: ServerAddress) -> None:
        options = self._options
        link = await dial_server(address, conversation, options)
        info = await conversation.greeted
        secure = address.scheme == "wss" or options.tls_first
        if not secure and not address.is_websocket and (info.tls_required or address.is_secure or options.wants_tls):
            if not (info.tls_required or info.tls_available):
                raise ConfigError(f"{address.where} does not offer TLS, and we insist on it", value=address.where)
            await upgrade_link(link, address, options)
            secure = True
        introduction = options.credentials.fill(options.introduction(), address, info.nonce)
        introduction.tls_required = secure
        conversation.identity = identity_of(introduction)
        await conversation.introduce(introduction)
