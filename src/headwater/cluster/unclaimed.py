"""Interest of peers in accounts that this broker does not have: kept, for a reload may bring the account. Pure.

A peer announces its interest once, and not again when this broker gets the account: a broker that forgot it would send
that peer nothing. nats-server makes an account of every name in it; here the interest waits, up to a bound for each peer.
"""

from headwater.cluster.route import Interest

MOST = 1 << 16  # entries for each peer; a peer that has more in foreign accounts has to come again after the reload

_Key = tuple[bytes, bytes, bytes]  # account, subject, queue


class Unclaimed:
    """By the number of the route. Dialect v2 alone: v1 knows one account."""

    def __init__(self) -> None:
        self._by_route: dict[int, dict[_Key, Interest]] = {}

    def note(self, number: int, interest: Interest) -> bool:
        """Keep interest of the peer at this route, or its end; False when it is one too many."""
        known = self._by_route.setdefault(number, {})
        key = (interest.account, interest.subject, interest.queue)
        if not interest.number:
            known.pop(key, None)
        elif key in known or len(known) < MOST:
            known[key] = interest
        else:
            return False
        return True

    def claim(self, account: bytes) -> list[tuple[int, Interest]]:
        """All interest in an account that is there now; it is kept no longer."""
        return [
            (number, known.pop(key))
            for number, known in self._by_route.items()
            for key in [key for key in known if key[0] == account]
        ]

    def forget(self, number: int) -> None:
        """The route is gone."""
        self._by_route.pop(number, None)
