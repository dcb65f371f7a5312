"""What a broker can be told, with nats-server's defaults. Plain values; sizes in bytes, times in seconds.

    BrokerOptions ─┬─ authorization: one user, one token, or users, of the global account $G
                   ├─ accounts: isolated subject spaces, each with users of its own
                   ├─ operators and resolver: who users are is signed in JWTs, nothing is listed here
                   ├─ tls, websocket: how clients reach us
                   └─ limits and times

Every option is checked here, so that a broker which starts can work. Secrets are never part of a `repr` or an error.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from headwater.errors import ConfigError
from headwater.model.record import Record

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.broker.cluster_options import ClusterOptions

SyncPolicy = Literal["always", "interval", "never"]

GLOBAL_ACCOUNT = "$G"  # where clients are when no account is configured for them
SYSTEM_ACCOUNT = "$SYS"


class SubjectRules(Record):
    """Subjects, with wildcards, that may be used (None: all) less those that may not.

    For subscriptions an entry may end in a queue group, "orders.* workers": it then speaks of that group only, and the
    group may have wildcards too.
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


class ResponseRules(Record):
    """A client may answer on the reply subject of what it was sent: so often, and for so long (0 or less: no limit)."""

    max_messages: int = 1
    expires: float = 120.0


class Permissions(Record):
    """What a user may do; None leaves that direction free. With `responses` set, `publish` None means nothing else."""

    publish: SubjectRules | None = None
    subscribe: SubjectRules | None = None
    responses: ResponseRules | None = None


class UserOptions(Record, secret=("password",)):
    """One user, known by `username` and `password` (plain, or bcrypt: "$2a$..." and so on), or by `nkey` ("U...")."""

    username: str = ""
    password: str = ""
    nkey: str = ""
    permissions: Permissions | None = None  # None: the default_permissions that surround the user
    connection_types: frozenset[str] | None = None  # of "STANDARD", "WEBSOCKET"; None: any

    def __post_init__(self) -> None:
        if not self.username and not self.nkey:
            raise ConfigError("a user has neither a username nor an nkey")
        if self.username and self.nkey:
            raise ConfigError(f"user {self.username!r} has an nkey too: it must be one or the other")


class AuthorizationOptions(Record, secret=("password", "token")):
    """Who may connect, to the global account: nobody is asked (the default), one user, one token, or `users`."""

    username: str = ""
    password: str = ""
    token: str = ""
    users: tuple[UserOptions, ...] = ()
    default_permissions: Permissions | None = None

    def __post_init__(self) -> None:
        if sum((bool(self.username), bool(self.token), bool(self.users))) > 1:
            raise ConfigError("authorization has more than one of: user, token, users")
        if self.password and not self.username:
            raise ConfigError("authorization has a password and no user")

    @property
    def required(self) -> bool:
        """Whether a client has to show anything."""
        return bool(self.username or self.token or self.users)


class ExportOptions(Record):
    """What an account lets others import: a `stream` of messages, or a `service` to send requests to.

    `accounts`: who may; None: every account.
    """

    subject: str
    kind: Literal["stream", "service"]
    accounts: tuple[str, ...] | None = None
    response: Literal["singleton", "stream", "chunked"] = "singleton"
    response_threshold: float = 0.0  # seconds that a reply may take; 0: two minutes
    account_token_position: int = 0  # the token (from 1) of an imported subject that is the importer's name; 0: none is


class ImportOptions(Record):
    """What an account takes from another. `to`: the subject it has here, where `$2` is the second `*` there; `prefix`: put
    before it (streams). `share`: who asks is shown to the service.
    """

    account: str
    subject: str
    kind: Literal["stream", "service"]
    to: str = ""
    prefix: str = ""
    share: bool = False


class MappingOptions(Record):
    """Messages that clients publish on `source` go to one of `destinations` instead, by weight in percent; what is left of
    100 stays as it is. `cluster`: a destination for servers of that cluster only; where it has any, others do not count.
    """

    source: str
    destinations: tuple[tuple[str, int, str], ...]  # destination, weight, cluster


