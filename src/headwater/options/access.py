"""Options for access: users, permissions, accounts, imports and exports, operators. Plain values.

Every option is checked here, so a broker that starts has valid options. `repr` and errors leave secrets out.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from headwater.errors import ConfigError
from headwater.model.nkey import NkeyKind, decode_nkey
from headwater.model.record import Record

if TYPE_CHECKING:
    from pathlib import Path

GLOBAL_ACCOUNT = "$G"  # the account of clients without a configured account
SYSTEM_ACCOUNT = "$SYS"


class SubjectRules(Record):
    """Subjects, with wildcards: those in `allow` (None for all) without those in `deny`.

    For subscriptions an entry may end in a queue group, "orders.* workers": it then applies only to that group, which
    may have wildcards too.
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


class ResponseRules(Record):
    """A client may answer on the reply subject of a message that it received: `max_messages` times, for `expires` seconds
    (0 or less: no limit)."""

    max_messages: int = 1
    expires: float = 120.0


class Permissions(Record):
    """What a user may do; None allows everything in that direction. With `responses`, a `publish` of None allows only
    responses.
    """

    publish: SubjectRules | None = None
    subscribe: SubjectRules | None = None
    responses: ResponseRules | None = None


class UserOptions(Record, secret=("password",)):
    """One user, identified by `username` and `password` (plain, or a bcrypt hash such as "$2a$..."), or by `nkey`
    ("U...").
    """

    username: str = ""
    password: str = ""
    nkey: str = ""
    permissions: Permissions | None = None  # None: the default_permissions of the enclosing block
    connection_types: frozenset[str] | None = None  # of "STANDARD", "WEBSOCKET"; None: any

    def __post_init__(self) -> None:
        if not self.username and not self.nkey:
            raise ConfigError("a user has neither a username nor an nkey")
        if self.username and self.nkey:
            raise ConfigError(f"user {self.username!r} has an nkey too: it must be one or the other")


class AuthCalloutOptions(Record):
    """nats-server's `auth_callout`: a service in `account` decides on the identity of clients. It answers with JWTs
    signed by `issuer` (a public account nkey), and logs in as one of `auth_users`, which the configuration
    authenticates.

    `xkey`: the service's public curve nkey; requests are then encrypted for it. `allowed_accounts`: the configuration
    also authenticates users of other accounts; if empty, of none.
    """

    issuer: str
    auth_users: tuple[str, ...]
    account: str = GLOBAL_ACCOUNT
    xkey: str = ""
    allowed_accounts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if decode_nkey(self.issuer, NkeyKind.ACCOUNT) is None:
            raise ConfigError("the issuer of an auth_callout must be a public account nkey", value=self.issuer)
        if self.xkey and decode_nkey(self.xkey, NkeyKind.CURVE) is None:
            raise ConfigError("the xkey of an auth_callout must be a public curve nkey", value=self.xkey)
        if not self.auth_users:
            raise ConfigError("an auth_callout needs auth_users: its service has to log in")


class AuthorizationOptions(Record, secret=("password", "token")):
    """Logins to the global account: none needed (the default), one user, one token, or `users`."""

    username: str = ""
    password: str = ""
    token: str = ""
    users: tuple[UserOptions, ...] = ()
    default_permissions: Permissions | None = None
    callout: AuthCalloutOptions | None = None

    def __post_init__(self) -> None:
        if sum((bool(self.username), bool(self.token), bool(self.users))) > 1:
            raise ConfigError("authorization has more than one of: user, token, users")
        if self.password and not self.username:
            raise ConfigError("authorization has a password and no user")

    @property
    def required(self) -> bool:
        """Whether a client must send credentials."""
        return bool(self.username or self.token or self.users)


class ExportOptions(Record):
    """What other accounts may import: a `stream` of messages, or a `service` that takes requests.

    `accounts`: the accounts that may; None for all.
    """

    subject: str
    kind: Literal["stream", "service"]
    accounts: tuple[str, ...] | None = None
    response: Literal["singleton", "stream", "chunked"] = "singleton"
    response_threshold: float = 0.0  # seconds that a reply may take; 0: two minutes
    allow_trace: bool = False  # traces of requests continue in the exporting account
    account_token_position: int = 0  # position (from 1) of the token that must be the importer's name; 0 for none


