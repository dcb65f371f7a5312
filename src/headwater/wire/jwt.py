"""JWTs in the form of NATS: signed by an nkey, and not trusted before the signature is checked.

    base64url({"typ":"JWT","alg":"ed25519-nkey"}) . base64url({claims}) . base64url(64-byte signature)

    claims: iss (the signing key), sub (the key described), iat, exp, nbf (seconds since 1970), nats: {type, version, …}

The signature covers the first two parts and the dot between them (version 2), or the claims alone (version 1). Claims
are decoded into structs: fields of the wrong type are refused, unknown fields ignored.
"""

from typing import TypeVar

import msgspec

from headwater.errors import RemoteProtocolError
from headwater.model.nkey import NkeyKind, decode_nkey
from headwater.model.signatures import decode_base64, is_signed

MAX_JWT_BYTES = 1 << 20

_ALGORITHMS = {"ed25519-nkey": 2, "ed25519": 1}


class Header(msgspec.Struct):
    typ: str
    alg: str


class SubjectClaims(msgspec.Struct):
    """Subjects; an empty `allow` allows all."""

    allow: list[str] = []
    deny: list[str] = []


class ResponseClaims(msgspec.Struct):
    """Permission to publish to reply subjects: `max` messages each, within `ttl` nanoseconds."""

    max: int = 0
    ttl: int = 0


class TimeRange(msgspec.Struct):
    """Times of day, "15:04:05"; the range may span midnight."""

    start: str = ""
    end: str = ""


class UserLimits(msgspec.Struct, kw_only=True):
    """What a user may do; a scoped signing key has the same fields as its template. -1 means no limit."""

    pub: SubjectClaims = msgspec.field(default_factory=SubjectClaims)
    sub: SubjectClaims = msgspec.field(default_factory=SubjectClaims)
    resp: ResponseClaims | None = None
    subs: int = -1
    data: int = -1
    payload: int = -1
    src: list[str] | str | None = None  # networks that the user may connect from
    times: list[TimeRange] | None = None
    times_location: str = ""
    bearer_token: bool = False
    allowed_connection_types: list[str] | None = None


class UserBody(UserLimits, kw_only=True):
    type: str = ""
    version: int = 1
    issuer_account: str = ""


class Scope(msgspec.Struct, kw_only=True):
    """A signing key whose users get exactly the permissions of `template`."""

    kind: str = ""
    key: str = ""
    role: str = ""
    template: UserLimits = msgspec.field(default_factory=UserLimits)


class StorageLimits(msgspec.Struct, kw_only=True):
    mem_storage: int = 0
    disk_storage: int = 0
    streams: int = -1
    consumer: int = -1
    max_ack_pending: int = -1
    mem_max_stream_bytes: int = -1
    disk_max_stream_bytes: int = -1
    max_bytes_required: bool = False


class AccountLimits(StorageLimits, kw_only=True):
    """`tiered_limits`: by tier, "R1", "R3" and so on, for streams with that many replicas; they replace the limits for
    all streams.
    """

    subs: int = -1
    payload: int = -1
    conn: int = -1
    disallow_bearer: bool = False
    tiered_limits: dict[str, StorageLimits] = msgspec.field(default_factory=dict)


class DefaultPermissions(msgspec.Struct, kw_only=True):
    pub: SubjectClaims = msgspec.field(default_factory=SubjectClaims)
    sub: SubjectClaims = msgspec.field(default_factory=SubjectClaims)
    resp: ResponseClaims | None = None


class ExportClaims(msgspec.Struct, kw_only=True):
    """What an account exports. With `token_req` an importer needs an activation token; we refuse such imports."""

    subject: str = ""
    type: str = ""
    token_req: bool = False
    response_type: str = ""
    response_threshold: int = 0  # ns
    account_token_position: int = 0
    allow_trace: bool = False


class ImportClaims(msgspec.Struct, kw_only=True):
    """What an account imports; older tokens have `to` instead of `local_subject`, for streams as a prefix."""

    subject: str = ""
    account: str = ""
    type: str = ""
    to: str = ""
    local_subject: str = ""
    share: bool = False
    allow_trace: bool = False


class TraceClaims(msgspec.Struct, kw_only=True):
    """The destination of traces; `sampling` in percent."""

    dest: str = ""
    sampling: int = 0


class MappingClaims(msgspec.Struct, kw_only=True):
    """One destination of a subject mapping; `weight` in percent, 0 for 100."""

    subject: str = ""
    weight: int = 0
    cluster: str = ""


class ExternalAuthorization(msgspec.Struct, kw_only=True):
    """An account's auth callout: its service logs in as one of `auth_users`. Without `auth_users` the account has no
    callout.
    """

    auth_users: list[str] | None = None
    allowed_accounts: list[str] | None = None
    xkey: str = ""


class AccountBody(msgspec.Struct, kw_only=True):
    type: str = ""
    version: int = 1
    limits: AccountLimits = msgspec.field(default_factory=AccountLimits)
    signing_keys: list[str | Scope] = []
    revocations: dict[str, int] = {}
    default_permissions: DefaultPermissions = msgspec.field(default_factory=DefaultPermissions)
    exports: list[ExportClaims] | None = None
    imports: list[ImportClaims] | None = None
    mappings: dict[str, list[MappingClaims]] | None = None
    trace: TraceClaims | None = None
    authorization: ExternalAuthorization = msgspec.field(default_factory=ExternalAuthorization)


