"""Push consumers that wait for a subscription to their deliver subject. Pure.

A subscription is an event, here as in nats-server: it wakes the consumers that wait for one of its subjects, at once,
wherever in the cluster the subscriber is. Once woken, a consumer waits no more; it checks the interest, and may wait anew.

A literal subscription costs one look-up. One with wildcards is held against every subject that is waited for, first by what
stands before its first wildcard: 0.1 µs each, where 10,000 consumers without a listener are many.
"""

from collections.abc import Callable

from headwater.model.subject import is_literal, matches

Wake = Callable[[], None]


class Awaited:
    """Of one account. False when there is nothing to wait for."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, list[Wake]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, subject: bytes, wake: Wake) -> None:
        """Call `wake` once, at the first subscription to the literal `subject` or a pattern that matches it. It is
        called while the subscription is being made: it must only schedule work."""
        self._waiting.setdefault(subject, []).append(wake)

    def remove(self, subject: bytes, wake: Wake) -> None:
        """Wait no more; without effect for one that does not wait."""
        waiting = self._waiting.get(subject, [])
        if wake in waiting:
            waiting.remove(wake)
            if not waiting:
                del self._waiting[subject]

    def heard(self, pattern: bytes) -> None:
        """There is a new subscription to `pattern`, here or at a peer."""
        if is_literal(pattern):
            found = [pattern] if pattern in self._waiting else []
        else:
            head = pattern.partition(b"*")[0].partition(b">")[0]
            found = [each for each in self._waiting if each.startswith(head) and matches(pattern, each)]
        for subject in found:
            for wake in self._waiting.pop(subject):
                wake()
