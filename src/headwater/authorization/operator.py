"""Operator mode: a chain of signatures instead of a list of users. Pure: the wall clock is an argument.

    operator JWT (configured) ──signed──▶ account JWT (resolver) ──signed──▶ user JWT (sent) ───names──▶ key that
                                                                                                        signed the nonce

Each link of the chain is checked at every connect, against the resolver's current account JWT: its expiry, its signing
keys (a scoped one replaces the permissions in the user's token by its template), its revocations and its limits. A
bearer token needs no signature of the nonce, if the account allows that.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from headwater.authorization.account_sharing import (
    OWN_TIER,
    exports_of,
    imports_of,
    left_out_of,
    mappings_of,
    trace_of,
)
from headwater.authorization.callout import Callout, Question
from headwater.authorization.identity import Credentials, Identity, Lookup, Refusal
from headwater.authorization.user_claims import (
    comes_from,
    default_rules,
    has_own_limits,
    identity_of,
    is_revoked,
    is_valid_at,
    may_come_by,
)
from headwater.errors import ConfigError, RemoteProtocolError
from headwater.model.nkey import NkeyKind, decode_nkey
from headwater.model.signatures import decode_base64, is_signed
from headwater.options.access import AccountOptions, JetStreamLimits, OperatorOptions
from headwater.wire import error_texts
from headwater.wire.jwt import (
    AccountBody,
    Scope,
    Token,
    UserBody,
    UserLimits,
    decode_account,
    decode_operator,
    decode_user,
)

logger = logging.getLogger(__name__)

_ANY = "*"  # in allowed_accounts: a callout may place users in every account


class Account(NamedTuple):
    """An account whose JWT an operator has signed."""

    token: Token
    body: AccountBody
    scopes: dict[str, Scope | None]  # keys that may sign its users; None for a key without a scope


class Trust:
    """The operators, and the accounts that they have signed. Raises ConfigError for invalid tokens."""

    def __init__(self, options: OperatorOptions) -> None:
        self._keys: set[str] = set(options.trusted_keys)
        self.system_account = options.system_account
        self._pinned = frozenset(options.pinned_accounts)
        self._sentinel = options.default_sentinel
        for token in options.operators:
            try:
                operator, body = decode_operator(token)
            except RemoteProtocolError as error:
                raise ConfigError(f"the operator JWT cannot be used: {error}") from None
            if operator.issuer != operator.subject:
                raise ConfigError("the operator JWT is not signed by itself")
            self._keys.update((operator.subject, *body.signing_keys))
            self.system_account = self.system_account or body.system_account
        self.accounts: dict[str, Account] = {}
        self.tokens: dict[str, str] = {}  # account JWTs, by account key
        self.find: Callable[[str, Callable[[], None]], None] | None = None  # see Lookup; None without a source
        for key, token in options.resolver.items():
            self.learn(key, token)

    def learn(self, key: str, token: str) -> None:
        """Add or replace the JWT of an account. Raises ConfigError before any change."""
        account = self.accounts[key] = self.check(key, token)
        if self.tokens.get(key) != token:
            for what in left_out_of(account.body):
                logger.warning("account_jwt account=%s name=%s without_effect=%s", key, account.token.name, what)
        self.tokens[key] = token

    def forget(self, key: str) -> None:
        """Remove an account; safe to call again."""
        self.accounts.pop(key, None)
        self.tokens.pop(key, None)

    def trusts(self, key: str) -> bool:
        """Whether `key` is an operator's."""
        return key in self._keys

    def renewed(self, identity: Identity, now: float) -> Identity | str:
        """What a client is once its account has changed, or the -ERR text for one that may not stay."""
        account = self.accounts.get(identity.account)
        if account is None or not is_valid_at(account.token, now):
            return error_texts.ACCOUNT_EXPIRED
        if identity.vouched is None:
            return identity
        user, body = identity.vouched
        limits = _limits_of(account, user, body)
        if isinstance(limits, Refusal) or is_revoked(account.body.revocations, user):
            return error_texts.USER_REVOKED
        if limits.bearer_token and account.body.limits.disallow_bearer:
            return error_texts.USER_REVOKED
        found = _identity(user, body, account, limits, now)
        return found.replace(user=identity.user) if isinstance(found, Identity) else error_texts.USER_EXPIRED

    def options(self) -> list[AccountOptions]:
        """The accounts, in the form of the configuration."""
        return [_account_options(key, account.body) for key, account in self.accounts.items()]

    def decide(self, shown: Credentials, now: float) -> Identity | Refusal | Lookup:
        """The verdict on these credentials; `now` in seconds since 1970."""
        if not shown.jwt and not self._sentinel:
            return Refusal("no JWT was shown")
        try:
            user, body = self._decode(shown)
        except RemoteProtocolError as error:
            return Refusal(str(error))
        if not is_valid_at(user, now):
            return Refusal("the user's JWT has expired, or is not valid yet")
        name = body.issuer_account or user.issuer
        if self._pinned and name not in self._pinned and name != self.system_account:
            return Refusal("the account is not one of resolver_pinned_accounts")
        account = self.accounts.get(name)
        if account is None:
            return (
                Lookup(name, self.find)
                if self.find is not None
                else Refusal("no account that is known signed the user's JWT")
            )
        if not is_valid_at(account.token, now):
            return Refusal("the account's JWT has expired")
        limits = _limits_of(account, user, body)
        return limits if isinstance(limits, Refusal) else self._admit(shown, (user, body), account, limits, now)

    def _decode(self, shown: Credentials) -> tuple[Token, UserBody]:
        """The user's token; if it is missing or cannot be read, the default sentinel."""
        if not self._sentinel:
            return decode_user(shown.jwt)
        try:
            return decode_user(shown.jwt)
        except RemoteProtocolError:
            return decode_user(self._sentinel)

    def _admit(
        self, shown: Credentials, claims: tuple[Token, UserBody], account: Account, limits: UserLimits, now: float
    ) -> Identity | Refusal:
        """The rest of `decide`, once the account is known to have signed the user: whether it may connect in this way
        and now.
        """
        user, bearer = claims[0], limits.bearer_token
        if bearer and account.body.limits.disallow_bearer:
            return Refusal("the account takes no bearer tokens")
        if not may_come_by(limits, shown.connection_type):
            return Refusal("the user may not connect this way")
        if not bearer:
            key, signature = decode_nkey(user.subject, NkeyKind.USER), decode_base64(shown.signature)
            if key is None or not signature or not is_signed(key, shown.nonce.encode(), signature):
                return Refusal("the nonce is not signed with the user's key")
        if is_revoked(account.body.revocations, user):
            return Refusal("the user is revoked")
        if not comes_from(limits.src, shown.address):
            return Refusal("the user may not come from this address")
        return _identity(*claims, account, limits, now)

    # ── callouts: an account may leave the decision to a service ──

    def callout_of(self, name: str) -> Callout | None:
        """The callout of an account; None if it has none."""
        account = self.accounts.get(name)
        if account is None or not account.body.authorization.auth_users:
            return None
        claims = account.body.authorization
        return Callout(
            account=name,
            issuer=name,
            auth_users=frozenset(claims.auth_users or ()),
            xkey=claims.xkey,
            allowed_accounts=frozenset(claims.allowed_accounts or ()),
            signers=frozenset(account.scopes),
        )

    def callout_for(self, shown: Credentials) -> Callout | None:
        """The callout that decides on these credentials, which is that of their user's account; None if there is none."""
        try:
            user, body = self._decode(shown)
        except RemoteProtocolError:
            return None
        callout = self.callout_of(body.issuer_account or user.issuer)
        return None if callout is None or user.subject in callout.auth_users else callout

    def place(self, question: Question, user: Token, body: UserBody, now: float) -> Identity | Refusal:
        """The identity of a user that a callout service has returned."""
        name, callout = body.issuer_account or user.issuer, question.callout
        if name != callout.account and name not in callout.allowed_accounts and callout.allowed_accounts != {_ANY}:
            return Refusal(f"the callout may not put users into account {name}")
        account = self.accounts.get(name)
        if account is None or not is_valid_at(account.token, now):
            return Refusal(f"the callout puts the user into account {name}, which is not there or has expired")
        limits = _limits_of(account, user, body)
        if isinstance(limits, Refusal):
            return limits
        if not may_come_by(limits, question.shown.connection_type):
            return Refusal("the callout's user may not connect this way")
        if not comes_from(limits.src, question.shown.address):
            return Refusal("the callout's user may not come from this address")
        found = _identity(user, body, account, limits, now)
        return found.replace(user=user.name or user.subject) if isinstance(found, Identity) else found

    def check(self, key: str, token: str) -> Account:
        """Decode and check the JWT of an account. Raises ConfigError if it is invalid."""
        try:
            account, body = decode_account(token)
        except RemoteProtocolError as error:
            raise ConfigError(f"the JWT of account {key} cannot be used: {error}", value=key) from None
        if account.subject != key:
            raise ConfigError(f"the JWT under {key} is that of {account.subject}", value=key)
        if account.issuer not in self._keys:
            raise ConfigError(f"the JWT of account {key} is not signed by the operator", value=key)
        scopes: dict[str, Scope | None] = {key: None}
        for entry in body.signing_keys:
            if isinstance(entry, str):
                scopes[entry] = None
            else:
                scopes[entry.key] = entry
        return Account(account, body, scopes)


