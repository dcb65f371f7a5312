"""A JetStream domain: the same API under a second name, by which clients elsewhere reach these streams.

    $JS.<domain>.API.<verb>…    ─▶ as $JS.API.<verb>…
    $JS.<domain>.API.$KV.…      ─▶ $KV.…     clients put the prefix of the API before every key of a bucket
    $JS.<domain>.API.$OBJ.…     ─▶ $OBJ.…

Ack and flow-control subjects have two forms, and the server subscribes to both:

    $JS.ACK.<stream>.<consumer>.…                           used by default, as in nats-server
    $JS.ACK.<domain>.<account hash>.<stream>.<consumer>.…   with `feature_flags { js_ack_fc_v2: true }`; unambiguous when
                                                            several domains are connected; `_` for no domain

Not here: a choice among domains. A request for another domain has no responders.
"""

from collections.abc import Callable
from typing import NamedTuple

from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.model.short_hash import short_hash
from headwater.options.access import GLOBAL_ACCOUNT

API_PREFIX = b"$JS.API."
NO_DOMAIN = "_"
_VERBS = (b"STREAM.", b"CONSUMER.", b"DIRECT.", b"META.", b"SERVER.", b"ACCOUNT.", b"HEADWATER.")
_STORES = (b"$KV.", b"$OBJ.")

OnApi = Callable[[bytes, bytes, bytes, bytes], object]


class Domain(NamedTuple):
    """Where a stream lives: the domain (`name`, "" for none) and the account. `scoped`: deliveries use the long form.
    `system`: the router of the system account, if that is another one."""

    name: str = ""
    account: str = GLOBAL_ACCOUNT
    scoped: bool = False
    system: Router | None = None

    @property
    def tokens(self) -> str:
        """The two tokens of the long form."""
        return f"{self.name or NO_DOMAIN}.{short_hash(self.account)}"

    def heads(self, kind: str, stream: str, consumer: str) -> tuple[bytes, bytes, bytes]:
        """The prefixes of a consumer's subjects of one `kind`, `ACK` or `FC`: the short form, the long form, and the one in
        use."""
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
