"""`connection_limits`: what a listener grants to a peer before it has authenticated; the fields are `net.limits`'s.

connection_limits { iggy { per_address: 100, login_time: "5s" }, monitoring { connections: 32 } }
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from headwater.net.limits import CONFIGURABLE, DEFAULTS, Limits
from headwater.server.config import fields
from headwater.server.config.document import Setting
from headwater.server.config.fields import Block, Field, Reading, done

_FIELDS = {
    "connections": done("connections", fields.number, "at a time; 0: no limit"),
    "per_address": done("per_address", fields.number, "of them, from one address; 0: no limit"),
    "login_seconds": done("login_time", fields.seconds, "until a login, or a request, must have come", "login_seconds"),
    "login_bytes": done("login_bytes", fields.storage_size, "of one frame or request head before the login"),
    "waiting_bytes": done("waiting_bytes", fields.storage_size, "of answers that the peer does not fetch"),
}

LISTENERS = tuple(
    Block(f"connection_limits.{listener}", tuple(_FIELDS[name] for name in names))
    for listener, names in CONFIGURABLE.items()
)
"""One block for each listener."""


def _read(listener: str, block: Block) -> Callable[[Reading, Setting], Limits]:
    return lambda reading, setting: DEFAULTS[listener].replace(**reading.block(setting, block))


def _field(listener: str, block: Block) -> Field:
    names = ", ".join(field.names[0] for field in block.fields)
    return done(listener, _read(listener, block), f"a block of: {names}")


CONNECTION_LIMITS = Block("connection_limits", tuple(map(_field, CONFIGURABLE, LISTENERS)))


def read_connection_limits(reading: Reading, setting: Setting) -> Mapping[str, Limits]:
    """Every listener's limits, those of the block in the place of the defaults."""
    found: dict[str, Any] = reading.block(setting, CONNECTION_LIMITS)
    return MappingProxyType({**DEFAULTS, **found})
