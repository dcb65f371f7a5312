"""Decides which clients may stay, and with which rights, when a reload changes the users. Pure.

Passwords are not kept after CONNECT, so they cannot be checked again. A client stays if its user still exists with the
same credentials, and gets the permissions of the new configuration. Every other client is disconnected, and may
reconnect with credentials that the new configuration accepts.
"""

from headwater.authorization.identity import Identity
from headwater.authorization.permissions import rules_of
from headwater.options.access import GLOBAL_ACCOUNT, Permissions, UserOptions
from headwater.options.broker import BrokerOptions

Rule = tuple[UserOptions, Permissions | None]  # a user without its permissions, and the permissions that apply to it


def accounts_can_change(before: BrokerOptions, after: BrokerOptions) -> bool:
    """Whether a running broker can change to these accounts. Accounts can be added, but not removed, because of their
    streams and clients. What an account may store is fixed where its streams are spread over workers.
    """
    old, new = ({one.name: one for one in options.accounts} for options in (before, after))
    if before.operator != after.operator:
        return False
    if before.authorization.callout is None and after.authorization.callout is not None:
        return False  # the id of a broker in callout requests is a key that is generated at the start
    fixed = before.is_spread
    return all(name in new and not (fixed and new[name].jetstream != one.jetstream) for name, one in old.items())


class Reauthorization:
    """The change from the rules `before` to those `after`. It compares all users once, not per client: with a thousand
    users and ten thousand clients that took a minute.
    """

    def __init__(self, before: BrokerOptions, after: BrokerOptions) -> None:
        self._before, self._after = before.authorization, after.authorization
        self._is_operators = before.operator is not None and before.operator == after.operator
        self._required_before, self._required_after = _requires_login(before), _requires_login(after)
        old, new = _rules(before), _rules(after)
        self._configured = frozenset(old)
        self._unchanged = {key for key, rule in new.items() if old.get(key) == rule}
        self._other_rules = {
            key: rules_of(permissions)
            for key, (user, permissions) in new.items()
            if key in old and old[key][0] == user and key not in self._unchanged
        }

    def renewed(self, identity: Identity) -> Identity | None:
        """The new identity of a client that had `identity`, the same object if nothing has changed; None if it must
        leave.
        """
        old, new = self._before, self._after
        if self._is_operators:  # rights are in JWTs, not in the configuration
            return identity
        if not identity.user:
            stays = bool(new.token) and old.token == new.token if self._required_before else not self._required_after
            return identity if stays else None
        if identity.user == old.username:
            if (old.username, old.password) != (new.username, new.password):
                return None
            same = old.default_permissions == new.default_permissions
            return identity if same else identity.replace(rules=rules_of(new.default_permissions))
        key = (identity.account, identity.user)
        if old.callout is not None and key not in self._configured:  # accepted by a callout service
            return identity if old.callout == new.callout else None
        if key in self._unchanged:
            return identity
        return identity.replace(rules=self._other_rules[key]) if key in self._other_rules else None


def _requires_login(options: BrokerOptions) -> bool:
    users = any(account.users for account in options.accounts)
    return options.authorization.required or users or options.operator is not None


def _rules(options: BrokerOptions) -> dict[tuple[str, str], Rule]:
    """Every user by account and name."""
    authorization = options.authorization
    found = {
        (GLOBAL_ACCOUNT, user.username or user.nkey): _rule(user, authorization.default_permissions)
        for user in authorization.users
    }
    for account in options.accounts:
        defaults = account.default_permissions or authorization.default_permissions
        found |= {(account.name, user.username or user.nkey): _rule(user, defaults) for user in account.users}
    return found


def _rule(user: UserOptions, defaults: Permissions | None) -> Rule:
    return user.replace(permissions=None), user.permissions or defaults
