"""Options for leaf nodes: for those that a broker accepts as their hub, and for the hubs that it dials. Plain values.

    LeafOptions ─┬─ host, port, tls, users    the listener for spokes, and their credentials; port None: no listener
                 └─ remotes                   the hubs that we are a spoke of, each with one account of ours

A connection joins one account here to one account there.
"""

from typing import TYPE_CHECKING

from headwater.errors import ConfigError
from headwater.model.record import Record
from headwater.net.address import url_address
from headwater.net.listener_options import TlsOptions, check_announced
from headwater.options.access import GLOBAL_ACCOUNT, UserOptions

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_PORT = 7422
WEBSOCKET_SCHEMES = ("ws", "wss")
KNOWN_SCHEMES = ("nats-leaf", "nats", "leaf", "tls", *WEBSOCKET_SCHEMES)
# As in nats-server, tls:// is an encrypted connection and any other scheme a plain one.
REFUSED_SCHEMES = ("http", "https")


class RemoteTlsOptions(Record):
    """TLS to a hub. `insecure`: its certificate is not checked. `handshake_first`: TLS before its INFO."""

    ca_file: "str | Path | None" = None  # None: the system's CAs
    cert_file: "str | Path | None" = None
    key_file: "str | Path | None" = None
    insecure: bool = False
    handshake_first: bool = False
    timeout: float = 2.0

    def __post_init__(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            raise ConfigError("tls of a leaf node remote needs both a cert_file and a key_file, or neither")


class RemoteOptions(Record, secret=("urls", "nkey")):
    """A hub to dial. `urls` may contain a user and a password. `account`: ours. `nkey`: a seed; `credentials`: a .creds
    file.

    `deny_imports` are subjects that we do not accept from it, `deny_exports` those that we do not send. `hub`: the
    other side is the spoke, although we dial. `isolate`: it gets no interest of other leaf nodes; `request_isolation`:
    we request that it sends us none.
    """

    urls: tuple[str, ...]
    account: str = GLOBAL_ACCOUNT
    credentials: "str | Path" = ""
    nkey: str = ""
    tls: RemoteTlsOptions | None = None
    hub: bool = False
    deny_imports: tuple[str, ...] = ()
    deny_exports: tuple[str, ...] = ()
    no_randomize: bool = False
    isolate: bool = False
    request_isolation: bool = False
    ignore_discovered_servers: bool = False
    first_info_timeout: float = 1.0
    dial_timeout: float = 1.0

    def __post_init__(self) -> None:
        if not self.urls:
            raise ConfigError("a leaf node remote has no url", hint="tls://hub.example.com:7422")
        schemes = {_scheme(url) for url in self.urls}
        if 0 < len(schemes & set(WEBSOCKET_SCHEMES)) < len(schemes) and schemes - set(WEBSOCKET_SCHEMES):
            raise ConfigError("leafnode remote: cannot mix websocket and non-websocket urls")
        if self.credentials and self.nkey:
            raise ConfigError("a leaf node remote has both credentials and an nkey: it must be one or the other")
        for name in ("first_info_timeout", "dial_timeout"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} of a leaf node remote must be above 0", value=getattr(self, name), limit=0)

    @property
    def where(self) -> tuple[str, ...]:
        """The URLs without users and passwords."""
        return tuple(shown_url(url) for url in self.urls)


class LeafUser(Record):
    """A user for spokes, and the account of ours that they join."""

    user: UserOptions
    account: str = GLOBAL_ACCOUNT


class LeafOptions(Record):
    """nats-server's `leafnodes` block. `port` None: no listener; 0: any free one.

    `users` replace the broker's own for spokes. `account`: the account that spokes join where no user has to log in.
    """

    host: str = "0.0.0.0"
    port: int | None = None
    advertise: str = ""
    no_advertise: bool = False
    users: tuple[LeafUser, ...] = ()
    account: str = ""
    auth_timeout: float = 2.0
    tls: TlsOptions | None = None
    min_version: str = ""
    reconnect_interval: float = 1.0
    isolate: bool = False
    write_deadline: float = 0.0  # 0 for the broker's
    remotes: tuple[RemoteOptions, ...] = ()

    def __post_init__(self) -> None:
        if self.port is not None and not 0 <= self.port <= 65_535:
            raise ConfigError(f"{self.port} is no port", value=self.port, limit="0 to 65535")
        check_announced("advertise", self.advertise)
        if self.reconnect_interval <= 0:
            raise ConfigError("reconnect_interval must be above 0", value=self.reconnect_interval, limit=0)
        seen: set[tuple[str, tuple[str, ...], object]] = set()
        for remote in self.remotes:
            key = (remote.account, tuple(sorted(remote.where)), (str(remote.credentials), remote.nkey, remote.hub))
            if key in seen:
                raise ConfigError(
                    "duplicate remote: two leaf node remotes join the same account to the same urls",
                    value=remote.where,
                    hint="they would take turns to close each other",
                )
            seen.add(key)

    def accounts(self) -> set[str]:
        """The accounts that these options name."""
        named = {self.account} if self.account else set()
        return named | {user.account for user in self.users} | {remote.account for remote in self.remotes}


def _scheme(url: str) -> str:
    """The scheme of a hub's URL. Raises ConfigError, which does not quote the URL: it may contain a password."""
    scheme, found, _ = url.partition("://")
    scheme = scheme.lower() if found else "nats-leaf"
    try:
        place = url_address(url)
    except ValueError as error:
        raise ConfigError(f"a leaf node url cannot be read: {error}", hint="tls://hub.example.com:7422") from None
    if not scheme or scheme in REFUSED_SCHEMES or not place.host or place.port == 0:
        raise ConfigError(
            "a leaf node url has no host, no scheme, or http as its scheme", hint="tls://hub.example.com:7422"
        )
    return scheme


def scheme_of(url: str) -> str:
    """The scheme in lower case; `nats-leaf` if the URL has none. Raises ConfigError for an invalid URL."""
    return _scheme(url)


def shown_url(url: str) -> str:
    """A URL without user and password."""
    scheme, found, rest = url.partition("://")
    place = (rest if found else url).rpartition("@")[2]
    return f"{scheme}://{place}" if found else place
