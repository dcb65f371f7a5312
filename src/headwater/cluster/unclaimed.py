"""Keeps peers' interest in accounts that this broker does not have, because a reload may add them. Pure.

A peer announces its interest once, and not again when this broker adds the account: if the interest had been dropped,
the peer would get no messages. nats-server creates an account for every name that it sees; here the interest is kept,
up to a limit per peer.
"""

from headwater.cluster.route import Interest

MOST = 1 << 16  # entries per peer; a peer with more interest in unknown accounts has to reconnect after the reload

_Key = tuple[bytes, bytes, bytes, bytes]  # account, subject, queue, origin


class Unclaimed:
    """The kept interest, by route number. Dialect v2 only: v1 has one account."""

    def __init__(self) -> None:
        self._by_route: dict[int, dict[_Key, Interest]] = {}

    def note(self, number: int, interest: Interest) -> bool:
        """Keep a change of the peer's interest on this route; False if that exceeds the limit."""
        known = self._by_route.setdefault(number, {})
        key = (interest.account, interest.subject, interest.queue, interest.origin)
        if not interest.number:
            known.pop(key, None)
        elif key in known or len(known) < MOST:
            known[key] = interest
        else:
            return False
        return True

    def claim(self, account: bytes) -> list[tuple[int, Interest]]:
        """Remove and return all interest in an account that now exists."""
        return [
            (number, known.pop(key))
            for number, known in self._by_route.items()
            for key in [key for key in known if key[0] == account]
        ]

    def forget(self, number: int) -> None:
        """Drop the interest of a closed route."""
        self._by_route.pop(number, None)
