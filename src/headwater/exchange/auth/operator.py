"""Operator mode: a chain of signatures instead of a list of users. Pure: the wall clock is an argument.

    operator JWT (configured) ──signed──▶ account JWT (resolver) ──signed──▶ user JWT (shown) ──names──▶ key that
                                                                                                        signed the nonce

Each link is checked at every connect, against the account as the resolver has it: its expiry, its signing keys (a scoped
one replaces what the user's token says by its template), its revocations, its limits. A bearer token needs no signature
of the nonce, where the account allows that.
"""

import re
import zoneinfo
from datetime import datetime, timedelta, tzinfo
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from headwater.errors import ConfigError, RemoteProtocolError
from headwater.exchange.access_options import (
    AccountOptions,
    JetStreamLimits,
    OperatorOptions,
    Permissions,
    ResponseRules,
    SubjectRules,
)
from headwater.exchange.auth.account_sharing import exports_of, imports_of, mappings_of
from headwater.exchange.auth.identity import Credentials, Identity, Refusal
from headwater.exchange.auth.jwt import (
    AccountBody,
    DefaultPermissions,
    Scope,
    Token,
    UserBody,
    UserLimits,
    decode_account,
    decode_operator,
    decode_user,
)
from headwater.exchange.auth.permissions import Rules
from headwater.exchange.auth.signatures import decode_base64, is_signed
from headwater.model.nkey import NkeyKind, decode_nkey
from headwater.model.subject import is_valid_subject

_CONNECTION_TYPES = {"STANDARD", "WEBSOCKET", "LEAFNODE", "LEAFNODE_WS", "MQTT", "MQTT_WS", "IN_PROCESS"}
_TEMPLATE = re.compile(r"\{\{\s*([a-z-]+)\(\s*([^)]*?)\s*\)\s*\}\}")
_NANOSECONDS = 1_000_000_000
_DEFAULT_RESPONSES = ResponseRules()


class Account(NamedTuple):
    """An account that the operator vouches for."""

    token: Token
    body: AccountBody
    scopes: dict[str, Scope | None]  # keys that may sign its users; None: without a scope


class Trust:
    """The operators, and the accounts they vouch for. Raises ConfigError for tokens that do not hold."""

    def __init__(self, options: OperatorOptions) -> None:
        self._keys: set[str] = set(options.trusted_keys)
        self.system_account = options.system_account
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
        for key, token in options.resolver.items():
            self._add(key, token)

    def options(self) -> list[AccountOptions]:
        """The accounts, as the configuration would have spelled them."""
        return [_account_options(key, account.body) for key, account in self.accounts.items()]

    def decide(self, shown: Credentials, now: float) -> Identity | Refusal:
        """Who shows these credentials; `now` in seconds since 1970."""
        if not shown.jwt:
            return Refusal("no JWT was shown")
        try:
            user, body = decode_user(shown.jwt)
        except RemoteProtocolError as error:
            return Refusal(str(error))
        if not _is_valid_at(user, now):
            return Refusal("the user's JWT has expired, or is not valid yet")
        account = self.accounts.get(body.issuer_account or user.issuer)
        if account is None:
            return Refusal("no account that is known signed the user's JWT")
        if not _is_valid_at(account.token, now):
            return Refusal("the account's JWT has expired")
        if user.issuer not in account.scopes:
            return Refusal("the user's JWT is not signed by a key of its account")
        scope = account.scopes[user.issuer]
        if scope is not None and _has_own_limits(body):
            return Refusal("a user of a scoped signing key may have no limits of its own")
        return self._admit(shown, user, body, account, body if scope is None else scope.template, now)

    def _admit(
        self, shown: Credentials, user: Token, body: UserBody, account: Account, limits: UserLimits, now: float
    ) -> Identity | Refusal:
        """The rest of `decide`: the account vouches for this user; whether it may connect here and now."""
        bearer = limits.bearer_token
        if bearer and account.body.limits.disallow_bearer:
            return Refusal("the account takes no bearer tokens")
        types = limits.allowed_connection_types or []
        if types and shown.connection_type not in {name.upper() for name in types} & _CONNECTION_TYPES:
            return Refusal("the user may not connect this way")
        if not bearer:
            key, signature = decode_nkey(user.subject, NkeyKind.USER), decode_base64(shown.signature)
            if key is None or not signature or not is_signed(key, shown.nonce.encode(), signature):
                return Refusal("the nonce is not signed with the user's key")
        if _is_revoked(account.body.revocations, user):
            return Refusal("the user is revoked")
        if not _comes_from(limits.src, shown.address):
            return Refusal("the user may not come from this address")
        left = _seconds_left(limits, now)
        if left is None:
            return Refusal("the user may not connect at this time of day")
        ends = [now + left] if left else []
        ends += [float(user.expires)] if user.expires else []
        try:
            rules = _rules_of(limits, account.body.default_permissions, user, account.token)
        except ValueError as error:
            return Refusal(f"the permissions cannot be used: {error}")
        return Identity(
            account=account.token.subject,
            user=user.subject,
            rules=rules,
            expires=min(ends) if ends else None,
            account_expires=float(account.token.expires) if account.token.expires else None,
            max_subscriptions=limits.subs,
            max_payload=limits.payload,
        )

    def _add(self, key: str, token: str) -> None:
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
        self.accounts[key] = Account(account, body, scopes)


