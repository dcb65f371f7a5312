"""The credentials that a client presents, and the identity that it gets."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from headwater.exchange.access_options import GLOBAL_ACCOUNT
from headwater.exchange.auth.permissions import Rules
from headwater.model.record import Record
from headwater.wire.handshake import ConnectOptions

if TYPE_CHECKING:
    from headwater.wire.jwt import Token

STANDARD = "STANDARD"
WEBSOCKET = "WEBSOCKET"
LEAFNODE = "LEAFNODE"
LEAFNODE_WS = "LEAFNODE_WS"


class Credentials(Record, secret=("password", "token", "jwt", "signature")):
    """From CONNECT, the TLS handshake and the HTTP request. Empty: not shown. No `repr` holds a secret."""

    user: str = ""
    password: str = ""
    token: str = ""
    nkey: str = ""
    jwt: str = ""
    signature: str = ""
    nonce: str = ""  # what the signature must be of
    certificate_names: tuple[str, ...] = ()  # those that may name a user, in the order they are tried
    connection_type: str = STANDARD
    address: str = ""

    @property
    def empty(self) -> bool:
        """Whether nothing at all was shown in CONNECT."""
        return not (self.user or self.password or self.token or self.nkey or self.jwt)


def shown_in(options: ConnectOptions, **others: object) -> Credentials:
    """The credentials in a CONNECT, with those that come from elsewhere."""
    return Credentials(
        user=options.user or "",
        password=options.password or "",
        token=options.auth_token or "",
        nkey=options.nkey or "",
        jwt=options.jwt or "",
        signature=options.sig or "",
        **others,  # type: ignore[arg-type]
    )


class Identity(Record):
    """A client that was let in. Limits: -1 for none of its own. `expires`: seconds since 1970, None for never."""

    account: str = GLOBAL_ACCOUNT
    user: str = ""  # for people: a name, or a public key
    rules: Rules | None = None
    expires: float | None = None
    account_expires: float | None = None
    max_subscriptions: int = -1
    max_payload: int = -1
    vouched: "Token | None" = None  # the user's JWT, where an account has signed for it


class Refusal(NamedTuple):
    """Why a client is not let in: for the log, never for the client."""

    reason: str


class PasswordCheck(NamedTuple):
    """The verdict depends on a slow computation: call `decide` off the event loop's thread."""

    decide: Callable[[], Identity | Refusal]


class Lookup(NamedTuple):
    """The verdict depends on an account whose JWT is not known here. `find` looks for it elsewhere, and then calls its
    second argument, whether it was found or not."""

    account: str
    find: Callable[[str, Callable[[], None]], None]


Verdict = Identity | Refusal | PasswordCheck | Lookup
