"""The meaning of the claims in a user's JWT: times, networks, permissions with templates. Pure functions of the claims
and the time; operator.py and callout.py check the signatures.
"""

import re
import zoneinfo
from datetime import datetime, timedelta, tzinfo
from ipaddress import ip_address, ip_network

from headwater.authorization.identity import Identity, Refusal
from headwater.authorization.permissions import Rules
from headwater.model.subject import is_valid_subject
from headwater.options.access import Permissions, ResponseRules, SubjectRules
from headwater.wire.jwt import DefaultPermissions, Token, UserBody, UserLimits

_CONNECTION_TYPES = {"STANDARD", "WEBSOCKET", "LEAFNODE", "LEAFNODE_WS", "MQTT", "MQTT_WS", "IN_PROCESS"}
_TEMPLATE = re.compile(r"\{\{\s*([a-z-]+)\(\s*([^)]*?)\s*\)\s*\}\}")
_NANOSECONDS = 1_000_000_000
_DEFAULT_RESPONSES = ResponseRules()


def may_come_by(limits: UserLimits, connection_type: str) -> bool:
    """Whether a user may use this kind of connection; a list of unknown kinds allows none."""
    types = limits.allowed_connection_types or []
    return not types or connection_type in {name.upper() for name in types} & _CONNECTION_TYPES


def identity_of(
    user: Token, limits: UserLimits, account: Token, now: float, defaults: Rules | None
) -> Identity | Refusal:
    """The identity in `account` that these claims give at `now` (seconds since 1970). `defaults`: the rules of a user
    without its own permissions.
    """
    left = seconds_left(limits, now)
    if left is None:
        return Refusal("the user may not connect at this time of day")
    ends = [now + left] if left else []
    ends += [float(user.expires)] if user.expires else []
    try:
        rules = rules_of(limits, DefaultPermissions(), user, account) or defaults
    except ValueError as error:
        return Refusal(f"the permissions cannot be used: {error}")
    return Identity(
        account=account.subject,
        user=user.subject,
        rules=rules,
        expires=min(ends) if ends else None,
        account_expires=float(account.expires) if account.expires else None,
        max_subscriptions=limits.subs,
        max_payload=limits.payload,
    )


def default_rules(limits: UserLimits, defaults: DefaultPermissions, user: Token, account: Token) -> Rules | None:
    """The rules that an account gives to users without permissions; None for a user that has some. Raises ValueError."""
    return None if _has_permissions(limits) else rules_of(UserLimits(), defaults, user, account)


def _has_permissions(limits: UserLimits) -> bool:
    return bool(limits.pub.allow or limits.pub.deny or limits.sub.allow or limits.sub.deny or limits.resp)


def is_valid_at(token: Token, now: float) -> bool:
    """Whether a token is valid at `now` (seconds since 1970)."""
    return not (0 < token.expires <= now or token.not_before > now)


def is_revoked(revocations: dict[str, int], user: Token) -> bool:
    """Whether a user's token is revoked: by its key or `*` (all users), if it was issued at that time or before."""
    moments = [revocations[key] for key in ("*", user.subject) if key in revocations]
    return any(user.issued <= moment for moment in moments)


def has_own_limits(body: UserBody) -> bool:
    """Whether a token has its own permissions or limits; those of a scoped signing key must not."""
    own = (body.pub.allow, body.pub.deny, body.sub.allow, body.sub.deny, body.resp, body.src, body.times)
    return any(own) or body.bearer_token or any(limit > 0 for limit in (body.subs, body.data, body.payload))


def comes_from(networks: list[str] | str | None, address: str) -> bool:
    """Whether an address is in one of the networks; True if there are none."""
    listed = networks.split(",") if isinstance(networks, str) else networks or []
    listed = [network.strip() for network in listed if network.strip()]
    if not listed:
        return True
    try:
        return any(ip_address(address) in ip_network(network, strict=False) for network in listed)
    except ValueError:
        return False


def seconds_left(limits: UserLimits, now: float) -> float | None:
    """Seconds that the user may stay, by the time of day; 0 for no limit, None if it may not connect now."""
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


def rules_of(limits: UserLimits, defaults: DefaultPermissions, user: Token, account: Token) -> Rules | None:
    """The rules in these claims; None without permissions. Raises ValueError for a denied subject with an unknown
    template: leaving it out would allow more than intended.
    """
    claims = limits if _has_permissions(limits) else defaults

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
    """A subject with its templates filled in; None if one is unknown or the result is no valid subject."""
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
