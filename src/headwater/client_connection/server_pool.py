"""Decides which server to try next, and when. Pure: clock and randomness are arguments.

    given    the servers that the program named; they stay for as long as they take our credentials
    found    the servers that a server's INFO named (`connect_urls`); they go when it no longer names them

A server that fails waits before its next turn: `first_wait`, doubled with each failure in a row up to `longest_wait`,
and a random part of `jitter` on top, so that ten thousand clients of a dead server do not reconnect at one moment.
Servers take turns: one that may be tried now comes before one that has to wait, the longest untried first. The one that
was just lost comes last, but need not wait for its first attempt more than the jitter.

A server is given up after `attempts` failures in a row (None: never), and after it has refused the credentials twice in
a row. When none is left, `next` returns None.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

from headwater.client_connection.server_url import ServerAddress, parse_server_url
from headwater.errors import ConfigError

REFUSALS = 2  # of our credentials, in a row


class ReconnectPolicy(NamedTuple):
    """Seconds, and how many attempts for each server in a row; `attempts` None: for ever."""

    attempts: int | None = None
    first_wait: float = 0.05
    longest_wait: float = 4.0
    jitter: float = 0.1

    def wait_after(self, failures: int, dice: Random) -> float:
        """Seconds to wait before trying a server that failed `failures` times in a row."""
        backoff = 0.0 if failures == 0 else min(self.first_wait * 2.0 ** min(failures - 1, 32), self.longest_wait)
        return backoff + dice.random() * self.jitter


class _Server:
    def __init__(self, address: ServerAddress, *, found: bool = False) -> None:
        self.address = address
        self.found = found
        self.failures = 0
        self.refusals = 0
        self.not_before = 0.0


class Attempt(NamedTuple):
    """Try `address`, `wait` seconds from now."""

    address: ServerAddress
    wait: float


class ServerPool:
    """The servers, in the order of their turns."""

    def __init__(
        self, addresses: Sequence[ServerAddress], policy: ReconnectPolicy, dice: Random, *, randomise: bool = False
    ) -> None:
        self._policy = policy
        self._dice = dice
        self._randomise = randomise
        self._servers = [_Server(address) for address in dict.fromkeys(addresses)]
        if randomise:
            dice.shuffle(self._servers)

    def __len__(self) -> int:
        return len(self._servers)

    @property
    def addresses(self) -> list[ServerAddress]:
        """All servers that may still be tried, in the order of their turns."""
        return [server.address for server in self._servers]

    def next(self, now: float) -> Attempt | None:
        """The next attempt at `now` (seconds, any origin); None when every server has been given up."""
        if not self._servers:
            return None
        chosen = min(self._servers, key=lambda server: max(server.not_before, now))  # the first of equals
        return Attempt(chosen.address, max(0.0, chosen.not_before - now))

    def failed(self, address: ServerAddress, now: float, *, refused: bool = False) -> None:
        """An attempt failed; `refused` when the server refused the credentials."""
        server = self._to_the_back(address)
        if server is None:
            return
        server.failures += 1
        server.refusals = server.refusals + 1 if refused else 0
        limit = self._policy.attempts
        if server.refusals >= REFUSALS or (limit is not None and server.failures >= limit):
            self._servers.remove(server)
        server.not_before = now + self._policy.wait_after(server.failures, self._dice)

    def succeeded(self, address: ServerAddress) -> None:
        """The server accepted the connection."""
        server = self._find(address)
        if server is not None:
            server.failures = server.refusals = 0

    def lost(self, address: ServerAddress, now: float) -> None:
        """The connection to the server ended: it is tried again, after all others."""
        server = self._to_the_back(address)
        if server is not None:
            server.not_before = now + self._policy.wait_after(0, self._dice)

    def announced(self, urls: Iterable[str], source: ServerAddress) -> list[ServerAddress]:
        """A server announced its cluster: add the new servers, remove discovered ones that it does not announce any more.

        An empty announcement changes nothing. New servers get the scheme and the credentials of the announcing one.
        Returns the new ones; an invalid URL is skipped.
        """
        named: list[ServerAddress] = []
        for url in urls:
            try:
                read = parse_server_url(url)
            except ConfigError:
                continue
            # Servers announce each other by IP address, for which certificates are rarely valid.
            verify_as = source.verify_as or source.host
            named.append(source._replace(host=read.host, port=read.port, verify_as=verify_as))
        if not named:
            return []
        places = {(address.host, address.port) for address in named}
        here = (source.host, source.port)
        self._servers = [
            server for server in self._servers if not server.found or _place(server) in places or _place(server) == here
        ]
        known = {_place(server) for server in self._servers}
        new = [address for address in dict.fromkeys(named) if (address.host, address.port) not in known]
        if self._randomise:
            self._dice.shuffle(new)
        self._servers += [_Server(address, found=True) for address in new]
        return new

    def _find(self, address: ServerAddress) -> _Server | None:
        return next((server for server in self._servers if server.address == address), None)

    def _to_the_back(self, address: ServerAddress) -> _Server | None:
        server = self._find(address)
        if server is not None:
            self._servers.remove(server)
            self._servers.append(server)
        return server


def _place(server: _Server) -> tuple[str, int]:
    return server.address.host, server.address.port
