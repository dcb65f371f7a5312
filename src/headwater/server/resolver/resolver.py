"""The resolver of a running broker: finds the JWTs of accounts and applies new ones.

    memory   the JWTs of the configuration; a push changes an account until the next start. Workers share a directory of
             what was pushed, which their parent makes and removes
    full     a directory with all accounts: pushes are kept, what is missing is asked from the other servers
    cache    a directory with those that were used here: what is missing is asked from the other servers
    url      what is missing is fetched by HTTP, `<url><public key>`

A JWT is accepted only if a trusted operator has signed it and it is not older than the stored one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError, RemoteProtocolError
from headwater.model.nkey import NkeyKind, decode_nkey
from headwater.options.access import ResolverOptions
from headwater.server.resolver.directory import AccountDirectory
from headwater.wire.jwt import MAX_JWT_BYTES, Token, decode_account

if TYPE_CHECKING:
    from ssl import SSLContext

    from headwater.authorization.operator import Trust

logger = logging.getLogger(__name__)

Ask = Callable[[str], Awaitable[str]]
"""The JWT of an account from the other servers; empty when none has it."""


class Resolver:
    """`changed()` is called when an account is added, gets another JWT or is removed. Raises ConfigError for a
    directory that cannot be used, and for the files of `resolver_tls`."""

    def __init__(self, options: ResolverOptions, trust: "Trust", changed: Callable[[str], None]) -> None:
        self.options = options
        self._trust = trust
        self._changed = changed
        self.directory = (
            AccountDirectory(Path(options.directory), limit=options.limit, hard_delete=options.hard_delete)
            if options.directory
            else None
        )
        self._tls = _tls_context(options) if options.speaks_tls else None
        self.ask: Ask | None = None  # set when the system account is there
        self._seeking: dict[str, asyncio.Task[None]] = {}

    def load(self) -> None:
        """Load the directory, and store newer JWTs of the configuration in it. An invalid JWT is logged and left
        out. That of a resolver in memory has only what was pushed, to accounts of the configuration, which may have been
        loaded again since: with a newer JWT, or without the account."""
        if self.directory is None:
            return
        configured = self._trust.tokens
        in_memory = self.options.kind == "memory"
        for key, token in configured.items() if not in_memory else ():
            if self.directory.get(key) != token and not self._is_older(token, self.directory.get(key)):
                self.directory.save(key, token)
        for key, token in self.directory.tokens.items():
            if in_memory and (key not in configured or self._is_older(token, configured[key])):
                continue
            try:
                self._trust.learn(key, token)
            except HeadwaterError as error:
                logger.warning("account_jwt_refused account=%s reason=%s", key, error)

    def take(self, key: str, token: str, *, synced: bool = True) -> None:
        """Take an account's new JWT. Raises RemoteProtocolError, ConfigError or EnvironmentProblem, and then changes
        nothing. `synced`: see `AccountDirectory.save`."""
        before = self._trust.tokens.get(key, "")
        if before == token:
            return
        if self._is_older(token, before):
            raise RemoteProtocolError("an account JWT that is newer is known")
        self._trust.check(key, token)
        if self.directory is not None:
            self.directory.save(key, token, synced=synced and self.options.kind != "memory")
        self._trust.learn(key, token)
        logger.info("account_jwt_updated account=%s", key)
        self._changed(key)

    def drop(self, key: str) -> bool:
        """Remove an account; False when it is unknown. Raises EnvironmentProblem."""
        known = self.directory.delete(key) if self.directory is not None else key in self._trust.tokens
        if known:
            self._trust.forget(key)
            logger.info("account_jwt_deleted account=%s", key)
            self._changed(key)
        return known

    def find(self, key: str, then: Callable[[], None]) -> None:
        """Look for an unknown account, then call `then`, found or not."""
        task = self._seeking.get(key)
        if task is None:
            task = self._seeking[key] = asyncio.get_running_loop().create_task(self._find(key))
            task.add_done_callback(lambda _: self._seeking.pop(key, None))
        task.add_done_callback(lambda task: None if task.cancelled() else then())

    async def seek(self, key: str) -> None:
        """As `find`, to be awaited."""
        await self._find(key)

    def stop(self) -> None:
        """Stop looking for accounts."""
        for task in [*self._seeking.values()]:
            task.cancel()

    async def _find(self, key: str) -> None:
        if decode_nkey(key, NkeyKind.ACCOUNT) is None:
            return
        try:
            async with asyncio.timeout(self.options.timeout):
                if self.options.url:
                    token = await asyncio.to_thread(fetch, self.options.url + key, self.options.timeout, self._tls)
                elif self.ask is not None:
                    token = await self.ask(key)
                else:
                    return
            if token:
                self.take(key, token.strip())
        except TimeoutError:
            logger.warning("account_jwt_missing account=%s reason=no answer in %g s", key, self.options.timeout)
        except (HeadwaterError, OSError, ValueError) as error:
            logger.warning("account_jwt_missing account=%s reason=%s", key, error)

    @staticmethod
    def _is_older(token: str, than: str) -> bool:
        """Whether one JWT was issued before the other; one that cannot be read is older than any."""
        moments = []
        for each in (token, than):
            try:
                moments.append(decode_account(each)[0].issued)
            except RemoteProtocolError:
                moments.append(-1)
        return moments[0] < moments[1]


def _tls_context(options: ResolverOptions) -> "SSLContext":
    """Raises ConfigError for files that cannot be used."""
    from headwater.net.tls import client_context

    return client_context(options.ca_file, options.cert_file, options.key_file, verify=not options.insecure)


def fetch(url: str, seconds: float, tls: "SSLContext | None" = None) -> str:
    """The JWT at a URL. Raises OSError or ValueError, which do not quote a password in the URL."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    if not url.startswith(("http://", "https://")):
        raise ValueError("the resolver's URL is neither http nor https")
    try:
        with urlopen(Request(url, headers={"Accept": "application/jwt"}), timeout=seconds, context=tls) as answer:
            body: bytes = answer.read(MAX_JWT_BYTES + 1)
    except HTTPError as error:
        raise OSError(f"the resolver's URL answers {error.code}") from None
    except URLError as error:
        raise OSError(f"the resolver's URL cannot be read: {error.reason}") from None
    return body.decode("ascii")


def issued_about(token: str) -> Token:
    """The claims of a pushed JWT. Raises RemoteProtocolError."""
    return decode_account(token)[0]
