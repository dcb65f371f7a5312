"""Options of listeners: TLS and WebSocket for clients, HTTP for monitoring.

Plain values; times in seconds. `repr` leaves secrets out.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from headwater.errors import ConfigError
from headwater.model.record import Record
from headwater.net.address import announced

if TYPE_CHECKING:
    from pathlib import Path


class TlsOptions(Record):
    """Certificates, and whether clients need one. Versions below TLS 1.2 are refused.

    `verify`: clients need a certificate issued by `ca_file`; `verify_and_map`: which also names the user.
    `handshake_first`: True for TLS before any byte of NATS; a number is the seconds without a TLS hello after which
    INFO is sent in the clear. `pinned_certs`: SHA-256 of the accepted public keys, in lower-case hexadecimal; empty to
    accept any.
    """

    cert_file: "str | Path"
    key_file: "str | Path"
    ca_file: "str | Path | None" = None
    verify: bool = False
    verify_and_map: bool = False
    handshake_first: bool | float = False
    timeout: float = 2.0
    allow_non_tls: bool = False
    ciphers: tuple[str, ...] = ()  # OpenSSL's names, for TLS 1.2; empty for Python's default
    min_version: Literal["1.2", "1.3"] = "1.2"
    pinned_certs: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.timeout <= 0:
            raise ConfigError("tls timeout must be above 0", value=self.timeout, limit=0)
        if self.verify_and_map and not self.verify:
            object.__setattr__(self, "verify", True)


HANDSHAKE_FIRST_AUTO = 0.05  # seconds; nats-server's `handshake_first: auto`


class WebSocketOptions(Record, secret=("password", "token")):
    """The WebSocket listener. Either `tls` or an explicit `no_tls`, as in nats-server.

    `username`, `token` and `no_auth_user` replace those of the broker for WebSocket clients.
    """

    host: str = ""  # "" for the broker's
    port: int = 0  # 0: any free one
    tls: TlsOptions | None = None
    no_tls: bool = False
    compression: bool = False
    handshake_timeout: float = 2.0
    same_origin: bool = False
    allowed_origins: tuple[str, ...] = ()
    advertise: str = ""
    no_auth_user: str = ""
    username: str = ""
    password: str = ""
    token: str = ""
    jwt_cookie: str = ""
    user_cookie: str = ""
    pass_cookie: str = ""
    token_cookie: str = ""
    headers: Mapping[str, str] = MappingProxyType({})

    def __post_init__(self) -> None:
        if self.tls is None and not self.no_tls:
            raise ConfigError(
                "websocket requires TLS configuration",
                hint="add a tls block, or no_tls: true if something else encrypts",
            )
        check_port(self.port)
        check_announced("advertise", self.advertise)


def check_announced(name: str, address: str) -> None:
    """Raises ConfigError if the `address` that the option `name` has others dial is neither host:port nor a host."""
    try:
        if address:
            announced(address, 1)
    except ValueError as error:
        raise ConfigError(f"{name} {address!r} cannot be announced: {error}", value=address, hint="host:port") from None


def check_port(port: int) -> None:
    """Raises ConfigError if `port` is not a valid port number."""
    if not 0 <= port <= 65_535:
        raise ConfigError(f"address {port}: invalid port", value=port, limit="0 to 65535", hint="0 takes any free one")


class MonitoringOptions(Record):
    """The HTTP listener for /varz and the other endpoints. `port` 0 takes any free one; `tls` uses the certificate of
    the client listener. `metrics_prefix` replaces the prefixes of names under /metrics (`gnatsd`, `jetstream`).
    """

    host: str
    port: int
    tls: bool = False
    base_path: str = "/"
    metrics_prefix: str = ""
