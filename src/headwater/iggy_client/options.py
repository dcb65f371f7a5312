"""The options of `connect`: URLs, TLS, and reconnecting.

    iggy://user:password@host:8090            TCP; also iggy+tcp
    iggy+quic://user:password@host:8080       QUIC, always encrypted
    iggy+ws://user:password@host:8092         WebSocket
    iggy+http://user:password@host:3000       HTTP, JSON
    iggy://TOKEN@host:8090                    a personal access token in place of user and password

The query has the names of Apache's connection strings: `tls`, `tls_domain`, `tls_ca_file`, `tls_validate_certificate`,
`reconnection_retries` (a number, or unlimited), `reconnection_interval` ("1s"), `heartbeat_interval`, `nodelay`, which
is always on here. Other names are refused.
"""

import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from headwater.errors import ConfigError
from headwater.iggy_wire.options import duration_us
from headwater.model.record import Record

PORTS: Final = {"tcp": 8090, "quic": 8080, "ws": 8092, "http": 3000}
_SCHEMES: Final = {"iggy": "tcp", "iggy+tcp": "tcp", "iggy+quic": "quic", "iggy+ws": "ws", "iggy+http": "http"}
_FLAGS: Final = {"true": True, "false": False}


class Options(Record, secret=("password", "token")):
    """`reconnect_attempts`: how often in a row, None for ever, 0 never. Times in seconds; `heartbeat` 0: none."""

    transport: str = "tcp"
    host: str = "127.0.0.1"
    port: int = 8090
    username: str = ""
    password: str = ""
    token: str = ""
    tls: bool | ssl.SSLContext = False
    tls_hostname: str = ""
    tls_ca: str = ""
    tls_verify: bool = True
    timeout: float = 30.0
    reconnect_attempts: int | None = None
    reconnect_wait: float = 1.0
    heartbeat: float = 5.0

    @property
    def server_name(self) -> str:
        """The name that the certificate is to have."""
        return self.tls_hostname or self.host

    def context(self) -> ssl.SSLContext | None:
        """What to encrypt with; None for a connection in the clear. Raises ConfigError for a file that cannot be read."""
        if isinstance(self.tls, ssl.SSLContext):
            return self.tls
        if not self.tls:
            return None
        from headwater.net.tls import client_context

        return client_context(Path(self.tls_ca) if self.tls_ca else None, verify=self.tls_verify)


def options_of(url: str, **given: Any) -> Options:
    """The options from a URL and from arguments, which take precedence. Raises ConfigError for an invalid URL."""
    written, shown = _with_quoted_slashes(url)
    parts = urlsplit(written)
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in _SCHEMES or not parts.hostname or port == 0:
        raise ConfigError(f"{shown!r} is no iggy://user:password@host:port", value=shown)
    transport = _SCHEMES[parts.scheme]
    found: dict[str, Any] = {"transport": transport, "host": parts.hostname, "port": port or PORTS[transport]}
    username, password = unquote(parts.username or ""), unquote(parts.password or "")
    if username and parts.password is None:
        found["token"] = username
    else:
        found |= {"username": username or "iggy", "password": password or "iggy"}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        found |= _of_query(name, value)
    return Options(**(found | {name: value for name, value in given.items() if value is not None}))


def _with_quoted_slashes(url: str) -> tuple[str, str]:
    """The URL as `urlsplit` reads it, and as an error may show it. Tokens of Apache's server have slashes, and its
    connection strings take them as they are; a part of one would else be the host, and be named in the error."""
    head, question, query = url.partition("?")
    scheme, mark, rest = head.partition("://")
    secret, at, place = rest.rpartition("@")
    end = f"{at}{place}{question}{query}"
    return f"{scheme}{mark}{secret.replace('/', '%2F')}{end}", f"{scheme}{mark}{'...' if secret else ''}{end}"


def _of_query(name: str, value: str) -> dict[str, Any]:
    match name:
        case "tls" | "tls_enabled" if value in _FLAGS:
            return {"tls": _FLAGS[value]}
        case "tls_validate_certificate" | "validate_certificate" if value in _FLAGS:
            return {"tls_verify": _FLAGS[value]}
        case "tls_domain":
            return {"tls_hostname": value}
        case "tls_ca_file":
            return {"tls_ca": value}
        case "nodelay" if value == "true":
            return {}
        case "reconnection_retries" if value == "unlimited":
            return {"reconnect_attempts": None}
        case "reconnection_retries" if value.isascii() and value.isdigit():
            return {"reconnect_attempts": int(value)}
        case "reconnection_interval" | "heartbeat_interval" if (us := duration_us(value)) is not None:
            return {"reconnect_wait" if name.startswith("r") else "heartbeat": us / 1e6}
        case _:
            raise ConfigError(f"option {name}={value} is not one of a connection", value=name)
