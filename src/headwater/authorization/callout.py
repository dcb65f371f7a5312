"""Authentication callout: an external service decides on the identity of a client. Pure: makes the request, and checks
the answer.

    client ─CONNECT─▶ broker ─ request JWT, signed by the broker ─▶ $SYS.REQ.USER.AUTH ─▶ service
                      broker ◀─ response JWT, signed by the issuer, with a user JWT in it ─┘

Each request has its own user key: an answer with another key is an old one, and is refused. So is an answer for another
server or signed by another key, and a user in an account that the service may not place users in.

Credentials reach no one but the service: the request goes to its account only. Clients of that account may not publish
on the request subject (`guarded`). The service decides on leaf nodes as on clients.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.authorization.identity import Credentials, Identity, Refusal
from headwater.authorization.permissions import Rules
from headwater.authorization.server_keys import ServerKeys
from headwater.authorization.user_claims import comes_from, identity_of, is_valid_at, may_come_by
from headwater.errors import RemoteProtocolError
from headwater.options.access import AuthCalloutOptions, SubjectRules
from headwater.wire.jwt import Token, UserBody, decode_answer, decode_user

if TYPE_CHECKING:
    from headwater.wire.handshake import ConnectOptions

SUBJECT = b"$SYS.REQ.USER.AUTH"
XKEY_HEADER = "Nats-Server-Xkey"
_AUDIENCE = "nats-authorization-request"
_JWT_START = b"eyJ"


class Callout(NamedTuple):
    """The service for a callout. `issuer`: the nkey that signs answers, and the subject of requests; `signers`: keys
    that may sign for it.
    """

    account: str
    issuer: str
    auth_users: frozenset[str]
    xkey: str
    allowed_accounts: frozenset[str]
    signers: frozenset[str]


class Question(NamedTuple):
    """A login that a callout decides."""

    callout: Callout
    shown: Credentials
    connect: "ConnectOptions"


def configured(options: AuthCalloutOptions) -> Callout:
    """The callout of a configuration file."""
    return Callout(
        account=options.account,
        issuer=options.issuer,
        auth_users=frozenset(options.auth_users),
        xkey=options.xkey,
        allowed_accounts=frozenset(options.allowed_accounts),
        signers=frozenset((options.issuer,)),
    )


def request_claims(question: Question, user_key: str, server: dict[str, Any], client: dict[str, Any]) -> dict[str, Any]:
    """The claims of a request. `user_key`: generated for this request; `server`, `client`: facts about both."""
    shown, connect = question.shown, question.connect
    connect_options = {
        "jwt": shown.jwt,
        "nkey": shown.nkey,
        "sig": shown.signature,
        "auth_token": shown.token,
        "user": shown.user,
        "pass": shown.password,
        "name": connect.name,
        "lang": connect.lang,
        "version": connect.version,
    }
    client_info = {**client, "nonce": shown.nonce if shown.signature else ""}
    return {
        "aud": _AUDIENCE,
        "sub": question.callout.issuer,
        "nats": {
            "server_id": _without_blanks(server, "name", "host", "id"),
            "user_nkey": user_key,
            "client_info": _without_blanks(client_info),
            "connect_opts": {**_without_blanks(connect_options), "protocol": connect.protocol},
            "type": "authorization_request",
            "version": 2,
        },
    }


def read_answer(
    payload: bytes, question: Question, user_key: str, keys: ServerKeys, now: float
) -> tuple[Token, UserBody]:
    """The user in a service's answer. Raises RemoteProtocolError with the reason for a refusal."""
    callout = question.callout
    if not payload:
        raise RemoteProtocolError("the callout service gives no reason")
    sealed = bool(callout.xkey) and not payload.startswith(_JWT_START)
    if sealed:
        payload = keys.open(payload, callout.xkey)
    about, body = decode_answer(payload.decode("ascii", "replace"))
    if about.subject != user_key:
        raise RemoteProtocolError("the callout's answer is for another user")
    if about.audience != keys.server_id:
        raise RemoteProtocolError("the callout's answer is for another server")
    if not is_valid_at(about, now):
        raise RemoteProtocolError("the callout's answer has expired, or is not valid yet")
    if not sealed and about.issuer not in callout.signers:
        raise RemoteProtocolError("the callout's answer is signed by an unknown key")
    if body.issuer_account and body.issuer_account != callout.account:
        raise RemoteProtocolError("the callout's answer names another account as its issuer")
    if bool(body.error) == bool(body.jwt):
        raise RemoteProtocolError("the callout's answer has to be either a user or an error")
    if body.error:
        raise RemoteProtocolError(f"the callout service says {body.error[:200]!r}")
    user, limits = decode_user(body.jwt)
    if user.subject != user_key:
        raise RemoteProtocolError("the callout's user is not the one in the request")
    if not is_valid_at(user, now):
        raise RemoteProtocolError("the callout's user has expired, or is not valid yet")
    return user, limits


def place(
    question: Question, user: Token, body: UserBody, now: float, accounts: Mapping[str, Rules | None]
) -> Identity | Refusal:
    """The identity of a user returned by the service of a configuration file. `accounts`: by account, the rules of
    users without their own permissions.
    """
    if body.issuer_account:
        return Refusal("the callout's user has an issuer_account, which is for operators")
    if user.issuer != question.callout.issuer:
        return Refusal("the callout's user is signed by another key than its issuer")
    if user.audience not in accounts:
        return Refusal(f"the callout puts the user into account {user.audience!r}, which is not there")
    if not may_come_by(body, question.shown.connection_type):
        return Refusal("the callout's user may not connect this way")
    if not comes_from(body.src, question.shown.address):
        return Refusal("the callout's user may not come from this address")
    # A configured account has no token.
    home = Token(issuer="", subject=user.audience, name=user.audience, issued=0, expires=0, not_before=0)
    found = identity_of(user, body, home, now, accounts[user.audience])
    return found.replace(user=user.name or user.subject) if isinstance(found, Identity) else found


def guarded(identity: Identity, callout: Callout) -> Identity:
    """`identity`, without the right to publish requests to the service, if it is in the service's account."""
    if identity.account != callout.account:
        return identity
    source = identity.permissions
    if source.publish is None and source.responses is not None:
        return identity  # it may only answer messages
    publish = source.publish or SubjectRules()
    publish = publish.replace(deny=(*publish.deny, SUBJECT.decode()))
    return identity.replace(rules=Rules(source.replace(publish=publish)))


def _without_blanks(document: dict[str, Any], *kept: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value or name in kept}
