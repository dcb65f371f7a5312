"""Applies limits and JWTs that were changed in a running broker, its own or an account's, to the clients that are there.

The newest connections above a lowered number end. The others have the new sizes at once, as in nats-server: a client that
was announced a larger payload may send one. Subscriptions above a lowered number stay.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headwater.exchange.account import Account
from headwater.exchange.session import Session
from headwater.exchange.sessions import Sessions
from headwater.wire import error_texts

if TYPE_CHECKING:
    from headwater.authorization.operator import Trust
    from headwater.leaf.service import LeafNodes

logger = logging.getLogger(__name__)


def make_room(accounts: Iterable[Account], sessions: Sessions) -> None:
    """Apply the limits to all clients, and end as many as are too many. Of clients that are too many for several processes
    with one port, each ends its share."""
    clients = [session for session in reversed(sessions.all()) if not session.end_reason]
    for session in clients:
        session.apply_limits()
    members = Counter(session.membership.account for session in clients)
    for account in accounts:
        limit = account.options.max_connections if account.options is not None else -1
        if limit < 0:
            continue
        here = members[account]
        total = here + account.connections_elsewhere
        if total > limit:
            of_account = [session for session in clients if session.membership.account is account]
            _end(
                of_account[: _share(total - limit, here, total)],
                error_texts.MAXIMUM_ACCOUNT_CONNECTIONS,
                f"of account {account.name}",
            )
    clients = [session for session in clients if not session.end_reason]
    total = len(clients) + sessions.watch.elsewhere()
    surplus = total - sessions.options.max_connections
    if surplus > 0:
        _end(clients[: _share(surplus, len(clients), total)], error_texts.MAXIMUM_CONNECTIONS, "of the server")


def _share(surplus: int, here: int, total: int) -> int:
    """How many of `here` clients end where of `total` so many are too many."""
    return -(-surplus * here // total)


def judge_again(sessions: Sessions, leafnodes: "LeafNodes | None", trust: "Trust", account: str, now: float) -> None:
    """The JWT of an account has changed: disconnect the clients and spokes whose users it no longer vouches for. The others
    have the permissions and the time that it gives now; `now` in seconds since 1970."""
    if leafnodes is not None:
        leafnodes.accepting.judge_again(
            lambda identity: trust.renewed(identity, now) if identity.account == account else identity
        )
    for session in sessions.all():
        before = session.membership.identity
        if not session.login.accepted or before.account != account:
            continue
        found = trust.renewed(before, now)
        if isinstance(found, str):
            session.expire(found)
            continue
        found = session.login.gate.without_callout_requests(found)
        if found.permissions == before.permissions:  # the same object: it knows which replies are still allowed
            session.membership.identity = found.replace(rules=before.rules)
        else:
            session.renew(found)
        sessions.end_in_time(session)


def _end(clients: list[Session], text: str, owner: str) -> None:
    for session in clients:
        session.expire(text)
    if clients:
        logger.info("Closed %d connections to fall within max_connections %s", len(clients), owner)