class OperatorBody(msgspec.Struct, kw_only=True):
    type: str = ""
    version: int = 1
    signing_keys: list[str] = []
    system_account: str = ""


class AnswerBody(msgspec.Struct, kw_only=True):
    """A callout service's answer: either the `jwt` of a user, or an `error`."""

    type: str = ""
    version: int = 1
    jwt: str = ""
    error: str = ""
    issuer_account: str = ""


class DeletionBody(msgspec.Struct, kw_only=True):
    """An operator's request to a resolver to delete these accounts."""

    type: str = ""
    version: int = 1
    accounts: list[str] = []


Body = TypeVar("Body", UserBody, AccountBody, OperatorBody, AnswerBody, DeletionBody)
_TYPES = {
    UserBody: "user", AccountBody: "account", OperatorBody: "operator", AnswerBody: "authorization_response",
    DeletionBody: "",
}  # fmt: skip
"""The `type` claim of each kind of token; deletion requests have no fixed one."""


class _Claims(msgspec.Struct, kw_only=True):
    iss: str
    sub: str
    name: str = ""
    iat: int = 0
    exp: int = 0
    nbf: int = 0
    aud: str = ""
    nats: msgspec.Raw = msgspec.Raw(b"{}")
    type: str = ""  # version 1 has the type here


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a token signed by `issuer`. The caller decides whether to trust `issuer`. Times in seconds since
    1970.
    """

    issuer: str
    subject: str
    name: str
    issued: int
    expires: int  # 0: never
    not_before: int
    audience: str = ""


def decode(token: str, body: type[Body], subject: NkeyKind, issuers: tuple[NkeyKind, ...]) -> tuple[Token, Body]:
    """Decode a token about a key of kind `subject`, signed by a key of one of the kinds `issuers`.

    Raises RemoteProtocolError, which quotes nothing of the token, if it is malformed or its signature is wrong.
    """
    parts = token.strip().split(".")
    if len(token) > MAX_JWT_BYTES or len(parts) != 3:
        raise RemoteProtocolError("this is no JWT")
    header, claims, signature = (decode_base64(part) for part in parts)
    if not header or not claims or not signature:
        raise RemoteProtocolError("a part of the JWT is no base64")
    try:
        form = msgspec.json.decode(header, type=Header)
        found = msgspec.json.decode(claims, type=_Claims)
        content = msgspec.json.decode(found.nats, type=body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise RemoteProtocolError("the JWT's claims cannot be read") from None
    version = _ALGORITHMS.get(form.alg.lower())
    if form.typ.upper() != "JWT" or version is None:
        raise RemoteProtocolError("the JWT is of a kind that NATS does not know")
    keys = (decode_nkey(found.iss, kind) for kind in issuers)
    key = next((key for key in keys if key is not None), None)
    if key is None or decode_nkey(found.sub, subject) is None:
        raise RemoteProtocolError("the JWT's keys are not those of its kind")
    signed = f"{parts[0]}.{parts[1]}" if version == 2 else parts[1]
    if not is_signed(key, signed.encode("ascii"), signature):
        raise RemoteProtocolError("the JWT's signature is wrong")
    wanted = _TYPES[body]
    if wanted and (content.type or found.type) != wanted:
        raise RemoteProtocolError(f"the JWT is not that of {'an' if wanted[0] in 'ao' else 'a'} {wanted}")
    about = Token(
        issuer=found.iss,
        subject=found.sub,
        name=found.name,
        issued=found.iat,
        expires=found.exp,
        not_before=found.nbf,
        audience=found.aud,
    )
    return about, content


def decode_user(token: str) -> tuple[Token, UserBody]:
    """Decode a user's token, signed by an account or one of its signing keys. Raises RemoteProtocolError."""
    return decode(token, UserBody, NkeyKind.USER, (NkeyKind.ACCOUNT,))


def decode_account(token: str) -> tuple[Token, AccountBody]:
    """Decode an account's token, signed by a key of an operator or of an account. Raises RemoteProtocolError."""
    return decode(token, AccountBody, NkeyKind.ACCOUNT, (NkeyKind.OPERATOR, NkeyKind.ACCOUNT))


def decode_answer(token: str) -> tuple[Token, AnswerBody]:
    """Decode a callout service's answer, signed by its account. Raises RemoteProtocolError."""
    return decode(token, AnswerBody, NkeyKind.USER, (NkeyKind.ACCOUNT,))


def decode_deletion(token: str) -> tuple[Token, DeletionBody]:
    """Decode a request to delete accounts; its subject and issuer are an operator. Raises RemoteProtocolError."""
    return decode(token, DeletionBody, NkeyKind.OPERATOR, (NkeyKind.OPERATOR,))


def decode_operator(token: str) -> tuple[Token, OperatorBody]:
    """Decode an operator's token, signed by itself. Raises RemoteProtocolError."""
    return decode(token, OperatorBody, NkeyKind.OPERATOR, (NkeyKind.OPERATOR,))
