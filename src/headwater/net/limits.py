"""The limits on connections before their login: one policy for all listeners, a table of docs/security.md.

    DEFAULTS["iggy"] ── `connection_limits { iggy { … } }` ─▶ Limits ─▶ Listener, sessions

Every listener has the same limits, but not all are set in the same place: limits that nats-server also has keep its
names in the configuration (`authorization { timeout }`, `max_control_line`, `max_connections`, `max_pending`); the
others are in the block `connection_limits`. ELSEWHERE lists the former; their values here are the defaults, for the
table.

Every limit is checked before the bytes are stored.
"""

from collections.abc import Mapping
from types import MappingProxyType

from headwater.errors import ConfigError
from headwater.model.record import Record

CLIENTS, WEBSOCKET, ROUTES, LEAFNODES = "clients", "websocket", "routes", "leafnodes"
MONITORING = "monitoring"
IGGY, IGGY_HTTP, IGGY_QUIC = "iggy", "iggy_http", "iggy_quic"


class Limits(Record):
    """The limits of one listener; 0: no limit.

    `login_seconds`: time for a connection to log in, or to send its request. `login_bytes`: size of one frame, line or
    request head before that. `connections`: open connections, `per_address` those from one address.
    `requests_per_turn`: requests of one connection in one turn of the loop; 0 for those of one read, 64 KiB.
    `waiting_bytes`: answers that the peer has not read.
    """

    login_seconds: float = 0.0
    login_bytes: int = 0
    connections: int = 0
    per_address: int = 0
    requests_per_turn: int = 0
    waiting_bytes: int = 0

    def __post_init__(self) -> None:
        for name, value in self.items():
            if value < 0:
                raise ConfigError(f"{name} must be 0 (no limit) or more", value=value, limit=0)


_MIB = 1 << 20
DEFAULTS: Mapping[str, Limits] = MappingProxyType(
    {
        CLIENTS: Limits(login_seconds=2.0, login_bytes=4096, connections=65_536, waiting_bytes=64 * _MIB),
        WEBSOCKET: Limits(
            login_seconds=4.0, login_bytes=_MIB + 4096, connections=65_536, requests_per_turn=8, waiting_bytes=64 * _MIB
        ),
        ROUTES: Limits(login_seconds=1.0, login_bytes=65_536, connections=1024, waiting_bytes=64 * _MIB),
        LEAFNODES: Limits(login_seconds=2.0, login_bytes=65_536, connections=10_000, waiting_bytes=64 * _MIB),
        MONITORING: Limits(
            login_seconds=30.0,
            login_bytes=_MIB + 4096,
            connections=256,
            requests_per_turn=1,
            waiting_bytes=_MIB,
        ),
        IGGY: Limits(login_seconds=10.0, login_bytes=65_536, connections=10_000, waiting_bytes=256 * _MIB),
        IGGY_HTTP: Limits(
            login_seconds=10.0, login_bytes=65_536, connections=1024, requests_per_turn=1, waiting_bytes=65_536
        ),
        IGGY_QUIC: Limits(login_seconds=10.0, login_bytes=65_536, connections=1024, waiting_bytes=16 * _MIB),
    }
)
"""The defaults by listener. The seed's listeners have those of Iggy, but no login."""

ELSEWHERE: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        (CLIENTS, "login_seconds"): "authorization.timeout, with TLS tls.timeout and one second more",
        (CLIENTS, "login_bytes"): "max_control_line; without authorization also max_payload",
        (CLIENTS, "connections"): "max_connections",
        (CLIENTS, "waiting_bytes"): "max_pending",
        (WEBSOCKET, "login_seconds"): "websocket.handshake_timeout, then authorization.timeout",
        (WEBSOCKET, "connections"): "max_connections, with the clients",
        (WEBSOCKET, "waiting_bytes"): "max_pending",
        (ROUTES, "login_seconds"): "cluster.authorization.timeout",
        (ROUTES, "waiting_bytes"): "max_pending",
        (LEAFNODES, "login_seconds"): "leafnodes.authorization.timeout",
        (LEAFNODES, "waiting_bytes"): "max_pending",
    }
)
"""The settings of limits outside of the block `connection_limits`."""

_CONNECTIONS = ("connections", "per_address")
CONFIGURABLE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        CLIENTS: ("per_address",),
        WEBSOCKET: ("per_address",),
        ROUTES: _CONNECTIONS,
        LEAFNODES: _CONNECTIONS,
        MONITORING: (*_CONNECTIONS, "login_seconds", "login_bytes"),
        IGGY: (*_CONNECTIONS, "login_seconds", "login_bytes", "waiting_bytes"),
        IGGY_HTTP: (*_CONNECTIONS, "login_seconds", "login_bytes"),
        IGGY_QUIC: (*_CONNECTIONS, "login_seconds", "login_bytes"),
    }
)
"""The limits that `connection_limits` sets, by listener."""
