"""Delivers a message of the broker whose payload is in pieces: bytes, and ranges of files that the kernel sends by
itself.

A sole subscriber on a plain socket gets them without a copy. Every other case (several subscribers, interest at another
broker, TLS, a subscriber with permissions) is left to `Router.publish`.
"""

from collections.abc import Sequence
from typing import cast

from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.net.link import Link
from headwater.net.piece_queue import Piece


def sole_client(router: Router, subject: bytes) -> Subscription | None:
    """The subscription of the only subscriber to a literal subject, if `send_pieces` may be used with it."""
    if router.forwarding is not None and router.forwarding.has_interest(subject):
        return None
    match = router.sublist.match(subject)
    if match.groups or len(match.plain) != 1:
        return None
    (found,) = match.plain
    outlet = found.outlet
    if outlet is None or found.closed or outlet.closed or outlet.guard is not None or found.maximum:
        return None
    link = outlet.link
    return found if isinstance(link, Link) and link.takes_ranges else None


def send_pieces(subscription: Subscription, subject: bytes, pieces: Sequence[Piece]) -> None:
    """Deliver a message without headers to the subscription that `sole_client` returned. A file that fails ends the
    client's connection.
    """
    outlet = subscription.outlet
    assert outlet is not None
    size = sum(map(len, pieces))
    line = b"MSG %b %b %d\r\n" % (subject, subscription.sid, size)
    outlet.out_messages += 1
    outlet.out_bytes += size
    subscription.delivered += 1
    cast(Link, outlet.link).send([line, *pieces, b"\r\n"])
