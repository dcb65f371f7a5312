"""Server URLs: `scheme://[user[:password]@]host[:port]`, or `scheme://token@host`, or bare `host:port`.

The one place where a URL is read. Schemes are `nats`, `tls` (nats that insists on TLS), `ws` and `wss`; only the last two
may have a path. No error quotes a secret.
"""

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from headwater.errors import ConfigError

DEFAULT_PORT = 4222
PORTS = {"nats": DEFAULT_PORT, "tls": DEFAULT_PORT, "ws": 80, "wss": 443}


class ServerAddress(NamedTuple):
    """The address of a server, and the credentials in its URL. Secrets are left out of `repr`."""

    host: str
    port: int
    user: str = ""
    password: str = ""
    token: str = ""
    scheme: str = "nats"
    path: str = ""
    verify_as: str = ""  # the name that its certificate must be for, where that is not `host`

    def __repr__(self) -> str:
        return f"<ServerAddress {self.url}>"

    @property
    def is_websocket(self) -> bool:
        return self.scheme in ("ws", "wss")

    @property
    def is_secure(self) -> bool:
        """Whether its scheme requires TLS."""
        return self.scheme in ("tls", "wss")

    @property
    def where(self) -> str:
        """`host:port`, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL without its credentials."""
        return f"{self.scheme}://{self.where}{self.path}"


def parse_server_url(url: str) -> ServerAddress:
    """Parse a URL; one without a scheme is `nats`. Raises ConfigError for an invalid one, without quoting a secret in it."""
    text = url.strip()
    text = text if "://" in text else f"nats://{text}"
    scheme, _, rest = text.partition("://")
    # All before the last @ may belong to a password, also where urlsplit sees a path or a fragment in it.
    shown = f"{scheme}://{rest.rpartition('@')[2]}"
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise ConfigError(f"{shown} is no server URL: {error}", value=shown) from None
    try:
        port = parts.port
    except ValueError:
        raise ConfigError(f"{shown} has a port that is none", value=shown) from None  # it quotes what it read
    path = parts.path.rstrip("/")
    strange = parts.query or parts.fragment or (path and parts.scheme not in ("ws", "wss"))
    if parts.scheme not in PORTS or not parts.hostname or strange or len(parts.hostname.split()) != 1:
        raise ConfigError(f"{shown} is no server URL", value=shown, hint="for example nats://127.0.0.1:4222")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    alone = bool(user) and parts.password is None  # one word before the @ is a token
    return ServerAddress(
        host=parts.hostname,
        port=PORTS[parts.scheme] if port is None else port,
        user="" if alone else user,
        password=password,
        token=user if alone else "",
        scheme=parts.scheme,
        path=path,
    )


def parse_server_urls(servers: str | list[str] | tuple[str, ...]) -> list[ServerAddress]:
    """One URL, several in a sequence, or several with commas between them. Raises ConfigError, also for none."""
    given = servers.split(",") if isinstance(servers, str) else list(servers)
    addresses = [parse_server_url(url) for url in given if url.strip()]
    if not addresses:
        raise ConfigError("no server to connect to", hint=f"for example nats://127.0.0.1:{DEFAULT_PORT}")
    return addresses
