"""What a broker can be told, with nats-server's defaults. Plain values; sizes in bytes, times in seconds."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from headwater.errors import ConfigError

SyncPolicy = Literal["always", "interval", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """Raises ConfigError for values that cannot work."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any free one
    server_name: str = ""  # empty: the server id
    max_payload: int = 1 << 20
    max_control_line: int = 4096
    max_connections: int = 65_536
    max_subscriptions: int = 0  # per connection; 0: no limit
    max_pending: int = 64 << 20
    write_deadline: float = 10.0
    ping_interval: float = 120.0
    ping_max: int = 2
    jetstream: bool = False
    store_dir: Path = field(default_factory=lambda: Path("headwater-data"))
    sync: SyncPolicy = "always"

    def __post_init__(self) -> None:
        for name in ("max_payload", "max_control_line", "max_connections", "max_pending", "ping_max"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1", value=getattr(self, name), limit=1)
        if not 0 <= self.port <= 65_535:
            raise ConfigError(
                f"{self.port} is no port", value=self.port, limit="0 to 65535", hint="0 takes any free one"
            )
        if self.max_payload > self.max_pending:
            raise ConfigError(
                "max_payload is larger than max_pending: such a message would cut off whoever receives it",
                value=self.max_payload,
                limit=self.max_pending,
            )
        if self.sync not in ("always", "interval", "never"):
            raise ConfigError(f"sync is {self.sync!r}", value=self.sync, limit="always, interval or never")
