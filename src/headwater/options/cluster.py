"""How a broker finds and authenticates the other members of its cluster. Plain values."""

from typing import Literal

from headwater.errors import ConfigError
from headwater.model.record import Record
from headwater.net.listener_options import TlsOptions, check_announced
from headwater.options.access import SubjectRules


class ClusterOptions(Record, secret=("routes", "password")):
    """nats-server's `cluster` block. `port` 0 takes any free one. `routes` are URLs, which may contain passwords.

    `exports` are the subjects that may go to other brokers, `imports` those that may come from them.

    `place`: the Unix sockets of processes that are one server (`net.local_sockets`); then ports are their numbers.
    """

    name: str = ""
    protocol: Literal["v1", "v2", "auto"] = "v2"  # v1: the cluster protocol document; auto: the peer's dialect
    host: str = "0.0.0.0"
    port: int = 0
    routes: tuple[str, ...] = ()
    username: str = ""
    password: str = ""
    auth_timeout: float | None = None
    advertise: str = ""
    no_advertise: bool = False
    connect_retries: int = 0
    connect_backoff: bool = False
    ping_interval: float = 0.0  # 0 for the broker's
    ping_max: int = 0
    write_deadline: float = 0.0
    tls: TlsOptions | None = None
    exports: SubjectRules | None = None
    imports: SubjectRules | None = None
    place: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"{self.port} is no port", value=self.port, limit="0 to 65535")
        check_announced("advertise", self.advertise)
        if self.password and not self.username:
            raise ConfigError("cluster has a password and no user")