class JetStreamLimits(Record):
    """What an account may store; -1: no limit."""

    max_memory: int = -1
    max_file: int = -1
    max_streams: int = -1
    max_consumers: int = -1
    max_ack_pending: int = -1
    memory_max_stream_bytes: int = -1
    store_max_stream_bytes: int = -1
    max_bytes_required: bool = False


class AccountOptions(Record):
    """A subject space of its own. `jetstream`: None means no streams for it."""

    name: str
    users: tuple[UserOptions, ...] = ()
    default_permissions: Permissions | None = None
    exports: tuple[ExportOptions, ...] = ()
    imports: tuple[ImportOptions, ...] = ()
    mappings: tuple[MappingOptions, ...] = ()
    jetstream: JetStreamLimits | None = None
    max_connections: int = -1  # -1: no limit
    max_subscriptions: int = -1
    max_payload: int = -1

    def __post_init__(self) -> None:
        if not self.name or self.name == GLOBAL_ACCOUNT:
            raise ConfigError(f"an account may not be called {self.name!r}", value=self.name)


class TlsOptions(Record):
    """Certificates, and what is asked of clients. Versions below TLS 1.2 are never spoken.

    `verify`: clients need a certificate that `ca_file` vouches for; `verify_and_map`: and it names the user.
    `handshake_first`: True: TLS before any byte of NATS; seconds: INFO goes out when no TLS came within them.
    `pinned_certs`: SHA-256 of the public keys that are taken, in lower-case hexadecimal; empty: any.
    """

    cert_file: "Path"
    key_file: "Path"
    ca_file: "Path | None" = None
    verify: bool = False
    verify_and_map: bool = False
    handshake_first: bool | float = False
    timeout: float = 2.0
    allow_non_tls: bool = False
    ciphers: tuple[str, ...] = ()  # OpenSSL's names, for TLS 1.2; empty: Python's choice
    min_version: Literal["1.2", "1.3"] = "1.2"
    pinned_certs: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.timeout <= 0:
            raise ConfigError("tls timeout must be above 0", value=self.timeout, limit=0)
        if self.verify_and_map and not self.verify:
            object.__setattr__(self, "verify", True)

    @property
    def waits_for_hello(self) -> float:
        """Seconds to wait for a TLS hello before INFO goes out; 0: none. Infinite when TLS always comes first."""
        if self.handshake_first is True:
            return float("inf")
        return float(self.handshake_first)


HANDSHAKE_FIRST_AUTO = 0.05  # seconds; nats-server's `handshake_first: auto`


class WebSocketOptions(Record, secret=("password", "token")):
    """The WebSocket listener. Either `tls`, or `no_tls` said out loud, as in nats-server.

    `username`, `token`, `no_auth_user` replace those of the broker for clients that come this way.
    """

    host: str = ""  # empty: the broker's
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
                "websocket has no tls", hint="give it a tls block, or say no_tls: true where something else encrypts"
            )
        _check_port(self.port)


class OperatorOptions(Record, secret=("resolver",)):
    """Operator mode: users show a JWT that an account signed, whose own JWT an operator signed.

    `resolver`: account public key to account JWT. `system_account`: its public key.
    """

    operators: tuple[str, ...]  # operator JWTs
    resolver: Mapping[str, str] = MappingProxyType({})
    system_account: str = ""
    trusted_keys: tuple[str, ...] = ()


