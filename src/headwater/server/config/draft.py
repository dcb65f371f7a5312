"""The settings of a broker's process, while they are gathered: first the configuration file, then the flags.

    defaults ─▶ file (schema.py) ─▶ flags (cli) ─▶ Draft.finish ─▶ ServerConfig

A flag wins over the file, so options are made once, at the end. Everything in here is cheap to import: a server
without a configuration file loads no parser.
"""

from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError
from headwater.model.record import Record
from headwater.net.listener_options import MonitoringOptions
from headwater.options.broker import BrokerOptions

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.options.cluster import ClusterOptions
    from headwater.server.config.document import Map

DEFAULT_HOST = "0.0.0.0"
DEFAULT_PORT = 4222
UNLIMITED = (1 << 31) - 1


class LoggingOptions(Record):
    """Where the log goes and what is in it. `size_limit` in bytes, 0 for none; `max_files` kept beside it, 0 for all."""

    file: "Path | None" = None
    debug: bool = False
    trace: bool = False
    trace_system: bool = False  # clients of the system account too
    max_traced: int = 0  # bytes of a payload in the trace; 0 for all
    time: bool = True
    utc: bool = False
    size_limit: int = 0
    max_files: int = 0


class ServerConfig(Record):
    """Everything `headwater serve` needs to know."""

    broker: BrokerOptions
    logging: LoggingOptions = LoggingOptions()
    monitoring: MonitoringOptions | None = None
    pid_file: "Path | None" = None
    ports_file_dir: "Path | None" = None
    digest: str = ""
    warnings: tuple[str, ...] = ()


class Draft:
    """Keywords of the options to be made. -1 is any free port here, 0 and absent the default."""

    def __init__(
        self,
        *,
        broker: dict[str, Any] | None = None,
        logging: dict[str, Any] | None = None,
        monitoring: dict[str, Any] | None = None,
    ) -> None:
        self.broker = broker or {}
        self.logging = logging or {}
        self.monitoring = monitoring or {}  # host, port, tls_port, base_path
        self.cluster: dict[str, Any] = {}
        self.files: dict[str, Any] = {}  # pid_file, ports_file_dir
        self.digest = ""
        self.warnings: list[str] = []
        self.settings: Map = {}  # of the file, with the places where they stand

    def finish(self) -> ServerConfig:
        """The options. Raises ConfigError for what cannot work together, with its place in the file."""
        try:
            return self._finish()
        except ConfigError as error:
            raise self.placed(error) from error

    def placed(self, error: ConfigError) -> ConfigError:
        """The error, which names the place of the setting it is about, if the file has that."""
        from headwater.server.config.places import place_of

        place = place_of(self.settings, error) if self.settings else None
        if place is None:
            return error
        return ConfigError(f"{place}: {error.message}", value=error.value, limit=error.limit, hint=error.hint)

    def _finish(self) -> ServerConfig:
        broker = self._broker()
        return ServerConfig(
            broker=broker,
            logging=LoggingOptions(**self.logging),
            monitoring=self._monitoring(broker),
            digest=self.digest,
            warnings=tuple(self.warnings),
            **self.files,
        )

    def _broker(self) -> BrokerOptions:
        keywords: dict[str, Any] = {
            "host": DEFAULT_HOST,
            **{key: value for key, value in self.broker.items() if value != ""},
        }
        keywords["port"] = _port(keywords.get("port", 0), DEFAULT_PORT)
        if keywords.get("max_connections", 1) <= 0:
            keywords["max_connections"] = UNLIMITED
        for name in ("max_payload", "max_control_line", "max_pending", "ping_max", "ping_interval", "write_deadline"):
            if keywords.get(name) == 0:
                del keywords[name]  # 0 stands for the default, as in nats-server
        allow_non_tls = keywords.pop("allow_non_tls", False)
        if allow_non_tls and keywords.get("tls") is not None:
            keywords["tls"] = keywords["tls"].replace(allow_non_tls=True)
        return BrokerOptions(cluster=self._cluster(), **keywords)

    def _monitoring(self, broker: BrokerOptions) -> MonitoringOptions | None:
        settings = self.monitoring
        plain, encrypted = settings.get("port", 0), settings.get("tls_port", 0)
        if not plain and not encrypted:
            return None
        if plain and encrypted:
            raise ConfigError(
                f"can't specify both HTTP ({plain}) and HTTPS ({encrypted}) ports for monitoring",
                value=(plain, encrypted),
            )
        if encrypted and broker.tls is None:
            raise ConfigError("TLS is needed for HTTPS monitoring", hint="give the broker a tls block")
        return MonitoringOptions(
            host=settings.get("host") or broker.host,
            port=_port(plain or encrypted, 0),
            tls=bool(encrypted),
            base_path=_base_path(settings.get("base_path", "")),
            metrics_prefix=_metrics_prefix(settings.get("metrics_prefix", "")),
        )

    def _cluster(self) -> "ClusterOptions | None":
        keywords = self.cluster
        if not keywords.get("port"):
            if keywords.get("routes"):
                raise ConfigError("solicited routes require cluster capabilities, e.g. --cluster")
            return None  # a name without an address is no cluster
        from headwater.options.cluster import ClusterOptions

        return ClusterOptions(**{**keywords, "port": _port(keywords["port"], 0)})


def _port(configured: int, default: int) -> int:
    """The port to bind: any free one (0) for -1, the default for 0."""
    return 0 if configured == -1 else configured or default


def _metrics_prefix(prefix: str) -> str:
    if prefix and not (prefix.isascii() and prefix.isidentifier()):
        hint = "letters, digits and _, and no digit first"
        raise ConfigError(f"{prefix!r} is no beginning for a metric's name", value=prefix, hint=hint)
    return prefix


def _base_path(path: str) -> str:
    trimmed = path.strip("/")
    return f"/{trimmed}" if trimmed else "/"
