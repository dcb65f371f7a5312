"""A JetStream domain: the same API under a second name, by which clients reach these streams from elsewhere.

    $JS.<domain>.API.<verb>…    ─▶ as $JS.API.<verb>…
    $JS.<domain>.API.$KV.…      ─▶ $KV.…     clients put the prefix of the API before every key of a bucket
    $JS.<domain>.API.$OBJ.…     ─▶ $OBJ.…

The subjects of acks and of flow control have two forms, and both are listened to:

    $JS.ACK.<stream>.<consumer>.…                           given out by default, as by nats-server
    $JS.ACK.<domain>.<account hash>.<stream>.<consumer>.…   with `feature_flags { js_ack_fc_v2: true }`, for it cannot be
                                                            mistaken where several domains meet; `_` is no domain

Refused here: a choice among domains. A request for another one has no responders.
"""

from collections.abc import Callable
from typing import NamedTuple

from headwater.exchange.access_options import GLOBAL_ACCOUNT
from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.model.short_hash import short_hash

API_PREFIX = b"$JS.API."
NO_DOMAIN = "_"
_VERBS = (b"STREAM.", b"CONSUMER.", b"DIRECT.", b"META.", b"SERVER.", b"ACCOUNT.")
_STORES = (b"$KV.", b"$OBJ.")

OnApi = Callable[[bytes, bytes, bytes, bytes], object]


class Domain(NamedTuple):
    """Where a stream lives: the domain (`name`, "" for none) and the account. `scoped`: the long form is given out."""

    name: str = ""
    account: str = GLOBAL_ACCOUNT
    scoped: bool = False

    @property
    def tokens(self) -> str:
        """The two tokens of the long form."""
        return f"{self.name or NO_DOMAIN}.{short_hash(self.account)}"

    def heads(self, kind: str, stream: str, consumer: str) -> tuple[bytes, bytes, bytes]:
        """What subjects of a consumer begin with, `kind` being `ACK` or `FC`: the short form, the long one, and the one that
        is given out."""
        short = f"$JS.{kind}.{stream}.{consumer}.".encode()
        long = f"$JS.{kind}.{self.tokens}.{stream}.{consumer}.".encode()
        return short, long, long if self.scoped else short


def subscribe_domain(router: Router, domain: str, on_api: OnApi, *, announce: bool = True) -> Subscription:
    """Pass requests under the domain's name to `on_api`, as if they had come under `$JS.API`. `announce`: other nodes of
    the cluster send the requests of their clients here."""
    prefix = f"$JS.{domain}.API.".encode()

    def take(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        rest = subject[len(prefix) :]
        if rest.startswith(_STORES):
            return router.publish(rest, reply, header_block, payload) > 0
        if rest != b"INFO" and not rest.startswith(_VERBS):
            return False
        return on_api(API_PREFIX + rest, reply, header_block, payload) is not False

    if not announce:
        return router.subscribe_between(prefix + b">", take, announce=False)
    return router.subscribe_internal(prefix + b">", take)
