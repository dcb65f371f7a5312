"""What a reload (SIGHUP) may change in a running server, decided by comparing two configurations.

If any change requires a restart, none is made: half a reload would be a configuration that no file contains. Anything that
is not listed in RELOADABLE or handled below requires a restart.
"""

from typing import NamedTuple

from headwater.exchange.reauthorization import accounts_can_change
from headwater.server.config.draft import ServerConfig

RELOADABLE = frozenset(
    {
        "max_connections", "max_control_line", "max_payload", "max_pending", "max_subscriptions",
        "max_subscription_tokens", "ping_interval", "ping_max", "write_deadline", "lame_duck_duration",
        "lame_duck_grace_period", "auth_timeout",
    }
)  # fmt: skip
"""Broker options: they apply to all clients, but `max_pending` to those that connect from now on."""

USERS = frozenset({"authorization", "accounts", "no_auth_user", "mappings"})
"""Users, accounts and what these share. Clients whose user has changed are disconnected. Accounts may be added, but not
removed."""


class Comparison(NamedTuple):
    """`changed`: names and new values, to be logged. `refused`: messages about what cannot change."""

    changed: tuple[str, ...]
    refused: tuple[str, ...]


def compare(before: ServerConfig, after: ServerConfig) -> Comparison:
    """The differences of `after` from `before`, without secrets."""
    changed, refused = [], []
    accounts_can = accounts_can_change(before.broker, after.broker)
    for name, old in before.broker.items():
        new = getattr(after.broker, name)
        if old == new or (name == "port" and new == 0):
            continue
        if name in USERS and accounts_can:
            changed.append(name)  # without the value, which contains secrets
        elif name == "tls" and old is not None and new is not None:
            changed.append("tls")
        elif name in RELOADABLE:
            changed.append(f"{name} = {new}")
        else:
            refused.append(f"config reload not supported for {name}")
    others = ("monitoring", "ports_file_dir")
    different = [name for name in others if getattr(before, name) != getattr(after, name)]
    refused += [f"config reload not supported for {name}" for name in different]
    for name, old in before.logging.items():
        new = getattr(after.logging, name)
        if old != new:
            changed.append(f"log {name} = {new}")
    if before.pid_file != after.pid_file:
        changed.append(f"pid_file = {after.pid_file}")
    return Comparison(tuple(changed), tuple(refused))
