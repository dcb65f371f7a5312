"""Interest of peers in accounts that this broker does not have, kept because a reload may add the account. Pure.

A peer announces its interest once, and not again when this broker gets the account: a broker that had dropped it would
send that peer nothing. nats-server creates an account for every name it sees; here the interest waits, bounded per peer.
"""

from headwater.cluster.route import Interest

MOST = 1 << 16  # entries per peer; a peer with more interest in unknown accounts has to reconnect after the reload

_Key = tuple[bytes, bytes, bytes, bytes]  # account, subject, queue, origin


class Unclaimed:
    """Kept by route number. Dialect v2 only: v1 knows one account."""

    def __init__(self) -> None:
        self._by_route: dict[int, dict[_Key, Interest]] = {}

    def note(self, number: int, interest: Interest) -> bool:
        """Keep a change of the interest of the peer at this route; False when that exceeds the limit."""
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