def _limits_of(account: Account, user: Token, body: UserBody) -> UserLimits | Refusal:
    """The user's limits: those of its token, or the template of the scoped key that signed it."""
    if user.issuer not in account.scopes:
        return Refusal("the user's JWT is not signed by a key of its account")
    scope = account.scopes[user.issuer]
    if scope is not None and has_own_limits(body):
        return Refusal("a user of a scoped signing key may have no limits of its own")
    return body if scope is None else scope.template


def _identity(user: Token, body: UserBody, account: Account, limits: UserLimits, now: float) -> Identity | Refusal:
    try:
        defaults = default_rules(limits, account.body.default_permissions, user, account.token)
    except ValueError as error:
        return Refusal(f"the permissions cannot be used: {error}")
    found = identity_of(user, limits, account.token, now, defaults)
    return found.replace(vouched=(user, body)) if isinstance(found, Identity) else found


def _account_options(key: str, body: AccountBody) -> AccountOptions:
    limits, jetstream = body.limits, None
    storage = limits.tiered_limits.get(OWN_TIER, limits)
    if storage.mem_storage or storage.disk_storage:
        jetstream = JetStreamLimits(
            max_memory=storage.mem_storage,
            max_file=storage.disk_storage,
            max_streams=storage.streams,
            max_consumers=storage.consumer,
            max_ack_pending=storage.max_ack_pending or -1,
            memory_max_stream_bytes=storage.mem_max_stream_bytes or -1,
            store_max_stream_bytes=storage.disk_max_stream_bytes or -1,
            max_bytes_required=storage.max_bytes_required,
            tier=OWN_TIER if OWN_TIER in limits.tiered_limits else "",
            tiers=tuple(limits.tiered_limits),
        )
    trace_dest, trace_sampling = trace_of(body)
    return AccountOptions(
        name=key,
        jetstream=jetstream,
        max_connections=limits.conn,
        max_subscriptions=limits.subs,
        max_payload=limits.payload,
        exports=tuple(exports_of(body)),
        imports=tuple(imports_of(body)),
        mappings=tuple(mappings_of(body)),
        trace_dest=trace_dest,
        trace_sampling=trace_sampling,
    )
