"""The options of a broker, with nats-server's defaults. Plain values; sizes in bytes, times in seconds.

    BrokerOptions ─┬─ authorization: one user, one token, or users, of the global account $G
                   ├─ accounts: isolated subject spaces, each with its own users
                   ├─ operators and resolver: users are in signed JWTs, not listed here
                   ├─ tls, websocket: listeners for clients
                   ├─ cluster, leafnodes: other brokers
                   └─ limits and times

Every option is checked here, so a broker that starts has valid options. `repr` and errors leave secrets out.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from headwater.errors import ConfigError
from headwater.model.record import Record
from headwater.model.stream_limits import ServerLimits
from headwater.net.limits import DEFAULTS as DEFAULT_CONNECTION_LIMITS
from headwater.net.limits import Limits
from headwater.net.listener_options import TlsOptions, WebSocketOptions, check_announced, check_port
from headwater.options.access import (
    GLOBAL_ACCOUNT,
    SYSTEM_ACCOUNT,
    AccountOptions,
    AuthorizationOptions,
    JetStreamLimits,
    MappingOptions,
    OperatorOptions,
)
from headwater.options.store_folders import part_of

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.model.worker_options import WorkerOptions
    from headwater.options.cluster import ClusterOptions
    from headwater.options.leaf import LeafOptions

# Where ops are traced, in the log. Here, and not in `exchange.tracing`: only a broker that traces loads that.
TRACE_LEVEL = 5  # below logging.DEBUG
TRACE_LOGGER = "headwater.exchange.tracing"

SyncPolicy = Literal["always", "interval", "never"]


class BrokerOptions(Record):
    """All options of a broker. Raises ConfigError for invalid values."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any free one
    reuse_port: bool = False  # other processes may share the port and the clients (SO_REUSEPORT)
    server_name: str = ""  # "" for the server id
    client_advertise: str = ""  # host:port in connect_urls instead of our own
    no_advertise: bool = False

    authorization: AuthorizationOptions = AuthorizationOptions()
    accounts: tuple[AccountOptions, ...] = ()
    mappings: tuple[MappingOptions, ...] = ()  # of the global account
    system_account: str = SYSTEM_ACCOUNT
    no_auth_user: str = ""  # the user of clients without credentials
    operator: OperatorOptions | None = None
    auth_timeout: float | None = None  # None: 2 s; with TLS, tls.timeout + 1 s
    tls: TlsOptions | None = None
    websocket: WebSocketOptions | None = None
    cluster: "ClusterOptions | None" = None
    leafnodes: "LeafOptions | None" = None

    max_payload: int = 1 << 20
    max_control_line: int = 4096
    max_connections: int = 65_536
    connection_limits: Mapping[str, Limits] = DEFAULT_CONNECTION_LIMITS  # by listener
    max_subscriptions: int = 0  # per connection; 0: no limit
    max_subscription_tokens: int = 0  # 0: no limit
    max_pending: int = 64 << 20
    write_deadline: float = 10.0
    ping_interval: float = 120.0
    ping_max: int = 2
    no_header_support: bool = False
    no_read_pauses: bool = False  # the loop reads at once, however little there is (net/moderation.py)
    lame_duck_duration: float = 120.0
    lame_duck_grace_period: float = 10.0

    jetstream: bool = False
    store_dir: "str | Path" = "headwater-data"
    worker: "WorkerOptions | None" = None  # one of several processes that are one server
    sync: SyncPolicy = "always"
    jetstream_domain: str = ""
    default_js_domain: Mapping[str, str] = MappingProxyType({})  # for accounts without streams, by name
    scoped_acks: bool = False  # ack subjects contain the domain and the account
    jetstream_limits: JetStreamLimits = JetStreamLimits()
    default_max_consumers: int = 1000  # of a stream, if neither it nor its account sets it; below 0 for no limit
    stream_limits: ServerLimits = ServerLimits()

    def __post_init__(self) -> None:
        for name in ("max_payload", "max_control_line", "max_connections", "max_pending", "ping_max"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1", value=getattr(self, name), limit=1)
        for name in ("write_deadline", "ping_interval"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be above 0", value=getattr(self, name), limit=0)
        check_port(self.port)
        check_announced("client_advertise", self.client_advertise)
        if self.max_payload > self.max_pending:
            raise ConfigError(
                "max_payload is larger than max_pending: such a message would cut off whoever receives it",
                value=self.max_payload,
                limit=self.max_pending,
            )
        if self.sync not in ("always", "interval", "never"):
            policies = "always, interval or never"
            raise ConfigError(f"sync is {self.sync!r}", value=self.sync, limit=policies, hint=f"it is {policies}")
        _check_domain(self.jetstream_domain)
        self._check_users()
        self._check_subjects()
        if self.leafnodes is not None:
            self._check_leafnodes(self.leafnodes)
        if self.cluster is not None:
            self.check_routed_names()
        for account, domain in self.default_js_domain.items():
            if self._stores(account):
                raise ConfigError(
                    f'default_js_domain contains account name "{account}", with enabled JetStream', value=account
                )
            _check_domain(domain)

    @property
    def is_spread(self) -> bool:
        """Whether this broker has some of the streams of several workers."""
        return self.worker is not None and self.worker.spread

    @property
    def streams_dir(self) -> str:
        """Where this broker's streams are: the store directory, or the folder of one worker in it."""
        directory = str(self.store_dir)
        if self.worker is None or not self.worker.spread:
            return directory
        return part_of(directory, self.worker.number)

    def check_routed_names(self) -> None:
        """Raise ConfigError for the name of an account that no route can say: there a blank ends a word, and the peer ends
        the route at the account's first subscription, again and again (that of nats-server 2.15 too)."""
        for name in (*(account.name for account in self.accounts), self.system_account):
            if len(name.split()) > 1 or name != name.strip():
                raise ConfigError(
                    f'the account name "{name}" has blanks: a cluster and workers need names without',
                    value=name,
                    hint="rename the account, or serve it by one process",
                )

    def _check_leafnodes(self, leafnodes: "LeafOptions") -> None:
        if self.cluster is not None and self.cluster.protocol != "v2":
            raise ConfigError(
                f"leafnodes do not go with cluster.protocol {self.cluster.protocol}",
                hint="v1 has no names of clusters, and messages of leaf nodes would come back to them",
            )
        if self.operator is not None:
            if leafnodes.users:
                raise ConfigError("operator mode does not allow specifying users in leafnodes configuration")
            return  # accounts are the operator's, and are looked up at the start
        known = {account.name for account in self.accounts} | {GLOBAL_ACCOUNT, self.system_account}
        for name in sorted(leafnodes.accounts() - known):
            raise ConfigError(f'cannot find local account "{name}" specified in leafnodes', value=name)

    def _stores(self, name: str) -> bool:
        """Whether an account has streams here."""
        if not self.jetstream:
            return False
        own = next((account for account in self.accounts if account.name == name), None)
        return own.jetstream is not None if own is not None else name == GLOBAL_ACCOUNT and not self.accounts

    @property
    def seconds_to_authenticate(self) -> float:
        """Seconds until a client's CONNECT must be accepted."""
        if self.auth_timeout is not None:
            return self.auth_timeout
        return self.tls.timeout + 1.0 if self.tls is not None else 2.0

    def _check_subjects(self) -> None:
        """Check imports and mappings; their modules are imported only if there are any."""
        if any(account.imports for account in self.accounts):
            from headwater.options.import_rules import check_imports

            for problem in check_imports(self.accounts)[1]:
                raise ConfigError(problem.reason, value=problem.account)
        mappings = [*self.mappings, *(one for account in self.accounts for one in account.mappings)]
        if mappings:
            from headwater.options.mappings import Mapping

            for mapping in mappings:
                try:
                    Mapping(mapping, "")
                except ValueError as error:
                    raise ConfigError(f'Error adding mapping for "{mapping.source}": {error}') from None

    def _check_users(self) -> None:
        names: set[str] = {account.name for account in self.accounts}
        if len(names) != len(self.accounts):
            raise ConfigError("two accounts have the same name", value=[account.name for account in self.accounts])
        if self.operator is None and self.system_account not in names | {GLOBAL_ACCOUNT, SYSTEM_ACCOUNT}:
            name = self.system_account
            raise ConfigError(f'system_account "{name}" is no account of the configuration', value=name)
        users = [*self.authorization.users, *(user for account in self.accounts for user in account.users)]
        known: set[str] = set()
        for user in users:
            name = user.username or user.nkey
            if name in known:
                raise ConfigError(f'Duplicate user "{name}" detected', value=name)
            known.add(name)
        if self.operator is not None and (users or self.authorization.required):
            raise ConfigError("with an operator, users are in JWTs: there can be none in the configuration")
        if self.no_auth_user and self.operator is not None:
            raise ConfigError("no_auth_user does not go with an operator", value=self.no_auth_user)
        self._check_callout(known)
        for name in filter(None, (self.no_auth_user, self.websocket.no_auth_user if self.websocket else "")):
            if name not in known:
                raise ConfigError(f"no_auth_user {name!r} is no user of the configuration", value=name)

    def _check_callout(self, users: set[str]) -> None:
        callout = self.authorization.callout
        if callout is None:
            return
        if self.operator is not None:
            raise ConfigError("with an operator, auth_callout is in the JWTs of accounts, not in the configuration")
        accounts = {account.name for account in self.accounts} | {GLOBAL_ACCOUNT, self.system_account}
        for name in (callout.account, *callout.allowed_accounts):
            if name not in accounts:
                raise ConfigError(f'auth_callout account "{name}" not found in configured accounts', value=name)
        for name in callout.auth_users:
            if name not in users | {self.authorization.username}:
                raise ConfigError(f'auth_callout user "{name}" is no user of the configuration', value=name)


def _check_domain(domain: str) -> None:
    if set(".*> \t") & set(domain):
        raise ConfigError("invalid domain name: may not contain ., * or >", value=domain, hint="one token of a subject")
