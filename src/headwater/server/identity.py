"""The server's identity: two public nkeys, and their private keys if the broker has to prove its identity.

Only callout services require a proof, so other brokers need no cryptography: their keys are random numbers.
"""

import os
from typing import TYPE_CHECKING, NamedTuple

from headwater.errors import EnvironmentProblem
from headwater.model.nkey import NkeyKind, encode_nkey
from headwater.options.broker import BrokerOptions

if TYPE_CHECKING:
    from headwater.authorization.server_keys import ServerKeys


class ServerIdentity(NamedTuple):
    """`server_id` is in INFO and in every event, `xkey` in INFO; `keys` are their secret halves."""

    server_id: str
    xkey: str
    keys: "ServerKeys | None" = None


def identity_for(options: BrokerOptions) -> ServerIdentity:
    """A new identity. Without PyNaCl it has no keys, and a start that needs them raises an error."""
    if options.authorization.callout is not None or options.operator is not None:
        from headwater.authorization.server_keys import ServerKeys

        try:
            keys = ServerKeys()
        except EnvironmentProblem:
            pass
        else:
            return ServerIdentity(keys.server_id, keys.xkey, keys)
    return ServerIdentity(encode_nkey(NkeyKind.SERVER, os.urandom(32)), encode_nkey(NkeyKind.CURVE, os.urandom(32)))
