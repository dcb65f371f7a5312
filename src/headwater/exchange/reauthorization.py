"""Which clients may stay when users change in a running broker (a reload): those whose rule is unchanged.

No password is kept after CONNECT, so none can be checked again. A client stays if the user that it logged in as is still
there, unchanged; every other is closed and may come back with the credentials that the new rules demand. Pure.
"""

from headwater.exchange.access_options import GLOBAL_ACCOUNT, Permissions, UserOptions
from headwater.exchange.auth.identity import Identity
from headwater.exchange.options import BrokerOptions

Rule = tuple[UserOptions, Permissions | None]


def accounts_can_change(before: BrokerOptions, after: BrokerOptions) -> bool:
    """Whether a running broker can get these accounts. New ones can come; none can go, for its streams and its clients;
    what one may store is fixed.
    """
    old, new = ({one.name: one for one in options.accounts} for options in (before, after))
    if before.operator != after.operator:
        return False
    if before.authorization.callout is None and after.authorization.callout is not None:
        return False  # the id that a callout service knows a broker by is a key, made at the start
    return all(name in new and new[name].jetstream == one.jetstream for name, one in old.items())


class Reauthorization:
    """From the rules `before` to those `after`. All users are gone through once, not for each client: with a thousand of
    them and ten thousand clients that took a minute."""

    def __init__(self, before: BrokerOptions, after: BrokerOptions) -> None:
        self._before, self._after = before.authorization, after.authorization
        self._asked, self._asks = _asks(before), _asks(after)
        old, new = _rules(before), _rules(after)
        self._configured = frozenset(old)
        self._unchanged = {key for key, rule in new.items() if old.get(key) == rule}

    def may_stay(self, identity: Identity) -> bool:
        """Whether a client that was `identity` is still welcome."""
        old, new = self._before, self._after
        if not identity.user:
            if not self._asked:
                return not self._asks
            return bool(new.token) and old.token == new.token
        if identity.user == old.username:
            return (old.username, old.password, old.default_permissions) == (
                new.username,
                new.password,
                new.default_permissions,
            )
        key = (identity.account, identity.user)
        if old.callout is not None and key not in self._configured:  # a callout service has let it in
            return old.callout == new.callout
        return key in self._unchanged


def _asks(options: BrokerOptions) -> bool:
    users = any(account.users for account in options.accounts)
    return options.authorization.required or users or options.operator is not None


def _rules(options: BrokerOptions) -> dict[tuple[str, str], Rule]:
    """Every user by account and name, with the permissions that hold where it has none of its own."""
    authorization = options.authorization
    found = {
        (GLOBAL_ACCOUNT, user.username or user.nkey): (user, authorization.default_permissions)
        for user in authorization.users
    }
    for account in options.accounts:
        defaults = account.default_permissions or authorization.default_permissions
        found |= {(account.name, user.username or user.nkey): (user, defaults) for user in account.users}
    return found
