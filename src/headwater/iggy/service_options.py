"""The options of an Iggy server's service."""

from dataclasses import dataclass, field
from typing import get_args

from headwater.errors import ConfigError
from headwater.iggy import credentials
from headwater.streams.options import SyncPolicy


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """`sync`: when a send is acknowledged (LogOptions.sync); None: as in the broker's streams, "always" without a
    broker. `verify`: recompute the checksum of every message that comes in. `root_password`: of the first user, created
    if there is none. `housekeeping`: seconds between two checks of the limits of age and size. `unique_ids_seconds`:
    how long duplicates of a message id are dropped; 0: never. `heartbeat`: seconds within which a member of a consumer
    group pings (`silent_members`); 0: whenever it likes. Raises ConfigError for invalid values."""

    sync: SyncPolicy | None = None
    verify: bool = False
    root_user: str = credentials.ROOT
    root_password: str = field(default=credentials.ROOT, repr=False)
    housekeeping: float = 5.0
    unique_ids_seconds: float = 0.0
    heartbeat: float = 30.0

    def __post_init__(self) -> None:
        if self.sync is not None and self.sync not in get_args(SyncPolicy):
            policies = get_args(SyncPolicy)
            raise ConfigError(f"sync is {self.sync!r}", value=self.sync, limit=policies)
        if self.housekeeping <= 0:
            raise ConfigError("housekeeping must be above 0 seconds", value=self.housekeeping, limit=0)
        if self.heartbeat < 0:
            raise ConfigError("heartbeat must be 0 or more seconds", value=self.heartbeat, limit=0)
        if self.unique_ids_seconds < 0:
            raise ConfigError("unique_ids_seconds must be 0 or more", value=self.unique_ids_seconds, limit=0)
