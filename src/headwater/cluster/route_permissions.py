"""The subjects that brokers exchange: `import` and `export` of the cluster's permissions, prepared for look-ups. Pure.

    imports   the subscriptions of local clients that are announced to peers, and so what peers send us
    exports   the subscriptions of peers that are accepted, and so what we send them; others are ignored silently

A subscription is allowed when every subject that it matches is. One that is wider than a denial is accepted, and messages
on denied subjects are not forwarded. Messages from a peer are delivered whatever `imports` says, as in nats-server: a peer
sends only what we announced interest in.

The rules are announced in INFO. A peer acts on one change of them: when we export more, it announces its interest again.
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
        """The subjects that an allowed subscription must still not get; None when there are none."""
        return self._denied or None

    def announced(self) -> SubjectLists | None:
        """The rules in the form of INFO."""
        rules = self._rules
        return None if rules is None else SubjectLists(allow=tuple(rules.allow or ()), deny=tuple(rules.deny))


def _encoded(subjects: tuple[str, ...]) -> list[bytes]:
    return [subject.encode("utf-8", "surrogateescape") for subject in subjects]
