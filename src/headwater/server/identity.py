"""Which server this is: two public nkeys, and their secret halves where the broker has to prove that it is the one.

A proof is wanted by callout services only, so other brokers need no cryptography: their keys are random numbers.
"""

import os
from typing import TYPE_CHECKING, NamedTuple

from headwater.errors import EnvironmentProblem
from headwater.exchange.options import BrokerOptions
from headwater.model.nkey import NkeyKind, encode_nkey

if TYPE_CHECKING:
    from headwater.exchange.auth.server_keys import ServerKeys


class ServerIdentity(NamedTuple):
    """`server_id` is in INFO and in every event, `xkey` in INFO; `keys` are their secret halves."""

    server_id: str
    xkey: str
    keys: "ServerKeys | None" = None


def identity_for(options: BrokerOptions) -> ServerIdentity:
    """A new identity. Without PyNaCl it has no keys: the start, which needs them as well, says so."""
    if options.authorization.callout is not None or options.operator is not None:
        from headwater.exchange.auth.server_keys import ServerKeys

        try:
            keys = ServerKeys()
        except EnvironmentProblem:
            pass
        else:
            return ServerIdentity(keys.server_id, keys.xkey, keys)
    return ServerIdentity(encode_nkey(NkeyKind.SERVER, os.urandom(32)), encode_nkey(NkeyKind.CURVE, os.urandom(32)))
