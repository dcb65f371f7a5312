"""Which subjects brokers exchange: `import` and `export` of the cluster's permissions, made ready for look-ups. Pure.

    imports   which subscriptions of clients here are announced to peers, and so what peers send us
    exports   which subscriptions of peers are accepted, and so what we send them; others are passed over in silence

A subscription counts as allowed when all that it can get is. One that is wider than a denial is accepted, and what is
denied stays here when it is published. What a peer sends is delivered whatever `imports` says, as nats-server does: a peer
sends only what we have interest in.

The rules are announced in INFO. A peer acts on one change of them: when its partner exports more, it asks again.
"""

from headwater.exchange.access_options import SubjectRules
from headwater.exchange.auth.permissions import SubjectSet
from headwater.wire.peer_documents import SubjectLists


class Filter:
    """One direction. `rules` None lets everything through."""

    def __init__(self, rules: SubjectRules | None) -> None:
        self._rules = rules
        self._allowed = SubjectSet(_encoded(rules.allow)) if rules is not None and rules.allow is not None else None
        self._denied = SubjectSet(_encoded(rules.deny) if rules is not None else ())

    def lets(self, pattern: bytes) -> bool:
        """Whether a subscription to `pattern` goes through."""
        if self._allowed is not None and not self._allowed.covers(pattern):
            return False
        return not self._denied.covers(pattern)

    @property
    def denied(self) -> SubjectSet | None:
        """What a subscription that went through may still not get; None when there is no such thing."""
        return self._denied or None

    def announced(self) -> SubjectLists | None:
        """For INFO."""
        rules = self._rules
        return None if rules is None else SubjectLists(allow=tuple(rules.allow or ()), deny=tuple(rules.deny))


def _encoded(subjects: tuple[str, ...]) -> list[bytes]:
    return [subject.encode("utf-8", "surrogateescape") for subject in subjects]