def _account_options(key: str, body: AccountBody) -> AccountOptions:
    limits, jetstream = body.limits, None
    if limits.mem_storage or limits.disk_storage:
        jetstream = JetStreamLimits(
            max_memory=limits.mem_storage,
            max_file=limits.disk_storage,
            max_streams=limits.streams,
            max_consumers=limits.consumer,
            max_ack_pending=limits.max_ack_pending or -1,
            memory_max_stream_bytes=limits.mem_max_stream_bytes or -1,
            store_max_stream_bytes=limits.disk_max_stream_bytes or -1,
            max_bytes_required=limits.max_bytes_required,
        )
    return AccountOptions(
        name=key,
        jetstream=jetstream,
        max_connections=limits.conn,
        max_subscriptions=limits.subs,
        max_payload=limits.payload,
        exports=tuple(exports_of(body)),
        imports=tuple(imports_of(body)),
        mappings=tuple(mappings_of(body)),
    )


def _is_valid_at(token: Token, now: float) -> bool:
    return not (0 < token.expires <= now or token.not_before > now)


def _is_revoked(revocations: dict[str, int], user: Token) -> bool:
    """`*` revokes everybody; in both cases tokens issued up to that moment."""
    moments = [revocations[key] for key in ("*", user.subject) if key in revocations]
    return any(user.issued <= moment for moment in moments)


def _has_own_limits(body: UserBody) -> bool:
    own = (body.pub.allow, body.pub.deny, body.sub.allow, body.sub.deny, body.resp, body.src, body.times)
    return any(own) or body.bearer_token or any(limit > 0 for limit in (body.subs, body.data, body.payload))


def _comes_from(networks: list[str] | str | None, address: str) -> bool:
    listed = networks.split(",") if isinstance(networks, str) else networks or []
    listed = [network.strip() for network in listed if network.strip()]
    if not listed:
        return True
    try:
        return any(ip_address(address) in ip_network(network, strict=False) for network in listed)
    except ValueError:
        return False


def _seconds_left(limits: UserLimits, now: float) -> float | None:
    """How long the user may stay, by the time of day; 0 for no limit, None when not now."""
    if not limits.times:
        return 0.0
    try:
        zone: tzinfo | None = zoneinfo.ZoneInfo(limits.times_location) if limits.times_location else None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return None
    here = datetime.fromtimestamp(now, zone).astimezone(zone)
    best = 0.0
    for span in limits.times:
        try:
            start, end = (
                datetime.combine(here.date(), datetime.strptime(text, "%H:%M:%S").time(), here.tzinfo)
                for text in (span.start, span.end)
            )
        except ValueError:
            return None
        if start > end:  # it spans midnight
            end, start = (end, start - timedelta(days=1)) if here < end else (end + timedelta(days=1), start)
        if start < here < end:
            best = max(best, (end - here).total_seconds())
    return best or None


def _rules_of(limits: UserLimits, defaults: DefaultPermissions, user: Token, account: Token) -> Rules | None:
    """Raises ValueError for a denial that cannot be filled in: leaving it out would allow more than was meant."""
    own = limits.pub.allow or limits.pub.deny or limits.sub.allow or limits.sub.deny or limits.resp
    claims = limits if own else defaults

    def rules(allow: list[str], deny: list[str]) -> SubjectRules | None:
        if not allow and not deny:
            return None
        filled = [subject for text in allow if (subject := _fill(text, user, account)) is not None]
        denied = [_fill(text, user, account) for text in deny]
        if None in denied:
            raise ValueError("a denied subject names something that is not known here")
        return SubjectRules(
            allow=tuple(filled) if allow else None,
            deny=(*filter(None, denied), *((">",) if allow and not filled else ())),
        )

    publish, subscribe = rules(claims.pub.allow, claims.pub.deny), rules(claims.sub.allow, claims.sub.deny)
    if publish is None and subscribe is None and claims.resp is None:
        return None
    responses = None
    if claims.resp is not None:
        responses = ResponseRules(
            max_messages=claims.resp.max or _DEFAULT_RESPONSES.max_messages,
            expires=claims.resp.ttl / _NANOSECONDS or _DEFAULT_RESPONSES.expires,
        )
    return Rules(Permissions(publish=publish, subscribe=subscribe, responses=responses))


def _fill(text: str, user: Token, account: Token) -> str | None:
    """A subject with its templates filled in; None when one is unknown or the result is no subject."""
    values = {
        "name": user.name,
        "subject": user.subject,
        "account-name": account.name,
        "account-subject": account.subject,
    }
    unknown = False

    def value(found: re.Match[str]) -> str:
        nonlocal unknown
        unknown = unknown or found[1] not in values or bool(found[2])
        return values.get(found[1], "")

    subject = _TEMPLATE.sub(value, text)
    words = subject.split()
    valid = 1 <= len(words) <= 2 and all(is_valid_subject(word.encode()) for word in words)
    return None if unknown or not valid else subject
