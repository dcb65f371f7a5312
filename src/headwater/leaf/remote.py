"""One hub that we dial: chooses its next address, and the wait before it. Pure; randomness is passed in.

    urls of the configuration ─┐
    leafnode_urls of its INFO ─┴▶ addresses ─ next() ─▶ dial ─┬─ joined          resets the wait
                                                              ├─ failed, lost     one to two seconds, growing
                                                              └─ refused for a time  as long as the refusal requires

The addresses that the hub announces replace those announced before, but never the configured ones: nats-server drops
those, and cannot reconnect if its hub advertises an unreachable address.

Waits grow by half each time, up to LONGEST, or to LONGEST_REFUSED while the hub refuses us: an operator has to fix
that, and nats-server's retry every second floods the logs at both ends.
"""

from collections.abc import Callable
from typing import NamedTuple

from headwater.net.address import bracketed, url_address
from headwater.options.leaf import DEFAULT_PORT, WEBSOCKET_SCHEMES, RemoteOptions, scheme_of, shown_url

LONGEST = 5.0  # seconds between two tries while the hub does not answer
LONGEST_REFUSED = 30.0  # seconds while the hub refuses us
GROWTH = 1.5
MOST_DISCOVERED = 64  # addresses that a hub may announce


class Address(NamedTuple):
    """An address of a hub. `path` precedes that of its WebSocket endpoint."""

    scheme: str
    host: str
    port: int
    user: str
    password: str | None
    path: str

    @property
    def shown(self) -> str:
        """The address for display, without user and password."""
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"

    @property
    def is_websocket(self) -> bool:
        return self.scheme in WEBSOCKET_SCHEMES

    @property
    def is_secure(self) -> bool:
        """Whether the URL requires TLS."""
        return self.scheme in ("tls", "wss")


def address_of(url: str) -> Address:
    """Parse the URL of a remote. Raises ConfigError for an invalid one."""
    scheme = scheme_of(url)
    place = url_address(url)
    rest = url.partition("://")[2] or url
    path = "/" + rest.partition("/")[2].partition("?")[0] if "/" in rest else ""
    return Address(scheme, place.host, place.port or DEFAULT_PORT, place.user, place.password, path)


class Remote:
    """`interval`: seconds before a lost hub is dialled again. `random()` returns a number in 0..1."""

    def __init__(self, options: RemoteOptions, interval: float, random: Callable[[], float]) -> None:
        self.options = options
        self.reason = "not dialled yet"  # why we are not joined; "" while we are joined
        self.connected_to = ""  # the address, for display
        self._interval = interval
        self._random = random
        self._configured = [address_of(url) for url in options.urls]
        if not options.no_randomize:
            self._configured.sort(key=lambda address: random())
        self._discovered: list[Address] = []
        self._at = 0
        self._failures = 0
        self._refused = False
        self._stay_away: float | None = None

    @property
    def addresses(self) -> list[Address]:
        """All addresses that may be dialled."""
        return [*self._configured, *self._discovered]

    def next(self) -> Address:
        """The address to dial now."""
        addresses = self.addresses
        self._at = (self._at + 1) % len(addresses) if self._failures else self._at % len(addresses)
        return addresses[self._at]

    def announced(self, urls: tuple[str, ...], source: Address) -> None:
        """Use the addresses that the hub at `source` announces for its cluster, with the scheme and credentials of
        `source`.
        """
        if self.options.ignore_discovered_servers or source.is_websocket:
            return
        known = {(address.host, address.port) for address in self._configured}
        found: list[Address] = []
        for url in urls[:MOST_DISCOVERED]:
            try:
                place = url_address(url)
            except ValueError:
                continue
            where = (place.host, place.port or DEFAULT_PORT)
            if place.host and where not in known:
                known.add(where)
                found.append(source._replace(host=where[0], port=where[1]))
        self._discovered = found

    def tls_name(self, address: Address) -> str:
        """The host name that the certificate must match: for an announced IP address, the configured name."""
        if _is_number(address.host):
            return next((each.host for each in self._configured if not _is_number(each.host)), address.host)
        return address.host

    # ── how it went ──

    def joined(self, address: Address) -> None:
        """We have joined the hub."""
        self._failures, self._refused, self._stay_away = 0, False, None
        self.reason, self.connected_to = "", address.shown

    def failed(self, reason: str, *, refused: bool = False, stay_away: float | None = None) -> None:
        """The hub could not be reached, refused us (`refused`), or was lost."""
        self._failures = self._failures + 1 if self.reason else 0  # the first try after a loss is early
        self._refused = refused
        self._stay_away = stay_away
        self.reason, self.connected_to = reason, ""

    def wait(self) -> float:
        """Seconds before the next try."""
        if self._stay_away is not None:
            return self._stay_away + self._interval * self._random()
        longest = LONGEST_REFUSED if self._refused else LONGEST
        grown = self._interval * GROWTH ** min(max(self._failures - 1, 0), 32)
        wait = min(grown, max(longest, self._interval))
        return wait + self._interval * self._random() * (0.1 if not self._failures else 1.0)

    def __repr__(self) -> str:
        return f"<Remote {', '.join(map(shown_url, self.options.urls))} account={self.options.account}>"


def _is_number(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()
