"""What peers want in accounts that this broker does not have: kept, for a reload may bring the account. Pure.

A peer says once what it wants, and not again when we learn of an account: who forgot it would send that peer nothing.
nats-server makes an account of every name that it hears; here the words wait, and at most so many for each peer.
"""

from headwater.broker.cluster.route import Interest

MOST = 1 << 16  # entries for each peer; a peer that has more in foreign accounts has to come again after the reload

_Key = tuple[bytes, bytes, bytes]  # account, subject, queue


class Unclaimed:
    """By the number of the route. Dialect v2 alone: v1 knows one account."""

    def __init__(self) -> None:
        self._by_route: dict[int, dict[_Key, Interest]] = {}

    def note(self, number: int, interest: Interest) -> bool:
        """The peer at this route wants it, or not any more; False when it is one too many."""
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
        """All that is wanted in an account that is there now; it is kept no longer."""
        return [
            (number, known.pop(key))
            for number, known in self._by_route.items()
            for key in [key for key in known if key[0] == account]
        ]

    def forget(self, number: int) -> None:
        """The route is gone."""
        self._by_route.pop(number, None)
