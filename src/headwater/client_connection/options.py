"""The options of a client, checked when they are created.

`headwater.connect` takes these fields as arguments. Times in seconds, sizes in bytes.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, TypedDict

from headwater.client_connection.connection import AWAY_LIMIT, PINGS_OUT
from headwater.client_connection.credentials import Credentials
from headwater.client_connection.events import EventCallback
from headwater.client_connection.server_pool import ReconnectPolicy
from headwater.client_connection.timeouts import Timeout, seconds_of
from headwater.errors import ConfigError
from headwater.model.record import Record
from headwater.model.subject import validate_subject
from headwater.version import VERSION
from headwater.wire.handshake import PROTOCOL_DYNAMIC, ConnectOptions

if TYPE_CHECKING:
    from ssl import SSLContext

DEFAULT_URL = "nats://127.0.0.1:4222"

ErrorCallback = Callable[[BaseException], object]
PathText = str | PathLike[str]


class ConnectArguments(TypedDict, total=False):
    """The keyword arguments of `headwater.connect`; `ClientOptions` explains each."""

    name: str
    user: str
    password: str
    token: str
    nkey_seed: PathText
    creds: PathText
    tls: "bool | SSLContext"
    tls_ca: PathText
    tls_cert: PathText
    tls_key: PathText
    tls_first: bool
    tls_hostname: str
    echo: bool
    verbose: bool
    pedantic: bool
    connect_timeout: Timeout
    ping_interval: Timeout
    pings_out: int
    inbox_prefix: str
    reconnect: bool
    reconnect_attempts: int | None
    reconnect_wait: Timeout
    reconnect_jitter: Timeout
    reconnect_buffer: int
    randomise: bool
    max_pending: int
    max_pending_bytes: int
    context: str
    error_callback: ErrorCallback | None
    event_callback: EventCallback | None


class ClientOptions(Record, secret=("password", "token", "nkey_seed")):
    """The options of `headwater.connect`. Raises ConfigError for invalid values."""

    servers: Sequence[str] = ()
    name: str = ""  # shown in the server's monitoring
    user: str = ""
    password: str = ""
    token: str = ""
    nkey_seed: PathText = ""  # the seed, or the path of a file that holds it
    creds: PathText = ""  # path of a .creds file
    tls: "bool | SSLContext" = False  # True: required; an SSLContext takes precedence over tls_ca, tls_cert, tls_key
    tls_ca: PathText = ""  # trusted CAs, PEM; empty: the system's
    tls_cert: PathText = ""  # the client's certificate, PEM
    tls_key: PathText = ""
    tls_first: bool = False  # shake hands before the server's INFO (`handshake_first` there)
    tls_hostname: str = ""  # the name to verify, where it is not the URL's host
    echo: bool = True  # False: do not deliver own publishes to own subscriptions
    verbose: bool = False  # have the server say +OK to each op
    pedantic: bool = False  # have the server check subjects strictly
    connect_timeout: float = 5.0  # for dial and handshake with one server
    ping_interval: float = 120.0
    pings_out: int = PINGS_OUT  # unanswered pings after which a server counts as dead
    inbox_prefix: str = "_INBOX"
    reconnect: bool = True
    reconnect_attempts: int | None = None  # for each server in a row; None: for ever
    reconnect_wait: float = 4.0  # the longest between two attempts on one server; it begins at a twentieth of a second
    reconnect_jitter: float = 0.1
    reconnect_buffer: int = AWAY_LIMIT  # of publishes while there is no server; 0: refuse them
    randomise: bool = False  # try the servers in a random order
    max_pending: int = 512 * 1024  # messages that wait in one subscription; each can have its own limit
    max_pending_bytes: int = 128 << 20
    context: str = ""  # a context of the `nats` tool, by name
    error_callback: ErrorCallback | None = None
    event_callback: EventCallback | None = None

    def __post_init__(self) -> None:
        for name in ("connect_timeout", "ping_interval", "reconnect_wait", "reconnect_jitter"):
            object.__setattr__(self, name, seconds_of(getattr(self, name)))  # a timedelta is taken, too
        for name in ("connect_timeout", "ping_interval", "pings_out", "max_pending", "max_pending_bytes"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is more than 0", value=getattr(self, name))
        for name in ("reconnect_wait", "reconnect_jitter", "reconnect_buffer"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is not below 0", value=getattr(self, name))
        if self.reconnect_attempts is not None and self.reconnect_attempts < 1:
            raise ConfigError(
                "reconnect_attempts is at least 1", value=self.reconnect_attempts, hint="reconnect=False for none"
            )
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ConfigError("a client certificate needs both tls_cert and tls_key")
        validate_subject(self.inbox_prefix)

    @property
    def credentials(self) -> Credentials:
        return Credentials(
            user=self.user, password=self.password, token=self.token, nkey_seed=self.nkey_seed, creds=self.creds
        )

    @property
    def policy(self) -> ReconnectPolicy:
        return ReconnectPolicy(
            self.reconnect_attempts, min(0.05, self.reconnect_wait), self.reconnect_wait, self.reconnect_jitter
        )

    @property
    def wants_tls(self) -> bool:
        """Whether TLS is required, whatever the server announces."""
        return bool(self.tls or self.tls_ca or self.tls_cert or self.tls_first or self.tls_hostname)

    def introduction(self) -> ConnectOptions:
        """The CONNECT options without credentials."""
        return ConnectOptions(
            verbose=self.verbose,
            pedantic=self.pedantic,
            echo=self.echo,
            headers=True,
            no_responders=True,
            protocol=PROTOCOL_DYNAMIC,
            name=self.name,
            lang="python-headwater",
            version=VERSION,
        )
