"""The credentials that a client sends, and the identity that it gets."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from headwater.authorization.permissions import Rules
from headwater.model.record import Record
from headwater.options.access import GLOBAL_ACCOUNT, Permissions
from headwater.wire.handshake import ConnectOptions

if TYPE_CHECKING:
    from headwater.wire.jwt import Token, UserBody

STANDARD = "STANDARD"
WEBSOCKET = "WEBSOCKET"
LEAFNODE = "LEAFNODE"
LEAFNODE_WS = "LEAFNODE_WS"


class Credentials(Record, secret=("password", "token", "jwt", "signature")):
    """Credentials from CONNECT, the TLS handshake and the HTTP request; empty if absent. `repr` leaves secrets out."""

    user: str = ""
    password: str = ""
    token: str = ""
    nkey: str = ""
    jwt: str = ""
    signature: str = ""
    nonce: str = ""  # the text that must be signed
    certificate_names: tuple[str, ...] = ()  # names that may be a user's, in the order to try them
    connection_type: str = STANDARD
    address: str = ""

    @property
    def empty(self) -> bool:
        """Whether CONNECT had no credentials at all."""
        return not (self.user or self.password or self.token or self.nkey or self.jwt)


def shown_in(options: ConnectOptions, **others: object) -> Credentials:
    """The credentials in a CONNECT, plus `others`."""
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
    """The identity of an accepted client. Limits: -1 for none. `expires`: seconds since 1970, None for never."""

    account: str = GLOBAL_ACCOUNT
    user: str = ""  # for display: a name, or a public key
    rules: Rules | None = None
    expires: float | None = None
    account_expires: float | None = None
    max_subscriptions: int = -1
    max_payload: int = -1
    vouched: "tuple[Token, UserBody] | None" = None  # the user's JWT, if an account has signed one

    @property
    def permissions(self) -> Permissions:
        return self.rules.source if self.rules is not None else Permissions()


class Refusal(NamedTuple):
    """Why a client is refused: for the log, never for the client."""

    reason: str


class PasswordCheck(NamedTuple):
    """The verdict needs a slow computation: call `decide` outside the event loop's thread."""

    decide: Callable[[], Identity | Refusal]


class Lookup(NamedTuple):
    """The verdict needs an account whose JWT is unknown here. `find` fetches it, and then calls its second argument,
    found or not.
    """

    account: str
    find: Callable[[str, Callable[[], None]], None]


Verdict = Identity | Refusal | PasswordCheck | Lookup