class BrokerOptions(Record):
    """Raises ConfigError for values that cannot work."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any free one
    reuse_port: bool = False  # other processes listen there too (SO_REUSEPORT), and share the clients
    server_name: str = ""  # empty: the server id
    client_advertise: str = ""  # host:port in connect_urls instead of our own
    no_advertise: bool = False

    authorization: AuthorizationOptions = AuthorizationOptions()
    accounts: tuple[AccountOptions, ...] = ()
    mappings: tuple[MappingOptions, ...] = ()  # of the global account
    system_account: str = SYSTEM_ACCOUNT
    no_auth_user: str = ""  # who a client is that shows nothing
    operator: OperatorOptions | None = None
    auth_timeout: float | None = None  # None: 2 s; with TLS its timeout and one more
    tls: TlsOptions | None = None
    websocket: WebSocketOptions | None = None
    cluster: "ClusterOptions | None" = None

    max_payload: int = 1 << 20
    max_control_line: int = 4096
    max_connections: int = 65_536
    max_subscriptions: int = 0  # per connection; 0: no limit
    max_subscription_tokens: int = 0  # 0: no limit
    max_pending: int = 64 << 20
    write_deadline: float = 10.0
    ping_interval: float = 120.0
    ping_max: int = 2
    no_header_support: bool = False
    lame_duck_duration: float = 120.0
    lame_duck_grace_period: float = 10.0

    jetstream: bool = False
    store_dir: "str | Path" = "headwater-data"
    sync: SyncPolicy = "always"
    jetstream_domain: str = ""
    jetstream_limits: JetStreamLimits = JetStreamLimits()

    def __post_init__(self) -> None:
        for name in ("max_payload", "max_control_line", "max_connections", "max_pending", "ping_max"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1", value=getattr(self, name), limit=1)
        for name in ("write_deadline", "ping_interval"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be above 0", value=getattr(self, name), limit=0)
        _check_port(self.port)
        if self.max_payload > self.max_pending:
            raise ConfigError(
                "max_payload is larger than max_pending: such a message would cut off whoever receives it",
                value=self.max_payload,
                limit=self.max_pending,
            )
        if self.sync not in ("always", "interval", "never"):
            policies = "always, interval or never"
            raise ConfigError(f"sync is {self.sync!r}", value=self.sync, limit=policies, hint=f"it is {policies}")
        self._check_users()
        self._check_subjects()

    @property
    def seconds_to_authenticate(self) -> float:
        """How long a client may take until its CONNECT is accepted."""
        if self.auth_timeout is not None:
            return self.auth_timeout
        return self.tls.timeout + 1.0 if self.tls is not None else 2.0

    def _check_subjects(self) -> None:
        """Imports and mappings; their modules are loaded where there are any."""
        if any(account.imports for account in self.accounts):
            from headwater.broker.import_rules import check_imports

            for problem in check_imports(self.accounts)[1]:
                raise ConfigError(problem.reason, value=problem.account)
        mappings = [*self.mappings, *(one for account in self.accounts for one in account.mappings)]
        if mappings:
            from headwater.broker.mappings import Mapping

            for mapping in mappings:
                try:
                    Mapping(mapping, "")
                except ValueError as error:
                    raise ConfigError(f'Error adding mapping for "{mapping.source}": {error}') from None

    def _check_users(self) -> None:
        names: set[str] = {account.name for account in self.accounts}
        if len(names) != len(self.accounts):
            raise ConfigError("two accounts have the same name", value=[account.name for account in self.accounts])
        users = [*self.authorization.users, *(user for account in self.accounts for user in account.users)]
        known: set[str] = set()
        for user in users:
            name = user.username or user.nkey
            if name in known:
                raise ConfigError(f"the user {name!r} is defined twice", value=name)
            known.add(name)
        if self.operator is not None and (users or self.authorization.required):
            raise ConfigError("with an operator, users are in JWTs: there can be none in the configuration")
        if self.no_auth_user and self.operator is not None:
            raise ConfigError("no_auth_user does not go with an operator", value=self.no_auth_user)
        for name in filter(None, (self.no_auth_user, self.websocket.no_auth_user if self.websocket else "")):
            if name not in known:
                raise ConfigError(f"no_auth_user {name!r} is no user of the configuration", value=name)


def _check_port(port: int) -> None:
    if not 0 <= port <= 65_535:
        raise ConfigError(f"{port} is no port", value=port, limit="0 to 65535", hint="0 takes any free one")