class ImportOptions(Record):
    """An import from another account. `to`: the local subject, in which `$2` stands for the second `*` of `subject`;
    `prefix`: a prefix of the local subject instead (streams). `share`: the service gets the identity of the requesting
    client.
    """

    account: str
    subject: str
    kind: Literal["stream", "service"]
    to: str = ""
    prefix: str = ""
    share: bool = False
    allow_trace: bool = False  # traces continue in this account (streams)


class MappingOptions(Record):
    """Messages that clients publish on `source` go to one of `destinations` instead, by weight in percent; the
    remaining percentage keeps its subject. `cluster`: a destination for servers of that cluster only; if there is any
    for a cluster, the general ones do not apply in it.
    """

    source: str
    destinations: tuple[tuple[str, int, str], ...]  # destination, weight, cluster


class JetStreamLimits(Record):
    """What an account may store; -1 for no limit. `tier`: "R1" if the account's JWT has limits for streams with one
    replica, as all of ours are; otherwise "". `tiers`: the names of all that it has limits for.
    """

    max_memory: int = -1
    max_file: int = -1
    max_streams: int = -1
    max_consumers: int = -1
    max_ack_pending: int = -1
    memory_max_stream_bytes: int = -1
    store_max_stream_bytes: int = -1
    max_bytes_required: bool = False
    tier: str = ""
    tiers: tuple[str, ...] = ()


class AccountOptions(Record):
    """An isolated subject space. `jetstream`: None for an account without streams."""

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
    max_leafnodes: int = -1
    trace_dest: str = ""  # destination of traces for a sampled `traceparent`; "" for none
    trace_sampling: int = 100  # percentage of those messages to trace

    def __post_init__(self) -> None:
        if not self.name or self.name == GLOBAL_ACCOUNT:
            raise ConfigError(f"an account may not be called {self.name!r}", value=self.name)


class ResolverOptions(Record, secret=("url",)):
    """The source of account JWTs besides the configuration: `directory` (kinds "full" and "cache"), or `url`, to which
    an account's public key is appended. With "memory", processes of one server share in `directory` what is pushed.
    `timeout`: seconds to fetch one; `interval`: seconds between comparisons of full directories.
    """

    kind: Literal["memory", "full", "cache", "url"] = "memory"
    directory: str = ""
    url: str = ""
    allow_delete: bool = False
    hard_delete: bool = False
    limit: int = 0  # accounts in the directory; 0: any number
    interval: float = 60.0
    timeout: float = 1.9
    ca_file: "str | Path | None" = None  # for the URL's server; None for the system's CAs
    cert_file: "str | Path | None" = None  # our certificate, if that server requires one
    key_file: "str | Path | None" = None
    insecure: bool = False  # the server's certificate is not checked

    def __post_init__(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            raise ConfigError("resolver_tls needs both a cert_file and a key_file, or neither")
        if self.speaks_tls and not self.url.startswith("https://"):
            raise ConfigError("resolver_tls needs a resolver of the form URL(https://...)")
        if self.kind in ("full", "cache") and not self.directory:
            raise ConfigError(f'a resolver of type "{self.kind}" needs a dir', value=self.kind)
        if self.kind == "url" and not self.url.startswith(("http://", "https://")):
            raise ConfigError("the URL of a resolver must begin with http:// or https://")
        if self.kind == "cache" and (self.allow_delete or self.hard_delete):
            raise ConfigError('a resolver of type "cache" takes neither allow_delete nor hard_delete')
        if self.hard_delete and not self.allow_delete:
            raise ConfigError("hard_delete has no effect without allow_delete")
        if self.interval <= 0 or self.timeout <= 0:
            raise ConfigError("interval and timeout of a resolver must be above 0")

    @property
    def speaks_tls(self) -> bool:
        """Whether an option for TLS is set."""
        return self.insecure or self.ca_file is not None or self.cert_file is not None


class OperatorOptions(Record, secret=("resolver", "default_sentinel")):
    """Operator mode: users send a JWT signed by an account, whose own JWT is signed by an operator.

    `resolver`: account JWTs by public key. `system_account`: its public key.
    """

    operators: tuple[str, ...]  # operator JWTs
    resolver: Mapping[str, str] = MappingProxyType({})
    system_account: str = ""
    trusted_keys: tuple[str, ...] = ()
    pinned_accounts: tuple[str, ...] = ()  # only these may be used; empty for all
    accounts_from: ResolverOptions = ResolverOptions()
    default_sentinel: str = ""  # the user JWT of a client that sends none
