"""Who may stay when users change in a running broker (a reload): whoever was let in by a rule that still says the same.

Nobody's password is kept after CONNECT, so nobody can be asked again. A client stays if the user it proved to be is still
there, unchanged; everybody else is sent away and may come back with what the new rules ask for. Pure.
"""

from headwater.broker.auth.identity import Identity
from headwater.broker.options import GLOBAL_ACCOUNT, BrokerOptions, Permissions, UserOptions

Rule = tuple[UserOptions, Permissions | None]


def accounts_can_change(before: BrokerOptions, after: BrokerOptions) -> bool:
    """Whether a running broker can get these accounts. New ones can come; none can go, for its streams and its clients;
    what one may store is fixed.
    """
    old, new = ({one.name: one for one in options.accounts} for options in (before, after))
    if before.operator != after.operator:
        return False
    return all(name in new and new[name].jetstream == one.jetstream for name, one in old.items())


def may_stay(identity: Identity, before: BrokerOptions, after: BrokerOptions) -> bool:
    """Whether a client that was `identity` under the rules `before` is still welcome under those `after`."""
    old, new = before.authorization, after.authorization
    if not identity.user:
        if not _asks(before):
            return not _asks(after)
        return bool(new.token) and old.token == new.token
    if identity.user == old.username:
        return (old.username, old.password, old.default_permissions) == (
            new.username,
            new.password,
            new.default_permissions,
        )
    key = (identity.account, identity.user)
    return key in _rules(after) and _rules(before).get(key) == _rules(after)[key]


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
