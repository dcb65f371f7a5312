"""Server URLs: `nats://[user[:password]@]host[:port]`, or `nats://token@host`, or bare `host:port`."""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from headwater.errors import ConfigError

DEFAULT_PORT = 4222


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is, and the credentials that its URL carried. Secrets are left out of `repr`."""

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


def parse_server_url(url: str) -> ServerAddress:
    """Raises ConfigError for what is no server URL; a secret in it is never quoted."""
    text = url.strip()
    text = text if "://" in text else f"nats://{text}"
    scheme, _, rest = text.partition("://")
    # All before the last @ may belong to a password, also where urlsplit sees a path or a fragment in it.
    shown = f"{scheme}://{rest.rpartition('@')[2]}"
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise ConfigError(f"{shown} is no server URL: {error}", value=shown) from None
    if parts.scheme in ("tls", "ws", "wss"):
        raise ConfigError(f"{parts.scheme}:// is not built yet", value=shown, hint="use nats://host:port")
    try:
        port = parts.port
    except ValueError:
        raise ConfigError(f"{shown} has a port that is none", value=shown) from None  # it quotes what it read
    if parts.scheme != "nats" or not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
        raise ConfigError(f"{shown} is no server URL", value=shown, hint="for example nats://127.0.0.1:4222")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    alone = bool(user) and parts.password is None  # one word before the @ is a token
    return ServerAddress(
        host=parts.hostname,
        port=DEFAULT_PORT if port is None else port,
        user="" if alone else user,
        password=password,
        token=user if alone else "",
    )
